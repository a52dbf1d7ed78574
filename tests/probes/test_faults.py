"""Every broken kernel fails its check, and the right one passes: on several seeds."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from envlock.adapters.interpreter import probes_folder
from tests.support import fake_attention
from tests.support.fake_attention import FAULTS, ONLY_GROUPED_OR_CROSS, write_flash_attn
from tests.support.pythons import clean_env

pytestmark = [pytest.mark.torch, pytest.mark.integration]

DRIVER = Path(fake_attention.__file__).with_name("fake_driver.py")
SEEDS = (336, 1, 2026)
Cases = list[dict[str, Any]]


def _run(python: Path, folder: Path, check: str, faults: Sequence[tuple[str, int]]) -> list[Cases]:
    """The cases of a check for each (fault, seed); up to the first that fails, except fa_causal."""
    write_flash_attn(folder / "site")
    jobs, answer = folder / "jobs.json", folder / "answer.json"
    common = {"check": check, "first": check != "fa_causal"}
    jobs.write_text(json.dumps([{**common, "fault": f, "seed": s} for f, s in faults]))
    env = clean_env(PYTHONPATH=str(folder / "site"), PYTHONDONTWRITEBYTECODE="1")
    env["OMP_NUM_THREADS"] = "1"  # threads that share a processor with other tests only wait
    command = [str(python), "-s", str(DRIVER), str(probes_folder()), str(jobs), str(answer)]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: list[Cases] = json.loads(answer.read_text())
    return found


def _failed(cases: Cases) -> list[str]:
    """Names of the failed cases; the check itself must be sound."""
    assert {case["status"] for case in cases} <= {"passed", "failed", "skipped"}, cases
    assert any(case["status"] != "skipped" for case in cases)
    return [case["name"] for case in cases if case["status"] == "failed"]


@pytest.fixture
def torch_python(torch_target: Path) -> Path:
    return torch_target / "bin" / "python"


@pytest.fixture(scope="module")
def flash_answers(torch_target: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Cases]:
    """Cases of fa.causal by fault; the right ones as ``SEED``."""
    tried = [("", seed) for seed in SEEDS] + [(fault, SEEDS[0]) for fault in FAULTS]
    folder = tmp_path_factory.mktemp("flash")
    answers = _run(torch_target / "bin" / "python", folder, "fa_causal", tried)
    names = [fault or str(seed) for fault, seed in tried]
    return dict(zip(names, answers, strict=True))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_right_flash_attention_passes(flash_answers: dict[str, Cases], seed: int) -> None:
    cases = flash_answers[str(seed)]
    assert _failed(cases) == []
    assert len(cases) == 5
    assert max(case["metrics"]["margin"] for case in cases) < 0.7  # room for a real kernel


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_flash_attention_fails(flash_answers: dict[str, Cases], fault: str) -> None:
    assert _failed(flash_answers[fault])


@pytest.mark.parametrize("fault", ["one-element", "dv-one-element"])
def test_one_wrong_element_is_seen_in_every_shape(
    flash_answers: dict[str, Cases], fault: str
) -> None:
    """The relative Frobenius error does not see it in the larger ones: it takes both rules."""
    cases = flash_answers[fault]
    assert len(_failed(cases)) == len(cases)
    small = [case for case in cases if case["metrics"]["fro_rel"] < case["metrics"]["fro_limit"]]
    assert small


def test_a_nan_is_said_to_be_one(flash_answers: dict[str, Cases]) -> None:
    cases = flash_answers["nan"]
    assert all("1 NaN" in case["reason"] for case in cases)
    assert all(case["metrics"]["nan"] == 1 for case in cases)


def test_a_gradient_of_zero_is_off_by_its_whole_size(flash_answers: dict[str, Cases]) -> None:
    """It is finite, and with a mean of squares as loss it would be close enough too."""
    cases = flash_answers["dq-zero"]
    assert all(case["reason"].startswith("dq is off by") for case in cases)
    assert all(case["metrics"]["fro_rel"] == pytest.approx(1.0) for case in cases)


def test_native_attention(torch_python: Path, tmp_path: Path) -> None:
    faults = [fault for fault in FAULTS if fault not in ONLY_GROUPED_OR_CROSS]
    tried = [("", seed) for seed in SEEDS] + [(fault, 336) for fault in faults]
    answers = _run(torch_python, tmp_path, "sdpa_causal", tried)
    for cases in answers[: len(SEEDS)]:
        assert _failed(cases) == []
    missed = [
        f for f, cases in zip(faults, answers[len(SEEDS) :], strict=True) if not _failed(cases)
    ]
    assert missed == []


_WRONG_NUMBERS = ["last-dropped", "one-off", "one-nan", "stale-tile", "transposed-tile"]
#: What each check of products has to see by itself; no one of them sees all.
PRODUCTS = {
    "gemm_exact": [*_WRONG_NUMBERS, "half-twice"],
    "gemm_real": [*_WRONG_NUMBERS, "half-twice", "low-accumulate", "shortened"],
    "gemm_ident": [*_WRONG_NUMBERS, "half-twice", "shortened"],
}


@pytest.mark.parametrize("check", PRODUCTS)
def test_matrix_products(torch_python: Path, tmp_path: Path, check: str) -> None:
    faults = PRODUCTS[check]
    right, *broken = _run(torch_python, tmp_path, check, [("", 0), *[(f, 0) for f in faults]])
    assert _failed(right) == []
    assert [f for f, cases in zip(faults, broken, strict=True) if not _failed(cases)] == []


def test_float32_that_is_not_is_named(torch_python: Path, tmp_path: Path) -> None:
    (cases,) = _run(torch_python, tmp_path, "gemm_real", [("shortened", 0)])
    failed = [case for case in cases if case["status"] == "failed"]
    assert {case["name"].split()[0] for case in failed} == {"fp32"}
    assert all("TF32" in case["reason"] for case in failed)
