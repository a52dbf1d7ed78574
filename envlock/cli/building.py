"""Which programs build a wheelhouse: wiring of its own, for a target that is somewhere else."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from envlock.errors import UsageProblem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from envlock.adapters.index_settings import IndexSettings
    from envlock.adapters.resolving import Resolver
    from envlock.cli.options import Common
    from envlock.model.facts import Finding
    from envlock.model.manifest import LockedTarget
    from envlock.wheelhouse.resolve import Tools


def tools_for(
    common: Common, target: LockedTarget, resolver: str = "auto"
) -> tuple[Tools, IndexSettings]:
    """What finds, fetches and builds wheels for a target that is somewhere else, from the indexes
    that are configured for pip and uv.

    Args:
        resolver: ``uv``, ``pip-tools``, or ``auto``: uv where it runs and knows the target.

    Raises:
        UsageProblem: no such resolver.
        ProgramFailed: there is no uv, or pip's configuration cannot be read.
    """
    from envlock.adapters.build_sdist import PipBuilder
    from envlock.adapters.index_settings import read_index_settings
    from envlock.adapters.web import Web
    from envlock.wheelhouse.fetch import Fetcher
    from envlock.wheelhouse.resolve import Tools

    settings = read_index_settings(common.env)
    tools = Tools(
        resolver=_resolver(common, target, settings, resolver),
        downloader=Fetcher(
            web=Web(settings=settings, env=common.env), progress=common.screen.transfer
        ),
        builder=PipBuilder(env=common.env, settings=settings),
    )
    return tools, settings


def _resolver(
    common: Common, target: LockedTarget, settings: IndexSettings, named: str
) -> Resolver:
    from envlock.adapters.resolve_piptools import PipToolsResolver
    from envlock.adapters.resolve_uv import UvResolver, knows
    from envlock.adapters.uv import find_uv
    from envlock.errors import ProgramFailed

    if named not in ("auto", "uv", "pip-tools"):
        raise UsageProblem(f"--resolver: '{named}' is not there", "one of auto, uv, pip-tools")
    program = find_uv(common.env)
    if named == "uv" and program is None:
        raise ProgramFailed("uv: not found", "install it beside envlock, or leave --resolver out")
    if program is not None and (named == "uv" or (named == "auto" and knows(target))):
        return UvResolver(program=program, env=common.env, settings=settings)
    return PipToolsResolver(env=common.env, settings=settings)


def need_files(paths: Iterable[str]) -> None:
    """
    Raises:
        UnusableInput: requirements files are not there; names all of them.
    """
    from envlock.errors import UnusableInput

    missing = [path for path in paths if "://" not in path and not os.path.isfile(path)]
    if missing:
        named = ", ".join(f"'{path}'" for path in missing)
        raise UnusableInput(f"-r: no such file: {named}", "name files with one requirement a line")


def ignored_settings(settings: IndexSettings) -> list[Finding]:
    """What people configured for pip or uv, and a build for another machine leaves aside."""
    from envlock.model.facts import Finding

    return [
        Finding(
            code="build.setting-ignored",
            subject=name,
            what="is set, and plays no part here",
            why="what is chosen depends on the manifest and the request alone",
            hint="say it in a requirement",
        )
        for name in settings.ignored
    ]
