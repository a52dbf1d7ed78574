"""Every broken kernel of flash-attn, Triton and vLLM fails its check, and right ones pass."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from envlock.adapters.interpreter import probes_folder
from tests.support import fake_attention, fake_kernels, fake_vllm
from tests.support.fake_attention import ONLY, write_flash_attn
from tests.support.fake_vllm import write_vllm
from tests.support.pythons import clean_env

pytestmark = [pytest.mark.torch, pytest.mark.integration]

DRIVER = Path(fake_attention.__file__).with_name("fake_driver.py")
SEEDS = (336, 7)
MANY_SEEDS = tuple(range(20))
#: A right stand-in computes in float32: a real kernel may be a little worse. The last rounding
#: alone takes half of the limit, where the reference has no other.
ROOM = 0.8
Faults = Mapping[str, Mapping[str, str]]
FAMILIES: dict[str, Faults] = {
    "flash-attn": fake_attention.MORE_FAULTS,
    "triton": fake_kernels.FAULTS,
    "vllm": fake_vllm.FAULTS,
}
Job = dict[str, Any]
Cases = list[dict[str, Any]]


def _run(target: Path, folder: Path, jobs: Sequence[Job]) -> list[Cases]:
    """The cases of each job."""
    write_flash_attn(folder / "site")
    write_vllm(folder / "site")
    asked, answer = folder / "jobs.json", folder / "answer.json"
    asked.write_text(json.dumps(list(jobs)))
    env = clean_env(PYTHONPATH=str(folder / "site"), PYTHONDONTWRITEBYTECODE="1")
    env["OMP_NUM_THREADS"] = "1"  # threads that share a processor with other tests only wait
    command = [str(target / "bin" / "python"), "-s", str(DRIVER), str(probes_folder())]
    done = subprocess.run(
        [*command, str(asked), str(answer)], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found: list[Cases] = json.loads(answer.read_text())
    return found


def _right(family: str, seeds: Sequence[int]) -> list[Job]:
    return [
        {"check": check, "fault": "", "seed": seed} for check in FAMILIES[family] for seed in seeds
    ]


def _assert_right(jobs: Sequence[Job], answers: Sequence[Cases]) -> None:
    for job, cases in zip(jobs, answers, strict=True):
        passed = [case for case in cases if case["status"] == "passed"]
        wrong = [case for case in cases if case["status"] not in ("passed", "skipped")]
        assert wrong == [], (job, wrong)
        assert passed, job
        for case in passed:
            assert {"error", "limit", "margin"} <= set(case["metrics"]), (job, case)
            assert case["metrics"]["margin"] < ROOM, (job, case)


@pytest.mark.parametrize("family", FAMILIES)
def test_right_kernels_pass_and_every_broken_one_fails(
    torch_target: Path, tmp_path: Path, family: str
) -> None:
    right = _right(family, SEEDS)
    broken = [
        {"check": check, "fault": fault, "seed": 336, "first": True, "only": ONLY.get(fault, "")}
        for check, faults in FAMILIES[family].items()
        for fault in faults
    ]
    answers = _run(torch_target, tmp_path, [*right, *broken])
    _assert_right(right, answers[: len(right)])
    missed = [
        (job["check"], job["fault"])
        for job, cases in zip(broken, answers[len(right) :], strict=True)
        if cases[-1]["status"] != "failed"
    ]
    assert missed == []


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_right_kernels_pass_with_many_seeds(
    torch_target: Path, tmp_path: Path, family: str
) -> None:
    jobs = _right(family, MANY_SEEDS)
    _assert_right(jobs, _run(torch_target, tmp_path, jobs))


def test_what_an_old_build_lacks_is_skipped_with_its_reason(
    torch_target: Path, tmp_path: Path
) -> None:
    """From the signature: a function that raises for a parameter it has does not get away."""
    jobs = [
        {"check": check, "fault": "old", "seed": 336}
        for check in ("fa_modes", "fa_kvcache", "fa_causal")
    ]
    modes, cache, causal = _run(torch_target, tmp_path, jobs)
    by_name = {case["name"].split()[0]: case for case in modes}
    for name in ("window", "softcap", "alibi"):
        assert by_name[name]["status"] == "skipped"
        assert "this flash-attn does not know" in by_name[name]["reason"]
    assert by_name["fp8"]["status"] == "skipped"
    assert by_name["scale"]["status"] == by_name["contiguous"]["status"] == "passed"
    assert {case["status"] for case in cache} == {"skipped"}
    assert {case["status"] for case in causal} == {"passed"}


def test_an_error_is_no_reason_to_skip(torch_target: Path, tmp_path: Path) -> None:
    same: Job = {"check": "fa_modes", "seed": 336, "only": "softcap"}
    jobs = [{**same, "fault": "no-softcap-kernel"}, {**same, "fault": "wrapped"}]
    broken, wrapped = _run(torch_target, tmp_path, jobs)
    failed = [case for case in broken if case["status"] == "failed"]
    # a wrapper that takes anything says nothing about what is behind it: it is asked
    assert len(failed) == len([case for case in wrapped if case["status"] == "passed"]) == 2
    assert "does not support softcap" in failed[0]["reason"]


_BACKENDS = """
import sys
sys.path.insert(0, sys.argv[1])
import collections, harness, torch
Target = collections.namedtuple("Target", "backend arch")
torch.version.hip = sys.argv[2] or None
try:
    harness.sibling("_triton").belongs(Target(sys.argv[3], "gfx936"))
except harness.Failure as failure:
    print(failure)
"""


@pytest.mark.parametrize(
    ("hip", "backend", "said"),
    [
        ("6.3", "hip", ""),
        ("6.3", "hcu", ""),  # what newer builds of one vendor call it
        ("6.3", "cuda", "Triton compiles for 'cuda', torch was built for 'hip'"),
        ("", "hip", "Triton compiles for 'hip', torch was built for 'cuda'"),
    ],
)
def test_triton_has_to_compile_for_the_runtime_of_torch(
    torch_target: Path, hip: str, backend: str, said: str
) -> None:
    command = [str(torch_target / "bin" / "python"), "-c", _BACKENDS]
    done = subprocess.run(
        [*command, str(probes_folder()), hip, backend],
        env=clean_env(),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout.strip()) == (0, said), done.stderr


def test_eight_bits_are_judged_where_they_are_known(torch_target: Path, tmp_path: Path) -> None:
    faults = ("eight-bits", "eight-bits-wrong")
    same: Job = {"check": "fa_modes", "seed": 336, "only": "fp8"}
    jobs: list[Job] = [{**same, "fault": fault} for fault in faults]
    jobs.append({**same, "fault": "eight-bits", "unsupported": ["fp8"]})
    right, wrong, profile = (cases[-1] for cases in _run(torch_target, tmp_path, jobs))
    assert (right["status"], wrong["status"]) == ("passed", "failed"), (right, wrong)
    assert (profile["status"], "profile" in profile["reason"]) == ("skipped", True)
