"""Checks that run beside others: the same results, in order, and nothing that disturbs."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from envlock.adapters import files, process
from envlock.model.check import Case, Check, CheckResult, Status
from envlock.verify.ahead import MEMORY, MOST, Ahead, GivenUp, may_share, width
from envlock.verify.registry import CHECKS, WATCHED
from envlock.verify.run import Watch
from tests.verify.conftest import CPU, RunFakes

ALONE = Check(id="perf.one", title="", level="full", script="x.py")


def _check(name: str) -> Check:
    return Check(id=name, title="", level="full", script="x.py")


def _result(check: Check, status: Status = Status.PASSED, reason: str = "") -> CheckResult:
    cases = (Case(name="one", status=status, reason=reason),)
    return CheckResult(
        id=check.id, title="", status=status, required=True, reason=reason, cases=cases
    )


def _ahead(
    beside: Callable[[Check], CheckResult],
    alone: Callable[[Check], CheckResult],
    *checks: Check,
    workers: int = 3,
) -> Ahead:
    return Ahead(lambda _: beside, alone, checks, lambda: workers)


THREE = [_check(f"num.{letter}") for letter in "abc"]


def test_three_run_at_one_time() -> None:
    meeting = threading.Barrier(3, timeout=30)

    def beside(check: Check) -> CheckResult:
        meeting.wait()  # broken, and an exception, unless all three are here together
        return _result(check)

    ahead = _ahead(beside, _result, *THREE)
    assert [ahead.take(check).id for check in THREE] == ["num.a", "num.b", "num.c"]
    ahead.stop()


def test_nothing_runs_beside_one_that_has_to_be_alone() -> None:
    go, running = threading.Event(), set[str]()

    def beside(check: Check) -> CheckResult:
        running.add(check.id)
        if check is not THREE[0]:
            assert go.wait(30)
        running.discard(check.id)
        return _result(check)

    def alone(check: Check) -> CheckResult:
        assert not running
        return _result(check)

    ahead = _ahead(beside, alone, THREE[0], ALONE, *THREE[1:])
    assert ahead.take(THREE[0]).id == "num.a"
    threading.Timer(0.2, go.set).start()
    assert ahead.take(ALONE).id == "perf.one"
    assert [ahead.take(check).id for check in THREE[1:]] == ["num.b", "num.c"]
    ahead.stop()


def test_what_is_dropped_is_not_waited_for() -> None:
    started, go = threading.Event(), threading.Event()

    def beside(check: Check) -> CheckResult:
        assert check is not THREE[2]
        started.set()
        assert go.wait(30)
        return _result(check)

    ahead = _ahead(beside, _result, *THREE, workers=2)
    first = threading.Thread(target=ahead.take, args=(THREE[0],))
    first.start()
    assert started.wait(30)
    ahead.drop(THREE[2])
    go.set()
    ahead.wait()
    first.join(30)
    ahead.stop()
    assert not first.is_alive()


@pytest.mark.parametrize(
    ("status", "reason", "asked"),
    [
        (Status.CRASHED, "ended by SIGSEGV", ["num.b"]),
        (Status.FAILED, "off by one", []),
    ],
)
def test_what_fails_beside_a_crash_is_asked_again_alone(
    status: Status, reason: str, asked: list[str]
) -> None:
    alone: list[str] = []
    bad = {
        "num.a": partial(_result, status=status, reason=reason),
        "num.b": partial(_result, status=Status.FAILED, reason="wrong"),
    }

    def again(check: Check) -> CheckResult:
        alone.append(check.id)
        return _result(check)

    ahead = _ahead(lambda check: bad.get(check.id, _result)(check), again, *THREE)
    found = [ahead.take(check).status for check in THREE]
    ahead.stop()
    assert alone == asked
    assert found == [status, Status.PASSED if asked else Status.FAILED, Status.PASSED]


def test_one_that_had_no_memory_is_asked_again_alone() -> None:
    full = partial(_result, status=Status.ERROR, reason="out of memory: no more could be had")
    ahead = _ahead(full, _result, *THREE)
    assert ahead.take(THREE[0]).status is Status.PASSED
    ahead.stop()


def test_nothing_is_left_running() -> None:
    started = threading.Semaphore(0)
    ended: list[int] = []

    def beside(check: Check) -> CheckResult:
        started.release()
        try:
            process.run([sys.executable, "-c", "import time; time.sleep(600)"], env={}, grace=5)
        finally:
            ended.append(1)
        return _result(check)

    ahead = _ahead(beside, _result, *THREE)

    def take() -> None:
        with pytest.raises(GivenUp):
            ahead.take(THREE[0])

    taking = threading.Thread(target=take)
    taking.start()
    assert all(started.acquire(timeout=30) for _ in THREE)
    ahead.stop()
    taking.join(30)
    assert len(ended) == len(THREE)
    assert not taking.is_alive()


def test_one_at_a_time_starts_nothing_ahead() -> None:
    def never(check: Check) -> CheckResult:
        raise AssertionError(check.id)

    ahead = _ahead(never, _result, *THREE, workers=1)
    assert [ahead.take(check).status for check in THREE] == [Status.PASSED] * 3


def test_how_many() -> None:
    large = 100 * MEMORY
    assert [width(count, large) for count in (2, 7, 8, 16, 64)] == [1, 1, 4, MOST, MOST]
    assert [width(16, free) for free in (None, 0, MEMORY, 3 * MEMORY)] == [1, 1, 1, 3]


def test_speed_and_memory_are_measured_alone() -> None:
    shared = {check.id for check in CHECKS if may_share(check)}
    assert "num.gemm_exact" in shared
    assert not {"num.poison", "num.large_index", "dev.first", "tri.offsets"} & shared
    assert not {name for name in shared if name.partition(".")[0] in WATCHED}


MEET = """
    place = os.environ["MEETING"]
    open(os.path.join(place, os.path.basename(sys.argv[1])), "w").close()
    deadline = time.monotonic() + 30
    while len(os.listdir(place)) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    here = len(os.listdir(place))
    yield context.case("one", lambda: {"here": here, "threads": int(os.environ["OMP_NUM_THREADS"])})
"""
KNOWN = """
    context.facts["devices"] = [{{"memory": {memory}}}]
    yield context.case("one", dict)
"""


@pytest.mark.parametrize(("memory", "together"), [(65536, True), (4096, False)])
def test_a_run_on_a_large_idle_device(
    run_fakes: RunFakes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    memory: int,
    together: bool,
) -> None:
    monkeypatch.setattr(files, "workers", lambda: 16)
    place = tmp_path / "meeting"
    place.mkdir()
    env = {**os.environ, "MEETING": str(place)}
    env.pop("OMP_NUM_THREADS", None)
    meet = MEET if together else MEET.replace("+ 30", "+ 0.1")
    checks = [
        Check(id=name, title="", level="quick", script=f"{name.replace('.', '_')}.py")
        for name in ("dev.enum", "num.a", "num.b", "perf.c")
    ]
    told: list[str] = []
    outcome = run_fakes(
        *checks,
        profile=replace(CPU, device="cuda"),
        env=env,
        bodies={
            "dev_enum": KNOWN.format(memory=memory), "num_a": meet, "num_b": meet,
            "perf_c": "yield context.case('one', dict)",
        },
        watch=Watch(on_result=lambda result: told.append(result.id)),
    )  # fmt: skip
    results = {result.id: result for result in outcome.results}
    assert told == list(results) == ["dev.enum", "num.a", "num.b", "perf.c"]
    assert {result.status for result in outcome.results} == {Status.PASSED}, outcome.results
    first = results["num.a"].cases[0].metrics
    assert (first["here"], first["threads"]) == ((2, 2) if together else (1, 16))
