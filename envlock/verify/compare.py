"""Two reports side by side: numerics by margin, performance by relative change, facts as facts.

Pure. Runs of another configuration are compared all the same, and that is the first thing said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from envlock.model.check import (
    MARGIN_STEP,
    METRICS,
    Case,
    CheckResult,
    Status,
    margin_of,
    number,
    rate_of,
)
from envlock.model.check import named as by_name
from envlock.verify.saved import Report

#: Relative change of a rate that is worth a word, as in SuperBench's rules; a case that scatters
#: more than that is given twice its own spread.
RATE_STEP = 0.05
#: However much a case scatters: what has halved or doubled is told.
MOST_SPREAD = 0.5
#: Relative loss from which a required check has failed, as gpu-fryer has it between cards.
RATE_LOSS = 0.10

_MOST = 1e6  # a change that is larger says no more
_RAN = frozenset({Status.PASSED, Status.WARNED, Status.FAILED})
_RANK = {Status.PASSED: 0, Status.WARNED: 1, Status.SKIPPED: 2, Status.BLOCKED: 2, Status.ERROR: 3}
# what was seen of the device while a check ran
_WATCHED = frozenset({"samples", "sampled", "sampler", "busy_before", "first_try"})
# numbers under these names were measured, and are judged as cases or not at all
_MEASURED = ("_ms", "seconds", "tflops", "gbps", "error", "throttled")


class Kind(str, Enum):
    """What differs."""

    CONFIG = "config"
    STATUS = "status"
    MARGIN = "margin"
    RATE = "rate"
    FACT = "fact"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing that is not the same in both.

    Attributes:
        subject: ``num.gemm_real: fp16 64x64x64``, ``torch``, ``level``.
        metric: key of the metric; empty for what is none.
        old: in the first report, the baseline; JSON.
        new: in the second one.
        change: new over old, less one; of a margin the plain difference; None for what is no
            number.
        level: ``error``, ``warning`` or ``info``: what it means for the second one.
    """

    kind: Kind
    subject: str
    metric: str = ""
    old: Any = None
    new: Any = None
    change: float | None = None
    level: str = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What differs between two reports, configuration first, and how much was compared.

    Attributes:
        cases: cases that ran in both.
        margins: those of them that were compared by margin.
        rates: those of them that were compared by rate.
    """

    differences: tuple[Difference, ...]
    cases: int = 0
    margins: int = 0
    rates: int = 0

    @property
    def failed(self) -> bool:
        """Whether it makes a run fail that passed by itself: a required check that lost speed."""
        return any(d.level == "error" and d.kind is Kind.RATE for d in self.differences)

    @property
    def same_configuration(self) -> bool:
        return all(d.kind is not Kind.CONFIG for d in self.differences)


def compare(old: Report, new: Report) -> Comparison:
    """Everything that differs beyond the noise; what did not run in both is not compared."""
    pairs = _pairs(old, new)
    found = [*_configuration(old, new), *_facts(_run_facts(old), _run_facts(new))]
    found += _facts(_device_facts(old), _device_facts(new))
    cases = [(check, *both) for one, check in pairs for both in _common(one, check)]
    for one, check in pairs:
        found += _status(check.id, one.status, check.status, check.required)
        found += _cases(one, check)
        found += _facts(_check_facts(one), _check_facts(check))
    for check, name, before, after in cases:
        found += _numbers(f"{check.id}: {name}", before, after, check.required)
    return Comparison(
        differences=tuple(sorted(found, key=_weight)),
        cases=len(cases),
        margins=sum(margin_of(before.metrics) is not None for _, _, before, _ in cases),
        rates=sum(rate_of(before.metrics) is not None for _, _, before, _ in cases),
    )


def _weight(one: Difference) -> tuple[int, int, float]:
    """Configuration first, then by kind; of one kind the worst and the largest first."""
    levels = ("error", "warning", "info")
    return list(Kind).index(one.kind), levels.index(one.level), -abs(one.change or 0.0)


def _pairs(old: Report, new: Report) -> list[tuple[CheckResult, CheckResult]]:
    before = {result.id: result for result in old.results}
    pairs = [(before[r.id], r) for r in new.results if r.id in before]
    return [pair for pair in pairs if Status.NOT_RUN not in (pair[0].status, pair[1].status)]


def named(result: CheckResult) -> dict[str, Case]:
    """The cases of a check by name; the second of one name is ``name (2)``."""
    return by_name(result.cases, lambda case: case.name)


def _common(old: CheckResult, new: CheckResult) -> list[tuple[str, Case, Case]]:
    before = named(old)
    return [(name, before[name], case) for name, case in named(new).items() if name in before]


# --- configuration --------------------------------------------------------------------------


def _configuration(old: Report, new: Report) -> Iterator[Difference]:
    """The part of two runs that should be the same before their numbers are compared."""
    before, after = dict(old.config), dict(new.config)
    for config, report in ((before, old), (after, new)):
        config["device"] = report.part("device").get("kind")
    checks = list(before.pop("checks", [])), list(after.pop("checks", []))
    gone = [name for name in checks[0] if name not in checks[1]]
    more = [name for name in checks[1] if name not in checks[0]]
    if gone or more:
        yield _config("checks", gone, more)
    for key in dict.fromkeys([*before, *after]):
        if before.get(key) != after.get(key):
            yield _config(key, before.get(key), after.get(key))
    if not old.complete:
        yield _config("verdict", old.document.get("verdict"), new.document.get("verdict"))


def _config(subject: str, old: Any, new: Any) -> Difference:
    return Difference(kind=Kind.CONFIG, subject=subject, old=old, new=new, level="warning")


def _cases(old: CheckResult, new: CheckResult) -> Iterator[Difference]:
    """Other cases of a check that ran to its end in both: other shapes."""
    if not {old.status, new.status} <= _RAN:
        return
    before, after = named(old), named(new)
    gone = [name for name in before if name not in after]
    more = [name for name in after if name not in before]
    if gone or more:
        yield _config(f"{new.id}: cases", gone, more)


# --- facts ----------------------------------------------------------------------------------


def _run_facts(report: Report) -> dict[str, Any]:
    return {
        "tool": report.document.get("tool"),
        "profile": report.document.get("profile"),
        "python": report.part("target").get("python"),
        "manifest": report.part("manifest").get("digest"),
    }


def _device_facts(report: Report) -> dict[str, Any]:
    device = report.part("device").items()
    return _flat("device", {key: value for key, value in device if key != "kind"})


def _check_facts(result: CheckResult) -> dict[str, Any]:
    facts = {key: value for key, value in result.facts.items() if key not in _WATCHED}
    return _flat(result.id, facts) if result.status in _RAN else {}


def _flat(path: str, value: Any) -> dict[str, Any]:
    """The scalars of a JSON value by their path, without what was measured."""
    if isinstance(value, Mapping):
        return {k: v for key in value for k, v in _flat(f"{path}.{key}", value[key]).items()}
    if isinstance(value, list | tuple) and any(isinstance(v, Mapping | list) for v in value):
        parts = (_flat(f"{path}[{index}]", item) for index, item in enumerate(value))
        return {k: v for part in parts for k, v in part.items()}
    if number(value) is not None and path.endswith(_MEASURED):
        return {}
    return {path: list(value) if isinstance(value, tuple) else value}


def _facts(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    # a check that did not get as far has no facts to compare
    keys = dict.fromkeys([*old, *new]) if old and new else ()
    for key in keys:
        if old.get(key) != new.get(key) and (_says(old.get(key)) or _says(new.get(key))):
            yield Difference(kind=Kind.FACT, subject=key, old=old.get(key), new=new.get(key))


def _says(value: Any) -> bool:
    return value is not None and value != [] and value != ""


# --- status and numbers ---------------------------------------------------------------------


def _status(subject: str, old: Status, new: Status, required: bool) -> Iterator[Difference]:
    if old is new:
        return
    level = "info"
    if _RANK.get(new, 4) > _RANK.get(old, 4):
        level = "error" if required and new is not Status.WARNED else "warning"
    yield Difference(kind=Kind.STATUS, subject=subject, old=old.value, new=new.value, level=level)


def _numbers(subject: str, old: Case, new: Case, required: bool) -> Iterator[Difference]:
    yield from _status(subject, old.status, new.status, required)
    yield from _margin(subject, margin_of(old.metrics), margin_of(new.metrics))
    found = rate_of(new.metrics)
    for key in (found[0], "peak_bytes") if found else ():
        yield from _rate(subject, key, old, new, required)


def _margin(subject: str, old: float | None, new: float | None) -> Iterator[Difference]:
    if old is None or new is None or abs(new - old) <= MARGIN_STEP:
        return
    yield Difference(
        kind=Kind.MARGIN,
        subject=subject,
        metric="margin",
        old=old,
        new=new,
        change=new - old,
        level="warning" if new > old else "info",
    )


def noise(old: Case, new: Case) -> float:
    """Relative change of a rate that says nothing."""
    spreads = (number(case.metrics.get("spread")) or 0.0 for case in (old, new))
    return min(max(RATE_STEP, 2 * max(spreads)), MOST_SPREAD)


def _rate(subject: str, key: str, old: Case, new: Case, required: bool) -> Iterator[Difference]:
    before, after = number(old.metrics.get(key)), number(new.metrics.get(key))
    if before is None or after is None or before <= 0:
        return
    change = min(after / before - 1, _MOST)
    if abs(change) <= noise(old, new):
        return
    loss = -change if METRICS[key].better == "more" else change
    level = "warning" if loss > 0 else "info"
    if required and loss > RATE_LOSS and key != "peak_bytes":
        level = "error"
    yield Difference(
        kind=Kind.RATE, subject=subject, metric=key, old=before, new=after, change=change,
        level=level,
    )  # fmt: skip
