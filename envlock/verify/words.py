"""A run in words: the verdict, and a finding for everything that is not as it should be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from envlock.model.check import BAD, CheckResult, Status
from envlock.model.facts import Finding
from envlock.verify.registry import CANARY, STATIC_LOCK

VERDICTS = {0: "passed", 3: "failed", 8: "incomplete", 130: "interrupted"}
_GOOD = frozenset({Status.PASSED, Status.WARNED})
_HINTS = {
    STATIC_LOCK: "put the files back with 'envlock restore'",
    CANARY: "check that the device is visible here; name the processor with --device cpu",
}


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

    static.lock names each distribution; what an earlier failure blocked is not told again.
    """
    found: list[Finding] = []
    for result in results:
        if result.status is Status.PASSED or result.status is Status.BLOCKED:
            continue
        if result.id == STATIC_LOCK and result.cases:
            found += _distributions(result)
        elif result.required:
            found.append(_finding(result.id, result.title, result.reason, _level(result.status)))
    return tuple(found)


def _distributions(result: CheckResult) -> list[Finding]:
    told = (Status.FAILED, Status.WARNED)
    return [
        _finding(result.id, case.name, case.reason, _level(case.status))
        for case in result.cases
        if case.status in told
    ]


def _finding(check: str, subject: str, what: str, level: str) -> Finding:
    first = what.strip().splitlines()[-1] if what.strip() else "no reason given"
    return Finding(code=check, subject=subject, what=first, hint=_HINTS.get(check, ""), level=level)


def _level(status: Status) -> str:
    return "error" if status in BAD or status is Status.ERROR else "warning"
