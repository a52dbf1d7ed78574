"""File systems: what is where, how much room is left, and of which kind they are."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from envlock.adapters import space
from envlock.adapters.limits import unescaped

#: Kinds that are memory: what is written there counts against the memory's limit.
IN_MEMORY = ("tmpfs", "ramfs", "shmem")
#: Bytes that a file system is asked for to find a quota.
_ASKED = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A folder, which may not be there yet, and its file system.

    Attributes:
        path: the folder.
        there: whether it exists.
        device: number of the file system; those of one have the same.
        mount: where it is mounted; empty where nobody says.
        kind: ``overlay``, ``ext4``, ``nfs4``, ``tmpfs``; empty where nobody says.
        free: bytes for this user; None where the file system does not say.
        size: bytes of the whole.
        inodes: free ones; None where there is no fixed number.
        closed: why this user cannot write there; empty when nothing is in the way.
        refused: why it takes no more although there is room: a quota.
        silent: nobody answered in time, and nothing else is known: a server that is gone.
    """

    path: str
    there: bool = False
    device: int = 0
    mount: str = ""
    kind: str = ""
    free: int | None = None
    size: int = 0
    inodes: int | None = None
    closed: str = ""
    refused: str = ""
    silent: bool = False

    @property
    def in_memory(self) -> bool:
        return self.kind in IN_MEMORY


def read_rooms(paths: Sequence[str], seconds: float = 1.0) -> list[Room]:
    """The file systems of folders; of one that is not there, that of the nearest above it.

    Whoever asks a network file system whose server is gone waits for ever, and nothing can call
    that off: each question has a thread of its own, which nobody waits for longer.

    Args:
        seconds: for all of them.
    """
    mounts, found = _mounts(), {path: Room(path=path, silent=True) for path in paths}

    def ask(path: str) -> None:
        found[path] = _room(path, mounts)

    threads = [threading.Thread(target=ask, args=(path,), daemon=True) for path in found]
    until = time.monotonic() + seconds
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return [found[path] for path in paths]


def _room(path: str, mounts: dict[str, str]) -> Room:
    folder = space.nearest(path)
    free, inodes = space.free(folder)
    mount = _mount_of(folder, mounts)
    kind = mounts.get(mount, "")
    asked = free is not None and free > 2 * _ASKED and kind not in IN_MEMORY
    return Room(
        path=path,
        there=os.path.isdir(path),
        device=os.stat(folder).st_dev,
        mount=mount,
        kind=kind,
        free=free,
        size=_size(folder),
        inodes=inodes,
        closed=space.closed([folder]).get(folder, ""),
        refused=space.why_no_room(folder, _ASKED) if asked else "",
    )


def _size(folder: str) -> int:
    try:
        status = os.statvfs(folder)
    except OSError:
        return 0
    return status.f_blocks * status.f_frsize


def _mounts() -> dict[str, str]:
    """Kind of each mount that this process sees, what is mounted last."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) >= 5 and kind:
            found[unescaped(fields[4])] = kind[0]
    return found


def _mount_of(folder: str, mounts: dict[str, str]) -> str:
    while folder not in mounts and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
    return folder if folder in mounts else ""
