"""Report, page and JUnit file are whole after every check, whatever ends the run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from envlock.errors import UnusableInput
from envlock.verify.papers import Papers, Wanted
from envlock.verify.run import Watch
from envlock.verify.saved import load, parse
from tests.support.fake_checks import fake_check
from tests.support.fake_report import check, device_report, document
from tests.support.pythons import ROOT
from tests.verify.conftest import RunFakes


def _wanted(folder: Path, **more: Any) -> Wanted:
    names = {"report": "deep/r.json", "html": "deep/r.html", "junit": "deep/r.xml"}
    more |= {kind: str(folder / name) for kind, name in names.items()}
    return Wanted(**more)


def test_all_of_them_after_every_check(tmp_path: Path, run_fakes: RunFakes) -> None:
    wanted = _wanted(tmp_path)
    papers, states = Papers(wanted), []

    def keep(found: Mapping[str, Any]) -> None:
        papers.keep(found)
        report = load(str(wanted.report))
        page = Path(str(wanted.html)).read_text(encoding="utf-8")
        suite = ElementTree.parse(str(wanted.junit)).getroot()[0]
        assert report.document["verdict"] in page
        named = {element.attrib["classname"] for element in suite.iter("testcase")}
        assert named == {result.id for result in report.results}
        states.append([result.status.value for result in report.results])

    run_fakes(fake_check("right"), fake_check("segfault"), watch=Watch(on_report=keep))
    assert states == [
        ["not-run", "not-run"], ["passed", "not-run"], ["passed", "crashed"], ["passed", "crashed"],
    ]  # fmt: skip
    assert sorted(path.name for path in (tmp_path / "deep").iterdir()) == [
        "r.html", "r.json", "r.xml",
    ]  # fmt: skip


@pytest.mark.parametrize("option", ["report", "html", "junit"])
def test_a_file_that_cannot_be_written_is_known_before_the_first_check(
    tmp_path: Path, run_fakes: RunFakes, option: str
) -> None:
    (tmp_path / "file").write_text("")
    ran: list[str] = []
    place: dict[str, Any] = {option: str(tmp_path / "file" / "x")}
    papers = Papers(Wanted(**place))
    watch = Watch(on_start=lambda one: ran.append(one.id), on_report=papers.keep)
    with pytest.raises(UnusableInput, match="cannot be written") as caught:
        run_fakes(fake_check("right"), watch=watch)
    assert f"--{option}" in caught.value.hint
    assert ran == []


def test_the_baseline_is_in_all_of_them(tmp_path: Path) -> None:
    wanted = _wanted(tmp_path, baseline=parse(device_report()))
    papers = Papers(wanted)
    papers.keep(device_report(0.8))
    assert papers.comparison is not None
    written = load(str(wanted.report)).document
    assert written == papers.document
    assert len(written["baseline"]["differences"]) == 18
    assert "Beside the baseline" in Path(str(wanted.html)).read_text(encoding="utf-8")


def test_a_partial_run_is_compared_as_far_as_it_came() -> None:
    papers = Papers(Wanted(baseline=parse(document(check("a"), check("b")))))
    running = document(check("a"), check("b", "not-run"), verdict="running", exit=None, said="")
    papers.keep(running)
    assert papers.document["baseline"]["differences"] == []
    assert papers.document["exit"] is None


_KILLED = """
import os, sys
from pathlib import Path
from envlock.adapters.interpreter import Named, read_target
from envlock.model.profile import Profile
from envlock.verify.papers import Papers, Wanted
from envlock.verify.plan import Options
from envlock.verify.run import Watch, run_suite
from tests.support.fake_checks import fake_check, write_checks

folder = Path(sys.argv[1])
write_checks(folder / "checks", "right", "wrong", dev_first="yield context.case('one', dict)")
checks = (fake_check("right"), fake_check("wrong"))
papers = Papers(Wanted(report=str(folder / "r.json")))

def die(check):
    if check.id == "fake.wrong":
        os.kill(os.getpid(), 9)

run_suite(
    read_target(Named(sys.executable, "test"), dict(os.environ)), None,
    Profile(name="cpu", title="CPU", labels=(), names=(), device="cpu"),
    Options(level="quick", checks=checks, scripts=folder / "checks"), env=dict(os.environ),
    watch=Watch(on_start=die, on_report=papers.keep),
)
"""


def test_a_run_that_is_killed_leaves_what_it_had(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, str(tmp_path)], cwd=ROOT, capture_output=True,
        env=dict(os.environ), text=True, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    found = json.loads((tmp_path / "r.json").read_text())
    assert (found["verdict"], found["exit"]) == ("running", None)
    assert [one["status"] for one in found["checks"]] == ["passed", "not-run"]
    assert not load(str(tmp_path / "r.json")).complete
