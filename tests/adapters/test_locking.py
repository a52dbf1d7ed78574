"""The lock of a target: with flock, and on file systems that have none."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from envlock.adapters import locking
from envlock.adapters.locking import LOCK, HeldError, lock_folder


@pytest.fixture(params=["flock", "file"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "file":
        no_locks(monkeypatch)
    return str(request.param)


def no_locks(monkeypatch: pytest.MonkeyPatch, code: int = errno.ENOLCK) -> None:
    def flock(_descriptor: int, _how: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", flock)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.usefixtures("kind")
def test_one_holds_it(tmp_path: Path) -> None:
    before = descriptors()
    lock = lock_folder(str(tmp_path))
    with pytest.raises(HeldError):
        lock_folder(str(tmp_path))
    lock.release()
    lock_folder(str(tmp_path)).release()
    assert os.listdir(tmp_path) == []
    assert descriptors() == before


@pytest.mark.parametrize(
    "code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EBADF]
)
def test_file_systems_without_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    no_locks(monkeypatch, code)
    lock = lock_folder(str(tmp_path))
    assert lock.file == str(tmp_path / LOCK)
    with pytest.raises(HeldError, match=f"process {os.getpid()} on node "):
        lock_folder(str(tmp_path))
    lock.release()


def test_another_fault_is_no_missing_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_locks(monkeypatch, errno.EIO)
    before = descriptors()
    with pytest.raises(OSError, match="Input/output"):
        lock_folder(str(tmp_path))
    assert descriptors() == before


def note(folder: Path, **changes: object) -> Path:
    path = folder / LOCK
    path.write_text(json.dumps({**locking._myself(), **changes}))
    return path


@pytest.mark.usefixtures("kind")
def test_file_of_a_process_that_is_gone_is_broken(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    note(tmp_path, pid=gone.pid, started="1")
    lock_folder(str(tmp_path)).release()
    note(tmp_path, started="1")  # the number is somebody else's now
    lock_folder(str(tmp_path)).release()
    note(tmp_path, boot="another-boot", pid=1)
    lock_folder(str(tmp_path)).release()
    assert os.listdir(tmp_path) == []


@pytest.mark.usefixtures("kind")
@pytest.mark.parametrize(
    "changes",
    [
        {"node": "elsewhere", "pid": 999_999_999, "boot": "other"},
        {"boot": "", "pid": 999_999_999},
        {"pid": "x"},
    ],
)
def test_file_of_another_node_is_never_broken(tmp_path: Path, changes: dict[str, object]) -> None:
    path = note(tmp_path, **changes)
    before = path.read_text()
    with pytest.raises(HeldError, match=f"by '{path}'"):
        lock_folder(str(tmp_path))
    assert path.read_text() == before


@pytest.mark.parametrize("text", ["", "{", "[1]"])
def test_file_that_says_nothing_is_never_broken(tmp_path: Path, text: str) -> None:
    (tmp_path / LOCK).write_text(text)
    with pytest.raises(HeldError, match="does not say whose it is"):
        lock_folder(str(tmp_path))
    assert (tmp_path / LOCK).read_text() == text


def test_of_many_one_gets_it(tmp_path: Path, kind: str) -> None:
    """Processes that all break the same left-over: never two at once."""
    note(tmp_path, started="1")
    winners = tmp_path / "winners"
    winners.mkdir()
    code = (
        "import sys, time, os, fcntl\n"
        "from envlock.adapters.locking import HeldError, lock_folder\n"
        "folder, kind, out = sys.argv[1:]\n"
        "def flock(*_): raise OSError(37, 'none')\n"
        "if kind == 'file': fcntl.flock = flock\n"
        "try:\n"
        "    lock = lock_folder(folder)\n"
        "except HeldError:\n"
        "    sys.exit(0)\n"
        "mine = os.path.join(out, 'in'); os.mkdir(mine); time.sleep(0.05); os.rmdir(mine)\n"
        "lock.release(); sys.exit(7)\n"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path), kind, str(winners)])
        for _ in range(6)
    ]
    codes = [child.wait(60) for child in started]
    assert set(codes) <= {0, 7}
    assert 7 in codes


def test_who_works_there_is_named(tmp_path: Path) -> None:
    """An orphan that inherited the descriptor still holds the lock."""
    lock = lock_folder(str(tmp_path))
    orphan = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)", f"{tmp_path}/.envlock-txn/stage"],
        pass_fds=[lock.descriptor],
    )
    lock.release()
    try:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with pytest.raises(HeldError) as caught:
                lock_folder(str(tmp_path))
            if f"process {orphan.pid} (" in str(caught.value):
                break
        assert f"process {orphan.pid} (" in str(caught.value)
    finally:
        orphan.kill()
        orphan.wait()
    lock_folder(str(tmp_path)).release()
