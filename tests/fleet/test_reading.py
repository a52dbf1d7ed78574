"""Files of a folder of reports: what is read of them, and what is said of those that are none."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envlock.fleet.document import data
from envlock.fleet.merge import merge_reports
from envlock.fleet.page import to_html
from envlock.fleet.reading import node_of, read
from envlock.fleet.results import State
from tests.support import simulated
from tests.support.simulated import Cluster, name_of


def written(folder: Path, nodes: int = 5) -> None:
    simulated.write(folder, Cluster(nodes=nodes))


# --- files that are no reports --------------------------------------------------------------

BROKEN: dict[str, tuple[str | bytes, str]] = {
    "empty": (b"", "empty"),
    "zeros": (b"\0" * 4096, "empty"),
    "cut": ('{"schema": "1.0", "checks": [{"id": "nu', "cut off after 39 bytes"),
    "no JSON": ("Traceback (most recent call last):\n", "not JSON"),
    "no UTF-8": (b'{"schema": "\xff"}', "not JSON"),
    "NaN": ('{"schema": "1.0", "checks": [], "x": NaN}', "not JSON"),
    "a list": ("[1, 2]", "expected a mapping"),
    "deep": ("[" * 100_000, "cut off|not JSON"),
    "other schema": ('{"schema": "7.0"}', "schema: expected 1.x, found '7.0'"),
    "no checks": ('{"schema": "1.0", "checks": {}}', "checks: expected a list of checks"),
    "a check without a name": (
        '{"schema": "1.0", "verdict": "passed", "checks": [{"status": "passed"}]}',
        r"checks\[0\].id: expected text",
    ),
    "another status": (
        '{"schema": "1.0", "verdict": "passed", "checks": [{"id": "a", "status": "fine"}]}',
        r"checks\[0\].status",
    ),
    "no case": (
        '{"schema":"1.0","verdict":"passed","checks":[{"id":"a","status":"passed","cases":[3]}]}',
        r"checks\[0\].cases\[0\]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_read_is_said_and_stops_nobody(tmp_path: Path, name: str) -> None:
    content, expected = BROKEN[name]
    written(tmp_path)
    data = content.encode() if isinstance(content, str) else content
    (tmp_path / "bad.json").write_bytes(data)
    found = merge_reports(str(tmp_path))
    (bad,) = found.by_state[State.UNREADABLE]
    assert bad.name == "bad"
    assert re.search(expected, bad.why), bad.why
    assert found.exit_code == 8


def test_numbers_that_are_none_are_left_out(tmp_path: Path) -> None:
    def absurd(document: dict[str, Any]) -> None:
        for check in document["checks"]:
            check["seconds"] = 1e999 if check["id"] == "imp.torch" else "long"
            for case in check["cases"]:
                case["metrics"] |= {"tflops": 10**400, "gbps": "fast", "margin": None}
                case["metrics"].pop("seconds_median", None)

    simulated.write(tmp_path, Cluster(nodes=5))
    document = simulated.device_report(2)
    absurd(document)
    (tmp_path / "n0006.json").write_text(json.dumps(document).replace("Infinity", "1e999"))
    found = merge_reports(str(tmp_path))
    assert {node.state for node in found.nodes} == {State.PASSED}
    json.dumps([one.seconds for one in found.slow], allow_nan=False)


@pytest.mark.parametrize("value", [5e-324, 1e-300, 1e300, 1e308, -1.0, 0.0])
def test_numbers_that_nothing_reaches(tmp_path: Path, value: float) -> None:
    def absurd(document: dict[str, Any]) -> None:
        for check in document["checks"]:
            check["seconds"] = value
            for case in check["cases"]:
                for name in ("tflops", "gbps", "seconds_median", "margin"):
                    if name in case["metrics"]:
                        case["metrics"][name] = value

    for odd in ((6,), range(1, 7)):
        simulated.write(tmp_path, Cluster(nodes=6, disturbed=dict.fromkeys(odd, absurd)))
        found = merge_reports(str(tmp_path))
        json.dumps(data(found), allow_nan=False)
        to_html(found)


def test_a_file_in_a_folder_of_its_own(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "n0099").mkdir()
    (tmp_path / f"{name_of(1)}.json").rename(tmp_path / "n0099" / "report.json")
    names = {node.name for node in merge_reports(str(tmp_path)).nodes}
    assert names == {"n0099", *map(name_of, range(2, 6))}
    assert node_of("a~3.json") == node_of("a.json") == node_of("a/report.json") == "a"


# --- what other commands answered -----------------------------------------------------------


def answer(code: int, command: str = "restore", **finding: str) -> dict[str, Any]:
    wrong = {"code": "dist.no-wheel", "subject": "torch", "what": "no wheel", "level": "error"}
    found = [{**wrong, **finding}] if code else []
    return {"schema": "1.0", "command": command, "exit": code, "findings": found, "data": {}}


@pytest.mark.parametrize(
    ("code", "state", "why"),
    [
        (0, State.PASSED, "exit code 0"),
        (3, State.FAILED, "no wheel"),
        (6, State.FAILED, "no wheel"),
        (4, State.INCOMPLETE, "no wheel"),
        (8, State.INCOMPLETE, "no wheel"),
        (130, State.UNFINISHED, "no wheel"),
    ],
)
def test_answers_of_other_commands(tmp_path: Path, code: int, state: State, why: str) -> None:
    (tmp_path / "n1.json").write_text(json.dumps(answer(code)))
    found = merge_reports(str(tmp_path))
    (node,) = found.nodes
    assert (node.state, node.why) == (state, why)
    assert found.exit_code == {State.PASSED: 0, State.FAILED: 3}.get(state, 8)


def test_what_a_fleet_command_answered_is_no_node(tmp_path: Path) -> None:
    (tmp_path / "all.json").write_text(json.dumps(answer(3, "fleet report")))
    assert merge_reports(str(tmp_path)).nodes == ()


def test_what_verify_printed_is_a_report(tmp_path: Path) -> None:
    document = simulated.device_report(2)
    printed = {"schema": "1.0", "command": "verify", "exit": 0, "findings": [], "data": document}
    (tmp_path / "n1.json").write_text(json.dumps(printed))
    found = read(str(tmp_path), "n1.json")
    assert found is not None
    assert (found.kind, found.verdict) == ("BW", "passed")
    assert len(found.checks) == len(document["checks"])


def test_progress_counts_files(tmp_path: Path) -> None:
    simulated.write(tmp_path, Cluster(nodes=6))
    seen: list[int] = []
    take: Callable[[int], None] = seen.append
    merge_reports(str(tmp_path), (), take)
    assert sum(seen) == 6
