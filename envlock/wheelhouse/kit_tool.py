"""What a kit carries to run envlock where it is unpacked: its own wheels, for the target."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name

import envlock
from envlock.adapters import files
from envlock.adapters.installed import Installed, read_installed
from envlock.adapters.resolving import Downloader, Question, Resolver
from envlock.adapters.wheelwriter import Member, write_wheel
from envlock.errors import EnvlockError, ProgramFailed
from envlock.model.facts import Target
from envlock.model.health import applies, parse_requirement
from envlock.model.manifest import LockedTarget
from envlock.model.wheels import parse_wheel_name, wheel_file_name
from envlock.wheelhouse.folder import SUMS, make_folder, parse_sums, sums_text
from envlock.wheelhouse.rebuild import Packing, rebuild

_NAME = "envlock"
_WHEEL = "Wheel-Version: 1.0\nGenerator: envlock\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
_PAPERS = ("METADATA", "entry_points.txt", "licenses/LICENSE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where envlock's dependencies may come from.

    Attributes:
        own: the environment that envlock runs in.
        cache: a folder that keeps what was downloaded.
        resolving: gives what finds and fetches wheels for a Python that is somewhere else; not
            called where nothing is to be fetched.
    """

    own: Target
    cache: str
    resolving: Callable[[LockedTarget], tuple[Resolver, Downloader]]


@dataclass(frozen=True, slots=True)
class Tool:
    """Paths of envlock's wheel and of all it needs, and where they come from in words."""

    wheels: tuple[str, ...]
    origin: str


def tool_wheels(runner: LockedTarget, sources: Sources, staging: str) -> Tool:
    """envlock's own wheels for a Python that is somewhere else.

    What is installed beside this envlock is taken where it fits, since it is known to work and
    needs no network; else what an earlier pack has kept, else what an index has.

    Args:
        runner: what will run envlock.
        staging: an existing folder for wheels that are made.

    Raises:
        ProgramFailed: the wheels cannot be had.
    """
    own = own_wheel(staging)
    made, missing = rebuilt_here(runner, sources.own, staging)
    if not missing:
        return Tool((own, *made), "as installed here")
    needs = requirements()
    key = "\n".join([envlock.__version__, *needs, runner.python, *runner.tags])
    folder = os.path.join(sources.cache, hashlib.sha256(key.encode()).hexdigest()[:16])
    kept = _kept(folder)
    if kept:
        return Tool((own, *kept), "kept from an earlier pack")
    try:
        return Tool((own, *_fetched(needs, runner, sources, folder)), "downloaded")
    except EnvlockError as error:
        raise ProgramFailed(
            f"kit: no wheels of envlock's own for Python {runner.python}: {error.message}",
            f"pack where an index can be reached, or with an envlock that runs on the target's "
            f"Python (here: {missing})",
        ) from error


def requirements() -> tuple[str, ...]:
    """What envlock's metadata says it requires."""
    return tuple(importlib.metadata.requires(_NAME) or ())


def own_wheel(folder: str) -> str:
    """A wheel of the envlock that is running, from its own files: the same bytes from an editable
    installation as from any other."""
    dist = importlib.metadata.distribution(_NAME)
    info = f"{_NAME}-{envlock.__version__}.dist-info"
    papers = Path(folder, "papers")
    texts = {name: dist.read_text(name) for name in _PAPERS} | {"WHEEL": _WHEEL}
    members = []
    for name, text in texts.items():
        if text is not None:
            path = papers / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
            members.append(Member(name=f"{info}/{name}", path=str(path)))
    root = Path(envlock.__file__).parent
    for path in sorted(root.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            name = f"{_NAME}/{path.relative_to(root).as_posix()}"
            members.append(Member(name=name, path=str(path)))
    wheel = os.path.join(folder, wheel_file_name(_NAME, envlock.__version__, "", "py3-none-any"))
    write_wheel(wheel, members, info)
    return wheel


def rebuilt_here(runner: LockedTarget, own: Target, staging: str) -> tuple[list[str], str]:
    """Wheels of what is installed beside envlock; or why they do not do for another Python."""
    found, missing = _closure(runner, own)
    wheels: list[str] = []
    for dist in found if not missing else ():
        made = rebuild(dist, Packing(target=own, staging=staging))()
        if made.reason or made.mismatched:
            return [], f"'{dist.name}' {made.reason or 'has files that were changed'}"
        if not parse_wheel_name(os.path.basename(made.path)).fits(runner.tags):
            return [], f"'{os.path.basename(made.path)}' is for another Python"
        wheels.append(made.path)
    return wheels, missing


def _closure(runner: LockedTarget, own: Target) -> tuple[list[Installed], str]:
    """Everything that envlock needs on the runner, as far as it is installed here."""
    if own.tags[0].split("-")[0] != runner.tags[0].split("-")[0]:
        return [], f"Python {own.python}"  # before two seconds of packing tell the same
    installed = {dist.name: dist for dist in read_installed(own.layout)}
    found: dict[str, Installed] = {}
    todo = list(requirements())
    while todo:
        requirement = parse_requirement(todo.pop())
        if requirement is None or not applies(requirement, runner.markers):
            continue
        name = canonicalize_name(requirement.name)
        if name in found:
            continue
        if name not in installed:
            return [], f"'{name}' is not installed beside it"
        found[name] = installed[name]
        todo += installed[name].metadata.requires
    return list(found.values()), ""


def _kept(folder: str) -> list[str]:
    """The wheels of an earlier pack, when all of them are there and whole."""
    try:
        sums, _ = parse_sums(Path(folder, SUMS).read_text(encoding="utf-8"))
        paths = {os.path.join(folder, name): hexa for name, hexa in sums.items()}
        sound = all(files.sha256(path) == hexa for path, hexa in paths.items())
    except OSError:
        return []
    return list(paths) if sound else []


def _fetched(
    needs: Sequence[str], runner: LockedTarget, sources: Sources, folder: str
) -> list[str]:
    resolver, downloader = sources.resolving(runner)
    pins = resolver.resolve(
        Question(requirements=tuple(needs), files=(), held=(), constraints=(), target=runner)
    )
    make_folder(folder)
    try:
        names = downloader.download(pins, runner, folder)
        paths = [os.path.join(folder, name) for name in names]
        hashes = [(name, files.sha256(path)) for name, path in zip(names, paths, strict=True)]
        files.write_whole(os.path.join(folder, SUMS), sums_text(hashes))
    except OSError as error:
        raise ProgramFailed(f"'{folder}' cannot be written: {error.strerror or error}") from error
    return paths
