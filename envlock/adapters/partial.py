"""Files that are not whole yet: ``NAME.KEY.part`` beside the place of ``NAME``."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path

from envlock.adapters import files

SUFFIX = ".part"
_CHUNK = 1024 * 1024
_WAIT = 0.2  # seconds between two looks at a part that another process has
_BINARY = getattr(os, "O_BINARY", 0)  # Windows would change line ends


def part_path(final: str, hashes: Collection[str]) -> str:
    """Where a file grows. The bytes it has to end with are in the name: a part of another file with
    the same name is never taken for it."""
    key = next(iter(hashes)) if len(hashes) == 1 else _joined(hashes)
    return f"{final}.{key[:16]}{SUFFIX}"


def _joined(hashes: Collection[str]) -> str:
    return hashlib.sha256(" ".join(sorted(hashes)).encode()).hexdigest()


def is_whole(path: str, hashes: Collection[str]) -> bool:
    """Whether a file is there with one of these sha256 (hexadecimal)."""
    try:
        return files.sha256(path) in hashes
    except OSError:
        return False


@dataclass(slots=True, kw_only=True)
class Part:
    """A growing file that nobody else writes to, since it is locked as long as it is open.

    Attributes:
        path: of the part.
        final: its place when it is whole.
        hashes: sha256 (hexadecimal), one of which it has to have then.
        kept: whether another run can go on with it.
        have: bytes that are here.
    """

    path: str
    final: str
    hashes: Collection[str]
    kept: bool
    have: int = 0
    _file: FileIO
    _digest: hashlib._Hash = field(default_factory=hashlib.sha256)

    @classmethod
    def open(cls, final: str, hashes: Collection[str], wait: Callable[[float], None]) -> Part:
        """Opens the part of a file, and reads what an earlier run left in it.

        Waits while another process has it.

        Args:
            wait: called with the seconds until the next look; may raise to end the waiting.

        Raises:
            OSError: the folder cannot be written.
        """
        path = part_path(final, hashes)
        while True:
            descriptor, fresh = _open(path)
            taken = try_lock(descriptor)
            if taken and _is_at(descriptor, path):
                file = FileIO(descriptor, "r+b")
                part = cls(path=path, final=final, hashes=hashes, kept=True, _file=file)
                part.read()
                return part
            os.close(descriptor)
            if taken is None:
                if fresh:
                    os.unlink(path)
                return cls._alone(path, final, hashes)
            if not taken:
                wait(_WAIT)

    @classmethod
    def _alone(cls, path: str, final: str, hashes: Collection[str]) -> Part:
        """A part with a name of its own, where the file system has no locks."""
        descriptor, own = tempfile.mkstemp(
            prefix=f"{os.path.basename(path)}.", suffix=SUFFIX, dir=os.path.dirname(path) or "."
        )
        os.chmod(own, files.plain_mode())  # a temporary file is nobody else's, a wheel is
        file = FileIO(descriptor, "r+b")
        return cls(path=own, final=final, hashes=hashes, kept=False, _file=file)

    def read(self, stop: int | None = None) -> None:
        """Hashes what is there, up to an offset."""
        self._digest = hashlib.sha256()
        self._file.seek(0)
        self.have = 0
        while chunk := self._file.read(_CHUNK if stop is None else min(_CHUNK, stop - self.have)):
            self._digest.update(chunk)
            self.have += len(chunk)

    def cut(self, length: int) -> None:
        """Forgets everything from an offset on."""
        if length < self.have:
            self.read(length)
            self._file.truncate(length)

    def write(self, data: bytes) -> None:
        """Adds bytes at the end.

        Raises:
            OSError: the disk is full; what found room is kept.
        """
        view = memoryview(data)
        while view:
            count = self._file.write(view) or 0
            self._digest.update(view[:count])
            self.have += count
            view = view[count:]

    @property
    def is_whole(self) -> bool:
        """Whether the bytes are those that are wanted."""
        return self._digest.hexdigest() in self.hashes

    def finish(self) -> None:
        """Gives the file its final name; only for a whole one."""
        os.fsync(self._file.fileno())
        if sys.platform == "win32":  # an open file cannot be renamed there
            self._file.close()
        os.replace(self.path, self.final)
        self._file.close()

    def drop(self) -> None:
        """Removes it: it is no longer needed."""
        if sys.platform == "win32":
            self._file.close()
        Path(self.path).unlink(missing_ok=True)
        self._file.close()

    def close(self) -> None:
        """Leaves it to the next run; one that no run could go on with, or that is empty, goes."""
        if self._file.closed:
            return
        if self.kept and self.have:
            self._file.close()
        else:
            self.drop()


def _open(path: str) -> tuple[int, bool]:
    """A descriptor of the file, and whether it was not there before."""
    flags = os.O_RDWR | os.O_CREAT | _BINARY
    try:
        return os.open(path, flags | os.O_EXCL, 0o666), True
    except FileExistsError:
        return os.open(path, flags, 0o666), False


def _is_at(descriptor: int, path: str) -> bool:
    """Whether the path still means the open file: whoever had it may have renamed it."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError:
        return False


def try_lock(descriptor: int) -> bool | None:
    """Takes the lock of an open file without waiting; None where there are no locks."""
    try:
        import fcntl
    except ImportError:
        return _lock_on_windows(descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _lock_on_windows(descriptor: int) -> bool | None:
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    return None
