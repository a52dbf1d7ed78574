"""Several devices: what concerns one device runs once on each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from envlock.model.check import Check
from envlock.verify.plan import Ground
from envlock.verify.registry import CANARY, ONE_DEVICE

#: Asks torch how many devices it sees; in no report.
COUNT = Check(
    id="dev.count", title="how many devices", level="quick", script="_dev_count.py", timeout=180.0
)


def on_one_device(check: Check) -> bool:
    """Whether a check concerns one device, and not the installation or the machine."""
    return check.id == CANARY or check.id.partition(".")[0] in ONE_DEVICE


def indices(
    asked: str, ground: Ground, checks: Iterable[Check], count: Callable[[], int]
) -> tuple[int | None, ...]:
    """The devices of a run, as torch counts those that it sees; None for its first.

    Args:
        asked: of ``--device``.
        checks: of the run.
        count: asks torch; called only where the answer matters.
    """
    if ground.device == "cpu" or not any(map(on_one_device, checks)):
        return (None,)
    if asked.isdecimal():
        return (int(asked),)
    number = count() if asked == "all" else 1
    return tuple(range(number)) if number > 1 else (None,)


def spread(checks: Sequence[Check], devices: Sequence[int | None]) -> tuple[Check, ...]:
    """The checks of a run, ``num.gemm_exact@0`` and ``num.gemm_exact@1`` for two devices.

    One device leaves the ids as they are, so that reports of one device can be compared whichever
    it was.
    """
    found: list[Check] = []
    for check in checks:
        if not on_one_device(check):
            found.append(check)
        elif len(devices) == 1:
            found.append(replace(check, index=devices[0]))
        else:
            found += [replace(check, id=f"{check.id}@{n}", index=n) for n in devices]
    return tuple(found)
