"""Files that cannot be deleted yet: busy ones, and open ones on a network file system."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pythons import ROOT, clean_env
from tests.support.worlds import World, tree

pytestmark = pytest.mark.integration


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No file called ``protoc`` can be deleted."""
    unlink = os.unlink

    def refuse(path: str, **more: int) -> None:
        if os.path.basename(path) == "protoc":
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), path)
        unlink(path, **more)

    monkeypatch.setattr(os, "unlink", refuse)
    return monkeypatch


def left(world: World) -> list[str]:
    return sorted(path.name for path in world.site.glob(".envlock*"))


def test_busy_file_is_a_finding(
    world: World, busy: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The restore is done; every other command works, and the next restore tries again."""
    (world.site / "torch/__init__.py").write_text("broken\n")
    assert world.restore() == 0
    said = capsys.readouterr().err
    assert "protoc: could not be deleted" in said
    assert left(world) == [".envlock-left-0"]
    assert world.restore("--plan") == 0
    (world.site / "torch/__init__.py").write_text("broken\n")
    assert world.restore() == 0
    assert left(world) == [".envlock-left-0", ".envlock-left-1"]
    assert world.run("restore", "--recover") == 0
    assert "could not be deleted" in capsys.readouterr().err
    busy.undo()
    assert world.run("restore", "--recover") == 0
    assert left(world) == []


def test_busy_file_in_an_undo(
    world: World, busy: pytest.MonkeyPatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was staged cannot be deleted: the target is as it was, and nothing blocks it."""
    from envlock.adapters import moving

    (world.site / "torch/__init__.py").write_text("broken\n")
    before = tree(world.prefix)
    real, calls = moving.move, []

    def move(source: str, target: str) -> None:
        calls.append(source)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), source)
        real(source, target)

    monkeypatch.setattr(moving, "move", move)
    assert world.restore() == 6
    assert left(world) == [".envlock-left-0"]
    busy.undo()
    assert world.run("restore", "--recover") == 0
    assert tree(world.prefix) == before
    assert Path(world.site, "torch/bin/protoc").exists()


def test_folders_that_their_owner_may_not_write_to(world: World) -> None:
    """Some distributions are installed so; a mode of one's own is no reason to keep rubbish."""
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("root may write everywhere")
    (world.site / "torch/__init__.py").write_text("broken\n")
    for folder in (world.site / "torch/lib", world.site / "torch/bin"):
        folder.chmod(0o555)
    own = ["setpriv", "--bounding-set=-dac_override"] if os.geteuid() == 0 else []
    done = subprocess.run(
        [*own, sys.executable, "-m", "envlock", "restore", "--wheelhouse", str(world.wheels),
         "--python", str(world.python)],
        capture_output=True, text=True, env=clean_env(), cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "could not be deleted" not in done.stderr
    assert left(world) == []
    assert world.restore("--plan") == 0
