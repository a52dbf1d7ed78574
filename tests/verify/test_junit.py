"""A report as JUnit XML: what its reader concludes is what the exit code says."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest

from envlock.model.check import Case, CheckResult, Status, exit_code
from envlock.verify.junit import to_xml
from envlock.verify.saved import parse
from tests.support.fake_report import case, check, document, troubled_report


def _suite(report: dict[str, Any]) -> Element:
    root = ElementTree.fromstring(to_xml(parse(report)).encode())
    assert root.tag == "testsuites"
    (suite,) = root
    return suite


def _ends(suite: Element) -> list[tuple[str, str, str]]:
    """Check, case and how it ended, ``passed`` for nothing said."""
    found = []
    for element in suite.iter("testcase"):
        kinds = [child.tag for child in element if child.tag != "system-out"]
        name = element.attrib["name"]
        found.append((element.attrib["classname"], name, kinds[0] if kinds else "passed"))
    return found


def test_a_test_case_for_each_case() -> None:
    suite = _suite(
        document(
            check("x.y", "failed", reason="b: off", cases=[case("a"), case("b", "failed", "off")]),
            check("imp.torch"),
        )
    )
    assert _ends(suite) == [
        ("x.y", "a", "passed"),
        ("x.y", "b", "failure"),
        ("imp.torch", "what imp.torch is about", "passed"),
    ]
    counts = {name: suite.attrib[name] for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "3", "failures": "1", "errors": "0", "skipped": "0"}
    assert suite.attrib["time"] == "8.400"
    assert suite.attrib["timestamp"] == "2026-11-30T08:00:00"


def test_a_crash_is_an_error_beside_the_cases_before_it() -> None:
    one = check("x.y", "crashed", reason="ended by SIGSEGV", output="Fatal", cases=[case("a")])
    suite = _suite(document(one))
    assert _ends(suite) == [("x.y", "a", "passed"), ("x.y", "what x.y is about", "error")]
    error = suite.find("testcase/error")
    assert error is not None
    assert (error.get("type"), error.get("message")) == ("crashed", "ended by SIGSEGV")
    assert suite.findtext("testcase/system-out") == "Fatal"


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("status", list(Status))
@pytest.mark.parametrize("with_case", [True, False])
def test_it_agrees_with_the_exit_code(status: Status, required: bool, with_case: bool) -> None:
    """A failure or an error where the code is not 0, and nowhere else."""
    own = {Status.PASSED, Status.FAILED, Status.WARNED, Status.SKIPPED, Status.ERROR}
    inner = status if status in own else Status.PASSED
    cases = [case("a", inner.value, "why")] if with_case else []
    good = CheckResult(id="g", title="g", status=Status.PASSED, required=True)
    result = CheckResult(
        id="x", title="x", status=status, required=required, cases=(Case(name="a", status=inner),)
    )
    suite = _suite(
        document(check("g"), check("x", status.value, required=required, reason="why", cases=cases))
    )
    bad = int(suite.attrib["failures"]) + int(suite.attrib["errors"])
    assert (bad > 0) == (exit_code([good, result]) != 0)


def test_slower_than_the_baseline_is_a_failure_of_its_own() -> None:
    one = {"kind": "rate", "subject": "x.y: one", "metric": "tflops", "old": 300.0, "new": 200.0,
           "change": -0.33, "level": "error"}  # fmt: skip
    report = document(check("x.y"), baseline={"differences": [one, {**one, "level": "warning"}]})
    assert _ends(_suite(report))[1:] == [("baseline", "x.y: one", "failure")]


def test_any_text_is_xml() -> None:
    odd = "\x00\x1b[31m<&>\"' ]]> \ufffe \ud800 好\nlast"
    suite = _suite(document(check(odd, "failed", title=odd, reason=odd, output=odd)))
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.get("message") == "last"
    assert "好" in (failure.text or "")


def test_what_it_says_of_the_run() -> None:
    suite = _suite(troubled_report())
    said = {p.attrib["name"]: p.attrib["value"] for p in suite.iter("property")}
    assert said["verdict"] == "interrupted"
    assert said["device"] == "BW"
    assert "hostname" not in suite.attrib
