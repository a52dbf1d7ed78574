"""Every wheel a restore needs, looked at before anything is touched."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from packaging.version import InvalidVersion, Version

from envlock.adapters.installer import Pinned
from envlock.adapters.wheelfile import WheelFile, inspect_wheel
from envlock.model.dist import Distribution
from envlock.model.facts import Finding, Target
from envlock.model.wheels import parse_wheel_name

Advance = Callable[[int], None]


def _problem(code: str, subject: str, what: str, hint: str = "") -> Finding:
    return Finding(code=code, subject=subject, what=what, hint=hint, level="error")


def look_at_wheels(
    wanted: Sequence[Distribution],
    target: Target,
    folder: str,
    advance: Advance,
) -> tuple[list[Pinned], list[Finding]]:
    """Checks the wheels of a restore: there, whole, safe, the right bytes, fitting.

    Args:
        wanted: distributions that must come from wheels.
        folder: the wheelhouse.

    Returns:
        What to install, and every problem found, not the first.
    """
    pinned: list[Pinned] = []
    problems: list[Finding] = []
    for dist in wanted:
        path, missing = _path_of(dist, folder)
        if missing:
            problems.append(missing)
            advance(1)
            continue
        # members are inflated and hashed once, in the stage: here the file's own sha256 counts
        wheel = inspect_wheel(path, members=False)
        wrong = wheel_problems(dist, wheel, target)
        problems += wrong
        if not wrong:
            pinned.append(Pinned(dist.name, dist.version, wheel.sha256, path))
        advance(1)
    return pinned, problems


def _path_of(dist: Distribution, folder: str) -> tuple[str, Finding | None]:
    if dist.wheel is None:
        hint = "harvest it on a healthy machine, or name another wheelhouse"
        return "", _problem("restore.no-wheel", dist.name, f"'{dist.version}' has no wheel", hint)
    path = os.path.join(folder, dist.wheel.file)
    if not os.path.isfile(path):
        what = f"'{dist.wheel.file}' is not in '{folder}'"
        return "", _problem("restore.no-wheel", dist.name, what, "name the folder that has it")
    return path, None


def wheel_problems(dist: Distribution, wheel: WheelFile, target: Target) -> list[Finding]:
    """Everything that speaks against one wheel."""
    assert dist.wheel is not None
    found = list(wheel.errors)
    if wheel.sha256 != dist.wheel.sha256:
        what = f"sha256 is {wheel.sha256[:16]}…, the manifest says {dist.wheel.sha256[:16]}…"
        found.append(_problem("wheel.sha256", wheel.file, what, "get the file again"))
    if not _is_version(dist.version):
        what = f"'{dist.version}' is no version of PEP 440: neither pip nor uv can install it"
        found.append(_problem("wheel.version", wheel.file, what, "leave it out with --only"))
    if not found and not parse_wheel_name(wheel.file).fits(target.tags):
        what = f"does not fit the target ({target.tags[0]})"
        found.append(_problem("wheel.tags", wheel.file, what))
    return found


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True
