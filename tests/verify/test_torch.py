"""The suite on a real torch, on the processor, through the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from envlock.adapters.interpreter import Named, read_target
from envlock.cli import main
from envlock.model.facts import Layout
from envlock.model.manifest import dump
from tests.support.fake_attention import write_flash_attn
from tests.support.fake_manifest import lock_site, put_dist
from tests.support.pythons import clean_env, make_venv

pytestmark = [pytest.mark.torch, pytest.mark.integration]


Ran = tuple[int, dict[str, Any]]


def _verify(python: Path, folder: Path, *arguments: str) -> Ran:
    """Exit code and report of ``envlock verify`` on the processor."""
    path = folder / "report.json"
    common = ["--python", str(python), "--device", "cpu", "--report", str(path), "-q"]
    code = main(["verify", *common, *arguments])
    return code, json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture
def flash_target(torch_target: Path, tmp_path: Path) -> Path:
    """A target of its own that sees the torch of another one."""
    target = tmp_path / "target"
    make_venv(target)
    (site,) = target.glob("lib/python*/site-packages")
    (torch_site,) = torch_target.glob("lib/python*/site-packages")
    (site / "torch.pth").write_text(f"{torch_site}\n")
    return site


def layout_of(prefix: Path) -> Layout:
    return read_target(Named(str(prefix / "bin" / "python"), "test"), clean_env()).layout


def _statuses(report: dict[str, Any]) -> dict[str, str]:
    return {check["id"]: check["status"] for check in report["checks"]}


def test_the_standard_level_passes(
    torch_target: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, report = _verify(torch_target, tmp_path)
    assert code == 0
    statuses = _statuses(report)
    assert {name for name, status in statuses.items() if status == "passed"} >= {
        "static.labels", "static.vendor_mark", "static.ldd", "static.cxxabi", "static.pth",
        "dev.sync_err",
        "imp.torch", "imp.triton", "dev.first", "smoke.seed", "num.gemm_exact", "num.gemm_real",
        "num.gemm_ident", "sdpa.causal", "tri.add",
        "num.elem", "num.reduce", "num.norm_loss", "num.rng", "num.nan_prop", "num.poison",
        "sdpa.shapes", "sdpa.modes", "sdpa.backends", "trn.prev", "trn.leak",
        "tri.softmax", "tri.dot", "tri.layernorm", "tri.atomics", "tri.autotune",
        "perf.quick",
    }  # fmt: skip
    assert statuses["fa.causal"] == "skipped"  # not installed, and nobody said it should be
    assert "files were not compared" in capsys.readouterr().out
    margins = [
        case["metrics"]["margin"]
        for check in report["checks"]
        for case in check["cases"]
        if "margin" in case["metrics"]
    ]
    assert len(margins) > 20
    assert max(margins) < 0.75
    assert report["device"]["torch"].startswith("2.13.0")


def test_the_smoke_test_has_the_fields_of_the_published_script(
    flash_target: Path, tmp_path: Path
) -> None:
    write_flash_attn(flash_target)
    put_dist(flash_target, "torch", "0", {})  # the one behind the .pth is not listed as installed
    code, report = _verify(tmp_path / "target", tmp_path, "--only", "smoke.seed")
    assert code == 0
    facts = report["checks"][0]["facts"]
    assert set(facts) == {"system", "matmul", "sdpa", "triton", "flash_attention"}
    assert set(facts["system"]) == {
        "python", "torch", "hip", "device", "device_count", "memory_gib", "bf16_supported",
    }  # fmt: skip
    assert [set(one) for one in facts["matmul"]] == [
        {"dtype", "shape", "average_ms", "tflops", "finite"}
    ] * 2
    attention = {"shape", "dtype", "forward_finite", "backward_finite"}
    assert set(facts["sdpa"]) == set(facts["flash_attention"]) == attention
    assert set(facts["triton"]) == {"version", "target", "elements", "max_abs_error", "passed"}
    assert (facts["triton"]["elements"], facts["triton"]["max_abs_error"]) == (65_537, 0.0)
    assert facts["sdpa"]["shape"] == [2, 8, 128, 64]
    assert facts["flash_attention"]["shape"] == [2, 128, 8, 64]


@pytest.mark.parametrize("fault", ["", "dq-zero", "top-left"])
def test_an_installed_flash_attention_is_judged(
    flash_target: Path, tmp_path: Path, fault: str
) -> None:
    write_flash_attn(flash_target, fault)
    only = ("--only", "imp.flash_attn", "--only", "fa.causal")
    code, report = _verify(tmp_path / "target", tmp_path, *only)
    assert code == (3 if fault else 0)
    wanted = "failed" if fault else "passed"
    assert _statuses(report) == {"imp.flash_attn": "passed", "fa.causal": wanted}
    loaded = report["checks"][0]["facts"]["loaded_from"]
    assert loaded.endswith("site-packages/flash_attn/__init__.py")
    assert not loaded.startswith("/")


def test_a_locked_module_that_cannot_be_imported_fails(flash_target: Path, tmp_path: Path) -> None:
    module = write_flash_attn(flash_target)
    manifest = tmp_path / "manifest.yaml"
    manifest.write_text(dump(lock_site(layout_of(tmp_path / "target"), "flash-attn")))
    module.write_text("raise ImportError('undefined symbol: _ZN3c105Error')\n")
    only = ("--only", "static.lock", "--only", "imp.flash_attn", "--only", "fa.causal")
    code, report = _verify(tmp_path / "target", tmp_path, "--manifest", str(manifest), *only)
    assert code == 3
    wanted = {"static.lock": "failed", "imp.flash_attn": "failed", "fa.causal": "blocked"}
    assert _statuses(report) == wanted
    assert "changed: 'lib/flash_attn/__init__.py'" in report["checks"][0]["reason"]
    assert "undefined symbol: _ZN3c105Error" in report["checks"][1]["reason"]
    assert report["manifest"]["name"] == "test-cp311"
