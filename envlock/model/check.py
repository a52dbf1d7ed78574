"""Checks and their results: what ``verify`` runs, judges and reports."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


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
