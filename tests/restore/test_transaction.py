"""All or nothing: failures, kills and interrupts at every boundary of the swap."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from envlock.adapters import files, moving
from envlock.adapters.locking import lock_folder
from envlock.cli import main
from envlock.restore.transaction import Changes, Entry, Transaction
from tests.support.pythons import ROOT, clean_env
from tests.support.worlds import World, tree

pytestmark = pytest.mark.integration

Disk = Mapping[str, str]


class _Counter:
    """Lets a door through ``allowed`` times, then does ``then``."""

    def __init__(self, door: Callable[..., None], allowed: int, then: Callable[[], None]) -> None:
        self.calls = 0
        self._door, self._allowed, self._then = door, allowed, then

    def __call__(self, *args: str) -> None:
        if self.calls == self._allowed:
            self._then()
        self.calls += 1
        self._door(*args)


def _full() -> None:
    raise OSError(errno.ENOSPC, "No space left on device", "somewhere")


def moves_of(world: World, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many moves a whole restore of this world makes; restores it."""
    counter = _Counter(moving.move, -1, lambda: None)
    monkeypatch.setattr(moving, "move", counter)
    assert world.restore() == 0
    monkeypatch.undo()
    return counter.calls


@pytest.mark.parametrize("allowed", range(0, 12, 2))
def test_failing_swap_leaves_everything_as_it_was(
    broken: World,
    allowed: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = tree(broken.prefix, leave_out=())
    failing = _Counter(moving.move, allowed, _full)
    monkeypatch.setattr(moving, "move", lambda *args: failing(*args))

    def once() -> None:
        failing._allowed = -1  # the undo has room again
        _full()

    failing._then = once
    assert broken.restore() == 6
    assert "No space left on device; the target is as it was" in capsys.readouterr().err
    assert tree(broken.prefix, leave_out=()) == before


def test_undo_that_fails_keeps_the_stash(
    broken: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tree(broken.prefix)
    monkeypatch.setattr(moving, "move", _Counter(moving.move, 5, _full))
    assert broken.restore() == 7
    said = capsys.readouterr().err
    stash = broken.site / ".envlock-txn/stash"
    assert str(stash) in said
    assert list(stash.iterdir())
    monkeypatch.undo()
    assert broken.run("snapshot") == 4  # every other command leaves such a target alone
    assert "restore --recover" in capsys.readouterr().err
    assert broken.run("restore", "--recover") == 0
    assert tree(broken.prefix) == before


def killed_restore(world: World, at: str, allowed: int) -> None:
    """Runs a restore in a child that kills itself before one more call of a door."""
    child = os.fork()
    if child == 0:
        door = getattr(moving if at == "move" else files, at)
        kill = _Counter(door, allowed, lambda: os.kill(os.getpid(), signal.SIGKILL))
        setattr(moving if at == "move" else files, at, kill)
        try:
            world.restore("-q")
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def state(world: World, old: Disk, new: Disk) -> str:
    """``old``, ``new`` or ``mixed``."""
    now = tree(world.prefix)
    return "old" if now == old else "new" if now == new else "mixed"


@pytest.fixture
def both(
    broken: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> tuple[World, Disk, Disk]:
    """A broken world, its tree now and its tree once restored."""
    old = tree(broken.prefix)
    keep = tmp_path / "keep"
    subprocess.run(["cp", "-a", str(broken.prefix), str(keep)], check=True)
    assert broken.restore("-q") == 0
    new = tree(broken.prefix)
    subprocess.run(["rm", "-rf", str(broken.prefix)], check=True)
    subprocess.run(["mv", str(keep), str(broken.prefix)], check=True)
    assert state(broken, old, new) == "old"
    return broken, old, new


@pytest.mark.parametrize(
    ("at", "allowed", "ends"),
    [
        *(("move", count, "old") for count in (0, 1, 2, 3, 5, 7, 9)),
        ("sync_filesystem", 0, "old"),
        ("sync_filesystem", 1, "old"),
        ("append_line", 0, "old"),
        ("remove_tree", 0, "new"),
        ("remove_tree", 1, "new"),
    ],
)
def test_kill_at_a_boundary(
    both: tuple[World, Disk, Disk], at: str, allowed: int, ends: str
) -> None:
    world, old, new = both
    killed_restore(world, at, allowed)
    assert (world.site / ".envlock-txn").exists()
    assert world.run("restore", "--recover") == 0
    assert not (world.site / ".envlock-txn").exists()
    found = tree(world.prefix)
    reference = old if ends == "old" else new
    # a later run stages again: only the installer's own notes may differ in time, never in bytes
    assert found == reference
    assert world.restore() == 0
    assert world.restore("--plan") == 0


def test_kill_during_recover(both: tuple[World, Disk, Disk]) -> None:
    world, old, new = both
    killed_restore(world, "move", 7)
    for allowed in (0, 1, 2):
        child = os.fork()
        if child == 0:
            kill = _Counter(moving.move, allowed, lambda: os.kill(os.getpid(), signal.SIGKILL))
            moving.move = kill  # type: ignore[assignment]
            try:
                world.run("restore", "--recover")
            finally:
                os._exit(0)
        os.waitpid(child, 0)
    assert world.run("restore", "--recover") == 0
    assert state(world, old, new) == "old"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_undo(both: tuple[World, Disk, Disk], number: signal.Signals) -> None:
    world, old, new = both
    code = (
        "import os, sys\n"
        "from envlock.adapters import moving\n"
        "real, calls = moving.move, []\n"
        "def move(a, b):\n"
        "    calls.append(a)\n"
        f"    if len(calls) == 4: os.kill(os.getpid(), {int(number)})\n"
        "    real(a, b)\n"
        "moving.move = move\n"
        "from envlock.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    words = ["restore", "--wheelhouse", str(world.wheels), "--python", str(world.python)]
    done = subprocess.run([sys.executable, "-c", code, *words], cwd=ROOT, env=clean_env())
    assert done.returncode == 130
    assert state(world, old, new) == "old"
    assert not (world.site / ".envlock-txn").exists()


def test_second_restore_is_told(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    lock = lock_folder(os.path.realpath(world.site))
    try:
        assert world.restore() == 4
    finally:
        lock.release()
    assert "another restore holds" in capsys.readouterr().err
    assert world.restore() == 0


def test_journal_of_another_version_is_left_alone(
    broken: World, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = broken.site / ".envlock-txn"
    folder.mkdir()
    (folder / "journal.jsonl").write_text('{"schema": 99}\n')
    before = tree(broken.prefix)
    assert broken.run("restore", "--recover") == 4
    assert "schema 99" in capsys.readouterr().err
    assert tree(broken.prefix) == before


def test_entries_say_where_they_are(tmp_path: Path) -> None:
    """An undo reads the state of each entry off the disk, whatever was reached."""
    transaction = Transaction(str(tmp_path / ".envlock-txn"))
    transaction.begin()
    (tmp_path / "old").write_text("old")
    staged = Path(transaction.stage, "new")
    staged.write_text("new")
    entries = [
        Entry(target=str(tmp_path / "old"), staged=str(staged), old=True),
        Entry(target=str(tmp_path / "sub/added"), staged=transaction.stage + "/none", old=False),
    ]
    made = [str(tmp_path / "sub")]
    changes = Changes(entries=tuple(entries), made=tuple(made))
    transaction.write_journal(changes)
    with pytest.raises(OSError, match="none"):
        transaction.swap(changes)
    assert (tmp_path / "old").read_text() == "new"
    transaction.undo()
    assert (tmp_path / "old").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old"]


OVERLAY = """
set -e
mkdir -p "$1/upper" "$1/work" "$1/merged"
mount -t overlay overlay -o "lowerdir=$1/lower,upperdir=$1/upper,workdir=$1/work" "$1/merged"
shift
exec "$@"
"""

IN_OVERLAY = """
import json, os, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.support.worlds import World, tree
from envlock.adapters import moving
from envlock.adapters.moving import can_rename_folder
merged, wheels, allowed = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
world = World(merged / "bin/python", wheels)
(wheels / "probe").mkdir(exist_ok=True); (wheels / "probe/x").touch()
beside = world.site / "beside"; beside.mkdir(); (beside / "x").touch()
exdev = not can_rename_folder(str(world.site / "torch"), str(beside))
(beside / "x").unlink(); beside.rmdir()
before = tree(merged)
real, calls = moving.move, []
def move(a, b):
    calls.append(a)
    if len(calls) == allowed:
        raise OSError(28, "No space left on device", a)
    real(a, b)
moving.move = move
code = world.restore("-q")
same = tree(merged) == before
moving.move = real
again = world.restore("-q")
plan = world.restore("-q", "--plan")
print(json.dumps(dict(exdev=exdev, code=code, same=same, again=again, plan=plan,
                      txn=(world.site / ".envlock-txn").exists())))
"""


def test_lower_layer_of_an_overlay(broken: World, tmp_path: Path) -> None:
    """Folders of a container image lie in a lower layer: renaming one there is EXDEV."""
    import json

    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        pytest.skip("mount namespaces are not allowed here")
    base = tmp_path / "overlay"
    base.mkdir()
    os.rename(broken.prefix, base / "lower")
    # a venv finds itself by its own place, so that the merged folder is a whole environment
    config = base / "lower/pyvenv.cfg"
    config.write_text(config.read_text().replace(str(broken.prefix), str(base / "merged")))
    script = IN_OVERLAY.format(root=str(ROOT))
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", OVERLAY, "sh", str(base), sys.executable, "-c", script,
         str(base / "merged"), str(broken.wheels), "6"],
        capture_output=True, text=True, env=clean_env(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {
        "exdev": True, "code": 6, "same": True, "again": 0, "plan": 0, "txn": False,
    }, done.stderr  # fmt: skip


def test_offline(broken: World) -> None:
    """A whole restore in a namespace without any network."""
    if subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode != 0:
        pytest.skip("network namespaces are not allowed here")
    for backend in ("native", "uv", "pip"):
        (broken.site / "triton/__init__.py").write_text("broken again\n")
        done = subprocess.run(
            ["unshare", "-n", sys.executable, "-m", "envlock", "restore", "--wheelhouse",
             str(broken.wheels), "--python", str(broken.python), "--backend", backend],
            capture_output=True, text=True, env=clean_env(), cwd=ROOT,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert main(["restore", "--wheelhouse", str(broken.wheels), "--python", str(broken.python),
                 "--plan"]) == 0  # fmt: skip
