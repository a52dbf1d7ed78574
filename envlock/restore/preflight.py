"""Every wheel a restore needs, looked at before anything is touched."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from envlock.adapters.files import seal_of, workers
from envlock.adapters.installer import Pinned
from envlock.adapters.wheelfile import WheelFile, inspect_wheel
from envlock.model.dist import Distribution
from envlock.model.facts import Finding, Target
from envlock.model.label import is_version
from envlock.model.record import is_bytecode
from envlock.model.wheels import decode_hash, parse_wheel_name
from envlock.restore.plan import overlap_problems
from envlock.restore.stage import Beside


def _problem(code: str, subject: str, what: str, hint: str = "") -> Finding:
    return Finding(code=code, subject=subject, what=what, hint=hint, level="error")


def look_at_wheels(
    wanted: Sequence[Distribution],
    target: Target,
    folder: str,
    beside: Beside,
) -> tuple[list[Pinned], list[Finding]]:
    """Checks the wheels of a restore: there, whole, safe, the right bytes, fitting, and none with
    a file that another one has with other bytes.

    Args:
        wanted: distributions that must come from wheels.
        folder: the wheelhouse.
        beside: what stays in the target.

    Returns:
        What to install, and every problem found, not the first.
    """
    order = sorted(wanted, key=lambda dist: -(dist.wheel.size or 0) if dist.wheel else 0)
    with ThreadPoolExecutor(workers()) as pool:  # the largest first: they take as long as the rest
        looking = {dist.key: pool.submit(_look_at, dist, target, folder) for dist in order}
        found = [looking[dist.key].result() for dist in wanted]
    pinned = [one.pinned for one in found if one.pinned is not None]
    problems = [problem for one in found for problem in one.problems]
    recorded = {dist.name: one.recorded for dist, one in zip(wanted, found, strict=True)}
    return pinned, [*problems, *_overlaps(recorded, beside), *_giving_way(recorded, beside)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Looked:
    """One wheel: what to install unless something speaks against it; RECORD's word by place."""

    pinned: Pinned | None = None
    problems: Sequence[Finding] = ()
    recorded: Mapping[str, str] = field(default_factory=dict)


def _look_at(dist: Distribution, target: Target, folder: str) -> _Looked:
    path, missing = _path_of(dist, folder)
    if missing:
        return _Looked(problems=[missing])
    sealed = seal_of(path)
    # members are inflated and hashed once, in the stage: here the file's own sha256 counts
    wheel = inspect_wheel(path, members=False)
    problems = wheel_problems(dist, wheel, target)
    pinned = Pinned(dist.name, dist.version, wheel.sha256, path, sealed)
    return _Looked(pinned=None if problems else pinned, problems=problems, recorded=wheel.recorded)


def _overlaps(recorded: Mapping[str, Mapping[str, str]], beside: Beside) -> list[Finding]:
    """Files that would have two owners with different bytes, by what RECORD says: it may lie, so
    that the same is asked again of what was unpacked. Scripts are asked only then: their first
    line is not the one that is installed."""
    sides: list[tuple[str, Mapping[str, str]]] = [*recorded.items(), *beside.files.items()]
    seen: set[str] = set()
    shared: set[str] = set()
    for _, files in sides:
        shared |= seen & files.keys()
        seen |= files.keys()
    shared = {place for place in shared if not (place.startswith("bin/") or is_bytecode(place))}
    told = {
        name: {p: hexa for p in sorted(shared & files.keys()) if (hexa := _sha256(files[p]))}
        for name, files in recorded.items()
    }
    there = {
        name: {p: files[p] for p in sorted(shared & files.keys())}
        for name, files in beside.files.items()
    }
    return overlap_problems({**there, **told}, beside.overlapping)


def _sha256(hashed: str) -> str:
    """The hexadecimal sha256 in a field of RECORD; empty where it has another algorithm."""
    try:
        algorithm, value = decode_hash(hashed)
    except ValueError:
        return ""
    return value if algorithm == "sha256" else ""


def _giving_way(recorded: Mapping[str, Mapping[str, str]], beside: Beside) -> list[Finding]:
    """Files of distributions that the manifest does not have, and that a wheel has otherwise: the
    manifest's come first, and somebody has to know."""
    found = []
    for name, files in recorded.items():
        for other, rows in beside.extra.items():
            lost = [p for p in sorted(files.keys() & rows.keys()) if files[p] != rows[p]]
            if lost:
                more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
                found.append(
                    Finding(
                        code="restore.gives-way",
                        subject=other,
                        what=f"'{lost[0]}'{more} is of '{name}' too, whose bytes come in its place",
                        why=f"'{other}' is not in the manifest, and may not work without its own",
                        hint=f"install '{other}' into an environment of its own",
                    )
                )
    return found


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
    if wheel.sha256 and wheel.sha256 != dist.wheel.sha256:  # another file: what is in it is noise
        what = f"sha256 is {wheel.sha256[:16]}…, the manifest says {dist.wheel.sha256[:16]}…"
        return [_problem("wheel.sha256", wheel.file, what, "get the file again")]
    found = list(wheel.errors)
    if not is_version(dist.version):
        what = f"'{dist.version}' is no version of PEP 440: neither pip nor uv can install it"
        found.append(_problem("wheel.version", wheel.file, what, "leave it out with --only"))
    if not found and not parse_wheel_name(wheel.file).fits(target.tags):
        what = f"does not fit the target ({target.tags[0]})"
        found.append(_problem("wheel.tags", wheel.file, what))
    return found
