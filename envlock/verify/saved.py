"""A report as it was written: read back, whole or partial."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envlock.errors import UnusableInput
from envlock.model.check import REPORT_MAJOR, Case, CheckResult, Status
from envlock.model.reading import Node

_HINT = "name a report that 'envlock verify --report' wrote"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A report, and its checks as values.

    Attributes:
        document: as in the file.
        results: one for each check; those that had not run yet are ``not-run``.
    """

    document: Mapping[str, Any]
    results: tuple[CheckResult, ...]

    @property
    def config(self) -> Mapping[str, Any]:
        """What two runs must share to be comparable."""
        found = self.document.get("config")
        return found if isinstance(found, Mapping) else {}

    @property
    def complete(self) -> bool:
        """Whether the run came to its end."""
        return self.document.get("verdict") not in ("running", "interrupted")

    def part(self, key: str) -> Mapping[str, Any]:
        """A mapping of the document; empty where there is none."""
        found = self.document.get(key)
        return found if isinstance(found, Mapping) else {}


def load(path: str) -> Report:
    """Reads a report file; what ``envlock verify --json`` printed will do too.

    Raises:
        UnusableInput: it cannot be read, or is no report.
    """
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"), parse_constant=_refuse)
    except OSError as error:
        raise UnusableInput(f"{path}: cannot be read: {error.strerror}", _HINT) from error
    except (ValueError, RecursionError) as error:
        raise UnusableInput(f"{path}: not JSON: {error}", _HINT) from error
    if isinstance(document, Mapping) and document.get("command") == "verify":
        document = document.get("data")
    return parse(document, path)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not strict JSON")


def parse(document: Any, file: str = "report") -> Report:
    """A report from its document.

    Raises:
        UnusableInput: it is no report, or one of another major schema; the message names the value.
    """
    node = Node(document, "", file, _HINT)
    schema = node.get("schema").text()
    if schema.partition(".")[0] != REPORT_MAJOR:
        raise UnusableInput(f"{file}: schema: expected {REPORT_MAJOR}.x, found '{schema}'", _HINT)
    if not isinstance(node.get("checks").value, list):
        raise node.get("checks").bad("a list of checks")
    return Report(document=document, results=node.get("checks").each(_result))


def _result(node: Node) -> CheckResult:
    seconds = node.get("seconds")
    return CheckResult(
        id=node.get("id").text(),
        title=node.get("title").text(""),
        status=Status(node.get("status").choice(*(status.value for status in Status))),
        required=node.get("required").boolean(False),
        reason=node.get("reason").text(""),
        seconds=seconds.number() if seconds.present else 0.0,
        cases=node.get("cases").each(_case),
        facts=_mapping(node.get("facts")),
        output=node.get("output").text(""),
    )


def _case(node: Node) -> Case:
    return Case(
        name=node.get("name").text(),
        status=Status(node.get("status").choice(*(status.value for status in Status))),
        reason=node.get("reason").text(""),
        metrics=_mapping(node.get("metrics")),
    )


def _mapping(node: Node) -> dict[str, Any]:
    if not node.present:
        return {}
    if not isinstance(node.value, Mapping):
        raise node.bad("a mapping")
    return dict(node.value)
