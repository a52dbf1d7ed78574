"""What the merge keeps of a node's report: a few kilobytes of up to a megabyte.

A report names no host, so the name of its file does: ``n017.json`` is of node ``n017``, and so is
``n017/report.json``. Where two processes call their node the same, the second file is
``n017~2.json``.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from envlock.errors import UnusableInput
from envlock.fleet.traits import Facts, plain, split_id
from envlock.model.check import (
    RATES,
    REPORT_MAJOR,
    Status,
    margin_of,
    named,
    number,
    rate_of,
)
from envlock.model.reading import Node

#: Larger files are no reports, and are not read: the largest seen had 3 MB.
MOST_BYTES = 64_000_000
#: Statuses of a case whose numbers say how well it ran.
_RAN = frozenset({Status.PASSED.value, Status.WARNED.value})
_RATES, _ERRORS = frozenset(RATES), frozenset({"margin", "max_abs", "fro_rel"})
_STATUSES = tuple(status.value for status in Status)
_NONE: list[Any] = []
# exit codes that are an answer; with the others a command could not do what it was asked
_CODES = {0: "passed", 3: "failed", 6: "failed", 7: "failed", 130: "interrupted"}
_HINT = "a report of 'envlock verify --report'"
_REPORT = "report.json"
_TWIN = re.compile(r"~[0-9]+\Z")
_LONG = 160  # of a reason
_LEAST, _MOST = 1e-12, 1e12  # no rate is smaller, and no check takes longer; both have 32 bits


class Key(NamedTuple):
    """What has to be the same for two values to be compared. A tuple, since there are millions.

    Attributes:
        check: without the device's number, which is ``unit``.
        device: name of the device, ``BW``; ``cpu`` for the processor.
        suite: digest of the check scripts: others have other shapes.
    """

    check: str
    unit: int
    case: str
    metric: str
    device: str
    suite: str


class Value(NamedTuple):
    """One measured number; ``digits``: of how many behind the point it was written with."""

    key: Key
    value: float
    digits: int


@dataclass(frozen=True, slots=True)
class Seen:
    """How a check ended; ``id`` with the device's number."""

    id: str
    status: str
    required: bool
    seconds: float = 0.0
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A node's report, or why there is none to speak of.

    Attributes:
        node: its name.
        file: relative to the folder.
        problem: why it is no report; empty for one.
        verdict: ``passed``, ``failed``, ``incomplete``, ``running``, ``interrupted``.
        said: the verdict in words.
        kind: name of its devices, ``BW``; ``cpu`` without one.
        checks: every check, in order.
        traits: what should be the same everywhere: name and value; none of another command.
        amounts: the same where a few hundredths more or less are no difference.
        values: measured numbers.
    """

    node: str
    file: str
    problem: str = ""
    verdict: str = ""
    said: str = ""
    kind: str = ""
    checks: tuple[Seen, ...] = ()
    traits: tuple[tuple[str, str], ...] = ()
    amounts: tuple[tuple[str, float], ...] = ()
    values: tuple[Value, ...] = ()


def node_of(file: str) -> str:
    """The node that a file is of: its name, or that of its folder."""
    folder, name = os.path.split(file)
    if name == _REPORT and folder:
        name = os.path.basename(folder)
    return plain(_TWIN.sub("", name.removesuffix(".json")))


def files_in(folder: str) -> list[str]:
    """Report files, relative to the folder, one level down at most; sorted.

    Raises:
        UnusableInput: there is no such folder.
    """
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise UnusableInput(
            f"{folder}: cannot be read: {error.strerror}",
            "name the folder that 'envlock fleet verify --out' wrote",
        ) from error
    found: list[str] = []
    for entry in entries:
        if entry.name.endswith(".json") and not entry.name.startswith("."):
            found.append(entry.name)
        elif entry.is_dir():
            inside = os.path.join(entry.name, _REPORT)
            found += [inside] if os.path.isfile(os.path.join(folder, inside)) else []
    return found


def read(folder: str, file: str) -> Reading | None:
    """Reads one file; None for what an ``envlock fleet`` command answered itself."""
    try:
        document = _load(os.path.join(folder, file))
        return _reading(document, file)
    except UnusableInput as error:
        return Reading(node=node_of(file), file=plain(file), problem=plain(error.message))


def _load(path: str) -> Any:
    try:
        size = os.path.getsize(path)
        if size > MOST_BYTES:
            raise UnusableInput(f"no report: {size // 1_000_000} MB", _HINT)
        with open(path, "rb") as file:
            text = file.read(MOST_BYTES)
    except OSError as error:
        raise UnusableInput(f"cannot be read: {error.strerror}", _HINT) from error
    if not text.strip(b"\0 \t\r\n"):
        raise UnusableInput("empty: its disk was full, or it ended before it wrote a byte", _HINT)
    try:
        return json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        cut = error.pos >= len(error.doc.rstrip("\0 \t\r\n")) or error.msg.startswith("Untermin")
        said = f"cut off after {len(text)} bytes" if cut else f"not JSON: {error}"
        raise UnusableInput(said, _HINT) from error
    except (ValueError, RecursionError) as error:
        raise UnusableInput(f"not JSON: {error}", _HINT) from error


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not strict JSON")


def _reading(document: Any, file: str) -> Reading | None:
    command = document.get("command") if isinstance(document, Mapping) else None
    if isinstance(command, str) and command.startswith("fleet"):
        return None
    if command == "verify":
        document = document.get("data")
    elif isinstance(command, str):
        return _answer(Node(document, "", "", _HINT), file)
    return _report(Node(document, "", "", _HINT), file)


def _answer(node: Node, file: str) -> Reading:
    """What another command printed with ``--json``, or what is told of a node whose command left
    nothing: the findings stand for the checks."""
    code = node.get("exit").integer()
    wrong = [one for one in node.get("findings").items() if one.get("level").value == "error"]
    texts = [one.get("what").text("")[:_LONG] for one in wrong]
    verdict = _CODES.get(code, "incomplete")
    found: tuple[Seen, ...] = ()
    if verdict == "failed":
        codes = [one.get("code").text() for one in wrong]
        pairs = list(zip(codes, texts, strict=True)) or [(node.get("command").text(), "")]
        found = tuple(Seen(plain(name), "failed", True, 0.0, plain(text)) for name, text in pairs)
    said = "; ".join(texts[:2]) or f"exit code {code}"
    return Reading(
        node=node_of(file), file=plain(file), verdict=verdict, said=plain(said), checks=found
    )


def _report(node: Node, file: str) -> Reading:
    schema = node.get("schema").text()
    if schema.partition(".")[0] != REPORT_MAJOR:
        raise UnusableInput(f"schema: expected {REPORT_MAJOR}.x, found '{schema[:20]}'", _HINT)
    checks = node.get("checks")
    if not isinstance(checks.value, list):
        raise checks.bad("a list of checks")
    verdict = node.get("verdict")
    verdict.choice("passed", "failed", "incomplete", "running", "interrupted")
    for at, check in enumerate(checks.value):
        if not _sound(check):
            _complain(Node(check, f"checks[{at}]"))
    facts = Facts(node.value, {check["id"]: check for check in checks.value})
    return Reading(
        node=node_of(file),
        file=plain(file),
        verdict=verdict.text(),
        said=plain(node.get("said").text("")),
        kind=facts.kind(),
        checks=tuple(map(_seen, checks.value)),
        traits=tuple(facts.traits()),
        amounts=tuple(facts.amounts()),
        values=tuple(value for check in checks.value for value in _values(check, facts)),
    )


def _sound(check: Any) -> bool:
    """Whether a check has what is read of it; a quick look, since a fleet has a million of them."""
    return (
        type(check) is dict
        and type(check.get("id")) is str
        and check.get("status") in _STATUSES
        and isinstance(check.get("reason", ""), str)
        and isinstance(check.get("cases", _NONE), list)
        and all(
            type(case) is dict and type(case.get("name")) is str
            for case in check.get("cases", _NONE)
        )
    )


def _complain(node: Node) -> None:
    """Raises UnusableInput for the first value that is not as it should be."""
    node.get("id").text()
    node.get("status").choice(*_STATUSES)
    node.get("reason").text("")
    for case in node.get("cases").items():
        case.get("name").text()
    raise node.get("cases").bad("a list of cases")


def _seen(check: Mapping[str, Any]) -> Seen:
    lines = check.get("reason", "").strip().splitlines() if check["status"] != "passed" else ()
    return Seen(
        plain(check["id"]),
        check["status"],
        check.get("required") is True,
        min(number(check.get("seconds")) or 0.0, _MOST),
        plain(lines[-1][:_LONG]) if lines else "",
    )


# --- measured values ------------------------------------------------------------------------


def _values(check: Mapping[str, Any], facts: Facts) -> Iterator[Value]:
    """Rates and margins of the cases that ran."""
    cases = check.get("cases")
    if not cases:
        return
    base, unit = split_id(plain(check["id"]))
    device = facts.device(check)
    for name, case in named(cases, lambda case: plain(case["name"])).items():
        metrics = case.get("metrics")
        if case.get("status") not in _RAN or type(metrics) is not dict:
            continue
        for metric, value in _numbers(metrics):
            yield Value(Key(base, unit, name, metric, device, facts.suite), value, _digits(value))


def _numbers(metrics: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    # most cases have neither, and the two questions are what a merge spends its time with
    if not _RATES.isdisjoint(metrics):
        rate = rate_of(metrics)
        if rate is not None and rate[1] > _LEAST:
            yield rate
    if not _ERRORS.isdisjoint(metrics) and (margin := margin_of(metrics)) is not None:
        yield "margin", margin


def _digits(value: float) -> int:
    """Digits behind the point; 17 stands for full precision."""
    text = repr(value)
    return 17 if "e" in text else len(text.partition(".")[2])
