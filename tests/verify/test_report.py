"""The report is strict JSON, shareable, and comparable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from envlock.errors import UnusableInput
from envlock.model.check import Case, CheckResult, Status
from envlock.model.dist import Distribution
from envlock.verify import report
from envlock.verify.words import findings, verdict
from tests.support.fake_checks import fake_check
from tests.support.fake_manifest import locked
from tests.verify.conftest import RunFakes

KEYS = {
    "schema", "tool", "started", "ended", "target", "manifest", "profile", "device", "level",
    "config", "findings", "checks", "counts", "verdict", "said", "exit",
}  # fmt: skip
CHECK_KEYS = {
    "id", "title", "status", "required", "reason", "seconds", "exit", "facts", "cases", "output",
    "dropped",
}  # fmt: skip


def test_its_fields(run_fakes: RunFakes) -> None:
    outcome = run_fakes(fake_check("right"), fake_check("wrong"))
    document = outcome.report
    assert set(document) == KEYS
    assert all(set(check) == CHECK_KEYS for check in document["checks"])
    assert document["schema"] == "1.0"
    assert document["manifest"] is None
    assert document["counts"] == {"passed": 1, "failed": 1}
    assert (document["verdict"], document["exit"]) == ("failed", 3)
    assert document["started"] <= document["ended"]
    assert document["checks"][1]["cases"][0]["metrics"] == {"max_abs": 1.0, "limit": 0.5}


def test_the_manifest_is_named_by_its_digest(run_fakes: RunFakes) -> None:
    manifest = locked(Distribution(name="torch", version="1"))
    other = locked(Distribution(name="torch", version="2"))
    named = run_fakes(fake_check("right"), manifest=manifest).report["manifest"]
    assert named == {"name": "test-cp311", "digest": report.manifest_digest(manifest)}
    assert report.manifest_digest(manifest) != report.manifest_digest(other)


def test_other_scripts_are_another_configuration(run_fakes: RunFakes) -> None:
    check = fake_check("right")
    first = run_fakes(check).report["config"]
    again = run_fakes(check).report["config"]
    changed = run_fakes(
        check, bodies={"right": "yield context.case('two', dict)"}
    ).report["config"]  # fmt: skip
    assert first == again
    assert first["suite"] != changed["suite"]
    assert run_fakes(check, timeout_scale=2.0).report["config"] != first


def _write(tmp_path: Path, **fields: Any) -> Path:
    path = tmp_path / "deep" / "report.json"
    report.write(str(path), fields)
    return path


def test_writing_makes_the_folder_and_hides_passwords(tmp_path: Path) -> None:
    path = _write(tmp_path, text="https://me:secret@example.org/", odd="\ud800", said="好")
    text = path.read_text(encoding="utf-8")
    assert "secret" not in text
    assert json.loads(text)["said"] == "好"
    assert [entry.name for entry in path.parent.iterdir()] == ["report.json"]


def test_a_report_that_cannot_be_written_is_the_users_to_mend(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnusableInput, match="the report cannot be written"):
        report.write(str(tmp_path / "file" / "report.json"), {})


def _result(name: str, status: Status, required: bool = True, **more: Any) -> CheckResult:
    return CheckResult(id=name, title=name, status=status, required=required, **more)


def test_the_verdict_in_words() -> None:
    results = [
        _result("a", Status.PASSED),
        _result("b", Status.WARNED),
        _result("c", Status.CRASHED),
        _result("d", Status.SKIPPED, required=False),
    ]
    assert verdict(results, 3, compared=True) == (
        "failed: 2 of 3 required checks passed; c crashed; warnings: b"
    )
    assert "files were not compared" in verdict(results, 3, compared=False)
    assert verdict([], 8, compared=True) == "incomplete: no check that counts could run"


def test_findings_name_each_damaged_distribution_and_blame_once() -> None:
    cases = (
        Case(name="torch 2.10", status=Status.FAILED, reason="is 2.13, not 2.10"),
        Case(name="tqdm 4.66", status=Status.WARNED, reason="is 4.67, not 4.66"),
        Case(name="numpy 1.26", status=Status.PASSED),
    )
    results = [
        _result("static.lock", Status.FAILED, cases=cases),
        _result("imp.torch", Status.FAILED, reason="import torch: raised OSError"),
        _result("num.gemm_real", Status.BLOCKED, reason="blocked by imp.torch"),
        _result("fa.causal", Status.SKIPPED, required=False, reason="no path"),
    ]
    found = findings(results)
    assert [(f.code, f.subject, f.level) for f in found] == [
        ("static.lock", "torch 2.10", "error"),
        ("static.lock", "tqdm 4.66", "warning"),
        ("imp.torch", "imp.torch", "error"),
    ]
    assert "restore" in found[0].hint
