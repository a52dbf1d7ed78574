"""However a check ends, it has a status of its own and the others still run."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from envlock.model.check import Check, CheckResult, Status
from envlock.verify.run import Outcome, Watch
from tests.support.fake_checks import fake_check
from tests.verify.conftest import RunFakes

# name of the script, how it ends, words of the reason, exit code of the run
ENDINGS = [
    ("right", Status.PASSED, "", 0),
    ("wrong", Status.FAILED, "off by one", 3),
    ("warns", Status.WARNED, "slow", 0),
    ("raises", Status.ERROR, "ValueError: the check is broken", 8),
    ("raises_in_case", Status.ERROR, "ZeroDivisionError", 8),
    ("subject_raises", Status.FAILED, "raised ValueError", 3),
    ("skips", Status.SKIPPED, "not here", 8),
    ("skips_case", Status.SKIPPED, "no such thing here", 8),
    ("no_cases", Status.ERROR, "no case was run", 8),
    ("segfault", Status.CRASHED, "SIGSEGV", 3),
    ("abort", Status.CRASHED, "SIGABRT", 3),
    ("killed", Status.CRASHED, "SIGKILL", 3),
    ("exits", Status.ERROR, "no answer (exit 0)", 8),
    ("system_exit", Status.ERROR, "no answer (exit 0)", 8),
    ("exits_3", Status.ERROR, "no answer (exit 3)", 8),
    ("half_answer", Status.ERROR, "half an answer", 8),
    ("bad_json", Status.ERROR, "not JSON", 8),
    ("not_finite", Status.ERROR, "NaN", 8),
    ("no_list", Status.ERROR, "has no cases", 8),
    ("strange_case", Status.ERROR, "not a case", 8),
    ("answers_a_folder", Status.ERROR, "not JSON", 8),
    ("out_of_memory", Status.ERROR, "out of memory: ", 8),
    ("out_of_memory_in_check", Status.ERROR, "out of memory: ", 8),
    ("device_out_of_memory", Status.ERROR, "out of memory: ", 8),
    ("measures_nan", Status.PASSED, "", 0),
]


def _one(outcome: Outcome, name: str) -> CheckResult:
    return next(result for result in outcome.results if result.id == f"fake.{name}")


@pytest.mark.parametrize(("name", "status", "words", "code"), ENDINGS)
def test_each_ending_has_its_status(
    run_fakes: RunFakes, name: str, status: Status, words: str, code: int
) -> None:
    names = dict.fromkeys((name, "right"))  # once, where the two are the same
    outcome = run_fakes(*[fake_check(each) for each in names])
    result = _one(outcome, name)
    assert (result.status, outcome.code) == (status, code), result
    assert words in result.reason
    assert _one(outcome, "right").status is Status.PASSED
    json.dumps(outcome.report, allow_nan=False)


def test_a_hanging_check_is_stopped(run_fakes: RunFakes) -> None:
    started = time.monotonic()
    outcome = run_fakes(fake_check("hangs", timeout=1.0), fake_check("right"))
    assert _one(outcome, "hangs").status is Status.TIMEOUT
    assert "hangs.py" in _one(outcome, "hangs").output  # where it hung
    assert _one(outcome, "right").status is Status.PASSED
    assert outcome.code == 3
    assert time.monotonic() - started < 20


def test_a_check_that_ignores_term_is_killed(run_fakes: RunFakes) -> None:
    outcome = run_fakes(fake_check("ignores_term", timeout=1.0), fake_check("right"))
    result = _one(outcome, "ignores_term")
    assert (result.status, result.exit) == (Status.TIMEOUT, -9)
    assert _one(outcome, "right").status is Status.PASSED


def test_the_time_limit_scales(run_fakes: RunFakes) -> None:
    outcome = run_fakes(fake_check("hangs", timeout=100.0), timeout_scale=0.01)
    assert _one(outcome, "hangs").status is Status.TIMEOUT


def test_much_output_neither_hangs_nor_decides(run_fakes: RunFakes) -> None:
    result = _one(run_fakes(fake_check("noisy")), "noisy")
    assert result.status is Status.PASSED
    assert result.dropped > 99_000_000
    assert len(result.output) <= 64 * 1024


def test_a_check_that_stopped_itself_is_killed(run_fakes: RunFakes) -> None:
    """TERM is not delivered to a stopped process, KILL is."""
    outcome = run_fakes(fake_check("stops_itself", timeout=1.0), fake_check("right"))
    assert (_one(outcome, "stops_itself").status, outcome.code) == (Status.TIMEOUT, 3)
    assert _one(outcome, "right").status is Status.PASSED


@pytest.mark.parametrize("name", ["grandchild", "daemon"])
def test_a_grandchild_that_holds_the_pipe_is_not_waited_for(run_fakes: RunFakes, name: str) -> None:
    """Not in the check's process group either, where KILL does not reach it."""
    started = time.monotonic()
    result = _one(run_fakes(fake_check(name)), name)
    assert result.status is Status.PASSED
    assert time.monotonic() - started < 20


def test_the_report_of_a_bad_run_can_be_read(run_fakes: RunFakes, tmp_path: Path) -> None:
    """From the file, as it was after the last check that ended."""
    path = tmp_path / "report.json"

    def keep(document: Mapping[str, Any]) -> None:
        path.write_text(json.dumps(document, allow_nan=False))

    names = ("out_of_memory", "half_answer", "abort", "exits", "no_cases")
    outcome = run_fakes(*map(fake_check, names), watch=Watch(on_report=keep))
    read = json.loads(path.read_text())
    assert [check["status"] for check in read["checks"]] == [
        "error", "error", "crashed", "error", "error",
    ]  # fmt: skip
    assert len({check["reason"] for check in read["checks"]}) == len(names)
    assert (outcome.code, read["exit"], read["verdict"]) == (3, 3, "failed")


def test_a_crash_keeps_the_cases_before_it(run_fakes: RunFakes) -> None:
    result = _one(run_fakes(fake_check("segfault")), "segfault")
    assert [case.status for case in result.cases] == [Status.PASSED]
    assert "Segmentation fault" in result.output  # faulthandler says where


def test_the_report_is_whole_after_every_check(run_fakes: RunFakes) -> None:
    seen: list[str] = []

    def keep(document: Mapping[str, Any]) -> None:
        seen.append(json.dumps(document, allow_nan=False))

    names = ("right", "segfault", "wrong")
    run_fakes(*[fake_check(name) for name in names], watch=Watch(on_report=keep))
    states = [[c["status"] for c in json.loads(text)["checks"]] for text in seen]
    assert states[0] == ["not-run"] * 3
    assert states[1] == ["passed", "not-run", "not-run"]
    assert states[2] == ["passed", "crashed", "not-run"]
    assert states[-1] == ["passed", "crashed", "failed"]
    last = json.loads(seen[-1])
    assert (last["verdict"], last["exit"]) == ("failed", 3)
    assert last["counts"] == {"passed": 1, "failed": 1, "crashed": 1}
    assert json.loads(seen[1])["verdict"] == "running"


def test_an_interrupted_run_leaves_its_report(run_fakes: RunFakes) -> None:
    documents: list[Mapping[str, Any]] = []

    def stop(check: Check) -> None:
        if check.id == "fake.wrong":
            raise KeyboardInterrupt

    watch = Watch(on_start=stop, on_report=documents.append)
    with pytest.raises(KeyboardInterrupt):
        run_fakes(fake_check("right"), fake_check("wrong"), watch=watch)
    assert documents[-1]["verdict"] == "interrupted"
    assert [c["status"] for c in documents[-1]["checks"]] == ["passed", "not-run"]
