"""A restore is not alone: installers, other restores, and programs that use what it replaces."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from envlock.adapters.locking import lock_folder
from envlock.model.facts import Target
from tests.restore.test_faults import Faulty, use
from tests.support.pythons import ROOT, clean_env, make_venv, torch_wheels
from tests.support.wheels import make_wheel
from tests.support.worlds import World, install, lock, tree

pytestmark = pytest.mark.integration


def upgrade_kept(world: World) -> None:
    install(world.python, make_wheel(world.prefix.parent / "new", "filelock", "4.0.0"))


def upgrade_going(world: World) -> None:
    install(world.python, make_wheel(world.prefix.parent / "new", "torch", "2.12.0"))


def add_another(world: World) -> None:
    install(world.python, make_wheel(world.prefix.parent / "new", "another", "1.0"))


def edit_going(world: World) -> None:
    (world.site / "torch/__init__.py").write_text("mine, since the plan\n")


def begin_uninstall(world: World) -> None:
    info = next(world.site.glob("filelock-*.dist-info"))
    info.rename(info.with_name(f"~{info.name[1:]}"))


@pytest.mark.parametrize(
    "change", [upgrade_kept, upgrade_going, add_another, edit_going, begin_uninstall]
)
def test_an_installer_at_the_same_time(
    broken: World,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[World], None],
) -> None:
    """What changed since the plan is neither overwritten nor mixed with what is restored."""
    trees = []

    def harm(_site: Path, _target: Target) -> None:
        change(broken)
        trees.append(tree(broken.prefix, leave_out=("__pycache__", ".envlock-txn")))

    use(monkeypatch, Faulty(harm))
    assert broken.restore() == 6
    said = capsys.readouterr().err
    assert "changed while the wheels were unpacked; the target is as it was" in said
    assert [tree(broken.prefix)] == trees
    monkeypatch.undo()
    assert broken.restore() == 0
    assert broken.restore("--plan") == 0


def test_two_restores_at_once(broken: World) -> None:
    """One waits for nobody: it is told, or comes later and has nothing to do."""
    command = [sys.executable, "-m", "envlock", "restore", "--wheelhouse", str(broken.wheels),
               "--python", str(broken.python)]  # fmt: skip
    running = [
        subprocess.Popen(command, env=clean_env(), cwd=ROOT, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    ended = [(*process.communicate(), process.returncode) for process in running]
    codes = [code for _, _, code in ended]
    assert 0 in codes
    for _, error, code in ended:
        assert code == 0 or (code == 4 and "another restore holds" in error), error
    assert broken.restore("--plan") == 0


@pytest.mark.parametrize("words", [["restore", "--plan"], ["restore"], ["snapshot"]])
def test_one_that_runs_is_told_from_one_that_was_cut(
    broken: World, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both have a transaction on the disk; only one of them needs ``--recover``."""
    written = tmp_path / "a.yaml"
    named = ["-o", str(written)] if "snapshot" in words else ["--wheelhouse", str(broken.wheels)]
    (broken.site / ".envlock-txn").mkdir()
    held = lock_folder(os.path.realpath(broken.site))
    try:
        assert broken.run(*words, *named) == 4
    finally:
        held.release()
    said = capsys.readouterr().err
    assert "another restore holds" in said
    assert "--recover" not in said
    assert broken.run(*words, *named) == 4
    assert "envlock restore --recover" in capsys.readouterr().err
    assert not written.exists()


def test_recover_names_an_orphan(
    broken: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The restore was killed, and the program that it had started still unpacks."""
    folder = broken.site / ".envlock-txn"
    (folder / "stage").mkdir(parents=True)
    held = os.open(os.path.realpath(broken.site), os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    program = tmp_path / "slow"
    program.write_text("#!/bin/sh\nread line\n")
    program.chmod(0o755)
    orphan = subprocess.Popen(
        [program, "--prefix", folder / "stage"], pass_fds=[held], stdin=subprocess.PIPE
    )
    os.close(held)
    try:
        assert broken.run("restore", "--recover") == 4
        said = capsys.readouterr().err
        assert f"process {orphan.pid} (" in said
        assert "--prefix" in said
        assert folder.exists()
    finally:
        os.kill(orphan.pid, signal.SIGKILL)
        orphan.communicate()
    assert broken.run("restore", "--recover") == 0
    assert not folder.exists()


@pytest.mark.parametrize(
    "text",
    ["", "{}\n", '{"schema": 0, "entries": []}\n', '{"schema": 1}\n', "moved torch\n", "[1]\n"],
)
def test_journal_of_an_older_version(
    broken: World, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    """Nothing is guessed, nothing is touched, and every command says so."""
    folder = broken.site / ".envlock-txn"
    folder.mkdir()
    (folder / "journal.jsonl").write_text(text)
    before = tree(broken.prefix, leave_out=())
    assert broken.run("restore", "--recover") == 4
    said = capsys.readouterr().err
    assert "journal.jsonl: cannot be understood" in said
    assert "use the envlock that began this restore" in said
    assert broken.restore() == 4
    assert tree(broken.prefix, leave_out=()) == before


RUNNING = """
import sys
import numpy
print(numpy.__version__, flush=True)
sys.stdin.readline()
import numpy.f2py, numpy.testing
print(int((numpy.ones((200, 200)) @ numpy.ones((200, 200))).sum()), numpy.linalg.det(numpy.eye(9)))
"""


@pytest.mark.torch
def test_program_that_has_it_imported(tmp_path: Path) -> None:
    """It keeps its libraries: they are replaced by other files, and never written over."""
    wheels = tmp_path / "W"
    wheels.mkdir()
    shutil.copy(next(torch_wheels().glob("numpy-*.whl")), wheels)
    python = make_venv(tmp_path / "venv")
    install(python, *wheels.glob("*.whl"))
    world = lock(python, wheels)
    program = subprocess.Popen(
        [python, "-c", RUNNING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=clean_env(),
    )  # fmt: skip
    assert program.stdout is not None
    assert program.stdout.readline().strip()
    (world.site / "numpy/version.py").write_text("broken\n")
    assert world.restore() == 0
    out, _ = program.communicate("go on\n")
    assert (program.returncode, out.split()) == (0, ["8000000", "1.0"])
    assert world.restore("--plan") == 0
