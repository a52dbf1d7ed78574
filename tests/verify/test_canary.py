"""One fault of a device is reported once."""

from __future__ import annotations

from pathlib import Path

from envlock.model.check import Check, Status
from tests.support.fake_checks import fake_check
from tests.verify.conftest import RunFakes

_ONCE = """
    if os.path.exists({mark!r}):
        raise harness.Failure("the device does not answer")
    open({mark!r}, "w").close()
    yield context.case('one', dict)
"""


CANARY = Check(id="dev.first", title="", level="quick", script="dev_first.py")


def test_a_device_that_still_answers_blocks_nothing(run_fakes: RunFakes) -> None:
    outcome = run_fakes(fake_check("segfault"), fake_check("right"))
    assert [r.status for r in outcome.results] == [Status.CRASHED, Status.PASSED]
    assert outcome.results[0].facts["canary"] == "passed"


def test_a_wedged_device_blocks_the_rest(run_fakes: RunFakes, tmp_path: Path) -> None:
    bodies = {"dev_first": _ONCE.format(mark=str(tmp_path / "mark")).strip()}
    checks = (CANARY, fake_check("segfault"), fake_check("right"), fake_check("wrong"))
    outcome = run_fakes(*checks, bodies=bodies)
    assert [r.status.value for r in outcome.results] == ["passed", "crashed", "blocked", "blocked"]
    assert outcome.results[2].reason == "blocked by fake.segfault"
    assert outcome.code == 3


def test_a_failed_canary_blocks_the_rest(run_fakes: RunFakes) -> None:
    bodies = {"dev_first": "yield context.case('one', failing)"}
    outcome = run_fakes(CANARY, fake_check("right"), bodies=bodies)
    assert [r.status.value for r in outcome.results] == ["failed", "blocked"]
    assert outcome.code == 3


def test_no_device_is_incomplete_not_failed(run_fakes: RunFakes) -> None:
    bodies = {"dev_first": "raise harness.Skip('no device')"}
    outcome = run_fakes(CANARY, fake_check("right"), bodies=bodies)
    assert [r.status.value for r in outcome.results] == ["skipped", "blocked"]
    assert outcome.code == 8


def test_a_failed_import_blocks_what_needs_it(run_fakes: RunFakes) -> None:
    import_check = Check(
        id="imp.torch", title="", level="quick", subject="pytest", script="wrong.py"
    )
    needs = fake_check("right", subject="pytest")
    outcome = run_fakes(import_check, needs, fake_check("warns"))
    assert [r.status.value for r in outcome.results] == ["failed", "blocked", "warned"]
    assert outcome.results[1].reason == "blocked by imp.torch"
