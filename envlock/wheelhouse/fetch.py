"""Many files at once, with one bar for all of them."""

from __future__ import annotations

import errno
import os
import queue
import shutil
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from envlock.adapters.download import Download, NotFetched, Wanted
from envlock.adapters.partial import is_whole, part_path
from envlock.adapters.pylock import fitting
from envlock.adapters.resolving import Pin, RemoteFile
from envlock.adapters.simple_index import SimpleIndex, is_wheel_of
from envlock.adapters.space import why_no_room
from envlock.adapters.web import Web, path_of
from envlock.errors import ProgramFailed
from envlock.model.manifest import LockedTarget

#: As many as an index serves at once without being asked for patience.
WORKERS = 6
_AGAIN = "run the same again: what is whole is kept, and the rest goes on where it stopped"


class Progress(Protocol):
    """Shows work of a known number of bytes; None where nobody knows it."""

    def __call__(
        self, title: str, total: int | None, /
    ) -> AbstractContextManager[Callable[[int], None]]: ...


class _Stopped(Exception):
    """Everything is to end: a person pressed Ctrl-C, or the disk is full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetcher:
    """See :class:`envlock.adapters.resolving.Downloader`.

    Attributes:
        progress: shows how far all files together are.
        workers: files at once.
    """

    web: Web
    progress: Progress
    workers: int = WORKERS

    def download(self, wanted: Sequence[Pin], target: LockedTarget, folder: str) -> tuple[str, ...]:
        """See :class:`envlock.adapters.resolving.Downloader`."""
        run = _Run(self.web, folder)
        files = run.find(wanted, target.tags)
        missing = [one for one in files if not run.is_there(one)]
        if missing:
            size = run.room(missing)
            of = f" of {len(files)}" if len(missing) < len(files) else ""
            title = f"downloading {len(missing)}{of} {'file' if len(files) == 1 else 'files'}"
            with self.progress(title, size) as advance:
                run.fetch(missing, self.workers, advance)
        run.report()
        return tuple(one.file.file for one in files)


@dataclass(slots=True)
class _Run:
    """One download of many files."""

    web: Web
    folder: str
    failed: list[NotFetched] = field(default_factory=list)
    fault: BaseException | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def wait(self, seconds: float) -> None:
        """Raises:
        _Stopped: everything is to end.
        """
        if self._stop.wait(seconds) if seconds else self._stop.is_set():
            raise _Stopped

    # ------------------------------------------------------------------ what and from where

    def find(self, pins: Sequence[Pin], tags: Sequence[str]) -> list[Wanted]:
        """The best file of each pin; those of which nobody knows one are failures."""
        index = SimpleIndex(web=self.web, wait=self.wait)
        found = []
        with ThreadPoolExecutor(WORKERS) as pool:
            answers = list(pool.map(lambda pin: self._best(pin, tags, index), pins))
        for pin, (file, why) in zip(pins, answers, strict=True):
            if file is None:
                self.failed.append(NotFetched(f"{pin.name} {pin.version}", why))
                continue
            hashes = (file.sha256,) if file.sha256 else pin.hashes
            found.append(Wanted(file=file, hashes=hashes, more=_More(index, pin, file)))
        return found

    def _best(
        self, pin: Pin, tags: Sequence[str], index: SimpleIndex
    ) -> tuple[RemoteFile | None, list[tuple[str, str]]]:
        """The file to fetch; else why there is none."""
        offered, why = pin.wheels, list[tuple[str, str]]()
        if not offered:  # not every resolver says where files are
            found = index.wheels(pin)
            offered, why = fitting(found.files, tags), list(found.problems)
        sound = [file for file in offered if is_wheel_of(file.file, pin)]
        for file in sound:
            if (file.sha256 in pin.hashes) if file.sha256 else pin.hashes:
                return file, []
        what = "has a sha256 that was resolved" if sound else "fits the target"
        return None, [*why, ("", f"no wheel of it {what}")]

    def is_there(self, one: Wanted) -> bool:
        """Whether an earlier run has fetched it."""
        return is_whole(os.path.join(self.folder, one.file.file), one.hashes)

    def room(self, missing: Sequence[Wanted]) -> int | None:
        """Bytes of all files together, None where one is unknown.

        Raises:
            OSError: the disk has no room for them.
        """
        sizes = [_size(one.file) for one in missing]
        known = sum(filter(None, sizes))
        parts = [part_path(os.path.join(self.folder, o.file.file), o.hashes) for o in missing]
        needed = known - sum(os.path.getsize(part) for part in parts if os.path.exists(part))
        free = shutil.disk_usage(self.folder).free
        why = f"{free} are free" if needed > free else why_no_room(self.folder, needed)
        if why:
            said = f"{needed} more bytes are needed, {why}"
            raise OSError(errno.ENOSPC, said, self.folder)
        return None if None in sizes else known

    # ------------------------------------------------------------------ all of them

    def fetch(
        self, missing: Sequence[Wanted], workers: int, advance: Callable[[int], None]
    ) -> None:
        """Fetches them, the largest first, so that no worker ends with it while others wait.

        Raises:
            OSError: the folder cannot be written, or the disk is full.
        """
        waiting: queue.SimpleQueue[Wanted] = queue.SimpleQueue()
        for one in sorted(missing, key=lambda one: -(one.file.size or 0)):
            waiting.put(one)
        # a thread that hangs on a dead server must not keep an interrupted run from ending
        threads = [
            threading.Thread(target=self._work, args=(waiting, advance), daemon=True)
            for _ in range(min(workers, len(missing)))
        ]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.5)  # on Windows nothing interrupts a longer one
        finally:
            self._stop.set()
        if self.fault is not None:
            raise self.fault

    def _work(self, waiting: queue.SimpleQueue[Wanted], advance: Callable[[int], None]) -> None:
        def add(count: int) -> None:
            if count:
                with self._lock:
                    advance(count)

        while not self._stop.is_set():
            try:
                one = waiting.get_nowait()
                Download(
                    wanted=one, folder=self.folder, web=self.web, advance=add, wait=self.wait
                ).run()
            except NotFetched as error:
                self.failed.append(error)
            except (queue.Empty, _Stopped):
                return
            except BaseException as error:  # noqa: BLE001 - the main thread raises it
                self.fault = error
                self._stop.set()

    def report(self) -> None:
        """Raises:
        ProgramFailed: names every file that nobody gave, and why.
        """
        if not self.failed:
            return
        lines = [_words(error) for error in sorted(self.failed, key=lambda error: error.file)]
        if len(lines) == 1:
            raise ProgramFailed(f"download: {lines[0]}", _AGAIN)
        listed = "".join(f"\n  {line}" for line in lines)
        raise ProgramFailed(f"download: {len(lines)} files failed:{listed}", _AGAIN)


@dataclass(frozen=True, slots=True)
class _More:
    """Where else a file with the same bytes is, asked only when somebody needs to know."""

    index: SimpleIndex
    pin: Pin
    file: RemoteFile

    def __call__(self) -> list[str]:
        if self.pin.origin != "index":
            return []
        same = [
            file
            for file in (*self.pin.wheels[1:], *self.index.wheels(self.pin).files)
            if file.file == self.file.file and file.sha256 in ("", self.file.sha256)
        ]
        return [url for file in same for url in file.urls]


def _size(file: RemoteFile) -> int | None:
    """Bytes, as the index or the disk says."""
    if file.size is not None or not file.urls[0].startswith("file:"):
        return file.size
    try:
        return os.path.getsize(path_of(file.urls[0]))
    except OSError:
        return None


def _words(error: NotFetched) -> str:
    sources = [f"{why} ('{url}')" if url else why for url, why in error.why]
    said = f"'{error.file}': {'; '.join(dict.fromkeys(sources))}"
    if not error.have:
        return said
    of = f" of {error.size}" if error.size else ""
    return f"{said}; {error.have}{of} bytes are kept"
