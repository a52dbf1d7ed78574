"""Faults at each step: the old environment and exit 6, or exit 7 with the stash kept and named."""

from __future__ import annotations

import json
import os
import shutil
import signal
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
from tests.support.wheels import make_wheel
from tests.support.worlds import World, install, tree

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


# --- others at work ------------------------------------------------------------------------------


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


def test_recover_names_an_orphan(
    broken: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The restore was killed, and the program that it had started still unpacks."""
    import fcntl

    folder = broken.site / ".envlock-txn"
    (folder / "stage").mkdir(parents=True)
    lock = os.open(os.path.realpath(broken.site), os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    program = tmp_path / "slow"
    program.write_text("#!/bin/sh\nread line\n")
    program.chmod(0o755)
    orphan = subprocess.Popen(
        [program, "--prefix", folder / "stage"], pass_fds=[lock], stdin=subprocess.PIPE
    )
    os.close(lock)
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
    from tests.support.pythons import make_venv, torch_wheels
    from tests.support.worlds import lock

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
