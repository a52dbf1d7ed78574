"""The one lock of a target.

Where the file system has ``flock``, the lock is on the folder itself: there is no lock file to
leave behind, and it lives as long as the descriptor or any copy of it that a child inherited.
Elsewhere (NFS, Lustre without the option) an exclusive file holds it, and says which process of
which boot of which node made it: it is broken only where that process can be shown to be gone,
which no other node can show.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import platform
import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envlock.errors import UnusableInput

#: Name of the exclusive file, in the locked folder.
LOCK = ".envlock-lock"
#: What ``flock`` says where there are no locks. NFS wants a descriptor for writing, which a folder
#: has not: flock(2), "Linux NFS emulates".
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EBADF)
_BOOT = "/proc/sys/kernel/random/boot_id"


class HeldError(Exception):
    """Somebody else holds the lock; the text says who, as far as that is known."""


def refusal(folder: str, held: HeldError) -> UnusableInput:
    """What a person is told who comes while somebody else has the lock."""
    who = f": {held}" if str(held) else ""
    return UnusableInput(
        f"target: another restore holds '{folder}'{who}",
        "wait for it: a program that a killed restore started may still be unpacking; "
        "the lock file of a node that is gone has to be removed by hand",
    )


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock that is held.

    Attributes:
        descriptor: an open one that children may inherit.
        file: the exclusive file; empty where the folder itself is locked.
    """

    descriptor: int
    file: str = ""

    def release(self) -> None:
        """Gives it back."""
        if self.file:
            with suppress(OSError):
                os.unlink(self.file)
        os.close(self.descriptor)


def lock_folder(folder: str) -> Lock:
    """Takes the lock of a folder without waiting.

    Raises:
        HeldError: somebody else has it.
        OSError: the folder cannot be opened, or no file can be made in it.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _refuse_file(folder)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return Lock(descriptor)
    except BlockingIOError:
        os.close(descriptor)
        raise HeldError(_users(folder)) from None
    except OSError as error:
        os.close(descriptor)
        if error.errno not in _NO_LOCKS:
            raise
    except BaseException:
        os.close(descriptor)
        raise
    return _lock_by_file(os.path.join(folder, LOCK))


def _refuse_file(folder: str) -> None:
    """A node whose mount has locks must still see the file of one whose mount has none.

    Raises:
        HeldError: a file holds the folder, and its maker is not known to be gone.
    """
    path = os.path.join(folder, LOCK)
    if os.path.lexists(path):
        _break_if_gone(path)


def _lock_by_file(path: str) -> Lock:
    made = f"{path}.{os.getpid()}"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with suppress(FileNotFoundError):
        os.unlink(made)
    descriptor = os.open(made, flags, 0o644)
    try:
        os.write(descriptor, json.dumps(_myself()).encode())
        os.fsync(descriptor)
        _link(made, path)
    except BaseException:
        os.close(descriptor)
        raise
    finally:
        os.unlink(made)
    return Lock(descriptor, path)


def _link(made: str, path: str) -> None:
    """Gives the file its name: whole or not at all, on network file systems too, where an
    exclusive open is not always one (open(2), O_EXCL)."""
    try:
        os.link(made, path)
    except FileExistsError:
        _break_if_gone(path)
        try:
            os.link(made, path)
        except FileExistsError:
            raise HeldError(_holder(path)) from None


def _myself() -> dict[str, Any]:
    return {
        "node": platform.node(),
        "boot": _read(_BOOT),
        "pid": os.getpid(),
        "started": _started(os.getpid()),
    }


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _started(pid: int) -> str:
    """Start time of a process in clock ticks since the boot (proc(5), field 22); empty when there
    is none: process ids come back."""
    return (_read(f"/proc/{pid}/stat").rpartition(")")[2].split() or [""] * 20)[19]


def _noted(path: str) -> Mapping[str, Any]:
    try:
        found = json.loads(_read(path))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _break_if_gone(path: str) -> None:
    """Takes away the file of a process that is gone for certain.

    Raises:
        HeldError: it is not.
    """
    noted = _noted(path)
    if not noted and not os.path.lexists(path):
        return  # given back just now
    if not _is_gone(noted):
        raise HeldError(_holder(path))
    aside = f"{path}.gone-{os.getpid()}"
    with suppress(FileNotFoundError):
        os.rename(path, aside)  # of two that break it one finds nothing
        if _noted(aside) != noted:  # somebody had broken it, and taken the lock
            with suppress(FileExistsError):
                os.link(aside, path)
        os.unlink(aside)


def _is_gone(noted: Mapping[str, Any]) -> bool:
    if not noted or noted.get("node") != platform.node():
        return False
    boot = _read(_BOOT)
    if not boot or not noted.get("boot"):
        return False
    if noted["boot"] != boot:
        return True
    pid = noted.get("pid")
    return isinstance(pid, int) and _started(pid) != noted.get("started")


def _holder(path: str) -> str:
    noted = _noted(path)
    if not noted:
        return f"'{path}', which does not say whose it is"
    return f"process {noted.get('pid')} on node '{noted.get('node')}', by '{path}'"


def _users(folder: str) -> str:
    """Processes of this node that work in a folder's transaction, by their command lines: what a
    killed restore left running still holds its lock."""
    found = []
    for entry in sorted(filter(str.isdigit, os.listdir("/proc")), key=int):
        if int(entry) == os.getpid():
            continue
        words = _read(f"/proc/{entry}/cmdline").split("\0")
        if any(folder in word for word in words):
            found.append(f"process {entry} ({shlex.join(words)[:120]})")
    return ", ".join(found[:3])
