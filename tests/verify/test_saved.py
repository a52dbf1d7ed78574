"""Reports are read back, whole or partial; what is none is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envlock.errors import UnusableInput
from envlock.model.check import Status
from envlock.verify.saved import load, parse
from tests.support.fake_checks import fake_check
from tests.support.fake_report import check, device_report, document
from tests.verify.conftest import RunFakes


def _written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "report.json"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_it_reads_what_was_written(tmp_path: Path) -> None:
    report = load(_written(tmp_path, json.dumps(device_report())))
    assert [len(result.cases) for result in report.results[:4]] == [2, 0, 0, 24]
    assert report.results[1].facts["hip"] == "6.3.26093"
    assert report.complete


def test_it_reads_what_json_printed(tmp_path: Path) -> None:
    printed = {"schema": "1.0", "command": "verify", "exit": 0, "data": document(check("a"))}
    assert [r.id for r in load(_written(tmp_path, json.dumps(printed))).results] == ["a"]


def test_a_partial_one_is_readable() -> None:
    running = document(check("a"), check("b", "not-run"), verdict="running", exit=None, ended="")
    report = parse(running)
    assert not report.complete
    assert [result.status for result in report.results] == [Status.PASSED, Status.NOT_RUN]


def test_a_minor_version_more_is_readable() -> None:
    newer = document(check("a", later={"x": 1}), schema="1.7", more=3)
    assert [result.id for result in parse(newer).results] == ["a"]


# text of the file, words
UNUSABLE = [
    ("", "not JSON"),
    ("{", "not JSON"),
    ("[1]", "expected a mapping"),
    ('{"schema": NaN}', "NaN is not strict JSON"),
    ("{}", "schema: expected text, found nothing"),
    ('{"schema": "2.0", "checks": []}', "schema: expected 1.x, found '2.0'"),
    ('{"schema": "1.0"}', "checks: expected a list of checks"),
    ('{"schema": "1.0", "checks": {}}', "checks: expected a list of checks"),
    ('{"schema": "1.0", "checks": [{"id": 3}]}', "checks[0].id: expected text, found 3"),
    ('{"schema": "1.0", "checks": [{"id": "a", "status": "fine"}]}', "checks[0].status: expected"),
    (json.dumps(document(check("a", cases=[{"name": "b"}]))), "checks[0].cases[0].status"),
    (json.dumps(document(check("a", facts=[1]))), "checks[0].facts: expected a mapping"),
    (json.dumps(document(check("a", seconds="x"))), "checks[0].seconds: expected a number"),
    ("[" * 100_000, "not JSON"),
]


@pytest.mark.parametrize(("text", "words"), UNUSABLE)
def test_what_is_no_report_is_named(tmp_path: Path, text: str, words: str) -> None:
    path = _written(tmp_path, text)
    with pytest.raises(UnusableInput) as caught:
        load(path)
    assert words in caught.value.message
    assert caught.value.message.startswith(path)
    assert "envlock verify --report" in caught.value.hint


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match="cannot be read: No such file"):
        load(str(tmp_path / "none.json"))


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_bytes(b"\x89PNG\xff")
    with pytest.raises(UnusableInput, match="not JSON"):
        load(str(tmp_path / "report.json"))


def test_a_run_is_read_back_as_it_was(run_fakes: RunFakes) -> None:
    outcome = run_fakes(fake_check("right"), fake_check("wrong"))
    results = parse(outcome.report).results
    assert [(r.id, r.status, r.required, r.reason, r.cases) for r in results] == [
        (r.id, r.status, r.required, r.reason, r.cases) for r in outcome.results
    ]
