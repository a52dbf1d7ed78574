"""envlock guard --enable, --disable and --status."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from enum import Enum
from typing import TYPE_CHECKING, Any

from envlock.cli import protecting, wiring
from envlock.cli.show import count
from envlock.errors import UnusableInput, UsageProblem

if TYPE_CHECKING:
    from envlock.cli.options import Common
    from envlock.guard.always import Places
    from envlock.guard.decide import Protected
    from envlock.model.facts import Finding, Target

#: What no configuration of pip or uv can hold; the README has the same list.
OPEN = (
    "'pip uninstall' and 'uv pip uninstall'",
    "PIP_CONSTRAINT, and a PIP_CONFIG_FILE that is /dev/null or has a constraint for install",
    "environments made from this one: each has its own configuration",
    "conda and other installers; files that a distribution of another name writes over",
)
OPEN_UV = "uv: it has no configuration of a target; '--enable --uv-user' writes the user's"
OPEN_STRICT = "'--break-system-packages', and pip before 23.0, which does not look for the marker"
OPEN_UV_REST = "'uv pip sync', 'uv sync', 'uv lock', UV_CONFIG_FILE and UV_NO_CONFIG"
#: Options that say how to enable.
_HOW = ("--uv-user", "--strict")


class Mode(Enum):
    """What is to be done about plain installs; the value is the option."""

    ENABLE = "--enable"
    DISABLE = "--disable"
    STATUS = "--status"


def mode_of(options: Mapping[str, bool], words: Sequence[str] | None) -> Mode | None:
    """The one that was asked for; None where there is a command line to guard.

    Args:
        options: guard's own options without a value, and whether each was given.

    Raises:
        UsageProblem: two of them, one with a command line or another one's option, or nothing.
    """
    modes = {mode.value: mode for mode in Mode}
    given = [option for option, on in options.items() if on]
    asked = [modes[option] for option in given if option in modes]
    others = [option for option in given if option not in modes]
    if len(asked) > 1:
        named = "' and '".join(mode.value for mode in asked)
        raise UsageProblem(f"command line: '{named}' exclude each other")
    if asked and words:
        raise UsageProblem(f"command line: '{asked[0].value}' takes no command to run")
    for option in others:
        if option in _HOW and asked != [Mode.ENABLE]:
            raise UsageProblem(f"command line: '{option}' says how to '--enable'")
        if option not in _HOW and asked:
            raise UsageProblem(f"command line: '{option}' does not go with '{asked[0].value}'")
    if not (asked or words):
        raise UsageProblem("command line: no command to guard", "see 'envlock guard --help'")
    return asked[0] if asked else None


def run(common: Common, mode: Mode, *, uv: bool = False, strict: bool = False) -> int:
    """Does what ``mode`` says, in the target."""
    target = wiring.open_target(common)
    places = wiring.places(common, target)
    if mode is Mode.DISABLE:
        return _disable(common, target, places)
    protected = protecting.protected_set(common, target)
    if mode is Mode.STATUS:
        return _status(common, target, places, protected)
    return _enable(common, target, places, protected, uv=uv, strict=strict)


def _enable(
    common: Common, target: Target, places: Places, protected: tuple[Protected, ...],
    *, uv: bool, strict: bool,
) -> int:  # fmt: skip
    """Writes what holds.

    Raises:
        UnusableInput: there is nothing to hold, or ``strict`` means nothing in this target.
    """
    from envlock.guard.always import contradictions, enable, pairs
    from envlock.guard.decide import lost_already

    intact = [build for build in protected if build.intact]
    if not intact:
        raise UnusableInput(
            f"target: '{target.layout.prefix}' has no vendor build to hold",
            "name the manifest of the healthy target with --manifest FILE, or put the builds back",
        )
    if strict and places.marker is None:
        raise UnusableInput(
            "target: it is a venv, where pip and uv do not look for the marker of '--strict'",
            "leave '--strict' out",
        )
    common.screen.target(target)
    wanted = places.wanted(uv=uv, strict=strict)
    written = enable(wanted, pairs(intact))
    findings = [*lost_already(protected), *contradictions(protected), *_overruled(common, places)]
    common.screen.findings(findings)
    common.screen.verdict(f"{count(len(intact), 'build')} held: {_named(intact)}")
    _show_written(common, written)
    if places.uv in wanted:
        common.screen.say(f"  '{places.uv.path}' holds for all environments of this user")
    common.screen.say("see what stays open: envlock guard --status")
    data = {"target": target.layout.prefix, "written": written, "held": _list(intact)}
    common.screen.document("guard", 0, findings, data)
    return 0


def _disable(common: Common, target: Target, places: Places) -> int:
    from envlock.guard.always import disable

    common.screen.target(target)
    written = disable(places)
    common.screen.verdict("plain installs are not held any more" if written else "nothing was held")
    _show_written(common, written)
    data = {"target": target.layout.prefix, "written": written}
    common.screen.document("guard", 0, [], data)
    return 0


def _status(
    common: Common, target: Target, places: Places, protected: tuple[Protected, ...]
) -> int:  # fmt: skip
    """0 when plain installs with pip are held, and with what else is in use; else 3."""
    from envlock.guard.always import contradictions, inspect
    from envlock.guard.decide import lost_already

    lost = lost_already(protected)
    found = inspect(places, protected)
    in_use = [place for place in places.all() if place.present()]
    found += [*contradictions(protected), *_overruled(common, places)] if in_use else []
    code = 3 if any(finding.level == "error" for finding in found) else 0
    findings = [*lost, *found]
    intact = [build for build in protected if build.intact]
    common.screen.findings(findings)
    answer = "not held" if code else "held"
    common.screen.verdict(f"{answer} in '{target.layout.prefix}': {_named(intact) or 'no build'}")
    for place in in_use:
        common.screen.say(f"  {place.name}: {place.path}")
    left = _open(places)
    for line in left:
        common.screen.say(f"  open: {line}")
    data: dict[str, Any] = {
        "target": target.layout.prefix,
        "enabled": bool(in_use),
        "held": [] if code else _list(intact),
        "places": {place.name: place.path for place in in_use},
        "open": list(left),
        "protected": [asdict(build) for build in protected],
    }
    common.screen.document("guard", code, findings, data)
    return code


def _open(places: Places) -> tuple[str, ...]:
    strict = [OPEN_STRICT] if places.marker and places.marker.present() else []
    return (OPEN_UV_REST if places.uv.present() else OPEN_UV, *strict, *OPEN)


def _overruled(common: Common, places: Places) -> list[Finding]:
    """What this shell's variables put in the place of what was written."""
    from envlock.adapters import pip_conf, uv_toml
    from envlock.model.facts import Finding

    why = {places.pip.path: pip_conf.overruled(common.env)}
    if places.uv.present():
        why[places.uv.path] = uv_toml.overruled(common.env)
    return [
        Finding(
            code="always.overruled",
            subject=path,
            what="is not what counts in this shell",
            why=reason,
            hint="unset the variable, or type 'envlock guard' before the command",
            level="error",
        )
        for path, reason in why.items()
        if reason
    ]


def _show_written(common: Common, written: Sequence[str]) -> None:
    for path in written:
        common.screen.say(f"  wrote {path}" if os.path.lexists(path) else f"  removed {path}")


def _named(builds: Sequence[Protected]) -> str:
    return ", ".join(_list(builds))


def _list(builds: Sequence[Protected]) -> list[str]:
    return [f"{build.name} {build.version}" for build in builds]
