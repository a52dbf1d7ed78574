"""envlock wheelhouse pack, unpack."""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from typing import TYPE_CHECKING, Annotated

import typer

from envlock.cli import building, options, wiring
from envlock.cli.show import count, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from envlock.adapters.resolving import Downloader, Resolver
    from envlock.cli.options import Common
    from envlock.model.manifest import LockedTarget, Manifest
    from envlock.wheelhouse.extras import Extra
    from envlock.wheelhouse.kit import House, Packed, Wanted
    from envlock.wheelhouse.kit_tool import Sources

_SIZE = re.compile(r"(\d+)\s*(?:([kmgt])(i?)b?|b)?", re.IGNORECASE)
_HINT = "a number and K, M, G or KiB, MiB, GiB: --split 2G"


def pack(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="The wheelhouse.")],
    kit: Annotated[str, typer.Argument(metavar="KIT", help="The file to write.")],
    extra: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="PATH", help="Carry this file or folder, too."),
    ] = None,
    best: Annotated[
        bool, typer.Option("--best", help="About 15 % smaller, and forty times as slow.")
    ] = False,
    split: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Parts of at most this size: 2G, 500MiB.")
    ] = None,
    tool_python: Annotated[
        str | None,
        typer.Option(metavar="X.Y", help="The Python that will run the kit, if not the target's."),
    ] = None,
    python: options.Python = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Pack a wheelhouse into one file to carry, that Python itself can run."""
    from envlock.wheelhouse.kit import Wanted, open_house

    common = options.common(python, None, json=json, quiet=quiet, verbose=verbose)
    limit = _bytes(split) if split else None
    house = open_house(folder)
    runner = _runner(house.manifest.target, tool_python)
    extras = _extras(extra or (), _last_report(common, house))
    wanted = Wanted(runner=runner, extras=extras, best=best, split=limit)
    done = _pack(common, house, kit, wanted)
    return _tell_packed(common, house.manifest, kit, done)


def _pack(common: Common, house: House, kit: str, wanted: Wanted) -> Packed:
    from envlock.wheelhouse.kit import pack as run
    from envlock.wheelhouse.kit import total
    from envlock.wheelhouse.kit_tool import tool_wheels

    screen = common.screen
    with tempfile.TemporaryDirectory(prefix="envlock-") as staging:
        with screen.progress("envlock's own wheels"):
            tool = tool_wheels(wanted.runner, _sources(common), staging)
        if screen.verbose:
            screen.say(f"envlock's own wheels: {tool.origin}")
        with screen.transfer("packing", total(house, tool, wanted.extras)) as advance:
            return run(house, kit, tool, wanted, advance)


def _sources(common: Common) -> Sources:
    """Where the wheels that run envlock on the device may come from."""
    import sys

    from envlock.adapters.interpreter import Named, read_target
    from envlock.wheelhouse.kit_tool import Sources

    def tools(runner: LockedTarget) -> tuple[Resolver, Downloader]:
        found, _ = building.tools_for(common, runner)
        return found.resolver, found.downloader

    home = os.path.join(os.path.expanduser("~"), ".cache")
    cache = os.path.join(common.env.get("XDG_CACHE_HOME") or home, "envlock", "tool")
    own = read_target(Named(sys.executable, "envlock's own"), common.env)
    return Sources(own=own, cache=cache, resolving=tools)


def _tell_packed(common: Common, manifest: Manifest, kit: str, done: Packed) -> int:
    from envlock.wheelhouse.kit_parts import SUMS_SUFFIX

    screen, wanted = common.screen, done.contents.python
    screen.findings(done.findings)
    split = len(done.files) > 1
    where = f"{count(len(done.files) - 1, 'part')} of '{kit}'" if split else f"'{kit}'"
    screen.verdict(f"{where}: {size(done.size)}, with wheels of {size(done.before)}")
    if not manifest.target.python.startswith(f"{wanted}."):
        screen.verdict(
            f"the target's Python {manifest.target.python} does not run this envlock: "
            f"the device needs Python {wanted} beside it"
        )
    shown = shlex.quote(os.path.basename(kit))
    if split:
        screen.say(f"where it is to be used: sha256sum -c {shown}{SUMS_SUFFIX}")
        screen.say(f"                        cat {shown}.[0-9]* > {shown}")
    screen.say(f"{'then' if split else 'where it is to be used'}: python{wanted} {shown}")
    data = {
        "files": [os.path.abspath(path) for path in done.files],
        "size": done.size,
        "python": wanted,
        "carried": [part.file for part in done.contents.given],
    }
    screen.document("wheelhouse pack", 0, done.findings, data)
    return 0


def _bytes(text: str) -> int:
    """``2G`` is 2,000,000,000, as upload limits are told; ``2GiB`` is 2 · 1024³.

    Raises:
        UsageProblem: it is no size, or none that a part can have.
    """
    from envlock.errors import UsageProblem

    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise UsageProblem(f"--split: '{text}' is no size", _HINT)
    power = "bkmgt".index((found[2] or "b").lower())
    number: int = int(found[1]) * (1024 if found[3] else 1000) ** power
    if number < 1024:
        raise UsageProblem(f"--split: '{text}' is too small for a part", _HINT)
    return number


def _runner(target: LockedTarget, named: str | None) -> LockedTarget:
    """What will run the envlock inside.

    Raises:
        UsageProblem: the named Python is none that envlock runs on.
        UnusableInput: the manifest's target cannot be understood.
    """
    from envlock.errors import UnusableInput, UsageProblem
    from envlock.model.kit import OLDEST, runner_of, version_pair

    try:
        version = version_pair(named) if named else None
    except ValueError:
        version = (0, 0)
    if version is not None and version < OLDEST:
        raise UsageProblem(
            f"--tool-python: '{named}' is no Python that runs envlock", "3.10 or newer"
        )
    try:
        return runner_of(target, version)
    except ValueError as error:
        raise UnusableInput(
            f"manifest: no Python for its target '{target.python}': {error}",
            "take the snapshot again with this envlock",
        ) from error


def _extras(paths: Sequence[str], report: Sequence[Extra]) -> tuple[Extra, ...]:
    from envlock.wheelhouse.extras import find_extras

    return find_extras(paths, report)


def _last_report(common: Common, house: House) -> list[Extra]:
    """The last verify report of this machine's target, where the wheelhouse is of that target."""
    from envlock.errors import EnvlockError
    from envlock.wheelhouse.extras import report_extra

    try:
        memory = wiring.memory(common, wiring.open_target(common, unfinished=True))
    except EnvlockError:
        return []  # a laptop has no target, and nothing to say about one
    locked, kept = memory.known(), memory.wheels()
    same = locked is not None and _proof(locked) == _proof(house.manifest)
    if not same and (kept is None or not os.path.samefile(kept, house.folder)):
        return []
    return report_extra(memory.report_path)


def _proof(manifest: Manifest) -> tuple[str, list[tuple[str, str]]]:
    return manifest.name, [(dist.name, dist.content) for dist in manifest.protected]


def unpack(
    kit: Annotated[str, typer.Argument(metavar="KIT", help="The kit, or its first part.")],
    folder: Annotated[str, typer.Argument(metavar="DIR", help="The wheelhouse to make.")],
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Unpack a kit into a wheelhouse."""
    from envlock.wheelhouse.kit_read import total
    from envlock.wheelhouse.kit_read import unpack as run

    screen = options.common(None, None, json=json, quiet=quiet, verbose=verbose).screen
    with screen.transfer("unpacking", total(kit)) as advance:
        done = run(kit, folder, advance)
    wheels = sum(dist.wheel is not None for dist in done.manifest.distributions)
    what = "all of it was there already" if done.already else f"{size(done.size)} unpacked"
    screen.verdict(f"'{folder}': {count(wheels, 'wheel')} for {done.manifest.name}, {what}")
    data = {"folder": os.path.abspath(folder), "files": [part.file for part in done.contents.given]}
    screen.document("wheelhouse unpack", 0, (), data)
    return 0
