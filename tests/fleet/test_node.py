"""One node's part of a run: its name, its report, and what it tells the launching host."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from envlock.adapters.launching import host_name
from envlock.fleet.job import RUNS, Job
from envlock.fleet.node import work
from envlock.fleet.wire import Collector
from tests.support.pythons import clean_env

SLURM = {"SLURMD_NODENAME": "n7", "SLURM_STEP_NODELIST": "n[7-8]"}


def do(
    out: Path, *words: str, shared: bool = True, env: Mapping[str, str] = SLURM, **more: Any
) -> tuple[int, dict[str, dict[str, Any]]]:
    """Exit code, and the messages by kind; those of files by their ending."""
    if shared:
        (out / RUNS / "r").mkdir(parents=True, exist_ok=True)
    lines: list[str] = []
    job = Job(run="r", out=str(out), words=words, slurm=bool(env), **more)
    code = work(job, {**clean_env(), **env}, lines.append)
    collector = Collector()
    said = [*collector.feed("\n".join(lines).encode()), *collector.end()]
    return code, {one.get("ending") or one["kind"]: one for one in said}


def test_a_command_that_answers(tmp_path: Path) -> None:
    code, said = do(tmp_path, "wheelhouse", "check", str(tmp_path / "none"))
    assert code == said["ended"]["code"] == 4
    assert said["began"]["name"] == "n7"
    assert said["began"]["step"] == "n[7-8]"
    document = json.loads((tmp_path / "n7.json").read_text())
    assert document["exit"] == 4
    assert said["ended"]["why"] == document["findings"][0]["what"]


def test_a_node_that_sees_no_folder_sends_its_report(tmp_path: Path) -> None:
    (tmp_path / "apart").mkdir()
    _, here = do(tmp_path / "shared", "wheelhouse", "check", "/nonexistent")
    _, said = do(tmp_path / "apart", "wheelhouse", "check", "/nonexistent", shared=False)
    assert list((tmp_path / "apart").iterdir()) == []
    assert ".json" not in here
    assert said[".json"]["text"] == (tmp_path / "shared" / "n7.json").read_text()


def test_two_of_one_name(tmp_path: Path) -> None:
    names = [do(tmp_path, "--version")[1]["began"]["name"] for _ in range(3)]
    assert names == ["n7", "n7~2", "n7~3"]


def test_other_launchers_hand_on_variables_of_another_host(tmp_path: Path) -> None:
    lines: list[str] = []
    (tmp_path / RUNS / "r").mkdir(parents=True)
    job = Job(run="r", out=str(tmp_path), words=("--version",))
    work(job, {**clean_env(), **SLURM}, lines.append)
    began = next(Collector().feed(f"{lines[0]}\n".encode()))
    assert (began["name"], began["step"]) == (host_name(), "")


def test_no_answer_at_all(tmp_path: Path) -> None:
    """A command that says nothing still leaves a document, which names the node."""
    code, said = do(tmp_path, "verify", "--help")
    document = json.loads((tmp_path / "n7.json").read_text())
    assert (code, document["command"], document["exit"]) == (0, "node", 0)
    assert said["ended"]["why"] == ""


def test_an_error_is_no_report(tmp_path: Path) -> None:
    """verify that found no target wrote no report: its error is merged by its findings."""
    words = ("verify", "--python", str(tmp_path / "none"))
    code, said = do(tmp_path, *words, reports=True)
    document = json.loads((tmp_path / "n7.json").read_text())
    assert (code, document["command"]) == (4, "node")
    assert "does not exist" in said["ended"]["why"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_only_be_read(tmp_path: Path) -> None:
    (tmp_path / RUNS / "r").mkdir(parents=True)
    tmp_path.chmod(0o555)
    try:
        code, said = do(tmp_path, "--version")
    finally:
        tmp_path.chmod(0o755)
    assert code == 8
    assert "the report cannot be written" in said["ended"]["why"]
