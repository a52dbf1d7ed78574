"""Faults at each step: the old environment and exit 6, or exit 7 with the stash kept and named."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from envlock.adapters import installer
from envlock.adapters.files import Hashed
from envlock.adapters.installer import Pinned, Stager
from envlock.adapters.native import NativeStager
from envlock.adapters.uv import UvStager
from envlock.cli import wiring
from envlock.errors import ProgramFailed
from envlock.model.facts import Target
from tests.restore.test_before import TMPFS, namespaces
from tests.support.pythons import ROOT, clean_env
from tests.support.worlds import World, tree

pytestmark = pytest.mark.integration


# --- backends ------------------------------------------------------------------------------------

Written = Mapping[str, Hashed]
Harm = Callable[[Path, Target], None]


@dataclass(frozen=True)
class Faulty:
    """The native backend, and what goes wrong after it."""

    harm: Harm
    honest: bool = False
    name: str = "faulty"

    def stage(
        self, wheels: Sequence[Pinned], target: Target, stage: str, lock: int | None
    ) -> Written:
        written = NativeStager().stage(wheels, target, stage, lock)
        self.harm(Path(target.layout.moved(stage).purelib), target)
        return written if self.honest else {}


def fails(_site: Path, _target: Target) -> None:
    raise ProgramFailed("faulty: exit 1: out of luck", "try again with --backend uv")


def breaks(site: Path, _target: Target) -> None:
    raise OSError(28, "No space left on device", str(site))


def loses_a_file(site: Path, _target: Target) -> None:
    (site / "torch/__init__.py").unlink()


def loses_everything(site: Path, _target: Target) -> None:
    shutil.rmtree(site)


def loses_a_record(site: Path, _target: Target) -> None:
    next(site.glob("torch-*.dist-info")).joinpath("RECORD").unlink()


def changes_a_file(site: Path, _target: Target) -> None:
    (site / "torch/__init__.py").write_text("other\n")


def cuts_a_file(site: Path, _target: Target) -> None:
    os.truncate(site / "torch/lib/libtorch.so", 10)


def adds_a_file(site: Path, _target: Target) -> None:
    (site / "torch/more.py").write_text("more\n")
    record = next(site.glob("torch-*.dist-info")) / "RECORD"
    record.write_text(record.read_text() + "torch/more.py,,\n")


def adds_an_exec_bit(site: Path, _target: Target) -> None:
    (site / "torch/__init__.py").chmod(0o755)


def adds_a_distribution(site: Path, _target: Target) -> None:
    info = site / "surprise-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: surprise\nVersion: 1.0\n")
    (info / "RECORD").write_text("surprise-1.0.dist-info/METADATA,,\n")


def leads_elsewhere(site: Path, _target: Target) -> None:
    """The same bytes, behind a link out of the stage."""
    path = site / "torch/__init__.py"
    path.rename(site.parent / "kept.py")
    path.symlink_to(site.parent / "kept.py")


BACKENDS = [
    (fails, "out of luck"),
    (breaks, "No space left on device"),
    (loses_a_file, "'torch' has 'lib/torch/__init__.py': No such file"),
    (loses_everything, "'torch' was not unpacked"),
    (loses_a_record, "'torch' has no RECORD"),
    (changes_a_file, "'torch' has other bytes than the manifest has"),
    (cuts_a_file, "'torch' has other bytes than the manifest has"),
    (adds_a_file, "'torch' has other bytes than the manifest has"),
    (adds_an_exec_bit, "'torch' has other exec bits"),
    (adds_a_distribution, "'surprise' was unpacked, and nobody asked for it"),
    (leads_elsewhere, "'torch' has a link where a file has to be: 'lib/torch/__init__.py'"),
]


def use(monkeypatch: pytest.MonkeyPatch, stager: Stager) -> None:
    monkeypatch.setattr(wiring, "stager", lambda *_: stager)


@pytest.mark.parametrize(("harm", "said"), BACKENDS, ids=[harm.__name__ for harm, _ in BACKENDS])
def test_backend(
    broken: World,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    harm: Harm,
    said: str,
) -> None:
    use(monkeypatch, Faulty(harm))
    before = tree(broken.prefix, leave_out=())
    assert broken.restore() == 6
    error = capsys.readouterr().err
    assert said in error
    assert "the target is as it was" in error
    assert "hint: " in error
    assert tree(broken.prefix, leave_out=()) == before


@pytest.mark.parametrize("harm", [loses_a_file, cuts_a_file, leads_elsewhere])
def test_backend_that_says_what_it_hashed(
    broken: World, monkeypatch: pytest.MonkeyPatch, harm: Harm
) -> None:
    """It is believed only for a file that is there and as long as it was."""
    use(monkeypatch, Faulty(harm, honest=True))
    before = tree(broken.prefix, leave_out=())
    assert broken.restore() == 6
    assert tree(broken.prefix, leave_out=()) == before


def test_what_nobody_owns_stays_in_the_stage(
    broken: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def litter(site: Path, _target: Target) -> None:
        (site / "torch/litter.txt").write_text("")
        (site / "litter").mkdir()

    use(monkeypatch, Faulty(litter))
    assert broken.restore() == 0
    assert not list(broken.prefix.rglob("litter*"))


PROGRAMS = [
    ("exit 3", "uv: exit 3"),
    ("kill -9 $$", "uv: exit -9"),
    ("echo done", "'torch' was not unpacked"),
    ("sleep 600", "uv: no end after 1 s"),
    ("sleep 600 & wait", "uv: no end after 1 s"),
]


@pytest.mark.parametrize(("does", "said"), PROGRAMS, ids=[does for does, _ in PROGRAMS])
def test_program_of_a_backend(
    broken: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    does: str,
    said: str,
) -> None:
    program = tmp_path / "uv"
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(0o755)
    monkeypatch.setattr(installer, "_STAGE_SECONDS", 1.0)
    use(monkeypatch, UvStager(program=str(program), env=clean_env()))
    before = tree(broken.prefix, leave_out=())
    assert broken.restore() == 6
    error = capsys.readouterr().err
    assert said in error
    assert "the target is as it was" in error
    assert tree(broken.prefix, leave_out=()) == before


# --- file systems --------------------------------------------------------------------------------


def on_a_small_disk(
    world: World, tmp_path: Path, fault: str, at: str, option: str = "size=4m,nr_inodes=600"
) -> Mapping[str, Any]:
    """:mod:`tests.support.faults` in a copy of the world on a tmpfs."""
    namespaces()
    there = tmp_path / "small"
    (tmp_path / "copy").mkdir()
    shutil.move(world.prefix, tmp_path / "copy/env")
    config = tmp_path / "copy/env/pyvenv.cfg"
    config.write_text(config.read_text().replace(str(world.prefix), str(there / "env")))
    dropped = ["setpriv", "--bounding-set=-dac_override"] if fault == "closed" else []
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", TMPFS, "sh", str(there), option, str(tmp_path / "copy"),
         *dropped, sys.executable, "-m", "tests.support.faults",
         fault, at, str(there / "env"), str(world.wheels)],
        capture_output=True, text=True, env=clean_env(), cwd=ROOT,
    )  # fmt: skip
    if "chattr" in done.stderr or "setpriv" in done.stderr:
        pytest.skip("a folder cannot be closed to root here")
    assert done.returncode == 0, done.stderr
    found: Mapping[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("fault", "at", "said"),
    [
        ("full", "stage", "No space left on device"),
        ("full", "journal", "No space left on device"),
        ("inodes", "stage", "No space left on device"),
        ("inodes", "swap", "No space left on device"),
        ("closed", "stage", "could not be deleted"),
        ("closed", "swap", "could not be deleted"),
        ("immutable", "swap", "could not be deleted"),
    ],
)
def test_untouched(broken: World, tmp_path: Path, fault: str, at: str, said: str) -> None:
    """Exit 6: the target is as it was, without any recovery; only where nothing can be deleted
    any more the transaction's own folder stays, and is named."""
    if at == "swap" and fault == "inodes":  # a folder that the swap has to make
        shutil.rmtree(broken.prefix / "share")
        shutil.rmtree(broken.prefix / "include")
    found = on_a_small_disk(broken, tmp_path, fault, at)
    assert (found["code"], found["same"]) == (6, True), found
    assert said in found["text"]
    assert "the target is as it was" in found["text"]
    assert (found["recovered"], found["after"]) == (0, True), found
    assert (found["again"], found["right"]) == (0, 0), found


@pytest.mark.parametrize(
    ("fault", "at"),
    [("read-only", "5"), ("read-only", "commit"), ("closed", "5"), ("immutable", "5")],
)
def test_undo_that_cannot_be_done_yet(broken: World, tmp_path: Path, fault: str, at: str) -> None:
    """Exit 7: the stash is kept and named; once the cause is mended nothing is lost."""
    site = tmp_path / "small/env" / broken.site.relative_to(broken.prefix)
    found = on_a_small_disk(broken, tmp_path, fault, at)
    assert found["code"] == 7, found
    assert str(site / ".envlock-txn/stash") in found["text"]
    assert "restore --recover" in found["text"]
    assert (found["recovered"], found["after"]) == (0, True), found
    assert (found["again"], found["right"]) == (0, 0), found


def marked(path: Path, sign: str) -> bool:
    done = subprocess.run(["chattr", f"{sign}i", str(path)], capture_output=True)
    return done.returncode == 0


@pytest.mark.parametrize("shared", [False, True], ids=["own folder", "shared folder"])
def test_immutable_file(world: World, capsys: pytest.CaptureFixture[str], shared: bool) -> None:
    """It moves with its folder, and then cannot be deleted; by itself it cannot be moved."""
    if shared:
        (world.site / "torch/lib/mine.so").write_text("mine\n")
        (world.site / "torch/mine.py").write_text("mine\n")
    (world.site / "torch/__init__.py").write_text("broken\n")
    before = tree(world.prefix)
    file = world.site / "torch/lib/libtorch.so"
    if not shutil.which("chattr") or not marked(file, "+"):
        pytest.skip("no file here can be made immutable")
    try:
        code = world.restore()
        said = capsys.readouterr().err
    finally:
        for path in world.site.rglob("libtorch.so"):
            marked(path, "-")
    if shared:
        assert code == 6
        assert "Operation not permitted; the target is as it was" in said
        assert tree(world.prefix) == before
    else:
        assert code == 0
        assert "libtorch.so: could not be deleted" in said
    assert world.restore() == 0
    assert world.run("restore", "--recover") == 0
    assert world.restore("--plan") == 0
    assert not list(world.site.glob(".envlock*"))


BUSY = """
set -e
mount --bind "$1" "$2"
shift 2
exec "$@"
"""


@pytest.mark.parametrize("shared", [False, True], ids=["own folder", "shared folder"])
def test_file_with_something_mounted_on_it(world: World, tmp_path: Path, shared: bool) -> None:
    """As container runtimes do with single files: it moves with its folder, and not by itself."""
    namespaces()
    if shared:
        (world.site / "torch/lib/mine.so").write_text("mine\n")
        (world.site / "torch/mine.py").write_text("mine\n")
    (world.site / "torch/__init__.py").write_text("broken\n")
    before = tree(world.prefix)
    (tmp_path / "other").write_text("mounted\n")
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", BUSY, "sh", str(tmp_path / "other"),
         str(world.site / "torch/lib/libtorch.so"), sys.executable, "-m", "envlock", "restore",
         "--wheelhouse", str(world.wheels), "--python", str(world.python)],
        capture_output=True, text=True, env=clean_env(), cwd=ROOT,
    )  # fmt: skip
    if shared:
        assert done.returncode == 6, done.stderr
        assert "busy; the target is as it was" in done.stderr
        assert tree(world.prefix) == before
    else:
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("could not be deleted") == 1
    assert world.restore() == 0
    assert world.run("restore", "--recover") == 0
    assert world.restore("--plan") == 0
