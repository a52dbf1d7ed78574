"""A report as JUnit XML, for systems that know nothing else.

One suite; a test case for each case of a check, or for the check itself where it has none. What
the reader of such a file concludes is what the exit code says: nothing that the verdict does not
need is a failure, and a required check that could not run is an error, not a skip.
"""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from envlock.model.check import BAD, UNKNOWN, Case, CheckResult, Status
from envlock.verify.compare import Kind
from envlock.verify.saved import Report

# what XML 1.0 cannot hold, not even escaped
_UNSPEAKABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_xml(report: Report) -> str:
    """The document, with its declaration."""
    root = Element("testsuites")
    suite = SubElement(root, "testsuite", name="envlock verify")
    suite.set("timestamp", _text(report.document.get("started", "")).rstrip("Z"))
    _properties(suite, report)
    for result in report.results:
        _check(suite, result)
    _baseline(suite, report)
    for name, count in _counts(suite).items():
        suite.set(name, str(count))
    suite.set("time", f"{sum(result.seconds for result in report.results):.3f}")
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def _properties(suite: Element, report: Report) -> None:
    names = ("verdict", "said", "tool", "profile", "level", "exit")
    device = report.part("device")
    values = {name: report.document.get(name) for name in names}
    values["device"] = device.get("device") or device.get("kind")
    values["manifest"] = report.part("manifest").get("digest")
    parent = SubElement(suite, "properties")
    for name, value in values.items():
        if value is not None:
            SubElement(parent, "property", name=name, value=_text(value))


def _baseline(suite: Element, report: Report) -> None:
    """What makes a run fail that passed by itself."""
    for one in report.part("baseline").get("differences", ()):
        if one["kind"] == Kind.RATE.value and one["level"] == "error":
            element = _testcase(suite, "baseline", one["subject"])
            said = f"{one['metric']}: {one['new']}, was {one['old']}"
            SubElement(element, "failure", message=_text(said), type="slower").text = _text(said)


def _counts(suite: Element) -> dict[str, int]:
    kinds = {"tests": "testcase", "failures": "testcase/failure", "errors": "testcase/error"}
    kinds["skipped"] = "testcase/skipped"
    return {name: len(suite.findall(path)) for name, path in kinds.items()}


def _check(suite: Element, result: CheckResult) -> None:
    for case in result.cases:
        element = _testcase(suite, result.id, case.name)
        _ended(element, case.status, case.reason, result.required)
    if not result.cases or not _explained(result):
        element = _testcase(suite, result.id, result.title or result.id)
        element.set("time", f"{result.seconds:.3f}")
        _ended(element, result.status, result.reason, result.required, whole=True)
        if result.output and result.status is not Status.PASSED:
            SubElement(element, "system-out").text = _text(result.output)


def _explained(result: CheckResult) -> bool:
    """Whether its cases say how it ended; a crash after three good cases they do not."""
    if result.status in (Status.PASSED, Status.WARNED):
        return True
    return any(case.status is result.status and _is_case(result, case) for case in result.cases)


def _is_case(result: CheckResult, case: Case) -> bool:
    # a required check whose cases were all skipped is an error of its own
    return not (result.required and case.status is Status.SKIPPED)


def _testcase(suite: Element, check: str, name: str) -> Element:
    return SubElement(suite, "testcase", classname=_text(check), name=_text(name))


def _ended(
    element: Element, status: Status, reason: str, required: bool, *, whole: bool = False
) -> None:
    """Adds how a case ended, or (``whole``) a check."""
    if status is Status.PASSED:
        return
    if status is Status.WARNED:
        SubElement(element, "system-out").text = _text(f"warning: {reason}")
        return
    kind = "skipped"
    if required and status is Status.FAILED:
        kind = "failure"
    elif required and (status in BAD or status is Status.ERROR or (whole and status in UNKNOWN)):
        kind = "error"
    ended = SubElement(element, kind)
    said = reason if kind != "skipped" or status is Status.SKIPPED else f"{status.value}: {reason}"
    ended.set("message", _text(said.strip().splitlines()[-1] if said.strip() else status.value))
    if kind != "skipped":
        ended.set("type", status.value)
        ended.text = _text(reason)


def _text(value: object) -> str:
    return _UNSPEAKABLE.sub("�", str(value))
