"""What steers the guarded tool apart from its command line: read here, judged in guard."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from envlock.cli.wiring import read_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envlock.adapters.installer import Plan
    from envlock.cli.options import Common
    from envlock.guard.command import Request
    from envlock.guard.run import Scene
    from envlock.model.facts import Target


def configured(common: Common, request: Request, target: Target) -> Request:
    """The request with what variables and configuration files say, without what does not count in
    the target; a project's command that works on another environment is outside."""
    from envlock.adapters.configuration import (
        pip_files,
        pip_tools_files,
        read_pip_tools,
        read_toml,
        uv_files,
    )
    from envlock.adapters.sources import project_name
    from envlock.guard.command import configured as with_settings
    from envlock.guard.settings import Source, Surroundings

    typed, env = request.typed, common.env
    if request.tool == "uv":
        named = "".join(typed.value("--config-file")[-1:])
        found = uv_files(env, ignored=typed.has("--no-config"), named=named)
        tables = list(read_toml(found))
    elif request.tool == "pip-sync":
        named = "".join(typed.value("--config")[-1:])
        found = pip_tools_files(ignored=typed.has("--no-config"), named=named)
        tables = list(read_pip_tools(found))
    else:
        isolated = typed.has("--isolated")
        found = pip_files(env, target.home or target.layout.prefix, isolated=isolated)
        kept = {name: value for name, value in env.items() if not name.startswith("PIP_")}
        env, tables = kept if isolated else env, []
    files = tuple(Source(path=path, text=text) for path, text in found)
    request = with_settings(request, Surroundings(env=env, files=files), read_text, tables)
    request = request.within(target.markers).with_names(project_name)
    return _placed(common, request, target)


def _placed(common: Common, request: Request, target: Target) -> Request:
    from envlock.adapters.project import project_environment

    if not request.project or not request.judged:
        return request
    place = project_environment(
        common.env,
        active=request.given.has("--active"),
        project="".join(request.typed.value("--project")[-1:]),
        directory="".join(request.typed.value("--directory")[-1:]),
    )
    prefix = os.path.realpath(target.home or target.layout.prefix)
    return replace(request, outside=not place or os.path.realpath(place) != prefix)


#: Options that nobody typed and that decide what is lost.
_TELLING = ("--upgrade", "--upgrade-strategy", "--force-reinstall", "--ignore-installed",
            "--reinstall", "--target", "--prefix", "--root", "--user", "--requirement",
            "--constraint", "--constraints", "--overrides", "--exact")  # fmt: skip
_BOUNDS = ("--constraint", "--constraints")


def steering(scene: Scene, plan: Plan) -> Iterator[str]:
    """Where the options are from that nobody typed and that matter for the answer."""
    for option, origin in scene.request.origins.items():
        if option in _TELLING and (option not in _BOUNDS or _bears(scene, plan, option)):
            yield f"'{option}' is set by {origin}"


def _bears(scene: Scene, plan: Plan, option: str) -> bool:
    """Whether constraints that nobody typed are about what changes, and against what is there."""
    from envlock.guard.advice import unmet
    from envlock.guard.command import requirement_lines

    request = scene.request
    files = set(request.given.value(option)) - set(request.typed.value(option))
    lines = [line for file in sorted(files) for line in requirement_lines(file, read_text)]
    touched = {change.name: change.old or "" for change in plan.changes}
    touched |= {build.name: build.version for build in scene.intact}
    return any(unmet(line, name, version) for line in lines for name, version in touched.items())


def other_cause(common: Common, scene: Scene, subjects: set[str]) -> Iterator[str]:
    """The other cause of a missing device: people who reinstall torch because it finds none may
    only have to source the vendor's script."""
    from envlock.adapters.activation import sleeping_script
    from envlock.adapters.profiles import bundled_profiles

    if "torch" not in subjects | scene.request.names:
        return
    for script in filter(None, (sleeping_script(p, common.env) for p in bundled_profiles())):
        yield (
            f"if a device is missing: this shell is not activated, and that may be all; "
            f"type: source {script}"
        )
