"""A run in words: a line for each check, the verdict, and what to do about what is not right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from envlock.model.amounts import amount, percent
from envlock.model.check import (
    BAD,
    METRICS,
    Case,
    CheckResult,
    Status,
    base_id,
    margin_of,
    number,
    rate_of,
)
from envlock.model.facts import Finding
from envlock.verify.compare import Comparison, Difference, Kind
from envlock.verify.registry import CANARY, STATIC_LOCK

VERDICTS = {0: "passed", 3: "failed", 8: "incomplete", 130: "interrupted"}
_GOOD = frozenset({Status.PASSED, Status.WARNED})
_RESTORE = "put the files back with 'envlock restore'"
_NUMBERS = (
    "is it the build of the manifest? 'envlock verify --level static' tells; "
    "if it is, suspect the device or its driver"
)
#: What to do, by check id, then by its first part.
_HINTS = {
    STATIC_LOCK: _RESTORE,
    CANARY: "check that the device is visible here; name the processor with --device cpu",
    "static": _RESTORE,
    "imp": "a library is missing or does not fit: source the stack's environment script, "
    "else 'envlock restore'",
    "dev": "ask the vendor's own tool for the device, its driver and who else uses it",
    "perf": "run it again on an idle device before believing it",
    **dict.fromkeys(("num", "sdpa", "fa", "tri", "cmp", "trn", "mem", "smoke", "vllm"), _NUMBERS),
}
#: What to do by how it ended, where nothing more is known about the check.
_ENDINGS = {
    Status.CRASHED: "where it ended is in the report (--report FILE); the usual cause is a library "
    "for another device or version: 'envlock verify --level static'",
    Status.NOT_RUN: "the run was stopped before it",
    Status.TIMEOUT: "on a slow machine give it more time with --timeout-scale",
    Status.UNKILLABLE: "the device hangs in the kernel: only its reset or a new instance helps",
    Status.SKIPPED: "what it needs is not here; leave it out by name with --skip",
    Status.ERROR: "the check itself did not work: its output is in the report (--report FILE)",
}


_MOST = 5  # differences of one kind that are told one by one


@dataclass(frozen=True, slots=True)
class Row:
    """One check as a line of the table.

    Attributes:
        number: its key number: the best rate, or the largest part of a limit that was used.
        level: ``good``, ``warning``, ``error`` or ``quiet``: how the status looks.
    """

    status: str
    id: str
    seconds: float
    number: str
    why: str
    level: str

    def text(self, id_width: int, width: int) -> tuple[str, str]:
        """Status and the rest of the line, cut to ``width`` columns in all."""
        head = f"{self.status:10}"
        said = "  ".join(part for part in (self.number, self.why) if part)
        rest = f"  {self.id:{id_width}}  {self.seconds:6.1f} s  {said}".rstrip()
        room = max(width - len(head), 40)
        return head, rest if len(rest) <= room else rest[: room - 1] + "…"


def row(result: CheckResult) -> Row:
    """A check's line; the reason in one line, the last one of a traceback."""
    why = "" if result.status is Status.PASSED else _last_line(result.reason)
    return Row(
        status=result.status.value,
        id=result.id,
        seconds=result.seconds,
        number=key_number(result),
        why=why,
        level=level_of(result),
    )


def level_of(result: CheckResult) -> str:
    """How a check's status looks."""
    if result.status is Status.PASSED:
        return "good"
    if result.status in BAD or result.status is Status.ERROR:
        return "error" if result.required else "warning"
    return "warning" if result.status is Status.WARNED else "quiet"


def key_number(result: CheckResult) -> str:
    """The one number to look at: the best rate with its part of the reference, else the largest
    part of a limit that was used, else how many cases there were."""
    rates = [
        (found[1], found[0], case) for case in result.cases if (found := rate_of(case.metrics))
    ]
    rates = [one for one in rates if METRICS[one[1]].better == "more"]
    if rates:
        value, key, case = max(rates, key=lambda one: one[0])
        return f"{amount(value, key)}{_of_reference(value, case)}"
    margins = [m for case in result.cases if (m := margin_of(case.metrics)) is not None]
    if margins:
        return f"{percent(max(margins))} of limit" if max(margins) > 0 else "exact"
    cases = len(result.cases)
    return f"{cases} cases" if cases > 1 else ""


def _of_reference(value: float, case: Case) -> str:
    reference = number(case.metrics.get("reference"))
    return f" ({percent(value / reference)})" if reference else ""


def verdict(results: Sequence[CheckResult], code: int, compared: bool) -> str:
    """The verdict in words.

    Args:
        results: every check of the run.
        code: exit code.
        compared: whether there was a manifest to compare files with.
    """
    required = [result for result in results if result.required]
    good = [result for result in required if result.status in _GOOD]
    others = [f"{r.id} {r.status.value}" for r in required if r not in good]
    warned = [r.id for r in results if r.status is Status.WARNED]
    ran = f"{len(good)} of {len(required)} required checks passed"
    parts = [f"{VERDICTS[code]}: {ran if required else 'no check that counts could run'}"]
    parts += [", ".join(others)] if others else []
    parts += [f"warnings: {', '.join(warned)}"] if warned else []
    parts += [] if compared else ["files were not compared: there is no manifest"]
    return "; ".join(parts)


def findings(results: Iterable[CheckResult]) -> tuple[Finding, ...]:
    """What is not as it should be, in the order of the checks.

    static.lock names each distribution; what an earlier failure blocked is not told again. What no
    verdict needs is told where it went wrong, not where it could not run.
    """
    found: list[Finding] = []
    for result in results:
        if result.status is Status.PASSED or result.status is Status.BLOCKED:
            continue
        if result.id == STATIC_LOCK and result.cases:
            found += _distributions(result)
        elif result.required or result.status not in (Status.SKIPPED, Status.NOT_RUN):
            found.append(_check(result))
    return tuple(found)


def _distributions(result: CheckResult) -> list[Finding]:
    told = (Status.FAILED, Status.WARNED)
    return [
        Finding(
            code=result.id,
            subject=case.name,
            what=_last_line(case.reason),
            hint=_RESTORE,
            level="warning" if case.status is Status.WARNED else "error",
        )
        for case in result.cases
        if case.status in told
    ]


def _check(result: CheckResult) -> Finding:
    level = "error" if level_of(result) == "error" else "warning"
    return Finding(
        code=result.id,
        subject=result.title,
        what=f"{result.status.value}: {_last_line(result.reason)}",
        hint=hint(result),
        level=level,
    )


def hint(result: CheckResult) -> str:
    """What to do about a check that is not as it should be; empty where nobody knows."""
    if result.status in _ENDINGS and base_id(result.id) != CANARY:
        return _ENDINGS[result.status]
    name = base_id(result.id)
    return _HINTS.get(name) or _HINTS.get(name.partition(".")[0], "")


def case_line(case: Case) -> str:
    """A case below its check, where somebody wants to see every one."""
    said = _last_line(case.reason) if case.reason else ""
    return f"    {case.status.value:8}  {_printable(case.name)}  {said}".rstrip()


def _last_line(text: str) -> str:
    return _printable(text.strip().splitlines()[-1]) if text.strip() else "no reason given"


def _printable(text: str) -> str:
    """What a child says may hold halves of characters, which no terminal takes."""
    return text.encode("utf-8", "replace").decode("utf-8")


# --- beside a baseline ----------------------------------------------------------------------


def comparison_findings(comparison: Comparison) -> tuple[Finding, ...]:
    """What differs from the baseline; what is better, and facts, are notes.

    Of many differences of one kind the first ones are told, and how many more there are.
    """
    found: list[Finding] = []
    for (kind, level), group in groupby(comparison.differences, lambda d: (d.kind, d.level)):
        differences = list(group)
        most = _MOST if len(differences) > _MOST + 1 else len(differences)
        found += [_difference(one) for one in differences[:most]]
        if more := len(differences) - most:
            what = f"and {more} more of the kind; all of them are in the report and on the page"
            code = f"baseline.{kind.value}"
            found.append(Finding(code=code, subject=kind.value, what=what, level=level))
    return tuple(found)


def _difference(one: Difference) -> Finding:
    return Finding(
        code=f"baseline.{one.kind.value}",
        subject=one.subject,
        what=told(one),
        why="the two runs are compared all the same" if one.kind is Kind.CONFIG else "",
        level=one.level,
    )


def told(one: Difference) -> str:
    """``260.1 TFLOPS, was 295.0 TFLOPS (-12 %)``."""
    if one.kind is Kind.CONFIG and isinstance(one.old, list) and isinstance(one.new, list):
        return "; ".join(
            f"{which}: {', '.join(map(str, names[:6]))}{' …' if len(names) > 6 else ''}"
            for which, names in (("only before", one.old), ("only now", one.new))
            if names
        )
    if one.kind is Kind.CONFIG and one.subject == "suite":
        return "other check scripts: shapes or limits may not be the same"
    text = f"{shown(one, one.new)}, was {shown(one, one.old)}"
    return f"{text} ({change(one)})" if one.kind is Kind.RATE else text


def shown(one: Difference, value: Any) -> str:
    """One of the two values of a difference, for people."""
    if one.kind is Kind.MARGIN:
        return f"{percent(value)} of its limit"
    if one.kind is Kind.RATE:
        return amount(value, one.metric)
    if value is None:
        return "nothing"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "nothing"
    text = str(value)
    most = 20 if text.startswith("sha256:") else 48  # enough of a digest to tell two apart
    return text if len(text) <= most else f"{text[: most - 1]}…"


def change(one: Difference) -> str:
    """``-12 %``; of a margin in hundredths of the limit."""
    return "" if one.change is None else f"{one.change * 100:+.0f} %"


def compared(comparison: Comparison) -> str:
    """How much stands behind a comparison: ``41 cases compared, 30 by margin, 11 by rate``."""
    parts = [f"{comparison.cases} cases compared"]
    parts += [f"{comparison.margins} by margin"] if comparison.margins else []
    parts += [f"{comparison.rates} by rate"] if comparison.rates else []
    return ", ".join(parts)
