"""Thousands of reports into one verdict: every disturbance is found, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from envlock.errors import UnusableInput
from envlock.fleet.differ import Difference
from envlock.fleet.merge import merge_reports
from envlock.fleet.results import Merged
from envlock.fleet.words import findings, said, sections
from tests.support import simulated
from tests.support.simulated import Cluster, Disturb, name_of

NOBODY: Mapping[int, Disturb] = {}


def merged(folder: Path, disturbed: Mapping[int, Disturb] = NOBODY, nodes: int = 8) -> Merged:
    """A small cluster, disturbed by the number of the node."""
    simulated.write(folder, Cluster(nodes=nodes, disturbed=disturbed))
    return merge_reports(str(folder), [name_of(number) for number in range(1, nodes + 1)])


def codes(found: Merged) -> set[str]:
    return {one.code for one in sections(found)}


def named(found: Merged, code: str) -> list[str]:
    """Nodes of a section."""
    return [
        name
        for one in sections(found)
        if one.code == code
        for line in one.lines
        for name in line.nodes
    ]


# --- the whole ------------------------------------------------------------------------------

PLANTED: dict[int, Disturb] = {
    31: simulated.slower(0.03, 1),
    502: simulated.slower(0.06, 0),
    503: simulated.driver("6.2.9-V1.4.0"),
    504: simulated.driver("6.2.9-V1.4.0"),
    777: simulated.without("sdpa.causal"),
    901: simulated.manifest("e"),
    1200: simulated.processors(1),
    1300: simulated.failing("imp.torch", "ImportError: libgalaxyhip.so.5: no such file"),
    1400: simulated.stopped,
    1500: simulated.device_count(1),
    1600: simulated.margin("tri.dot@0", 0.6),
    1700: simulated.lasting("imp.torch", 90.0),
}
SECONDS_OF_CHILD = 120

# run by a process of its own: what it takes is what the merge takes
_MEASURE = """
import json, sys
from envlock.cli import main
from tests.support.processes import peak_kib
code = main(["fleet", "report", sys.argv[1], "--nodes", sys.argv[2], "--json"])
print(json.dumps({"code": code, "kib": peak_kib()}), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2,000 nodes with known disturbances; node 1800 was never written, 1900 is cut, 1950 is there
    twice, 1960 is of another schema, 1970 is empty."""
    folder = tmp_path_factory.mktemp("cluster")
    simulated.write(folder, Cluster(nodes=2000, disturbed=PLANTED))
    (folder / f"{name_of(1800)}.json").unlink()
    simulated.cut(folder / f"{name_of(1900)}.json")
    twin = folder / f"{name_of(1950)}.json"
    twin.with_name(f"{name_of(1950)}~2.json").write_bytes(twin.read_bytes())
    other = folder / f"{name_of(1960)}.json"
    other.write_text(json.dumps({**json.loads(other.read_text()), "schema": "2.0"}))
    (folder / f"{name_of(1970)}.json").write_bytes(b"")
    return folder


@pytest.fixture(scope="module")
def document(cluster: Path) -> dict[str, Any]:
    """What the command says of it, and what that took."""
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, str(cluster), "n[0001-2000]"],
        capture_output=True, text=True, timeout=SECONDS_OF_CHILD,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {**json.loads(done.stdout), "used": json.loads(done.stderr.splitlines()[-1])}


def test_every_planted_node_is_found_and_no_other(document: dict[str, Any]) -> None:
    found: dict[str, set[str]] = {}
    for one in document["findings"]:
        found.setdefault(one["code"], set()).add(one["subject"])
    assert found == {
        "fleet.failed": {"n1300"},
        "fleet.unreadable": {"n1900", "n1960", "n1970"},
        "fleet.no-answer": {"n1800"},
        "fleet.unfinished": {"n1400"},
        "fleet.slower": {"n0031", "n0502", "n1600"},
        "fleet.differs": {"n[0503-0504]", "n0777", "n0901", "n1200", "n1500"},
        "fleet.twin": {"n1950"},
        "fleet.slow-check": {"n1700"},
    }


def test_and_named_for_what_they_are(document: dict[str, Any]) -> None:
    said = {one["subject"]: one["what"] for one in document["findings"]}
    assert "device 1 (BW)" in said["n0031"]
    assert "device 0 (BW)" in said["n0502"]
    assert "driver 6.2.9-V1.4.0, usually 6.3.31-V1.5.0a" in said["n[0503-0504]"]
    assert said["n0777"] == "check sdpa.causal did not run, usually ran"
    assert "manifest cpu-cp311 sha256:eeee" in said["n0901"]
    assert said["n1200"] == "processors 1, usually 2"
    assert said["n1300"] == "imp.torch failed: ImportError: libgalaxyhip.so.5: no such file"
    assert "of 33 checks had run" in said["n1400"]
    assert said["n1500"].startswith("devices 1, usually 2")
    assert "tri.dot" in said["n1600"] and "60 % of the limit" in said["n1600"]
    assert said["n1700"].startswith("imp.torch took 9")
    assert said["n1900"].startswith("cut off after ")
    assert said["n1960"] == "schema: expected 1.x, found '2.0'"
    assert said["n1970"].startswith("empty")


def test_slower_cards_lost_what_was_taken_from_them(document: dict[str, Any]) -> None:
    lost = {
        (one["node"], one["index"]): one["loss"]
        for one in document["data"]["slower"]
        if one["check"] == "perf.gemm"
    }
    assert lost == {
        ("n0031", 1): pytest.approx(0.03, abs=0.015),
        ("n0502", 0): pytest.approx(0.06, abs=0.015),
    }


def test_it_fails_and_takes_little_memory(document: dict[str, Any]) -> None:
    assert document["exit"] == document["used"]["code"] == 3
    assert document["data"]["counts"] == {
        "failed": 1, "unreadable": 3, "missing": 1, "unfinished": 1, "passed": 1995,
    }  # fmt: skip
    # 70 MB of reports
    assert document["used"]["kib"] < 150 * 1024


def test_memory_does_not_grow_with_the_reports(tmp_path: Path) -> None:
    """What a node adds is far less than its report."""

    def peak(nodes: int) -> int:
        folder = tmp_path / str(nodes)
        folder.mkdir()
        simulated.write(folder, Cluster(nodes=nodes))
        tracemalloc.start()
        try:
            merge_reports(str(folder))
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    size = len(json.dumps(simulated.device_report(2)))
    assert (peak(150) - peak(50)) / 100 < size / 4


# --- one at a time --------------------------------------------------------------------------


def test_all_well(tmp_path: Path) -> None:
    found = merged(tmp_path)
    assert found.exit_code == 0
    assert sections(found) == ()
    assert said(found) == "passed: all 8 nodes, and they are alike"


CODES: dict[str, tuple[Disturb, int, set[str]]] = {
    "failed": (simulated.failing("imp.torch", "gone"), 3, {"failed"}),
    "slower": (simulated.slower(0.2, 0), 3, {"slower"}),
    "differs": (simulated.driver("1"), 3, {"differs"}),
    "stopped": (simulated.stopped, 8, {"unfinished"}),
    "took long": (simulated.lasting("imp.torch", 90.0), 0, {"slow-check"}),
    "faster": (simulated.slower(-0.2, 0), 0, {"faster"}),
}


@pytest.mark.parametrize("name", CODES)
def test_exit_codes(tmp_path: Path, name: str) -> None:
    disturb, code, expected = CODES[name]
    found = merged(tmp_path, {3: disturb})
    assert (found.exit_code, codes(found)) == (code, expected)
    assert named(found, *expected) == [name_of(3)]


def test_a_failure_outweighs_a_missing_answer(tmp_path: Path) -> None:
    merged(tmp_path, {3: simulated.failing("imp.torch", "gone")})
    (tmp_path / f"{name_of(5)}.json").unlink()
    nodes = [name_of(number) for number in range(1, 9)]
    assert merge_reports(str(tmp_path), nodes).exit_code == 3
    (tmp_path / f"{name_of(3)}.json").unlink()
    found = merge_reports(str(tmp_path), nodes)
    assert found.exit_code == 8
    assert named(found, "no-answer") == [name_of(3), name_of(5)]


def test_two_nodes_of_one_name_are_no_verdict(tmp_path: Path) -> None:
    merged(tmp_path)
    (tmp_path / f"{name_of(2)}~2.json").write_text((tmp_path / f"{name_of(2)}.json").read_text())
    found = merge_reports(str(tmp_path))
    assert found.exit_code == 8
    assert [(one.node, len(one.files)) for one in found.twins] == [(name_of(2), 2)]


def test_no_report_is_no_verdict(tmp_path: Path) -> None:
    found = merge_reports(str(tmp_path))
    assert found.exit_code == 8
    assert said(found) == "incomplete: there is no report"


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match="cannot be read"):
        merge_reports(str(tmp_path / "nowhere"))


def test_four_nodes_are_not_judged_by_value_and_that_is_said(tmp_path: Path) -> None:
    found = merged(tmp_path, {2: simulated.slower(0.4, 0)}, nodes=4)
    assert found.slower == ()
    assert codes(found) == {"few"}
    assert found.exit_code == 0


def test_each_kind_of_device_is_compared_by_itself(tmp_path: Path) -> None:
    def other(document: dict[str, Any]) -> None:
        simulated.slower(0.5, 0)(document)
        simulated.slower(0.5, 1)(document)
        simulated.driver("7.0")(document)
        document["device"]["device"] = "K100"
        for check in document["checks"]:
            for card in check["facts"].get("devices", ()):
                card["name"] = "K100"

    found = merged(tmp_path, dict.fromkeys(range(1, 7), other), nodes=14)
    assert found.kinds == (("BW", 8), ("K100", 6))
    assert found.exit_code == 0
    one = tmp_path / "one"
    one.mkdir()
    lonely = merged(one, {4: other}, nodes=14)
    assert lonely.kinds == (("BW", 14),)
    assert "device K100, usually BW" in findings(lonely)[0].what


def test_a_run_that_was_stopped_is_still_compared(tmp_path: Path) -> None:
    def both(document: dict[str, Any]) -> None:
        simulated.processors(1)(document)
        simulated.stopped(document)

    found = merged(tmp_path, {2: both})
    assert codes(found) == {"unfinished", "differs"}
    assert [one.differences for one in found.differing] == [
        (Difference(name="processors", value="1", usual="2"),)
    ]


def test_a_tie_is_said(tmp_path: Path) -> None:
    found = merged(tmp_path, dict.fromkeys(range(1, 5), simulated.driver("7.0")))
    assert found.differing == ()
    assert codes(found) == {"tie"}
    assert {line.what for one in sections(found) for line in one.lines} == {
        "driver 7.0", "driver 6.3.31-V1.5.0a",
    }  # fmt: skip
    assert found.exit_code == 3


def test_memory_that_differs_by_a_little_is_the_same(tmp_path: Path) -> None:
    """Firmware takes its share, and ``/dev/shm`` is half of what is left."""

    def shared(share: float) -> Disturb:
        def disturb(document: dict[str, Any]) -> None:
            for check in document["checks"]:
                if check["id"] == "env.shm":
                    check["cases"][0]["metrics"]["bytes"] *= share

        return disturb

    assert merged(tmp_path, {2: shared(0.98), 3: shared(1.03)}).exit_code == 0
    found = merged(tmp_path, {2: shared(0.5)})
    assert "/dev/shm, GiB" in findings(found)[0].what


def test_an_advisory_check_that_crashed_on_one_node_differs(tmp_path: Path) -> None:
    def crashed(document: dict[str, Any]) -> None:
        for check in document["checks"]:
            if check["id"] == "perf.gemm@1":
                check |= {"status": "crashed", "cases": [], "reason": "ended by SIGSEGV"}

    assert (
        findings(merged(tmp_path, {2: crashed}))[0].what == "check perf.gemm crashed, usually ran"
    )


def test_names_with_and_without_a_domain_are_one_node(tmp_path: Path) -> None:
    merged(tmp_path, nodes=5)
    asked = [f"{name_of(number)}.cluster" for number in range(1, 7)]
    found = merge_reports(str(tmp_path), asked)
    assert named(found, "no-answer") == [f"{name_of(6)}.cluster"]
    assert found.unexpected == ()
    assert merge_reports(str(tmp_path), [name_of(1)]).unexpected == tuple(map(name_of, range(2, 6)))


def test_a_node_whose_cards_are_all_slower_is_one_line(tmp_path: Path) -> None:
    def both(document: dict[str, Any]) -> None:
        simulated.slower(0.2, 0)(document)
        simulated.slower(0.3, 1)(document)

    (line,) = sections(merged(tmp_path, {2: both}))[0].lines
    assert line.nodes == (name_of(2),)
    assert line.what.startswith("device 1 and 1 more (BW): perf.")
