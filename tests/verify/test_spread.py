"""Several devices, and checks that are watched."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from envlock.adapters.interpreter import probes_folder
from envlock.model.check import Check, CheckResult, Status, base_id
from envlock.model.facts import Device, Machine
from envlock.model.profile import Peaks, Profile
from envlock.verify.plan import Ground, Options, stand
from envlock.verify.registry import CHECKS
from envlock.verify.run import Outcome
from envlock.verify.spread import COUNT, indices, on_one_device, spread
from tests.support.fake_checks import fake_check
from tests.support.fake_manifest import locked
from tests.verify.conftest import RunFakes

CUDA = Profile(name="dtk", title="", labels=(), names=(), visible="HIP_VISIBLE_DEVICES")
CANARY = Check(id="dev.first", title="", level="quick", script="dev_first.py")
SEES = """
    context.facts["sees"] = [os.environ.get(n) for n in
                             ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")]
    yield context.case("one", dict)
""".strip()


def _ground(device: str = "cuda") -> Ground:
    return Ground(device=device, expected=True, locked=None, installed=frozenset())


def _never() -> int:
    raise AssertionError("nobody needs to know")


def test_what_concerns_one_device() -> None:
    several = {c.id.partition(".")[0] for c in CHECKS if not on_one_device(c)}
    assert {"static", "imp", "col"} <= several
    assert several.isdisjoint({"num", "fa", "sdpa", "tri", "perf", "smoke"})
    assert on_one_device(CANARY)


@pytest.mark.parametrize(
    ("asked", "number", "found"),
    [("all", 3, (0, 1, 2)), ("all", 1, (None,)), ("all", 0, (None,))],
)
def test_all_devices_are_counted(asked: str, number: int, found: tuple[int | None, ...]) -> None:
    assert indices(asked, _ground(), [CANARY], lambda: number) == found


def test_devices_are_counted_only_where_it_matters() -> None:
    assert indices("2", _ground(), [CANARY], _never) == (2,)
    assert indices("auto", _ground(), [CANARY], _never) == (None,)
    assert indices("cuda", _ground(), [CANARY], _never) == (None,)
    assert indices("all", _ground("cpu"), [CANARY], _never) == (None,)
    lock = Check(id="static.lock", title="", level="static")
    assert indices("all", _ground(), [lock], _never) == (None,)


def test_checks_are_spread_in_their_order() -> None:
    checks = [Check(id=name, title="", level="quick") for name in ("imp.a", "num.b", "col.c")]
    ids = [(check.id, check.index) for check in spread(checks, (0, 1))]
    assert ids == [("imp.a", None), ("num.b@0", 0), ("num.b@1", 1), ("col.c", None)]
    assert [(c.id, c.index) for c in spread(checks, (5,))][1] == ("num.b", 5)
    assert base_id("num.b@1") == base_id("num.b") == "num.b"


def _run(run_fakes: RunFakes, device: str, *checks: Check, count: int = 2) -> Outcome:
    bodies = {
        "_dev_count": f'context.facts["count"] = {count}; yield context.case("one", dict)',
        "sees": SEES,
        "dev_first": SEES,
    }
    return run_fakes(CANARY, *checks, bodies=bodies, profile=CUDA, device=device, env=_env())


def _env(**more: str) -> dict[str, str]:
    hidden = ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
    return {key: value for key, value in os.environ.items() if key not in hidden} | more


def test_every_device_runs_every_check_and_sees_itself_alone(run_fakes: RunFakes) -> None:
    assert (probes_folder() / "checks" / COUNT.script).is_file()
    checks = (fake_check("sees", prefix="num"), fake_check("sees", prefix="col"))
    outcome = _run(run_fakes, "all", *checks)
    assert {r.id: r.facts["sees"] for r in outcome.results} == {
        "dev.first@0": ["0", None],
        "dev.first@1": ["1", None],
        "num.sees@0": ["0", None],
        "num.sees@1": ["1", None],
        "col.sees": [None, None],
    }
    assert outcome.code == 0
    assert outcome.report["config"]["checks"] == [r.id for r in outcome.results]
    assert outcome.report["device"]["indices"] == [0, 1]
    assert outcome.report["device"]["sees"] == ["0", None]


def test_one_device_is_chosen_by_its_number(run_fakes: RunFakes) -> None:
    outcome = _run(run_fakes, "3", fake_check("sees", prefix="num"))
    assert {r.id: r.facts["sees"] for r in outcome.results} == {
        "dev.first": ["3", None],
        "num.sees": ["3", None],
    }
    assert outcome.report["device"]["indices"] == [3]


def test_a_device_that_fails_takes_no_other_with_it(run_fakes: RunFakes) -> None:
    body = """
    if os.environ["HIP_VISIBLE_DEVICES"] == "1":
        raise harness.Failure("the device does not answer")
    yield context.case("one", dict)
""".strip()
    bodies = {
        "_dev_count": 'context.facts["count"] = 2; yield context.case("one", dict)',
        "dev_first": body,
    }
    checks = (CANARY, fake_check("right", prefix="num"), fake_check("right", prefix="col"))
    outcome = run_fakes(*checks, bodies=bodies, profile=CUDA, device="all", env=_env())
    assert {r.id: r.status.value for r in outcome.results} == {
        "dev.first@0": "passed",
        "dev.first@1": "failed",
        "num.right@0": "passed",
        "num.right@1": "blocked",
        "col.right": "blocked",  # needs them all
    }
    assert outcome.code == 3


def test_a_device_of_the_manifest_is_expected() -> None:
    with_device = Machine(devices=(Device(name="BW"),))
    for machine, expected in ((Machine(), False), (with_device, True)):
        manifest = replace(locked(), machine=machine)
        assert stand(Options(), CUDA, manifest, []).expected is expected
        assert stand(Options(device="cpu"), CUDA, manifest, []).expected is False
    assert stand(Options(device="all"), CUDA, None, []).expected is True
    assert stand(Options(device="1"), CUDA, None, []).expected is True


# --- watched --------------------------------------------------------------------------------

FAST = """
    context.facts.update(device="BW", compute_units=80)
    yield context.case("gemm fp16 8192",
                       lambda: {"tflops": RATE, "resource": "fp16", "floor": 0.5})
    time.sleep(SECONDS)
""".strip()


def _watched(run_fakes: RunFakes, tool: Path | None, rate: float | str) -> CheckResult:
    peaks = Peaks(name="BW", compute_units=80, values={"fp16": 480.0}, measured={})
    folders = (str(tool.parent),) if tool else ()
    profile = Profile(
        name="dtk", title="", labels=(), names=(), peaks=(peaks,), tools=("hy-smi",),
        tool_folders=folders,
    )  # fmt: skip
    check = replace(fake_check("fast", prefix="perf"), advisory=True)
    bodies = {"fast": FAST.replace("RATE", str(rate)).replace("SECONDS", "1.2" if tool else "0")}
    return run_fakes(check, bodies=bodies, profile=profile, device="cuda").results[0]


@pytest.mark.skipif(sys.platform == "win32", reason="the tool is a shell script")
def test_a_device_is_watched_while_its_speed_is_measured(
    run_fakes: RunFakes, tmp_path: Path
) -> None:
    tool = tmp_path / "tools" / "hy-smi"
    tool.parent.mkdir()
    answer = '{"card0": {"HCU use (%)": "0.0", "Average Graphics Package Power (W)": "79.0"}}'
    tool.write_text(f"#!/bin/sh\necho '{answer}'\n")
    tool.chmod(0o755)
    result = _watched(run_fakes, tool, 300.0)
    assert result.status is Status.PASSED
    samples = result.facts["samples"]
    assert len(samples["seconds"]) >= 2
    assert set(samples["power_w"]) == {79.0}
    assert set(samples["clock_mhz"]) == {None}
    assert result.facts["sampled"]["power_w"]["steady"] == 79.0
    assert result.facts["sampler"]["tool"] == "hy-smi"
    assert result.cases[0].metrics["ratio"] == 0.625


def test_a_low_figure_is_asked_for_once_more(run_fakes: RunFakes, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    first = f"not os.path.exists({str(mark)!r}) and not open({str(mark)!r}, 'w').close()"
    rate = f"50.0 if {first} else 300.0"
    result = _watched(run_fakes, None, rate)
    assert result.status is Status.PASSED
    assert result.cases[0].metrics["tflops"] == 300.0
    assert result.facts["first_try"] == {"gemm fp16 8192": 50.0}


@pytest.mark.parametrize(("rate", "status"), [(300.0, "passed"), (100.0, "warned"), (9e9, "error")])
def test_figures_decide_without_a_tool_too(run_fakes: RunFakes, rate: float, status: str) -> None:
    result = _watched(run_fakes, None, rate)
    assert result.status.value == status
    assert "samples" not in result.facts
    assert ("first_try" in result.facts) is (status != "passed")
