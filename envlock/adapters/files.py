"""The one door to the disk: hashing, and changes that are whole or not there."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from envlock.adapters.limits import usable_cpus
from envlock.errors import UnusableInput
from envlock.model.record import HEAD_BYTES, script_head

#: Bytes from which on a file is a batch by itself.
LARGE = 8 * 1024 * 1024
_BATCH = 400  # files a worker takes at once: one future a file costs as much as the hashing
_FIRST_READ = 256 * 1024
_BUFFER = 1024 * 1024

#: How files are opened to be read; not every host has every flag.
_READ = os.O_RDONLY
for _flag in ("O_CLOEXEC", "O_NONBLOCK", "O_BINARY"):
    _READ |= getattr(os, _flag, 0)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Job:
    """A file to hash.

    Attributes:
        script: its first line is read as content reads it.
        size: bytes, as far as somebody says so; only the order of work depends on it.
    """

    path: str
    script: bool = False
    size: int = 0


@dataclass(frozen=True, slots=True)
class Hashed:
    """A file's sha256 (hexadecimal), size in bytes (of a script: as content) and exec bit; or why
    it could not be read."""

    hex: str = ""
    size: int = 0
    executable: bool = False
    error: str = ""


def seal(status: os.stat_result) -> tuple[int, ...]:
    """What moves when a file is written to, or when another file takes its place."""
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return (status.st_dev, status.st_ino, status.st_size, *times)


def seal_of(path: str) -> tuple[int, ...]:
    """:func:`seal` of a path, following links; empty when there is nothing."""
    try:
        return seal(os.stat(path))
    except OSError:
        return ()


@cache
def workers() -> int:
    """CPUs this process may use: affinity and the quotas of its control groups, at least one."""
    return usable_cpus()


def _hash_one(job: Job, buffer: bytearray) -> Hashed:
    try:
        # a pipe that RECORD names must not make envlock wait for its other end
        descriptor = os.open(job.path, _READ)
    except OSError as error:
        return Hashed(error=error.strerror or str(error))
    except ValueError as error:
        return Hashed(error=str(error))  # a NUL in a path
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return Hashed(error="not a file")
        total, size = hashlib.sha256(), status.st_size
        head = os.read(descriptor, _FIRST_READ)
        if job.script:
            shown, length = script_head(head[:HEAD_BYTES])
            total.update(shown)
            total.update(head[length:])
            size += len(shown) - length  # the same wherever it is installed
        else:
            total.update(head)
        if len(head) == _FIRST_READ or len(head) < status.st_size:  # some file systems read short
            view = memoryview(buffer)
            while count := _read_into(descriptor, buffer):
                total.update(view[:count])
        return Hashed(total.hexdigest(), size, bool(status.st_mode & stat.S_IXUSR))
    except OSError as error:
        return Hashed(error=error.strerror or str(error))
    finally:
        os.close(descriptor)


def _read_into(descriptor: int, buffer: bytearray) -> int:
    if hasattr(os, "readv"):
        return os.readv(descriptor, [buffer])
    piece = os.read(descriptor, len(buffer))  # type: ignore[unreachable,unused-ignore]
    buffer[: len(piece)] = piece
    return len(piece)


def _hash_batch(jobs: Sequence[Job]) -> list[Hashed]:
    buffer = bytearray(_BUFFER)
    return [_hash_one(job, buffer) for job in jobs]


def hash_files(jobs: Sequence[Job], advance: Callable[[int], None] | None = None) -> list[Hashed]:
    """Hashes files with as many workers as this process may use CPUs.

    Args:
        jobs: in the order of the disk where it matters.
        advance: called with the number of files done since the last call.

    Returns:
        One result for each job, in order; a file that cannot be read is a result with a reason.
    """
    order = _order(jobs)
    results = [Hashed()] * len(jobs)
    with ThreadPoolExecutor(workers()) as pool:
        done = pool.map(_hash_batch, ([jobs[index] for index in batch] for batch in order))
        for batch, found in zip(order, done, strict=True):
            for index, result in zip(batch, found, strict=True):
                results[index] = result
            if advance:
                advance(len(batch))
    return results


def _order(jobs: Sequence[Job]) -> list[list[int]]:
    """Batches of job numbers: large files first and alone, so that no worker ends with the largest
    while the others wait; the rest in the order given."""
    large = [index for index, job in enumerate(jobs) if job.size >= LARGE]
    alone = set(large)
    rest = [index for index in range(len(jobs)) if index not in alone]
    large.sort(key=lambda index: -jobs[index].size)
    batches = [rest[start : start + _BATCH] for start in range(0, len(rest), _BATCH)]
    return [[index] for index in large] + batches


def sha256(path: str | os.PathLike[str]) -> str:
    """sha256 of one file, hexadecimal.

    Raises:
        OSError: it cannot be read.
    """
    found = _hash_one(Job(os.fspath(path)), bytearray(_BUFFER))
    if found.error:
        raise OSError(0, found.error, os.fspath(path))
    return found.hex


def write_whole(
    path: str | os.PathLike[str], data: bytes | str, *, mode: int | None = None
) -> None:
    """Writes a file beside its place, syncs it and renames it there: never half a file.

    Raises:
        OSError: the folder cannot be written, or the disk is full; the old file is untouched.
    """
    target = os.fspath(path)
    folder = os.path.dirname(target) or "."
    descriptor, part = tempfile.mkstemp(prefix=f".{os.path.basename(target)}.", dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(part, plain_mode() if mode is None else mode)
        os.replace(part, target)
    except BaseException:
        os.unlink(part)
        raise
    sync_folder(folder)


def write_asked(path: str, option: str, text: str) -> None:
    """Writes a file that somebody named, whole, or leaves the last one.

    Args:
        option: that it was named with, for the hint.

    Raises:
        UnusableInput: it cannot be written.
    """
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        write_whole(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise UnusableInput(
            f"{path}: cannot be written: {error.strerror}", f"name another file with {option}"
        ) from error


def plain_mode() -> int:
    """The mode that a new file has by this user's own settings."""
    return 0o666 & ~_umask()


def _umask() -> int:
    current = os.umask(0o077)
    os.umask(current)
    return current


def names_in(folder: str) -> list[str]:
    """Names in a folder; none where it is not there or cannot be read."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def sync_folder(folder: str) -> None:
    """Makes the names in a folder durable, where the host can open folders."""
    if not hasattr(os, "O_DIRECTORY"):
        return  # type: ignore[unreachable,unused-ignore]
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_filesystem(path: str) -> None:
    """Makes everything on the file system that holds ``path`` durable, in one call.

    ``syncfs`` where the C library has it: 14,000 files one by one take seconds.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(libc, "syncfs"):
            os.sync()
        elif libc.syncfs(descriptor) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), path)
    finally:
        os.close(descriptor)


def append_line(path: str, line: str) -> None:
    """Adds one line to a file and makes it durable."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(descriptor, line.encode() + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_tree(path: str) -> list[str]:
    """Removes a file or a whole folder; what cannot be removed is returned, not raised."""
    left: list[str] = []
    if not os.path.lexists(path):
        return left
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, onerror=lambda _call, name, _info: left.extend(_again(name, path)))
    else:
        try:
            os.unlink(path)
        except OSError:
            left.append(path)
    return left


def _again(name: str, top: str) -> list[str]:
    """Removes what could not be removed where only the modes of folders of one's own forbid it."""
    try:
        if name != top:
            os.chmod(os.path.dirname(name), stat.S_IRWXU)
        if os.path.isdir(name) and not os.path.islink(name):
            os.chmod(name, stat.S_IRWXU)
            shutil.rmtree(name)
        else:
            os.unlink(name)
    except OSError:
        return [name]
    return []
