"""The report is strict JSON, shareable, and comparable."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

import jsonschema
import pytest

from envlock.model.check import METRICS, SAMPLES, Case, CheckResult, Status
from envlock.model.dist import Distribution
from envlock.verify import report
from envlock.verify.compare import Kind, compare
from envlock.verify.run import Watch
from envlock.verify.saved import parse
from envlock.verify.words import Row, case_line, findings, row, verdict
from tests.support.fake_checks import fake_check
from tests.support.fake_manifest import locked
from tests.support.fake_report import case, check, device_report, troubled_report
from tests.support.fake_report import document as document_of
from tests.support.pythons import ROOT
from tests.verify.conftest import RunFakes

KEYS = {
    "schema", "tool", "started", "ended", "target", "manifest", "profile", "device", "level",
    "config", "findings", "checks", "counts", "verdict", "said", "exit", "baseline",
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


def test_text_hides_passwords_and_stays_strict() -> None:
    text = report.to_text({"text": "https://me:secret@example.org/", "said": "好"})
    assert "secret" not in text
    assert json.loads(text)["said"] == "好"
    with pytest.raises(ValueError, match="Out of range"):
        report.to_text({"x": float("nan")})


# --- the schema -----------------------------------------------------------------------------

SCHEMA = json.loads(
    files("envlock.verify").joinpath("report.schema.json").read_text(encoding="utf-8")
)
VALID = jsonschema.Draft202012Validator(SCHEMA)


def test_the_published_schema_is_the_one_that_ships() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    published = ROOT / "docs" / "schemas" / f"verify-report-{report.SCHEMA}.json"
    assert json.loads(published.read_text(encoding="utf-8")) == SCHEMA


def test_the_schema_names_every_field() -> None:
    assert set(SCHEMA["properties"]) == KEYS == set(SCHEMA["required"])
    assert set(SCHEMA["$defs"]["check"]["properties"]) == CHECK_KEYS
    assert set(SCHEMA["$defs"]["metrics"]["properties"]) == set(METRICS)
    assert set(SCHEMA["$defs"]["samples"]["properties"]) == set(SAMPLES)
    statuses = SCHEMA["$defs"]["check"]["properties"]["status"]["enum"]
    assert statuses == [status.value for status in Status]
    kinds = SCHEMA["$defs"]["difference"]["properties"]["kind"]["enum"]
    assert sorted(kinds) == sorted(kind.value for kind in Kind)


def test_a_report_keeps_to_the_schema_at_every_moment(run_fakes: RunFakes) -> None:
    seen: list[Mapping[str, Any]] = []
    names = ("right", "wrong", "segfault", "raises", "skips", "measures_nan", "warns")
    manifest = locked(Distribution(name="torch", version="1"))
    checks = [fake_check(name) for name in names]
    run_fakes(*checks, watch=Watch(on_report=seen.append), manifest=manifest)
    assert len(seen) == len(names) + 2
    for document in seen:
        VALID.validate(json.loads(report.to_text(document)))


@pytest.mark.parametrize("make", [device_report, troubled_report])
def test_the_reports_of_the_tests_keep_to_it(make: Callable[[], dict[str, Any]]) -> None:
    VALID.validate(make())


def test_a_report_with_a_baseline_keeps_to_it() -> None:
    old, new = parse(device_report()), parse(device_report(0.8, 1.2))
    document = report.with_baseline(new.document, old, compare(old, new))
    VALID.validate(document)
    assert document["exit"] == 0  # performance is never required
    assert document["baseline"]["same_configuration"] is True


# path to a value, what is put there
WRONG = [
    (("schema",), "2.0"),
    (("checks", 0, "status"), "fine"),
    (("checks", 0, "cases", 0, "status"), "crashed"),
    (("config", "suite"), "abc"),
    (("counts",), {"fine": 1}),
    (("exit",), 1),
    (("started",), "yesterday"),
]


@pytest.mark.parametrize(("path", "value"), WRONG)
def test_the_schema_refuses(path: tuple[Any, ...], value: Any) -> None:
    document: Any = device_report()
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    assert not VALID.is_valid(document)


def test_losing_speed_fails_a_run_only_where_the_check_is_required() -> None:
    for required, code in ((True, 3), (False, 0)):
        old, new = (
            parse(document_of(check("x", required=required, cases=[case("a", tflops=rate)])))
            for rate in (300.0, 200.0)
        )
        found = report.with_baseline(new.document, old, compare(old, new))
        assert found["exit"] == code
    assert found["said"] == new.document["said"]


def test_a_run_that_failed_by_itself_keeps_its_words() -> None:
    old, new = (
        parse(document_of(check("x", cases=[case("a", tflops=rate)]), exit=code, said="as it was"))
        for rate, code in ((300.0, 0), (200.0, 8))
    )
    found = report.with_baseline(new.document, old, compare(old, new))
    assert (found["exit"], found["said"]) == (8, "as it was")


# --- words ----------------------------------------------------------------------------------


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
    assert all("restore" in one.hint for one in found)


def test_what_no_verdict_needs_is_told_where_it_went_wrong() -> None:
    results = [
        _result("perf.gemm", Status.WARNED, required=False, reason="half of the reference"),
        _result("perf.copy", Status.CRASHED, required=False, reason="ended by SIGSEGV"),
        _result("fa.causal", Status.SKIPPED, required=False, reason="not installed"),
        _result("num.elem", Status.SKIPPED, reason="no device"),
    ]
    assert [(f.code, f.what, f.level) for f in findings(results)] == [
        ("perf.gemm", "warned: half of the reference", "warning"),
        ("perf.copy", "crashed: ended by SIGSEGV", "warning"),
        ("num.elem", "skipped: no device", "warning"),
    ]


@pytest.mark.parametrize("status", [s for s in Status if s not in (Status.PASSED, Status.BLOCKED)])
@pytest.mark.parametrize(
    "name", ["static.lock", "imp.torch", "dev.first", "num.gemm_real@1", "fa.causal", "perf.gemm"]
)
def test_everything_that_went_wrong_has_something_to_do(status: Status, name: str) -> None:
    (found,) = findings([_result(name, status, reason="why")])
    assert found.hint


def _numbered(*cases: Case, status: Status = Status.PASSED, reason: str = "") -> Row:
    return row(_result("x.y", status, cases=cases, reason=reason, seconds=12.34))


def _measured(name: str, **metrics: Any) -> Case:
    return Case(name=name, status=Status.PASSED, metrics=metrics)


def test_the_key_number_of_a_check() -> None:
    slow, fast = _measured("a", tflops=10.0), _measured("b", tflops=439.2, reference=480.0)
    assert _numbered(slow, fast).number == "439.2 TFLOPS (91 %)"
    assert _numbered(_measured("a", gbps=48.3)).number == "48.3 GB/s"
    assert _numbered(_measured("a", tflops=0.0213)).number == "21.3 GFLOPS"
    near, far = _measured("a", margin=0.41), _measured("b", max_abs=0.001, limit=1)
    assert _numbered(near, far).number == "41 % of limit"
    assert _numbered(_measured("a", margin=0.0)).number == "exact"
    assert _numbered(_measured("a"), _measured("b")).number == "2 cases"
    assert _numbered().number == ""


def test_a_line_of_the_table() -> None:
    bad = _numbered(
        _measured("a", margin=3.7), status=Status.FAILED, reason="Traceback\n  line\na: off by 2"
    )
    assert "".join(bad.text(5, 160)) == ("failed      x.y      12.3 s  370 % of limit  a: off by 2")
    head, rest = bad.text(5, 50)
    assert len(head + rest) == 50
    assert rest.endswith("…")
    assert (bad.level, _numbered().level) == ("error", "good")


def test_halves_of_characters_are_shown_all_the_same() -> None:
    bad = Case(name="a\ud800", status=Status.FAILED, reason="off\nby \udcff")
    assert case_line(bad) == "    failed    a?  by ?"
    assert _numbered(bad, status=Status.FAILED, reason=bad.reason).why == "by ?"
