"""The verdict of a run."""

from __future__ import annotations

import pytest

from envlock.model.check import BAD, UNKNOWN, CheckResult, Status, exit_code


def result(status: Status, *, required: bool = True) -> CheckResult:
    return CheckResult(id="x", title="X", status=status, required=required)


VERDICT = {
    Status.PASSED: 0,
    Status.WARNED: 0,
    Status.FAILED: 3,
    Status.CRASHED: 3,
    Status.TIMEOUT: 3,
    Status.UNKILLABLE: 3,
    Status.SKIPPED: 8,
    Status.BLOCKED: 8,
    Status.ERROR: 8,
    Status.NOT_RUN: 8,
}


def test_every_status_has_a_verdict() -> None:
    assert set(VERDICT) == set(Status)
    assert not BAD & UNKNOWN


@pytest.mark.parametrize("status", Status)
def test_one_required_check(status: Status) -> None:
    assert exit_code([result(status)]) == VERDICT[status]


@pytest.mark.parametrize("status", Status)
def test_beside_a_pass(status: Status) -> None:
    assert exit_code([result(Status.PASSED), result(status)]) == VERDICT[status]


@pytest.mark.parametrize("status", Status)
def test_not_required(status: Status) -> None:
    """Nothing required ran: the answer is not known; beside a required pass it does not count."""
    assert exit_code([result(status, required=False)]) == 8
    assert exit_code([result(Status.PASSED), result(status, required=False)]) == 0


@pytest.mark.parametrize("bad", sorted(BAD))
@pytest.mark.parametrize("unknown", sorted(UNKNOWN))
def test_failure_outweighs_unknown(bad: Status, unknown: Status) -> None:
    assert exit_code([result(unknown), result(bad)]) == 3


def test_nothing_ran() -> None:
    """Zero work is never a pass."""
    assert exit_code([]) == 8
    assert exit_code(iter([result(Status.PASSED)])) == 0
