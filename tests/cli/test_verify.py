"""envlock verify and envlock diff as people type them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from envlock.cli import main
from tests.support.fake_report import device_report

Capture = pytest.CaptureFixture[str]
#: Nothing of it is installed here: checks that say so in no time.
QUICK = ["verify", "--python", sys.executable, "--device", "cpu", "--only", "imp.t*"]


def _saved(path: Path, document: dict[str, Any]) -> str:
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)


def test_the_table(capsys: Capture) -> None:
    assert main(QUICK) == 8
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert lines == [
        "skipped     imp.torch      0.0 s  'torch' is not installed",
        "skipped     imp.triton     0.0 s  'triton' is not installed",
        "incomplete: no check that counts could run; files were not compared: there is no manifest",
    ]
    assert said.err == "2 checks …\n"


def test_a_narrow_terminal_and_colours(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "50")
    main(QUICK)
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("\x1b[2mskipped   \x1b[0m  imp.torch")
    assert len(re.sub(r"\x1b\[\d*m", "", first)) == 50
    monkeypatch.setenv("NO_COLOR", "1")
    main(QUICK)
    assert "\x1b" not in capsys.readouterr().out


def test_all_the_files(tmp_path: Path, capsys: Capture) -> None:
    names = {"--report": "r.json", "--html": "r.html", "--junit": "r.xml"}
    options = [part for key, name in names.items() for part in (key, str(tmp_path / name))]
    assert main([*QUICK, *options]) == 8
    assert json.loads((tmp_path / "r.json").read_text())["exit"] == 8
    assert "<!doctype html>" in (tmp_path / "r.html").read_text()
    assert "<testsuites>" in (tmp_path / "r.xml").read_text()
    again = [*QUICK, "--baseline", str(tmp_path / "r.json"), "--json"]
    capsys.readouterr()
    assert main(again) == 8
    printed = json.loads(capsys.readouterr().out)
    assert printed["data"]["baseline"]["differences"] == []
    assert [finding["code"] for finding in printed["findings"]] == ["baseline"]


def test_a_profile_of_ones_own(tmp_path: Path, capsys: Capture) -> None:
    """Its name is in the report, and not the path of its file."""
    mine = tmp_path / "mine.yaml"
    mine.write_text("name: mine\ntitle: A card of mine\ndevice: cuda\n")
    assert main([*QUICK, "--profile", str(mine), "--json"]) == 8
    assert json.loads(capsys.readouterr().out)["data"]["profile"] == "mine"
    assert main([*QUICK, "--profile", "nvidia"]) == 4
    assert "error: profile: there is no 'nvidia'" in capsys.readouterr().err


def test_another_configuration_is_said(tmp_path: Path, capsys: Capture) -> None:
    path = _saved(tmp_path / "base.json", device_report())
    assert main([*QUICK, "--baseline", path]) == 8
    said = capsys.readouterr().err
    assert "warning: level: standard, was full (the two runs are compared all the same)" in said
    assert "warning: device: cpu, was cuda" in said


@pytest.mark.parametrize("text", ["", "[]", '{"schema": "2.0"}', '{"schema": "1.0"}'])
@pytest.mark.parametrize("command", [[*QUICK, "--baseline"], ["diff", __file__], ["diff"]])
def test_what_is_no_report(tmp_path: Path, capsys: Capture, text: str, command: list[str]) -> None:
    (tmp_path / "base.json").write_text(text)
    path = str(tmp_path / "base.json")
    more = [path] if command == ["diff"] else []
    assert main([*command, path, *more]) == 4
    said = capsys.readouterr()
    assert re.search(r"^error: .*\nhint: name a report that 'envlock verify", said.err)
    assert said.out == ""


def test_reports_that_are_the_same(tmp_path: Path, capsys: Capture) -> None:
    path = _saved(tmp_path / "a.json", device_report())
    assert main(["diff", path, path]) == 0
    assert capsys.readouterr().out == (
        "no difference; 166 cases compared, 146 by margin, 18 by rate\n"
    )


def test_reports_that_differ(tmp_path: Path, capsys: Capture) -> None:
    other = device_report()
    for check in other["checks"]:
        if check["id"] == "perf.gemm":
            check["cases"][3]["metrics"]["tflops"] = 301.0
        if check["id"] == "imp.torch":
            check["facts"]["hip"] = "6.4.1"
        if check["id"] == "num.gemm_real":
            check["cases"][0]["metrics"]["margin"] = 0.9
    paths = [_saved(tmp_path / "a.json", device_report()), _saved(tmp_path / "b.json", other)]
    assert main(["diff", *paths]) == 3
    lines = capsys.readouterr().out.splitlines()
    assert [re.sub(" +", " ", line).strip() for line in lines] == [
        "what A B change",
        "margin num.gemm_real: bf16 64x128 0 % of its limit 90 % of its limit +90 %",
        "rate perf.gemm: fp16 12288 439.2 TFLOPS 301.0 TFLOPS -31 %",
        "fact imp.torch.hip 6.3.26093 6.4.1",
        "3 differences; 166 cases compared, 146 by margin, 18 by rate",
    ]
    assert main(["diff", *paths, "--json"]) == 3
    printed = json.loads(capsys.readouterr().out)
    assert (printed["command"], printed["exit"]) == ("diff", 3)
    assert [one["kind"] for one in printed["data"]["differences"]] == ["margin", "rate", "fact"]


def test_another_configuration_is_said_by_diff(tmp_path: Path, capsys: Capture) -> None:
    other = device_report()
    other["config"]["seed"] = 7
    paths = [_saved(tmp_path / "a.json", device_report()), _saved(tmp_path / "b.json", other)]
    assert main(["diff", *paths]) == 3
    said = capsys.readouterr()
    assert "compared all the same" in said.err
    assert "config  seed  336  7" in said.out
