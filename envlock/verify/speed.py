"""Checks that are watched: clocks, power and temperature while they run, and figures to compare."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from envlock.adapters.device import Sampler, Tool, summary, wait_until_idle
from envlock.model.check import Check, CheckResult, Status, rate_of
from envlock.model.devices import Reading, chosen, of_device
from envlock.model.profile import Profile
from envlock.model.speed import IMPOSSIBLE, judged
from envlock.verify import child

#: Seconds that a device is given to become idle.
PATIENCE = 20.0
_JUDGED = frozenset({Status.PASSED, Status.WARNED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """What is needed to watch a check.

    Attributes:
        profile: knows what devices can do, and how they are chosen.
        env: of the children; it says which devices they see.
        tool: tells of devices; None where there is none.
        patience: seconds to wait for an idle device.
    """

    profile: Profile
    env: Mapping[str, str]
    tool: Tool | None
    patience: float = PATIENCE

    def watched(self, check: Check, run: Callable[[Check], CheckResult]) -> CheckResult:
        """Runs a check on an idle device, and adds what was seen and what it means.

        Figures that are too low or too high are asked for once more before they are told: single
        runs flutter. What the first try gave stays in the facts.
        """
        result = self._once(check, run)
        if not (check.advisory and _is_doubtful(result)):
            return result
        again = self._once(check, run)
        rates = {case.name: found[1] for case in result.cases if (found := rate_of(case.metrics))}
        return replace(again, facts={**again.facts, "first_try": rates})

    def _once(self, check: Check, run: Callable[[Check], CheckResult]) -> CheckResult:
        if self.tool is None:
            return self._judged(run(check))
        read = partial(self._read, self.tool, check.index or 0)
        busy = wait_until_idle(read, seconds=self.patience)
        with Sampler(read=read) as sampler:
            result = run(check)
        samples = sampler.samples()
        facts: dict[str, Any] = {
            "samples": samples,
            "sampled": summary(samples),
            "sampler": {"tool": self.tool.name, **sampler.cost()},
        }
        if busy is not None:
            facts["busy_before"] = busy
        return _told(self._judged(replace(result, facts={**result.facts, **facts})), busy)

    def _read(self, tool: Tool, index: int) -> Reading | None:
        place = chosen(self.env, self.profile.visible, index)
        return of_device(tool.readings(), place[1]) if place else None

    def _judged(self, result: CheckResult) -> CheckResult:
        units = result.facts.get("compute_units")
        peaks = self.profile.peaks_of(
            str(result.facts.get("device", "")), units if isinstance(units, int) else 0
        )
        cases = judged(result.cases, peaks)
        if result.status not in _JUDGED:  # how the child ended outweighs its figures
            return replace(result, cases=cases)
        status, reason = child.summary(cases)
        return replace(result, cases=cases, status=status, reason=reason)


def _is_doubtful(result: CheckResult) -> bool:
    """Whether it is the figures that are wrong, and not what was computed."""
    impossible = any(case.metrics.get("ratio", 0.0) > IMPOSSIBLE for case in result.cases)
    return result.status is Status.WARNED or (result.status is Status.ERROR and impossible)


def _told(result: CheckResult, busy: float | None) -> CheckResult:
    """Figures from a device that somebody else used are worth a word."""
    if busy is None or result.status is not Status.PASSED:
        return result
    reason = f"the device was busy before ({busy:.0f} %)"
    return replace(result, status=Status.WARNED, reason=reason)
