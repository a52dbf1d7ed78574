"""The file list of wheels that are about to be installed: the directory of the zip, no more.

On this machine it is read from the file; behind a URL by range requests (RFC 9110, 14), which
fetch the end of the file. Of a server that knows no ranges a small wheel is read whole. One that
does not answer in time is no error: the list is not known then.
"""

from __future__ import annotations

import base64
import io
import re
import threading
import time
from collections.abc import Mapping
from queue import Empty, Queue
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit, urlunsplit
from zipfile import ZipFile

from envlock.adapters.zipmember import NO_ZIP

if TYPE_CHECKING:
    from http.client import HTTPResponse
    from urllib.request import OpenerDirector

#: CRC-32 and size of each member that is a file.
Members = Mapping[str, tuple[int, int]]

#: All lists together; an index that is near answers in a tenth of it.
SECONDS = 1.0
#: The last bytes, asked for first: the directory of all but the largest wheels is in them.
_TAIL = 128 * 1024
#: A wheel that comes whole, where its end was asked for, is read up to this size.
_WHOLE = 4 * 1024 * 1024
#: A directory larger than this is not fetched.
_MOST = 8 * 1024 * 1024
_WORKERS = 16
_TOTAL = re.compile(r"bytes (\d+)-\d+/(\d+)\Z")
#: Variables that name certificates, as pip reads them.
_CERTIFICATES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")


class _NoAnswerError(Exception):
    """What was asked for is not to be had this way."""


def no_answer() -> tuple[type[Exception], ...]:
    """What asking a server may raise. Python looks at it once something was raised: few commands
    ask one, and its names take 5 ms to load."""
    from http.client import HTTPException

    return (_NoAnswerError, HTTPException, *NO_ZIP)


def read_members(
    urls: Mapping[str, str], env: Mapping[str, str], seconds: float = SECONDS
) -> dict[str, Members]:
    """The file list of each wheel that could be had in time, by the keys of ``urls``.

    Args:
        urls: where each wheel is: ``file://``, ``http://`` or ``https://``; a password in it is
            sent to that host alone.
        env: names certificates and proxies.
    """
    found: dict[str, Members] = {}
    waiting: Queue[tuple[str, str]] = Queue()
    for key, url in urls.items():
        if url.startswith("file://"):
            members = _local(unquote(urlsplit(url).path))
            found.update({key: members} if members is not None else {})
        elif url.startswith(("http://", "https://")):
            waiting.put((key, url))
    left = waiting.qsize()
    if not left:
        return found
    answers: Queue[tuple[str, Members | None]] = Queue()
    until = time.monotonic() + seconds
    web = Web(env, until)
    for _ in range(min(_WORKERS, left)):
        # no pool: nobody waits for a thread that hangs, not even the end of the program
        threading.Thread(target=_work, args=(waiting, answers, web), daemon=True).start()
    for _ in range(left):
        try:
            key, remote = answers.get(timeout=max(0.0, until - time.monotonic()))
        except Empty:
            break
        found.update({key: remote} if remote is not None else {})
    return found


def _local(path: str) -> Members | None:
    try:
        with ZipFile(path) as archive:
            return _list(archive)
    except NO_ZIP:
        return None


def _list(archive: ZipFile) -> Members:
    return {
        one.filename: (one.CRC, one.file_size) for one in archive.infolist() if not one.is_dir()
    }


def _work(
    waiting: Queue[tuple[str, str]], answers: Queue[tuple[str, Members | None]], web: Web
) -> None:
    while True:
        try:
            key, url = waiting.get_nowait()
        except Empty:
            return
        try:
            with ZipFile(_Remote(url, web)) as archive:
                answers.put((key, _list(archive)))
        except no_answer():
            answers.put((key, None))


class Web:
    """Requests that end in time, with the person's certificates and proxies."""

    def __init__(self, env: Mapping[str, str], until: float) -> None:
        self._env = env
        self._until = until

    def open(self, url: str, headers: Mapping[str, str] | None = None) -> HTTPResponse:
        """Starts a GET.

        Raises:
            OSError: no answer, in time or at all, or one that says no.
        """
        import urllib.request

        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        bare = urlunsplit(parts._replace(netloc=host, fragment=""))
        request = urllib.request.Request(bare, headers=dict(headers or {}))
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            # a redirect to another host does not take it along
            request.add_unredirected_header(
                "Authorization", "Basic " + base64.b64encode(login.encode()).decode()
            )
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("no time left")
        response: HTTPResponse = self._opener(parts.scheme, host).open(request, timeout=left)
        return response

    def read(self, response: HTTPResponse, most: int) -> bytes:
        """The body of an answer.

        Raises:
            OSError: it does not end in time, or is longer.
        """
        pieces: list[bytes] = []
        size = 0
        while piece := response.read1(64 * 1024):
            pieces.append(piece)
            size += len(piece)
            if size > most or time.monotonic() > self._until:
                raise TimeoutError("more than is wanted, or too slow")
        return b"".join(pieces)

    def _opener(self, scheme: str, host: str) -> OpenerDirector:
        import urllib.request

        proxies = {
            name.lower().removesuffix("_proxy"): value
            for name, value in self._env.items()
            if name.lower().endswith("_proxy") and value
        }
        bypassed = urllib.request.proxy_bypass_environment(host, proxies)  # type: ignore[attr-defined]
        handlers: list[urllib.request.BaseHandler] = [
            urllib.request.ProxyHandler({} if bypassed else proxies)
        ]
        if scheme == "https":
            import ssl

            named = next((self._env[k] for k in _CERTIFICATES if self._env.get(k)), None)
            context = ssl.create_default_context(cafile=named)
            handlers.append(urllib.request.HTTPSHandler(context=context))
        return urllib.request.build_opener(*handlers)


class _Remote(io.RawIOBase):
    """A file behind a URL, of which only what lies near its end can be read."""

    def __init__(self, url: str, web: Web) -> None:
        self._url = url
        self._web = web
        self._position = 0
        self._start, self._size, self._data = self._fetch(f"-{_TAIL}", _TAIL, whole=True)

    def _fetch(self, wanted: str, most: int, *, whole: bool = False) -> tuple[int, int, bytes]:
        with self._web.open(self._url, {"Range": f"bytes={wanted}"}) as response:
            if whole and response.status == 200:
                return self._all(response)
            found = _TOTAL.match(response.headers.get("Content-Range", ""))
            if response.status != 206 or found is None:
                raise _NoAnswerError("no ranges")  # the whole file would follow
            data = self._web.read(response, most)
        start, size = int(found[1]), int(found[2])
        if start + len(data) > size:
            raise _NoAnswerError("not what was asked for")
        return start, size, data

    def _all(self, response: HTTPResponse) -> tuple[int, int, bytes]:
        """A file that comes whole; a part of one is no zip, and is found out there."""
        if int(response.headers.get("Content-Length") or 0) > _WHOLE:
            raise _NoAnswerError("no ranges, and too much to be read whole")
        data = self._web.read(response, _WHOLE)
        return 0, len(data), data

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise OSError("before the beginning")
        self._position = base + offset
        return self._position

    def read(self, size: int = -1) -> bytes:
        end = self._size if size < 0 else min(self._position + size, self._size)
        if self._position < self._start and end > self._position:
            self._extend()
        offset = self._position - self._start
        piece = self._data[offset : end - self._start]
        self._position += len(piece)
        return piece

    def _extend(self) -> None:
        missing = self._start - self._position
        if missing > _MOST:
            raise _NoAnswerError("too large a directory")
        start, size, data = self._fetch(f"{self._position}-{self._start - 1}", missing)
        if start != self._position or size != self._size or len(data) != missing:
            raise _NoAnswerError("another file by now")
        self._start, self._data = start, data + self._data
