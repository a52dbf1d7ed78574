"""Every broken kernel is caught by the check that should catch it, and a whole stack passes.

A fault is put into one operator of torch on its way out of the dispatcher, forward or backward,
while a check calls it: the references stay right. Names are those of ``aten``, with ``:1`` for the
second result.
"""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from envlock.adapters.interpreter import probes_folder
from envlock.model.profile import Profile
from envlock.verify.plan import Options, stand
from tests.support.pythons import clean_env

pytestmark = [pytest.mark.torch, pytest.mark.integration]

DRIVER = Path(__file__).parents[1] / "support" / "fault_driver.py"
ATTENTION = "_scaled_dot_product_flash_attention_for_cpu"
BACKWARD = ATTENTION + "_backward"
SEEDS = (336, 1)
MANY_SEEDS = range(100, 120)

#: Checks whose whole run takes a second or two; and what they are given.
SMALL: dict[str, dict[str, Any]] = {
    "num_norm_loss": {},
    "num_nan_prop": {},
    "num_poison": {},
    "num_conv": {},
    "num_lin_alg": {},
    "num_amp": {},
    "num_optim": {},
    "num_gemm_big": {},
    "num_determinism": {"processes": 1},
    "num_large_index": {"elements": 2**17},
    "sdpa_backends": {},
    "gemm_exact": {},
    "gemm_real": {},
    "gemm_ident": {},
}
LARGE: dict[str, dict[str, Any]] = {
    "num_elem": {},
    "num_reduce": {},
    "num_rng": {},
    "sdpa_causal": {},
    "sdpa_shapes": {},
    "sdpa_modes": {},
    "trn_prev": {},
    "trn_leak": {},
}


class Row(NamedTuple):
    """A fault: the check that has to see it, the operator, what is wrong, which cases are run."""

    check: str
    operator: str
    fault: str
    only: str


FAULTS = [
    Row("num_elem", "exp", "last-missing", "fp32 exp"),
    Row("num_elem", "exp", "shortened", "fp32 exp"),
    Row("num_elem", "erf", "late", "fp32 erf"),
    Row("num_elem", "exp", "raises", "fp32 exp"),
    Row("num_elem", "tanh", "one-nan", "fp16 tanh"),
    Row("num_elem", "rsqrt", "scaled", "bf16 rsqrt"),
    Row("num_elem", "add", "shifted", "fp16 add"),
    Row("num_elem", "mul", "stale-end", "fp32 mul"),
    Row("num_elem", "neg", "unsigned-zero", "fp32 neg"),
    Row("num_elem", "maximum", "nan-hidden", "bf16 maximum"),
    Row("num_elem", "where", "one-element", "fp32 where"),
    Row("num_elem", "lt", "one-element", "fp32 less"),
    Row("num_elem", "bitwise_xor", "one-off", "int32 xor"),
    Row("num_elem", "abs", "input-changed", "fp32 abs"),
    Row("num_elem", "_to_copy", "one-off", "from fp32"),
    Row("num_elem", "add", "shifted", "fp32 layouts"),
    Row("num_elem", "copy_", "stale-end", "fp16 layouts"),
    Row("num_reduce", "sum", "stale-end", "fp32 sum"),
    Row("num_reduce", "sum", "one-off", "int64 sum"),
    Row("num_reduce", "amax", "first-row", "fp32 amax"),
    Row("num_reduce", "cumsum", "last-missing", "int64 cumsum"),
    Row("num_reduce", "argmax", "one-off", "fp32 argmax"),
    Row("num_reduce", "sort", "shifted", "fp32 sort"),
    Row("num_reduce", "sort:1", "shifted", "fp32 sort"),
    Row("num_reduce", "topk", "one-element", "fp16 topk"),
    Row("num_reduce", "topk:1", "first-row", "fp32 topk"),
    Row("num_reduce", "any", "one-element", "int64 any"),
    Row("num_reduce", "cumsum", "late", "fp32 cumsum"),
    Row("num_reduce", "var", "scaled", "fp32 var"),
    Row("num_reduce", "mean", "off-centre", "fp32 mean"),
    Row("num_reduce", "_softmax", "shortened", "fp32 softmax"),
    Row("num_reduce", "_softmax", "one-element", "bf16 softmax"),
    Row("num_reduce", "_softmax_backward_data", "doubled", "gradient of softmax"),
    Row("num_poison", "mm", "last-missing", "mm fp32"),
    Row("num_poison", "mm", "beyond", "mm fp16"),
    Row("num_poison", "add", "before", "add fp32"),
    Row("num_poison", "sum", "beyond", "sum fp32"),
    Row("num_poison", "convolution", "last-missing", "convolution"),
    Row("num_poison", ATTENTION, "last-missing", "attention"),
    Row("num_poison", "native_layer_norm", "one-nan", "layer_norm"),
    Row("num_norm_loss", "native_layer_norm", "scaled", "fp32 layer_norm"),
    Row("num_norm_loss", "native_layer_norm_backward", "first-row", "bf16 layer_norm"),
    Row("num_norm_loss", "native_layer_norm_backward:1", "stale-end", "fp32 layer_norm"),
    Row("num_norm_loss", "native_group_norm", "one-element", "fp16 group_norm"),
    Row("num_norm_loss", "gelu", "shortened", "fp32 gelu"),
    Row("num_norm_loss", "gelu_backward", "negated", "bf16 gelu"),
    Row("num_norm_loss", "nll_loss_forward", "doubled", "fp32 cross_entropy"),
    Row("num_norm_loss", "_log_softmax_backward_data", "zero", "fp16 cross_entropy"),
    Row("num_norm_loss", "scatter_add", "one-off", "int64 scatter_add"),
    Row("num_norm_loss", "index_add", "one-off", "fp32 index_add"),
    Row("num_norm_loss", "index_put", "first-row", "fp32 index_put"),
    Row("num_norm_loss", "embedding_dense_backward", "one-off", "fp32 embedding"),
    Row("num_norm_loss", "gather", "shifted", "fp32 indexing"),
    Row("num_norm_loss", "nonzero", "last-missing", "fp32 indexing"),
    Row("num_rng", "randn", "unseeded", "repeat randn"),
    Row("num_rng", "randn", "zero", "repeat randn"),
    Row("num_rng", "randn", "period", "spread randn"),
    Row("num_rng", "randn", "off-centre", "spread randn"),
    Row("num_rng", "rand", "period", "spread rand"),
    Row("num_rng", "randperm", "one-off", "spread randperm"),
    Row("num_rng", "bernoulli_", "zero", "spread dropout"),
    Row("num_nan_prop", "relu", "nan-hidden", "fp32 relu"),
    Row("num_nan_prop", "mm", "nan-hidden", "fp16 mm"),
    Row("num_nan_prop", "amax", "nan-hidden", "fp32 amax"),
    Row("num_nan_prop", "clamp", "nan-hidden", "bf16 clamp"),
    Row("num_nan_prop", "max_pool2d_with_indices", "nan-hidden", "fp32 max_pool"),
    Row("num_nan_prop", "native_layer_norm", "one-nan", "fp32 layer_norm"),
    Row("num_nan_prop", "_softmax", "input-changed", "fp32 softmax"),
    Row("num_conv", "convolution", "stale-end", "fp16 3x3"),
    Row("num_conv", "convolution", "shortened", "fp32 1x1"),
    Row("num_conv", "convolution", "one-element", "bf16 depthwise"),
    Row("num_conv", "convolution_backward", "scaled", "bf16 3x3"),
    Row("num_conv", "convolution_backward:1", "zero", "fp32 grouped"),
    Row("num_conv", "convolution_backward:2", "doubled", "fp32 transposed"),
    Row("num_conv", "native_batch_norm_backward", "first-row", "batch norm"),
    Row("num_amp", "mm", "scaled", "bf16 gradients"),
    Row("num_amp", "_amp_update_scale_", "doubled", "overflow"),
    Row("num_optim", "addcdiv_", "scaled", "Adam one by one"),
    Row("num_optim", "_foreach_addcdiv_", "scaled", "AdamW foreach"),
    Row("num_optim", "_fused_adamw_", "scaled", "AdamW fused"),
    Row("num_optim", "_fused_sgd_", "negated", "SGD fused"),
    Row("num_lin_alg", "_linalg_solve_ex", "scaled", "solve"),
    Row("num_lin_alg", "linalg_cholesky_ex", "one-element", "cholesky"),
    Row("num_lin_alg", "linalg_qr", "first-row", "qr"),
    Row("num_lin_alg", "_linalg_svd:1", "shifted", "svd"),
    Row("num_lin_alg", "_fft_r2c", "scaled", "fft"),
    Row("num_gemm_big", "mm", "one-off", "fp16"),
    Row("num_gemm_big", "mm", "stale-end", "bf16"),
    Row("num_gemm_big", "mm", "zero", "fp32"),
    Row("num_determinism", "mm", "noise", "gemm"),
    Row("num_determinism", "convolution_backward:1", "noise", "conv"),
    Row("num_large_index", "add_", "stale-end", "elements int8"),
    Row("num_large_index", "fill_", "last-missing", "elements float16"),
    Row("num_large_index", "cat", "first-row", "cat"),
    Row("num_large_index", "mm", "first-row", "product"),
    Row("num_large_index", "index_select", "shifted", "elements int8"),
    Row("gemm_exact", "bmm", "stale-end", "fp16 bmm"),
    Row("gemm_exact", "addmm", "one-off", "bf16 addmm"),
    Row("gemm_exact", "mm", "shifted", "fp32 strided"),
    Row("gemm_exact", "mv", "last-missing", "fp64 vector"),
    Row("gemm_exact", "mm", "one-nan", "fp64 257x129x1031 tt"),
    Row("gemm_real", "mm", "shortened", "fp64 127x513x65"),
    Row("gemm_ident", "mm", "shortened", "fp32 256"),
    Row("sdpa_causal", "sdpa", "next-token", "bf16 2x6x113x59"),
    Row("sdpa_shapes", ATTENTION, "one-element", "bf16 2x8x128x128x64"),
    Row("sdpa_shapes", ATTENTION, "first-row", "fp16 3x5x1x239x64"),
    Row("sdpa_shapes", BACKWARD, "zero", "bf16 2x6x113x113x59"),
    Row("sdpa_shapes", BACKWARD + ":1", "first-row", "bf16 2x6x113x203x64"),
    Row("sdpa_shapes", BACKWARD + ":2", "scaled", "bf16 2x6x113x203x64"),
    Row("sdpa_shapes", BACKWARD + ":1", "one-nan", "fp32 2x6x113x113x59"),
    Row("sdpa_shapes", ATTENTION, "shortened", "fp32 2x6x113x113x59"),
    Row("sdpa_shapes", "sdpa", "bottom-right", "fp16 2x6x113x203x64"),
    Row("sdpa_shapes", "sdpa", "packed", "transposed"),
    Row("sdpa_modes", "sdpa", "no-mask", "bf16 causal"),
    Row("sdpa_modes", "sdpa", "no-mask", "fp16 float mask"),
    Row("sdpa_modes", "sdpa", "mask-is-added", "bf16 bool mask"),
    Row("sdpa_modes", "sdpa", "own-scale", "bf16 scale"),
    Row("sdpa_modes", "sdpa", "interleaved", "bf16 grouped heads"),
    Row("sdpa_modes", "sdpa", "mask-is-added", "fp16 rows without a key"),
    Row("sdpa_modes", "sdpa", "keeps-all", "fp16 dropout"),
    Row("sdpa_modes", "sdpa", "own-seed", "bf16 dropout"),
    Row("sdpa_modes", "sdpa", "not-scaled", "fp16 dropout"),
    Row("sdpa_modes", BACKWARD, "doubled", "bf16 large inputs"),
    Row("sdpa_modes", BACKWARD + ":1", "negated", "gradient of k only"),
    Row("sdpa_backends", "bmm", "one-element", "math bf16"),
    Row("sdpa_backends", ATTENTION, "raises", "flash_attention bf16"),
    Row("sdpa_backends", BACKWARD, "negated", "flash_attention fp16"),
    Row("trn_prev", BACKWARD, "zero", "fp32"),
    Row("trn_prev", BACKWARD + ":1", "negated", "fp32"),
    Row("trn_prev", BACKWARD + ":2", "first-row", "bf16"),
    Row("trn_prev", BACKWARD, "doubled", "bf16"),
    Row("trn_prev", BACKWARD, "noise", "fp32"),
    Row("trn_prev", "sdpa", "no-mask", "fp32"),
    Row("trn_prev", "native_layer_norm_backward:1", "scaled", "bf16"),
    Row("trn_leak", "sdpa", "next-token", "fp32"),
]
#: These need torch.compile, or whole trainings.
SLOW_FAULTS = [
    Row("cmp_default", "compile", "eager", "fp32 block"),
    Row("cmp_default", "compile", "forward", "fp32 columns"),
    Row("cmp_default", "compile", "backward", "fp32 columns"),
    Row("cmp_dynamic", "compile", "first-shape", "fp32 columns"),
    Row("trn_leak", "future", "both", "fp32"),
]
Cases = list[dict[str, Any]]


def _run(python: Path, folder: Path, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Cases of each job, and how often its fault was used; all in one process."""
    tasks, answer = folder / "jobs.json", folder / "answer.json"
    tasks.write_text(json.dumps(jobs))
    # threads that wait for each other on a busy machine take longer than one alone
    env = clean_env(
        PYTHONDONTWRITEBYTECODE="1",
        OMP_NUM_THREADS="1",
        TORCHINDUCTOR_CACHE_DIR=str(folder / "inductor"),
    )
    command = [str(python), "-s", str(DRIVER), str(probes_folder()), str(tasks), str(answer)]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(answer.read_text())
    return found


def _job(row: Row, seed: int = SEEDS[0]) -> dict[str, Any]:
    arguments = {**SMALL, **LARGE}.get(row.check, {})
    if row.check == "num_determinism" and row.fault:
        arguments = {"processes": 0}
    return {**row._asdict(), "seed": seed, "arguments": arguments}


def _missed(rows: list[Row], answers: list[dict[str, Any]]) -> dict[str, Any]:
    """Faults that were not seen, or that never came into effect; errors of a check."""
    missed = {}
    for row, answer in zip(rows, answers, strict=True):
        statuses = [case["status"] for case in answer["cases"]]
        if "failed" not in statuses or "error" in statuses or not answer["used"]:
            missed[" ".join(row)] = answer
    return missed


def _wrong(checks: dict[str, dict[str, Any]], seeds: Any, python: Path, folder: Path) -> list[Any]:
    """Cases of a whole stack that are not as they should be, or too near to their limit."""
    rows = [Row(check, "", "", "") for check in checks]
    jobs = [_job(row, seed) for row in rows for seed in seeds]
    wrong = []
    for job, answer in zip(jobs, _run(python, folder, jobs), strict=True):
        assert any(case["status"] == "passed" for case in answer["cases"]), job
        for case in answer["cases"]:
            near = case["metrics"].get("margin", 0.0) >= 0.9
            if case["status"] not in ("passed", "skipped") or near:
                wrong.append((job["check"], job["seed"], case))
    return wrong


@pytest.fixture
def python(torch_target: Path) -> Path:
    return torch_target / "bin" / "python"


def test_every_fault_is_seen(python: Path, tmp_path: Path) -> None:
    answers = _run(python, tmp_path, [_job(row) for row in FAULTS])
    assert _missed(FAULTS, answers) == {}
    reasons: dict[str, list[str]] = defaultdict(list)
    for row, answer in zip(FAULTS, answers, strict=True):
        reasons[f"{row.check} {row.fault}"].append(answer["cases"][-1]["reason"])
    assert all("outside the output" in text for text in reasons["num_poison beyond"])
    raised = [row for row in FAULTS for text in reasons[f"{row.check} {row.fault}"]
              if row.fault != "raises" and text.startswith("raised")]  # fmt: skip
    assert raised == []  # a fault that cannot be put in says nothing about the check
    assert "invalid device function" in reasons["num_elem raises"][0]
    assert "input 0 was changed" in reasons["num_nan_prop input-changed"][0]
    assert "gradient of " in reasons["trn_prev zero"][0]  # the loss would fall all the same


def test_rows_without_a_key_may_give_anything(python: Path, tmp_path: Path) -> None:
    """Torch calls it undefined, and its kernels differ."""
    row = Row("sdpa_modes", "sdpa", "average", "fp16 rows without a key")
    (answer,) = _run(python, tmp_path, [_job(row)])
    assert answer["used"]
    (case,) = answer["cases"]
    assert case["status"] == "warned", case
    assert "on the processor they give zero" in case["reason"]


def test_what_the_profile_names_as_unsupported_is_skipped(python: Path, tmp_path: Path) -> None:
    profile = Profile(name="x", title="", labels=(), names=(), device="cpu", unsupported=("fp8",))
    unsupported = stand(Options(), profile, None, ()).unsupported
    rows = [Row("num_elem", "", "", "float8"), Row("gemm_exact", "", "", "fp8")]
    jobs = [{**_job(row), "unsupported": unsupported} for row in rows]
    for answer in _run(python, tmp_path, jobs):
        assert answer["cases"]
        for case in answer["cases"]:
            assert (case["status"], "the profile says" in case["reason"]) == ("skipped", True)
    supported = _run(python, tmp_path, [_job(rows[0])])[0]["cases"]
    assert [case["status"] for case in supported] == ["passed", "passed"]


@pytest.mark.parametrize("check", sorted(SMALL))
@pytest.mark.long
def test_a_whole_stack_passes_with_many_seeds(python: Path, tmp_path: Path, check: str) -> None:
    assert _wrong({check: SMALL[check]}, MANY_SEEDS, python, tmp_path) == []


@pytest.mark.parametrize("check", sorted(LARGE))
@pytest.mark.long
def test_a_whole_stack_passes_large_checks(python: Path, tmp_path: Path, check: str) -> None:
    assert _wrong({check: LARGE[check]}, MANY_SEEDS, python, tmp_path) == []


def test_a_whole_stack_passes(python: Path, tmp_path: Path) -> None:
    assert _wrong(SMALL, SEEDS, python, tmp_path) == []


@pytest.mark.long
def test_compilers_and_trainings_that_are_wrong(python: Path, tmp_path: Path) -> None:
    answers = _run(python, tmp_path, [_job(row) for row in SLOW_FAULTS])
    assert _missed(SLOW_FAULTS, answers) == {}
    assert "no graph was captured" in answers[0]["cases"][-1]["reason"]
    assert "gradient" in answers[2]["cases"][-1]["reason"]
    assert "the future is seen" in answers[-1]["cases"][-1]["reason"]
