"""Which backend does the work, and what a command needs before it can begin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from envlock.cli.options import Common
from envlock.errors import UnusableInput, UsageProblem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from envlock.adapters.installed import Installed
    from envlock.adapters.installer import Planner, Stager
    from envlock.adapters.resolving import Resolver
    from envlock.adapters.state import Memory
    from envlock.guard.always import Places
    from envlock.guard.command import Request
    from envlock.guard.decide import Protected
    from envlock.guard.run import Scene
    from envlock.model.facts import Target
    from envlock.model.manifest import Manifest
    from envlock.model.profile import Profile
    from envlock.snapshot import Request as SnapshotRequest


def open_target(common: Common, *, unfinished: bool = False) -> Target:
    """The target, asked about itself.

    Args:
        unfinished: whether a target with an unfinished restore is welcome.

    Raises:
        UnusableInput: there is no usable target, or a restore has not ended in it.
    """
    from envlock.adapters.interpreter import find_python, read_target

    target = read_target(find_python(common.python, common.env), common.env)
    if not unfinished:
        from envlock.adapters.state import refuse_unfinished

        refuse_unfinished(target.layout)
    return target


def memory(common: Common, target: Target) -> Memory:
    """What envlock remembers of a target."""
    from envlock.adapters.state import memory_of

    return memory_of(target.layout, common.env)


@dataclass(frozen=True, slots=True)
class Found:
    """A manifest and where it came from."""

    manifest: Manifest
    source: str


def find_manifest(common: Common, target: Target, wheelhouse: str | None = None) -> Found | None:
    """The manifest in force: ``--manifest``, a wheelhouse's own, ``$ENVLOCK_MANIFEST``, the
    remembered one.

    Raises:
        UnusableInput: the named one cannot be used.
    """
    import os

    from envlock.adapters.state import read_manifest

    inside = os.path.join(wheelhouse, "envlock.yaml") if wheelhouse else None
    own = inside if inside and os.path.exists(inside) else None
    for path in (common.named_manifest, own, common.variable_manifest):
        if path:
            return Found(read_manifest(path), path)
    remembered = memory(common, target)
    manifest = remembered.manifest()
    return Found(manifest, str(remembered.manifest_path)) if manifest else None


def need_manifest(common: Common, target: Target, wheelhouse: str | None = None) -> Found:
    """Like :func:`find_manifest`.

    Raises:
        UnusableInput: there is none, too.
    """
    found = find_manifest(common, target, wheelhouse)
    if found is None:
        raise UnusableInput(
            "manifest: none is named, and none is remembered for this target",
            "make one with 'envlock snapshot' while the target is healthy, or name one with "
            "--manifest FILE",
        )
    return found


def choose_profile(common: Common, named: str, target: Target) -> Profile:
    """The profile of ``--profile``; ``auto`` looks at labels, then at the machine."""
    from envlock.adapters.installed import read_installed
    from envlock.adapters.profiles import load_profile

    return (
        load_profile(named)
        if named != "auto"
        else fitting_profile(common, read_installed(target.layout))
    )


def fitting_profile(common: Common, dists: Iterable[Installed]) -> Profile:
    """The profile that speaks for what is installed, and for the machine."""
    from envlock.adapters.profiles import bundled_profiles, load_profile, present_profiles
    from envlock.model.profile import choose_profile as choose

    installed = {dist.name: dist.version for dist in dists}
    present = present_profiles(common.env, common.root)
    return load_profile(choose(bundled_profiles(), installed, present))


def snapshot_request(common: Common, target: Target, profile: str = "auto") -> SnapshotRequest:
    """What a snapshot of this target, taken now on this machine, is made of."""
    from envlock import __version__
    from envlock.adapters.stack import describe
    from envlock.cli.options import now
    from envlock.snapshot import Request as SnapshotRequest

    chosen = choose_profile(common, profile, target)
    machine, stack, hung = describe(chosen, common.env, common.root)
    return SnapshotRequest(
        profile=chosen,
        machine=machine,
        stack=stack,
        noticed=hung,
        created=now(),
        tool=f"envlock {__version__}",
    )


def stager(common: Common, named: str = "auto") -> Stager:
    """The backend that unpacks wheels: envlock's own unless another one is named.

    Raises:
        UnusableInput: no such backend.
    """
    from envlock.adapters.native import NativeStager
    from envlock.adapters.pip import PipStager
    from envlock.adapters.uv import UvStager, find_uv

    if named in ("auto", "native"):
        return NativeStager()
    if named == "uv" and (program := find_uv(common.env)):
        return UvStager(program=program, env=common.env)
    if named == "pip":
        return PipStager(env=common.env)
    raise UnusableInput(f"backend: '{named}' is not there", "one of native, uv, pip")


def offline_resolver(common: Common) -> Resolver | None:
    """A resolver that asks no index, or None where there is no program for it."""
    from envlock.adapters.index_settings import IndexSettings
    from envlock.adapters.resolve_uv import UvResolver
    from envlock.adapters.uv import find_uv

    program = find_uv(common.env)
    if program is None:
        return None
    return UvResolver(program=program, env=common.env, settings=IndexSettings(no_index=True))


def planner(common: Common, request: Request) -> Planner:
    """The tool that a command line names.

    Raises:
        ProgramFailed: it is uv, and there is none.
    """
    if request.tool == "pip":
        from envlock.adapters.pip import PipPlanner

        return PipPlanner(env=common.env)
    if request.tool == "pip-sync":
        from envlock.adapters.pip_sync import PipSyncPlanner

        return PipSyncPlanner(env=common.env)
    return _uv_planner(common, request)


def _uv_planner(common: Common, request: Request) -> Planner:
    import shutil

    from envlock.adapters.uv import UvPlanner, find_uv
    from envlock.errors import ProgramFailed

    own = find_uv(common.env)
    typed = request.program if request.by_path else shutil.which("uv", path=common.env.get("PATH"))
    program = typed or own
    if program is None:
        raise ProgramFailed("uv: not found", "install it, or type the same with pip")
    if request.project:
        from envlock.adapters.uv_project import UvProjectPlanner

        return UvProjectPlanner(program=program, asked=own or program, env=common.env)
    return UvPlanner(program=program, asked=own or program, env=common.env)


def scene(common: Common, request: Request, target: Target) -> Scene:
    """Everything that guard judges by.

    Raises:
        UnusableInput: the command means another environment, or the manifest cannot be used.
    """
    from envlock.adapters.installed import read_inventory
    from envlock.cli import protecting
    from envlock.cli.surroundings import configured
    from envlock.guard.run import Scene

    request = configured(common, request, target)
    _same_environment(common, request, target)
    inventory = read_inventory(target.layout)
    found = None if request.changes_nothing else find_manifest(common, target)
    protected: tuple[Protected, ...] = ()
    above: tuple[Protected, ...] = ()
    if not request.changes_nothing:
        protected = protecting.at_stake(common, request, target, inventory, found)
        above = protecting.builds_above(common, target)
    return Scene(
        request=request,
        target=target,
        planner=planner(common, request),
        inventory=inventory,
        protected=protected,
        env=common.env,
        above=above,
        healthy={d.name: d.version for d in found.manifest.distributions} if found else {},
    )


def places(common: Common, target: Target) -> Places:
    """The files in which the builds of a target can be held against plain installs."""
    import os

    from envlock.adapters.marker import marker_of
    from envlock.adapters.pip_conf import ConstraintsFile, PipConf, listed_in
    from envlock.adapters.uv_toml import UvToml, user_config
    from envlock.guard.always import Places

    env = {"HOME": os.path.expanduser("~"), **common.env}
    listed = listed_in(target.home)
    conf = os.path.join(target.home, "pip.conf")
    return Places(
        constraints=ConstraintsFile(path=listed),
        pip=PipConf(path=conf, constraints=listed, env=env),
        uv=UvToml(path=user_config(env), prefix=target.home),
        marker=None if target.venv else marker_of(target),
    )


def _same_environment(common: Common, request: Request, target: Target) -> None:
    """Bare names mean the target; what is named by a path or a version has to be it.

    Raises:
        UnusableInput: it is another one.
    """
    import os

    from envlock.adapters.interpreter import find_python, read_target

    named = [*request.interpreters, *filter(None, [common.env.get("PIP_PYTHON")])]
    elsewhere = request.given.has("--python-executable")  # what a pip-sync works on
    if request.by_path and request.tool != "uv" and not elsewhere:
        from envlock.adapters.pip import python_of

        named.append(request.program if request.module else python_of(request.program))
    for path in named:
        if _is_version(path, target):
            continue
        other = read_target(find_python(path, common.env), common.env)
        if os.path.realpath(other.layout.purelib) != os.path.realpath(target.layout.purelib):
            raise UnusableInput(
                f"target: '{path}' is the Python of '{other.layout.prefix}', "
                f"and the target is '{target.layout.prefix}'",
                f"guard that one with: envlock guard --python {path} …",
            )
    if request.version_named and not target.python.startswith(f"{request.version_named}."):
        raise UnusableInput(
            f"target: '{request.program}' is not the target's Python {target.python}",
            "type 'pip', or name the target with --python PATH",
        )
    if request.given.has("--system") and target.venv:
        raise UnusableInput(
            f"target: '--system' does not mean '{target.layout.prefix}'",
            "leave it out, or name the system's Python with --python PATH",
        )


def _is_version(named: str, target: Target) -> bool:
    """Whether a Python is named by a version, as uv takes it, that is the target's."""
    import re

    found = re.fullmatch(r"(?:(?:cpython|python|cp)@?)?(3(?:\.\d+){0,2})", named)
    return found is not None and f"{target.python}.".startswith(f"{found[1]}.")


def read_text(path: str) -> str | None:
    """Text of a requirements file, or None.

    Raises:
        UsageProblem: it is a stream: guard would take from the tool what it reads.
    """
    import os
    from pathlib import Path
    from urllib.parse import unquote

    if path.startswith("file://"):
        path = unquote(path.removeprefix("file://"))
    try:
        file, typed = Path(path), path == "-"  # so uv calls its standard input
        known = file.is_file() or file.is_dir() or path == os.devnull
        if not known and (typed or file.exists()):
            raise UsageProblem(
                f"{path}: a stream can be read once, and guard and the tool both have to",
                "write it to a file, and name that one",
            )
        return file.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):  # no name of a file has a null byte
        return None
