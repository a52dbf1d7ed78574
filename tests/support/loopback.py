"""A server on this machine that behaves as badly as servers do."""

from __future__ import annotations

import gzip
import hashlib
import ssl
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

_PIECE = 1024 * 1024
_SLOW_PIECE = 16 * 1024


@dataclass(frozen=True, kw_only=True)
class Turn:
    """How one request is answered.

    Attributes:
        data: what the path holds.
        status: other than 200 or 206.
        headers: more of them, or others.
        ranges: whether a range is answered with one.
        shift: bytes by which a range's field lies about where it begins.
        cut: bytes of the body after which the connection is closed.
        hang: bytes of the body after which nothing comes any more.
        length: what Content-Length says; -1 for none.
        coded: the body is sent with gzip, asked for or not.
        slow: seconds between two pieces.
        piece: bytes sent at once.
        login: ``user:password`` that is wanted, as its header field.
    """

    data: bytes = b""
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    ranges: bool = True
    shift: int = 0
    cut: int | None = None
    hang: int | None = None
    length: int | None = None
    coded: bool = False
    slow: float = 0.0
    piece: int = 0
    login: str = ""


class Loopback(ThreadingHTTPServer):
    """Answers what it is told to, and remembers what it was asked.

    Attributes:
        asked: path and header fields (names in small letters) of every request.
        hanging: set when an answer has come to where nothing more comes.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.turns: dict[str, list[Turn]] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.closing = threading.Event()
        self.hanging = threading.Event()
        self.lock = threading.Lock()
        self.scheme = "http"

    def speak_tls(self, certificate: Path) -> None:
        """From now on with a certificate and its key, both in one file."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.scheme = "https"

    def add(self, path: str, *turns: Turn) -> str:
        """Answers a path with these, one after the other, the last for good; returns its URL."""
        self.turns[path] = list(turns)
        return self.url(path)

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"{self.scheme}://{host}:{self.server_address[1]}{path}"

    def ranges(self, path: str) -> list[str]:
        """What the requests for a path asked for; empty for the whole."""
        return [headers.get("range", "") for asked, headers in self.asked if asked == path]

    def next_turn(self, path: str, headers: dict[str, str]) -> Turn:
        with self.lock:
            self.asked.append((path, headers))
            turns = self.turns.get(path, [Turn(status=404)])
            return turns.pop(0) if len(turns) > 1 else turns[0]

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that go away are what is tested."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Loopback

    def log_message(self, *_: object) -> None:
        """Says nothing."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        turn = self.server.next_turn(urlsplit(self.path).path, headers)
        if turn.login and headers.get("authorization") != turn.login:
            turn = Turn(status=401)
        self._answer(turn, headers.get("range", ""))

    def _answer(self, turn: Turn, asked: str) -> None:
        body = gzip.compress(turn.data) if turn.coded else turn.data
        found = {"Content-Type": "text/html", "Content-Length": str(len(body))}
        status = turn.status or 200
        if asked and turn.ranges and status == 200:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start = int(first) if first else max(0, len(body) - int(last))
            stop = min(len(body), int(last) + 1 if first and last else len(body))
            status = 206 if start < len(body) else 416
            told = f"{start + turn.shift}-{stop + turn.shift - 1}" if status == 206 else "*"
            body = body[start:stop]
            found |= {"Content-Range": f"bytes {told}/{len(turn.data)}"}
            found |= {"Content-Length": str(len(body))}
        if turn.coded:
            found["Content-Encoding"] = "gzip"
        if turn.length is not None:
            found["Content-Length"] = str(turn.length)
        if turn.length == -1:
            found["Connection"] = "close"
            del found["Content-Length"]
        self.send_response(status)
        for name, value in {**found, **turn.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self._send(body, turn)

    def _send(self, body: bytes, turn: Turn) -> None:
        ends = [stop for stop in (turn.cut, turn.hang) if stop is not None]
        body = body[: min(ends)] if ends else body
        piece = turn.piece or (_SLOW_PIECE if turn.slow else _PIECE)
        for start in range(0, len(body), piece):
            self.wfile.write(body[start : start + piece])
            if turn.slow:
                time.sleep(turn.slow)
        self.wfile.flush()
        if turn.hang is not None:
            self.server.hanging.set()
            self.server.closing.wait(60)
        if ends or turn.length is not None:
            self.close_connection = True


@contextmanager
def loopback() -> Iterator[Loopback]:
    """A running server."""
    server = Loopback()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        thread.join()
        with suppress(OSError):
            server.server_close()


def metadata(wheel: Path) -> bytes:
    """METADATA of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
        return archive.read(name)


def serve_wheels(server: Loopback, folder: Path, **how: object) -> str:
    """Serves a folder of wheels as an index; returns the index's URL.

    Args:
        how: of every wheel's :class:`Turn`.
    """
    projects: dict[str, list[Path]] = {}
    for wheel in sorted(folder.glob("*.whl")):
        name = wheel.name.partition("-")[0].lower().replace("_", "-").replace(".", "-")
        projects.setdefault(name, []).append(wheel)
    for name, wheels in projects.items():
        lines = []
        for wheel in wheels:
            data = wheel.read_bytes()
            server.add(f"/files/{wheel.name}", Turn(data=data, **how))  # type: ignore[arg-type]
            sha256 = hashlib.sha256(data).hexdigest()
            # a resolver reads the metadata beside the wheel (PEP 658), and no wheel
            told = metadata(wheel)
            server.add(f"/files/{wheel.name}.metadata", Turn(data=told))
            mark = f'data-core-metadata="sha256={hashlib.sha256(told).hexdigest()}"'
            lines.append(f'<a href="/files/{wheel.name}#sha256={sha256}" {mark}>{wheel.name}</a>')
        server.add(f"/simple/{name}/", Turn(data="\n".join(lines).encode()))
    return server.url("/simple")
