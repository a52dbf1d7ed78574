"""Members of wheels written to the disk by all workers: inflated, checked, hashed in one pass."""

from __future__ import annotations

import base64
import hashlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from zipfile import ZipInfo

from envlock.adapters.files import workers
from envlock.adapters.zipmember import DAMAGED, read_member, read_whole
from envlock.model.record import Row
from envlock.model.wheels import RECORD_ALGORITHMS

#: From here on a member is work for one worker; below, a worker takes a batch.
LARGE = 1024 * 1024
_BATCH = 64
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_PYTHON = b"#!python"


class Damaged(Exception):
    """A wheel or a member that is not what it should be; ``str()`` says how."""


class _Stopped(Exception):
    """Another worker failed, or nobody waits any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A member to write.

    Attributes:
        descriptor: of the open wheel.
        wheel: its file name.
        path: where to; nothing may be there.
        row: what RECORD says of it, or None.
        executable: set the exec bit.
        first_line: what takes the place of a first line that begins with ``#!python``; empty for
            what is no script.
    """

    descriptor: int
    wheel: str
    info: ZipInfo
    path: str
    row: Row | None = None
    executable: bool = False
    first_line: bytes = b""


@dataclass(frozen=True, slots=True)
class Written:
    """A file that was written: its size in bytes and its sha256."""

    path: str
    size: int
    digest: bytes


def urlsafe(digest: bytes) -> str:
    """A digest as RECORD writes it."""
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def write_file(path: str, data: bytes, *, executable: bool = False) -> None:
    """Writes a file where nothing may be; the umask counts.

    Raises:
        OSError: something is there, or it cannot be written.
    """
    descriptor = os.open(path, _NEW, 0o777 if executable else 0o666)
    try:
        _write_all(descriptor, data, path)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes, path: str) -> None:
    try:
        done = os.write(descriptor, data)
        while done < len(data):
            done += os.write(descriptor, memoryview(data)[done:])
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error


def write_members(tasks: Sequence[Task]) -> list[Written]:
    """Writes members with as many workers as this process may use CPUs.

    Folders that are not there are made; the umask counts. No file is synced.

    Returns:
        One result for each, in no order.

    Raises:
        Damaged: a member is not what the wheel says; names it. The workers have ended.
        OSError: a file cannot be written, with its path.
    """
    crew = _Crew(tasks)
    try:
        crew.start()
        return crew.results()
    finally:
        crew.end()


@dataclass
class _Crew:
    """Workers that share one list of batches, large ones left and small ones right.

    The first half of the workers takes from the left, the others from the right, so that one
    inflates a library of 400 MB without the interpreter's lock while another one opens thousands of
    small files with it; they end together because they meet in the middle.
    """

    tasks: Sequence[Task]
    _count: int = field(default_factory=lambda: workers())
    _stop: threading.Event = field(default_factory=threading.Event)
    _batches: deque[Sequence[Task]] = field(default_factory=deque)
    _running: list[Future[list[Written]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(self._count)

    def start(self) -> None:
        self._batches.extend(_batches(self.tasks))
        for number in range(self._count):
            take = self._batches.popleft if number * 2 < self._count else self._batches.pop
            self._running.append(self._pool.submit(self._work, take))

    def end(self) -> None:
        """Nobody writes any more when this returns, whatever ended the wait."""
        self._stop.set()
        self._pool.shutdown(wait=True)

    def results(self) -> list[Written]:
        return [one for future in self._running for one in future.result()]

    def _work(self, take: Callable[[], Sequence[Task]]) -> list[Written]:
        found: list[Written] = []
        while not self._stop.is_set():
            try:
                batch = take()
            except IndexError:
                break
            try:
                for task in batch:
                    found.append(_write(task, self._stop))
            except _Stopped:
                break
            except BaseException:
                self._stop.set()
                raise
        return found


def _batches(tasks: Sequence[Task]) -> Iterator[Sequence[Task]]:
    """Largest first; small ones in the order of their folders, some at once."""
    ordered = sorted(tasks, key=lambda task: -task.info.file_size)
    small = sum(task.info.file_size < LARGE for task in tasks)
    for task in ordered[: len(ordered) - small]:
        yield [task]
    rest = sorted(ordered[len(ordered) - small :], key=lambda task: task.path)
    for start in range(0, len(rest), _BATCH):
        yield rest[start : start + _BATCH]


def _write(task: Task, stop: threading.Event) -> Written:
    try:
        if max(task.info.file_size, task.info.compress_size) < LARGE:
            pieces: Iterable[bytes] = (read_whole(task.descriptor, task.info),)
        else:
            pieces = read_member(task.descriptor, task.info)
        descriptor = _open_new(task)
        try:
            return (_copy_script if task.first_line else _copy)(task, pieces, descriptor, stop)
        finally:
            os.close(descriptor)
    except DAMAGED as error:
        if isinstance(error, OSError) and error.filename:  # of writing
            raise
        what = str(error) or type(error).__name__
        raise Damaged(f"'{task.wheel}': '{task.info.filename}': {what}") from error


def _open_new(task: Task) -> int:
    """A file to write, and its folder where this is the first one in it: asking before each file
    whether its folder is there takes longer than making the few that are not."""
    mode = 0o777 if task.executable else 0o666
    try:
        return os.open(task.path, _NEW, mode)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(task.path), exist_ok=True)
        return os.open(task.path, _NEW, mode)


def _copy(task: Task, pieces: Iterable[bytes], descriptor: int, stop: threading.Event) -> Written:
    total, size = hashlib.sha256(), 0
    further = _further(task.row)
    for piece in pieces:
        total.update(piece)
        if further:
            further.update(piece)
        _write_all(descriptor, piece, task.path)
        size += len(piece)
        if stop.is_set():
            raise _Stopped
    digest = total.digest()
    _check(task, urlsafe(digest), further)
    return Written(task.path, size, digest)


def _copy_script(
    task: Task, pieces: Iterable[bytes], descriptor: int, stop: threading.Event
) -> Written:
    """A script: RECORD of the wheel knows the member, RECORD of the target the file."""
    member, written = hashlib.sha256(), hashlib.sha256()
    further, size = _further(task.row), 0
    for number, piece in enumerate(pieces):
        member.update(piece)
        if further:
            further.update(piece)
        out = piece if number else _for_target(piece, task.first_line)
        written.update(out)
        _write_all(descriptor, out, task.path)
        size += len(out)
        if stop.is_set():
            raise _Stopped
    _check(task, urlsafe(member.digest()), further)
    return Written(task.path, size, written.digest())


def _for_target(head: bytes, first_line: bytes) -> bytes:
    """A script's head with the target's interpreter; pip and uv drop options that stood there."""
    if not head.startswith(_PYTHON):
        return head
    _, _, rest = head.partition(b"\n")
    return first_line + rest


def _further(row: Row | None) -> hashlib._Hash | None:
    """For a RECORD line with another algorithm than sha256."""
    if row is None or row.hash.startswith("sha256=") or not row.hash:
        return None
    kind = row.hash.partition("=")[0]
    return hashlib.new(kind) if kind in RECORD_ALGORITHMS else None


def _check(task: Task, record: str, further: hashlib._Hash | None) -> None:
    """Compares a member with its line of RECORD; a line without a digest says nothing.

    Raises:
        Damaged: it has other bytes, or the line cannot be read.
    """
    row = task.row
    if row is None or not row.hash:
        return
    claimed = f"{further.name}={urlsafe(further.digest())}" if further else f"sha256={record}"
    if row.hash.rstrip("=") != claimed:
        raise Damaged(f"'{task.wheel}': '{row.path}' has other bytes than RECORD says")
