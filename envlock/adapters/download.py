"""One file from whoever has it: resumed, tried again, and whole before it has its name."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from envlock.adapters.partial import Part, is_whole
from envlock.adapters.resolving import RemoteFile
from envlock.adapters.web import Reply, Unreachable, Web
from envlock.model import transfer

#: Failures in a row, without a byte more, after which a source is given up (pip: 5).
TRIES = 5
#: Seconds that a server may ask to wait; who asks for more is given up.
PATIENCE = 120.0
#: A failure that brought this part of the file is not counted: it gets somewhere in the end.
_STEP = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A file to fetch.

    Attributes:
        file: what it is called and where it is said to be.
        hashes: sha256 (hexadecimal), one of which it has to have.
        more: further URLs, asked for only where those of ``file`` do not give it.
    """

    file: RemoteFile
    hashes: tuple[str, ...]
    more: Callable[[], Iterable[str]] = tuple


class NotFetched(Exception):
    """No source gave the file.

    Attributes:
        file: its name.
        why: URL for people and reason, one for each source that was tried.
        have: bytes that are kept for the next run.
        size: bytes of the file, None where nobody says.
    """

    def __init__(
        self, file: str, why: list[tuple[str, str]], have: int = 0, size: int | None = None
    ) -> None:
        super().__init__(file)
        self.file, self.why, self.have, self.size = file, why, have, size


class _Refused(Exception):
    """A source that will not do, and why."""


@dataclass(slots=True, kw_only=True)
class Download:
    """The fetching of one file.

    Attributes:
        advance: called with the bytes that came since the last call; less than none where they were
            of no use.
        wait: called with seconds to wait, 0 between two pieces; may raise to end everything.
        size: bytes of the whole file, None as long as nobody says.
    """

    wanted: Wanted
    folder: str
    web: Web
    advance: Callable[[int], None]
    wait: Callable[[float], None]
    size: int | None = field(init=False)
    _counted: int = 0

    def __post_init__(self) -> None:
        self.size = self.wanted.file.size

    def run(self) -> None:
        """Fetches the file, unless it is there.

        Raises:
            NotFetched: no source gave it.
            OSError: the folder cannot be written, or the disk is full.
        """
        final = os.path.join(self.folder, self.wanted.file.file)
        part = Part.open(final, self.wanted.hashes, self.wait)
        try:
            if is_whole(final, self.wanted.hashes):  # another process was faster
                self.advance(max(0, (self.size or 0) - part.have))
                part.drop()
                return
            if not part.is_whole:
                self._from_anywhere(part)
            part.finish()
        finally:
            self.count(part)
            part.close()

    def _from_anywhere(self, part: Part) -> None:
        if self.size is not None and part.have >= self.size:
            part.cut(0)
        self.count(part)
        failed: list[tuple[str, str]] = []
        for url in self._sources():
            try:
                _Source(self, part, url, self.wanted.file.size).drain()
                return
            except _Refused as error:
                failed.append((transfer.shown(url), str(error)))
        kept = part.have if part.kept else 0
        why = failed or [("", "no source is known")]
        raise NotFetched(self.wanted.file.file, why, kept, self.size)

    def _sources(self) -> Iterator[str]:
        known = dict.fromkeys(self.wanted.file.urls)
        yield from known
        for url in self.wanted.more():
            if url not in known:
                known[url] = None
                yield url

    def count(self, part: Part) -> None:
        """Tells how much more is here."""
        self.advance(part.have - self._counted)
        self._counted = part.have


@dataclass(slots=True)
class _Source:
    """One URL, asked until the part is whole or it will not do."""

    download: Download
    part: Part
    url: str
    size: int | None  # bytes of the whole file, as the index or else this source says
    tag: str = ""
    failures: int = 0
    best: int = 0
    clean: bool = False  # what is here came in one answer, from the first byte to the last

    def drain(self) -> None:
        """Raises:
        _Refused: it will not do.
        """
        self.best = self.part.have
        while not self.part.is_whole:
            try:
                with self.download.web.get(self.url, self._question()) as reply:
                    self._take(reply)
            except Unreachable as error:
                if error.final:
                    raise _Refused(error.why) from error
                self._failed(error.why)

    def _question(self) -> dict[str, str]:
        return transfer.question(self.part.have, self.tag)

    def _take(self, reply: Reply) -> None:
        part = self.part
        if reply.status not in (200, 206, 416):
            self._bad_status(reply)
            return
        body = transfer.place_of(part.have, reply.status, reply.headers)
        if body is None:
            if not part.have:
                raise _Refused("its answer does not fit the question")
            self._failed("its answer does not fit the question", pause=False)
            self._again()
            return
        self.clean = body.start == 0
        part.cut(body.start)
        self.tag = reply.headers.get("etag", "")
        if self.size is None:
            self.size = self.download.size = body.total
        self._read(reply, max(self.size or 0, body.total or 0))
        if not part.is_whole:
            self._not_whole(body)

    def _read(self, reply: Reply, limit: int) -> None:
        """Takes the body in; never much more than the file can have, nor waits for what it lacks
        when the file is whole."""
        part = self.part
        for chunk in reply.chunks:
            part.write(chunk)
            self.download.count(part)
            self.download.wait(0)
            if limit and (part.have > limit or (part.have == self.size and part.is_whole)):
                return

    def _not_whole(self, body: transfer.Body) -> None:
        """The answer has ended, and the bytes are not those that are wanted."""
        if self.size is not None and self.part.have < self.size:
            self._failed("the connection was cut")
            return
        if self.size is None and body.total is None:  # nobody says where it ends
            self._failed("the connection was cut, or it serves other bytes")
            return
        clean = self.clean
        self._again()
        if clean:
            raise _Refused("it serves other bytes")
        self._failed("it serves other bytes", pause=False)

    def _again(self) -> None:
        """Begins with the first byte."""
        self.part.cut(0)
        self.tag = ""
        self.download.count(self.part)

    def _bad_status(self, reply: Reply) -> None:
        why = f"it answers {reply.status}"
        if not transfer.is_for_now(reply.status):
            known = {401: "wants a name and a password", 403: "refuses", 404: "does not have it"}
            raise _Refused(f"it {known[reply.status]}" if reply.status in known else why)
        seconds = transfer.retry_after(reply.headers.get("retry-after", ""), time.time())
        if seconds is not None and seconds > PATIENCE:
            raise _Refused(f"{why} and asks to wait {seconds:.0f} seconds")
        self._failed(why, seconds)

    def _failed(self, why: str, seconds: float | None = None, *, pause: bool = True) -> None:
        """Counts a failure, and waits before the next try.

        Raises:
            _Refused: it was one too many.
        """
        if self.part.have > self.best + (self.size or 0) // _STEP:
            self.failures = 0
        self.best = max(self.best, self.part.have)
        self.failures += 1
        if self.failures >= TRIES:
            raise _Refused(why)
        if pause:
            self.download.wait(transfer.pause(self.failures) if seconds is None else seconds)
