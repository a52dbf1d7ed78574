"""Checks and their results: what ``verify`` runs, judges and reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from math import isfinite
from typing import Any, TypeVar

T = TypeVar("T")


class Status(str, Enum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"
    WARNED = "warned"
    SKIPPED = "skipped"  # could not run here, with an allowed reason
    BLOCKED = "blocked"  # another check's failure made it pointless
    ERROR = "error"  # the check itself is broken or answered nothing
    CRASHED = "crashed"  # ended by a signal
    TIMEOUT = "timeout"
    UNKILLABLE = "unkillable"  # outlived SIGKILL: the device is wedged
    NOT_RUN = "not-run"


#: A required check that ended so means the answer is no (exit 3).
BAD = frozenset({Status.FAILED, Status.CRASHED, Status.TIMEOUT, Status.UNKILLABLE})
#: A required check that ended so means the answer is not known (exit 8).
UNKNOWN = frozenset({Status.SKIPPED, Status.BLOCKED, Status.ERROR, Status.NOT_RUN})

#: Major version of the schema of a report: another one is not read.
REPORT_MAJOR = "1"

LEVELS = ("static", "quick", "standard", "full", "stress")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line of the registry.

    Attributes:
        id: as in the reports, ``num.gemm_exact``.
        title: for people.
        level: the lowest level that contains it.
        subject: canonical name of the distribution it is about; empty for none.
        script: file in ``probes/checks/``; empty when envlock itself does it.
        timeout: seconds.
        device: it needs a device; with ``--device cpu`` it is an allowed skip.
        advisory: never required (performance, environment warnings).
        arguments: parameters for the script, JSON values.
        index: the device it runs on, as torch counts those it sees; None for the first.
    """

    id: str
    title: str
    level: str
    subject: str = ""
    script: str = ""
    timeout: float = 300.0
    device: bool = False
    advisory: bool = False
    arguments: tuple[tuple[str, Any], ...] = ()
    index: int | None = None


def base_id(name: str) -> str:
    """``num.gemm_exact`` of ``num.gemm_exact@1``: a check that runs once for each device."""
    return name.partition("@")[0]


@dataclass(frozen=True, slots=True)
class Metric:
    """A key of :attr:`Case.metrics` that reports, pages and comparisons understand.

    Attributes:
        means: for people.
        unit: of the number; empty for a plain one.
        better: ``more``, ``less``, or empty where neither is.
    """

    means: str
    unit: str = ""
    better: str = ""


#: What a case may say it measured. Other keys are allowed, shown, and compared as facts.
METRICS: dict[str, Metric] = {
    # numerics: a result against a reference in higher precision
    "margin": Metric("largest error over its limit; above 1 is wrong", better="less"),
    "max_abs": Metric("largest absolute error", better="less"),
    "limit": Metric("what max_abs may be"),
    "fro_rel": Metric("relative Frobenius error", better="less"),
    "fro_limit": Metric("what fro_rel may be"),
    "wrong": Metric("elements that are not the exact ones", better="less"),
    # performance: the rate is flops or bytes over seconds_median
    "tflops": Metric("rate of computing", "TFLOPS", "more"),
    "gbps": Metric("rate of moving, 10^9 bytes", "GB/s", "more"),
    "seconds_median": Metric("median of one run", "s", "less"),
    "seconds_p95": Metric("19 of 20 runs were faster", "s", "less"),
    "spread": Metric("standard deviation over mean"),
    "samples": Metric("runs that were timed"),
    "flops": Metric("operations of one run"),
    "bytes": Metric("bytes that one run moves", "B"),
    "peak_bytes": Metric("most memory of the device in use", "B", "less"),
    "calls": Metric("calls that are timed together, where one is too short; times are of one call"),
    "resource": Metric("what bounds it: a key of the profile's peaks"),
    "reference": Metric("the profile's peak, in the unit of the rate"),
    "ratio": Metric("rate over reference"),
    "floor": Metric("share of reference below which it is worth a word"),
    "typical": Metric("what a healthy device of the kind was measured at, in the unit of the rate"),
    "typical_ratio": Metric("rate over typical"),
}
#: A tenth of the limit: with the same seeds the same kernels give the same margins, and what
#: another schedule or another library moves is below it.
MARGIN_STEP = 0.1
_BOUND = 1e12  # neither a margin nor a rate of anything that exists is larger
#: The rates, and what is compared where a case has none of them.
RATES = ("tflops", "gbps", "seconds_median")
#: ``facts["samples"]`` of a check is a mapping of these to lists of one length: what the parent saw
#: while the check ran. ``seconds`` counts from its start; null where the tool did not say.
SAMPLES: dict[str, str] = {
    "seconds": "s",
    "power_w": "W",
    "clock_mhz": "MHz",
    "temperature_c": "°C",
    "use_percent": "%",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One parametrised case of a check: what was tried, what was measured, the limit."""

    name: str
    status: Status
    metrics: dict[str, Any] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """How one check ended.

    Attributes:
        reason: short machine-readable code and words, empty when passed.
        seconds: wall time.
        cases: parametrised cases; a pass needs at least one that passed.
        facts: what the check found out (versions, device name, fields of the article's script).
        output: bounded tail of what the child printed.
        dropped: bytes of output that are not in ``output``.
        exit: exit code of the child, negative for a signal; None when there was no child.
    """

    id: str
    title: str
    status: Status
    required: bool
    reason: str = ""
    seconds: float = 0.0
    cases: tuple[Case, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    output: str = ""
    dropped: int = 0
    exit: int | None = None


def named(cases: Iterable[T], name_of: Callable[[T], str]) -> dict[str, T]:
    """Things by name; the second of one name is ``name (2)``."""
    found: dict[str, T] = {}
    for case in cases:
        name = name_of(case)
        number = 1
        while name in found:
            number += 1
            name = f"{name_of(case)} ({number})"
        found[name] = case
    return found


def margin_of(metrics: Mapping[str, Any]) -> float | None:
    """Largest error over its limit, of a case's metrics; None where no error has a limit."""
    if (known := number(metrics.get("margin"))) is not None:
        return min(abs(known), _BOUND)
    pairs = (("max_abs", "limit"), ("fro_rel", "fro_limit"))
    ratios = [
        min(abs(error / limit), _BOUND)
        for error, limit in ((number(metrics.get(a)), number(metrics.get(b))) for a, b in pairs)
        if error is not None and limit
    ]
    return max(ratios, default=None)


def rate_of(metrics: Mapping[str, Any]) -> tuple[str, float] | None:
    """The first of :data:`RATES` that a case has, with its value; None for a case without one."""
    found = ((key, number(metrics.get(key))) for key in RATES)
    return next(((key, value) for key, value in found if value and 0 < value < _BOUND), None)


def number(value: Any) -> float | None:
    """The value if it is a finite number, else None: reports hold NaN as text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:  # an integer of 400 digits
        return None
    return found if isfinite(found) else None


def exit_code(results: Iterable[CheckResult]) -> int:
    """Verdict of a run: 0 all required passed, 3 one failed, 8 incomplete or nothing ran.

    A failure outweighs an unknown: the answer is no, whatever else could not be asked.
    """
    required = [result for result in results if result.required]
    if any(result.status in BAD for result in required):
        return 3
    if not required or any(result.status in UNKNOWN for result in required):
        return 8
    return 0
