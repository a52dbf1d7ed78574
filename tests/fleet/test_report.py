"""``envlock fleet report``: table, JSON, page, list for the scheduler."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from envlock.cli import main
from envlock.fleet.merge import merge_reports
from envlock.fleet.page import to_html
from envlock.fleet.roll import NODES_FILE
from envlock.model.hostlist import expand
from tests.support import browser, simulated
from tests.support.simulated import Cluster, Disturb, name_of

DOCS = Path(__file__).parents[2] / "docs" / "fleet-report.md"
SCHEMA = DOCS.parent / "schemas" / "fleet-1.json"
PLANTED: dict[int, Disturb] = {
    3: simulated.slower(0.03, 1),
    5: simulated.manifest("e"),
    7: simulated.slower(0.06, 0),
    11: simulated.driver("6.2.9"),
    12: simulated.failing("imp.torch", "ImportError: libgalaxyhip.so.5: no such file"),
    13: simulated.stopped,
    14: simulated.lasting("imp.torch", 40.0),
    15: simulated.without("sdpa.causal"),
}
SAID = (
    "failed: of 16 nodes 1 failed, 1 with a report that cannot be read, 1 never answered, "
    "1 stopped in the middle, 2 slower or less exact than their sisters, 3 not like most of them; "
    "12 passed by themselves"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Sixteen nodes, of which one did not answer and one cannot be read."""
    path = tmp_path / "reports"
    path.mkdir()
    simulated.write(path, Cluster(nodes=16, devices=4, noise=0.002, disturbed=PLANTED))
    (path / f"{name_of(8)}.json").unlink()
    simulated.cut(path / f"{name_of(10)}.json")
    (path / NODES_FILE).write_text("n[0001-0016]\n")
    return path


def test_the_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", "report", str(folder)]) == 3
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if not line.startswith("  ")] == [
        "1 node failed",
        "1 node with a report that cannot be read",
        "1 node never answered",
        "1 node stopped in the middle",
        "2 nodes slower or less exact than their sisters",
        "3 nodes not like most of them",
        "1 node with a check that took long",
        SAID,
    ]
    text = "\n".join(lines)
    assert "n0012  imp.torch failed: ImportError: libgalaxyhip.so.5: no such file" in text
    assert re.search(
        r"n0007  device 0 \(BW\): .* its sisters .* \(-[67]\.\d %\); and \d+ more", text
    )
    assert "n0011  driver 6.2.9, usually 6.3.31-V1.5.0a" in text


def test_the_last_line_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", "report", str(folder), "-q"]) == 3
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_long_lists_are_folded_and_can_be_seen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [f"n{2 * number:03}" for number in range(40)]
    simulated.write(tmp_path, Cluster(nodes=5))
    for number, node in enumerate(nodes[:20]):
        (tmp_path / f"{node}.json").write_text(f'{{"schema": "{number + 2}"}}')
    asked = ["fleet", "report", str(tmp_path), "--nodes", ",".join(nodes)]
    assert main(asked) == 8
    short = capsys.readouterr().out
    assert "n[040,042,044,046,048,050,052,0… (20)  no report" in short
    assert "… and 8 nodes more" in short
    assert "-v" in short.splitlines()[-2]
    assert main([*asked, "-v"]) == 8
    whole = capsys.readouterr().out
    assert f"n[{','.join(node[1:] for node in nodes[20:])}]" in whole
    assert "more" not in whole


def test_the_commands_of_the_docs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder.parent)
    text = DOCS.read_text(encoding="utf-8")
    lines = re.findall(r"^envlock (fleet report reports.*)$", text, re.M)
    assert len(lines) == 4
    for line in lines:
        words = shlex.split(line, comments=True)
        assert main(words[: words.index(">")] if ">" in words else words) == 3
    assert Path("all.html").exists() and Path("drain.txt").exists()
    capsys.readouterr()


# --- JSON -----------------------------------------------------------------------------------


def _document(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found


def test_json_is_as_the_schema_says(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", "report", str(folder), "--json"]) == 3
    document = _document(capsys.readouterr().out)
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document["data"], schema)
    assert (document["command"], document["exit"]) == ("fleet report", 3)
    assert {one["level"] for one in document["findings"]} == {"error", "warning"}


def test_the_schema_names_everything_that_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ties, twins, groups apart and faster cards as well."""
    half = {number: simulated.slower(-0.3, 0) for number in range(1, 7)}
    simulated.write(tmp_path, Cluster(nodes=24, disturbed={**half, 9: simulated.slower(-0.5, 1)}))
    for number in range(1, 13):
        path = tmp_path / f"{name_of(number)}.json"
        document = _document(path.read_text())
        simulated.driver("7")(document)
        path.write_text(json.dumps(document))
    (tmp_path / f"{name_of(3)}~2.json").write_text((tmp_path / f"{name_of(3)}.json").read_text())
    (tmp_path / f"{name_of(3)}~3.json").write_text((tmp_path / f"{name_of(20)}.json").read_text())
    (tmp_path / f"{name_of(20)}.json").unlink()
    main(["fleet", "report", str(tmp_path), "--json", "--nodes", "n[0001-0019,0021-0023]"])
    data = _document(capsys.readouterr().out)["data"]
    jsonschema.validate(data, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert data["apart"] and data["faster"] and data["twins"] and data["unexpected"]


# --- for the scheduler ----------------------------------------------------------------------


def test_the_list_to_drain(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder.parent / "drain"
    assert main(["fleet", "report", str(folder), "--drain-list", str(path)]) == 3
    shown = capsys.readouterr()
    assert path.read_text() == "n[0003,0005,0007-0008,0010-0013,0015]\n"
    lines = [line for line in shown.out.splitlines() if line.startswith("scontrol")]
    assert lines == [
        "scontrol update nodename=n0012 state=drain 'reason=envlock: failed'",
        "scontrol update nodename=n0010 state=drain 'reason=envlock: unreadable'",
        "scontrol update nodename=n0008 state=drain 'reason=envlock: missing'",
        "scontrol update nodename=n0013 state=drain 'reason=envlock: unfinished'",
        "scontrol update 'nodename=n[0003,0007]' state=drain 'reason=envlock: slower'",
        "scontrol update 'nodename=n[0005,0011,0015]' state=drain 'reason=envlock: differs'",
    ]
    assert "nothing was drained" in shown.err


def test_nothing_to_drain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "all").mkdir()
    simulated.write(tmp_path / "all", Cluster(nodes=5))
    path = tmp_path / "drain"
    assert main(["fleet", "report", str(tmp_path / "all"), "--drain-list", str(path)]) == 0
    assert path.read_text() == ""
    assert "scontrol" not in capsys.readouterr().out


HOSTILE = "<script>alert(1)<|script>\"'&{{ 7*7 }};$(reboot)"


def test_a_hostile_name_reaches_no_shell(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / f"{HOSTILE}.json").write_text("{}")
    path = folder.parent / "drain"
    main(["fleet", "report", str(folder), "--drain-list", str(path), "-v"])
    out = capsys.readouterr().out
    assert HOSTILE in out
    assert "reboot" not in path.read_text()
    assert not any("reboot" in line for line in out.splitlines() if line.startswith("scontrol"))


def test_control_characters_reach_no_terminal(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def hostile(document: dict[str, Any]) -> None:
        simulated.failing("imp.torch", "\x1b[2J\ud800 gone")(document)
        simulated.driver("\x1b]0;\x07")(document)

    simulated.write(folder, Cluster(nodes=6, disturbed={2: hostile}))
    (folder / "n\x1b[2J.json").write_text("{}")
    (folder / "n\udcff.json").write_text("{}")
    for options in ((), ("-v",), ("--json",), ("--html", str(folder.parent / "page.html"))):
        main(["fleet", "report", str(folder), *options])
        shown = capsys.readouterr()
        assert "\x1b" not in shown.out + shown.err
        (shown.out + shown.err).encode()


# --- who should have answered ---------------------------------------------------------------


@pytest.mark.parametrize("named", ["n[0001-0018]", "FILE"])
def test_nodes_by_list_or_file(
    folder: Path, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if named == "FILE":
        named = str(folder.parent / "nodes")
        Path(named).write_text("# all of them\nn[0001-0009]\nn0010 n[0011-0018]\n")
    main(["fleet", "report", str(folder), "--nodes", named, "--json"])
    found = _document(capsys.readouterr().out)["findings"]
    silent = next(one["subject"] for one in found if one["code"] == "fleet.no-answer")
    assert expand(silent) == ("n0008", "n0017", "n0018")


def test_a_list_that_is_none(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", "report", str(folder), "--nodes", "n[1-"]) == 2
    assert "error: list of nodes: a bracket without its other half" in capsys.readouterr().err


def test_without_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", "report", str(tmp_path / "none")]) == 4
    assert "error: " in capsys.readouterr().err


# --- the page -------------------------------------------------------------------------------


def test_the_page_needs_nothing_from_anywhere(folder: Path) -> None:
    path = folder.parent / "all.html"
    assert main(["fleet", "report", str(folder), "-q", "--html", str(path)]) == 3
    page = path.read_text(encoding="utf-8")
    assert "<script" not in page
    assert re.findall(r"(?:https?:|//)[a-z]", page) == []
    assert re.findall(r"(?:src|href)=\"(?!data:|#)", page) == []
    assert "default-src 'none'" in page


def test_what_a_report_says_is_never_markup(folder: Path) -> None:
    def hostile(document: dict[str, Any]) -> None:
        simulated.failing("imp.torch", HOSTILE)(document)
        simulated.driver(HOSTILE)(document)
        document["said"] = HOSTILE

    simulated.write(folder, Cluster(nodes=6, disturbed={2: hostile}))
    (folder / f"{HOSTILE}.json").write_text("{}")
    page = to_html(merge_reports(str(folder)))
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "49" not in re.findall(r"alert\(1\).{0,60}", page)[0]


def test_a_cell_says_what_is_wrong(folder: Path) -> None:
    page = to_html(merge_reports(str(folder), expand("n[0001-0016]")))
    assert "imp.torch failed: ImportError: libgalaxyhip.so.5: no such file</title>" in page
    assert re.search(r'class="slow"[^>]*><title>perf\.\w+: [^<]*its sisters', page)
    assert page.count('class="in"') >= 2
    assert page.count('class="odd"') >= 2


def test_nodes_that_are_the_same_share_a_row(tmp_path: Path) -> None:
    """A page for five hundred nodes is hardly larger than one for fifty."""
    pages = []
    for nodes in (50, 150):
        path = tmp_path / str(nodes)
        path.mkdir()
        simulated.write(path, Cluster(nodes=nodes, devices=1, disturbed={7: simulated.driver("1")}))
        pages.append(to_html(merge_reports(str(path))))
    assert len(pages[1]) < 1.3 * len(pages[0])
    assert "n[0001-0006,0008-0150]" in pages[1]


@pytest.mark.skipif(browser.find_browser() is None, reason="no Chromium on PATH")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_browser_has_nothing_to_say(folder: Path, tmp_path: Path, dark: bool) -> None:
    page = tmp_path / "page.html"
    page.write_text(to_html(merge_reports(str(folder), expand("n[0001-0016]"))), encoding="utf-8")
    seen = browser.look(page, tmp_path, dark=dark)
    assert (seen.logged, seen.requests) == ([], [])
    assert seen.overflow <= 0
    for word in ("failed", "n0007", "perf.gemm", "Nodes by check", "its sisters"):
        assert word in seen.text
    narrow = browser.look(page, tmp_path, dark=dark, width=420)
    assert narrow.overflow <= 0
