"""Figures of work that was not done, or of clocks that are wrong, are not believed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from envlock.adapters.interpreter import probes_folder
from envlock.model.check import METRICS
from tests.support.pythons import clean_env

pytestmark = [pytest.mark.torch, pytest.mark.integration]

DRIVER = Path(__file__).parents[1] / "support" / "speed_driver.py"
Cases = list[dict[str, Any]]

#: check -> cases when all is well
RIGHT = {
    "perf_gemm": 1, "perf_memory": 4, "perf_attention": 2, "perf_quick": 3, "copy": 2,
    "events": 2, "stress_gemm": 1,
}  # fmt: skip
# check, fault, name of a case that must not pass, status, words of the reason
FAULTS = [
    ("perf_gemm", "not-run", "gemm fp32 256", "failed", "NaN"),
    ("perf_gemm", "wrong-rows", "gemm fp32 256", "failed", "relative error"),
    ("perf_gemm", "one-nan", "gemm fp32 256", "failed", "NaN"),
    ("perf_gemm", "flat-numbers", "gemm fp32 256", "error", "deviation of 0.0"),
    ("perf_memory", "half-copied", "copy 1 MiB", "failed", "not equal"),
    ("perf_memory", "not-added", "add fp32 1 MiB", "failed", "the sum is wrong"),
    ("perf_memory", "not-launched", "launch", "failed", "added 0.0"),
    ("perf_attention", "no-mask", "sdpa bf16 b1 h2 s256 d64 forward", "failed", "out: relative"),
    ("perf_attention", "zeros", "sdpa bf16 b1 h2 s256 d64 forward", "failed", "out: relative"),
    ("perf_attention", "zeros", "sdpa bf16 b1 h2 s256 d64 backward", "failed", "dq: relative"),
    ("perf_attention", "wrong-dq", "sdpa bf16 b1 h2 s256 d64 backward", "failed", "dq: relative"),
    ("perf_quick", "not-run", "gemm fp32 256", "failed", "NaN"),
    ("copy", "half-copied", "h2d", "failed", "not what was sent"),
    ("copy", "half-copied", "d2h", "failed", "not what was sent"),
    ("stress_gemm", "flips", "gemm bf16, every answer equal", "failed", "1 of "),
    *[("events", fault, "hot", "error", "a sample took") for fault in ("zero", "negative")],
    *[("events", fault, "cold", "error", "a sample took") for fault in ("nan", "endless")],
    ("events", "threefold", "hot", "error", "passed on the host"),
]


@pytest.fixture(scope="module")
def answers(
    torch_target: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str], dict[str, dict[str, Any]]]:
    """Cases by name, of each check and fault."""
    jobs = [(check, "") for check in RIGHT] + [(check, fault) for check, fault, *_ in FAULTS]
    jobs = list(dict.fromkeys(jobs))
    folder = tmp_path_factory.mktemp("speed")
    (folder / "jobs.json").write_text(json.dumps(jobs))
    python = str(torch_target / "bin" / "python")
    files = [str(probes_folder()), str(folder / "jobs.json"), str(folder / "answer.json")]
    env = clean_env(PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1")
    command = [python, "-s", str(DRIVER), *files]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: list[Cases] = json.loads((folder / "answer.json").read_text())
    named = [{case["name"]: case for case in cases} for cases in found]
    return dict(zip(jobs, named, strict=True))


@pytest.mark.parametrize("check", RIGHT)
def test_figures_of_work_that_was_done(answers: Any, check: str) -> None:
    cases = answers[check, ""]
    assert len(cases) == RIGHT[check]
    for case in cases.values():
        if case["name"].startswith("triton"):
            assert case["status"] == "skipped"
            continue
        assert case["status"] in ("passed", "warned"), case  # a busy machine may not settle
        metrics = case["metrics"]
        assert 0 < metrics["seconds_median"] <= metrics["seconds_p95"]
        assert metrics["samples"] >= 1
        assert metrics["calls"] >= 1
        assert metrics["spread"] >= 0
        work = metrics.get("flops", metrics.get("bytes"))
        rate = metrics.get("tflops", metrics.get("gbps"))
        if work is not None:
            scale = 1e12 if "tflops" in metrics else 1e9
            assert rate == pytest.approx(work / metrics["seconds_median"] / scale)
            assert metrics["resource"] in ("fp16", "bf16", "fp32", "fp64", "memory", "host")
        documented = {"seconds", "seconds_least", "cache", "steady", "products"}
        assert set(metrics) - set(METRICS) - documented <= {"slope_percent_a_minute"}


def test_traffic_is_counted_as_the_tables_do(answers: Any) -> None:
    memory = answers["perf_memory", ""]
    mib = 1 << 20
    assert memory["copy 1 MiB"]["metrics"]["bytes"] == 2 * mib  # read and written
    assert memory["add fp32 1 MiB"]["metrics"]["bytes"] == 3 * mib
    assert answers["copy", ""]["h2d"]["metrics"]["bytes"] == mib  # crosses the bus once
    gemm = answers["perf_gemm", ""]["gemm fp32 256"]["metrics"]
    assert gemm["flops"] == 2 * 256**3
    attention = answers["perf_attention", ""]
    flops = [attention[f"sdpa bf16 b1 h2 s256 d64 {way}"]["metrics"]["flops"]
             for way in ("forward", "backward")]  # fmt: skip
    assert flops == [2 * 2 * 256**2 * 64, 5 * 2 * 256**2 * 64]


def test_events_time_what_they_are_around(answers: Any) -> None:
    hot, cold = (answers["events", ""][name]["metrics"] for name in ("hot", "cold"))
    assert (hot["cache"], cold["cache"]) == ("hot", "cold")
    assert cold["calls"] == 1
    assert hot["calls"] > 1  # a call of microseconds is not timed alone
    assert hot["peak_bytes"] == 4096


@pytest.mark.parametrize(("check", "fault", "name", "status", "words"), FAULTS)
def test_figures_that_must_not_be_believed(
    answers: Any, check: str, fault: str, name: str, status: str, words: str
) -> None:
    case = answers[check, fault][name]
    assert case["status"] == status, case
    assert words in case["reason"]
