"""Programs that are asked at the same time."""

from __future__ import annotations

import itertools
import os
import sys
import threading
from pathlib import Path

import pytest

from envlock.adapters.together import Answer, Question, ask_together, paths_of
from tests.support.processes import is_alive

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the programs are shell scripts")
LONG = 30.0


def put(folder: Path, name: str, body: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def ask(*tries: tuple[str, ...], seconds: float = LONG) -> Answer:
    question = Question(tries=tries, enough=lambda text: "yes" in text)
    return ask_together({"it": question}, {"PATH": "/usr/bin:/bin"}, seconds)["it"]


def test_the_first_that_answers(tmp_path: Path) -> None:
    path = put(tmp_path, "tool", 'case "$1" in b) echo yes b;; c) echo yes c;; *) echo no; esac')
    assert ask((path, "a"), (path, "b"), (path, "c")) == Answer(program=path, text="yes b\n")


def test_colours_are_no_part_of_an_answer(tmp_path: Path) -> None:
    path = put(tmp_path, "tool", "printf '\\033[33myes\\033[0m\\n'")
    assert ask((path,)).text == "yes\n"


@pytest.mark.parametrize("body", ["echo no", "echo yes; exit 3", "kill -9 $$"])
def test_no_answer(body: str, tmp_path: Path) -> None:
    path = put(tmp_path, "tool", body)
    found = ask((path,))
    assert (found.program, found.text, found.hung) == (path, "", False)


def test_a_program_that_cannot_be_started(tmp_path: Path) -> None:
    path = tmp_path / "tool"
    path.write_text("#!/no/such/interpreter\n")
    path.chmod(0o755)
    found = ask((str(path),))
    assert "cannot be started" in found.said
    assert not found.hung


def test_one_that_hangs_holds_nobody_up(tmp_path: Path) -> None:
    stuck = put(tmp_path, "stuck", "trap '' TERM; exec sleep 600")
    quick = put(tmp_path, "quick", "echo yes")
    asked = {
        "stuck": Question(tries=((stuck,), (quick,))),
        "quick": Question(tries=((quick,),)),
        "none": Question(tries=()),
    }
    found = ask_together(asked, {"PATH": "/usr/bin:/bin"}, 3.0)
    assert found["stuck"].hung  # and the next was not tried: its time is over
    assert (found["stuck"].program, found["stuck"].text) == (stuck, "")
    assert found["quick"].text == "yes\n"
    assert found["none"] == Answer()


def test_who_is_interrupted_leaves_nothing_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = tmp_path / "pid"
    stuck = put(tmp_path, "stuck", f"echo $$ > {pid}.part; mv {pid}.part {pid}; exec sleep 600")
    real, times = threading.Thread.join, itertools.count()

    def join(thread: threading.Thread, timeout: float | None = None) -> None:
        if next(times) == 0:
            while not pid.exists() and thread.is_alive():
                pass
            raise KeyboardInterrupt
        real(thread, timeout)

    monkeypatch.setattr(threading.Thread, "join", join)
    asked = {"stuck": Question(tries=((stuck,),))}
    with pytest.raises(KeyboardInterrupt):
        ask_together(asked, {"PATH": "/usr/bin:/bin"}, 3.0)
    assert not is_alive(int(pid.read_text()))


def test_where_programs_are(tmp_path: Path) -> None:
    one = put(tmp_path / "opt/bin", "hy-smi", "")
    other = put(tmp_path / "usr/bin", "hy-smi", "")
    folders = ("/none", "/usr/bin", "/opt/bin", "/usr/bin", "", ".", "bin")
    assert paths_of("hy-smi", folders, str(tmp_path)) == (other, one)
    assert paths_of("hy-smi", [str(tmp_path / "opt/bin")]) == (one,)
    (tmp_path / "also").symlink_to("opt")
    assert paths_of("hy-smi", ["/opt/bin", "/also/bin"], str(tmp_path)) == (one,)
    os.chmod(one, 0o644)
    assert paths_of("hy-smi", [str(tmp_path / "opt/bin")]) == ()
