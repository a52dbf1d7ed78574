"""Which checks run, on which device, and which of them the verdict needs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from envlock.adapters.process import GRACE
from envlock.errors import UsageProblem
from envlock.model.check import LEVELS, Check, Status
from envlock.model.manifest import Manifest
from envlock.model.profile import Profile
from envlock.verify.registry import ALSO_CALLED, CHECKS, STATIC_LOCK

DEVICES = ("auto", "all", "cpu", "cuda")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the user asked for.

    Attributes:
        level: one of :data:`~envlock.model.check.LEVELS`; each contains the ones before it.
        only: patterns of check ids to run; empty for all of the level.
        skip: patterns of check ids to leave out.
        device: ``cpu``, ``cuda``, a device's number, ``all``, or ``auto`` for the profile's.
        timeout_scale: factor on every time limit.
        grace: seconds between TERM and KILL for a check whose time is over.
        checks: the registry.
        scripts: folder of its scripts; None for envlock's own.
    """

    level: str = "standard"
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    device: str = "auto"
    timeout_scale: float = 1.0
    grace: float = GRACE
    checks: tuple[Check, ...] = CHECKS
    scripts: Path | None = None


def select(options: Options) -> tuple[Check, ...]:
    """The checks of a run, in the order of the registry.

    Raises:
        UsageProblem: an unknown level or device, a pattern that names no check, or nothing left.
    """
    _validate(options)
    wanted = [c for c in options.checks if _contains(options.level, c)]
    if options.only:
        wanted = [c for c in wanted if _matches(c.id, options.only)]
    chosen = tuple(c for c in wanted if not _matches(c.id, options.skip))
    if not chosen:
        raise UsageProblem(
            f"verify: no check of level '{options.level}' is left to run",
            "choose another --level, --only or --skip",
        )
    return chosen


def _validate(options: Options) -> None:
    for name, value, known in (
        ("--level", options.level, LEVELS),
        ("--device", "all" if options.device.isdecimal() else options.device, DEVICES),
    ):
        if value not in known:
            raise UsageProblem(f"{name}: '{value}' is not known", f"one of {', '.join(known)}")
    if options.timeout_scale <= 0:
        raise UsageProblem("--timeout-scale: must be more than zero")
    for pattern in (*options.only, *options.skip):
        if not any(fnmatchcase(check.id, pattern) for check in options.checks):
            raise UsageProblem(
                f"verify: no check is called '{pattern}'",
                f"checks: {', '.join(check.id for check in options.checks)}",
            )


def _contains(level: str, check: Check) -> bool:
    return LEVELS.index(check.level) <= LEVELS.index(level)


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What the verdict stands on.

    Attributes:
        device: ``cpu`` or ``cuda``.
        expected: a device is known to be there, so that none visible is a failure.
        locked: canonical names in the manifest; None without one.
        installed: canonical names found in the target.
        unsupported: features that the profile says such a device has not, ``fp8``.
    """

    device: str
    expected: bool
    locked: frozenset[str] | None
    installed: frozenset[str]
    unsupported: tuple[str, ...] = ()


def stand(
    options: Options, profile: Profile, manifest: Manifest | None, installed: Iterable[str]
) -> Ground:
    """Chooses the device, and gathers what the rules need.

    A device is expected where somebody asked for it, and where the manifest lists one: there was
    one when the image was in order.
    """
    device = {"auto": profile.device, "cpu": "cpu"}.get(options.device, "cuda")
    listed = manifest is not None and bool(manifest.machine.devices)
    return Ground(
        device=device,
        expected=device != "cpu" and (options.device != "auto" or listed),
        locked=_with_subjects(d.name for d in manifest.distributions) if manifest else None,
        installed=_with_subjects(installed),
        unsupported=profile.unsupported,
    )


def _with_subjects(names: Iterable[str]) -> frozenset[str]:
    found = frozenset(names)
    return found | {ALSO_CALLED[name] for name in found if name in ALSO_CALLED}


def is_required(check: Check, status: Status, ground: Ground) -> bool:
    """Whether the verdict depends on a check.

    Its subject is in the manifest (without one: installed). Advisory checks never are. On a
    processor, what needs a device may be skipped. Without a manifest there are no files to compare;
    what nothing here is about, labels, code for devices or nodes, is not missing.
    """
    if check.advisory or (check.id == STATIC_LOCK and ground.locked is None):
        return False
    if status is Status.SKIPPED and check.device and ground.device == "cpu":
        return False
    about_nothing = check.level == LEVELS[0] or (check.device and not check.subject)
    if status is Status.SKIPPED and about_nothing and check.id != STATIC_LOCK:
        return False
    return not check.subject or check.subject in _subjects(ground)


def is_pointless(check: Check, ground: Ground) -> bool:
    """Whether its subject is neither wanted nor there: nothing to start a child for."""
    known = ground.installed | (ground.locked or frozenset())
    return bool(check.subject) and check.subject not in known


def _subjects(ground: Ground) -> frozenset[str]:
    return ground.installed if ground.locked is None else ground.locked


def blocker(check: Check, bad: Sequence[str], imports: dict[str, str]) -> str:
    """Id of the import whose failure makes a check pointless; empty when none does.

    Everything that computes needs torch, and its own subject. Imports themselves always run.
    """
    if not check.script or not check.subject or check.id in imports.values():
        return ""
    needed = [imports.get("torch", ""), imports.get(check.subject, "")]
    return next((name for name in needed if name in bad), "")
