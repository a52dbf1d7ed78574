"""Servers on this machine that stop at any step, and names that DNS has trouble with."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

#: What a server does with a connection; the event is set when the test ends.
How = Callable[[socket.socket, threading.Event], None]


@contextmanager
def answering(how: How) -> Iterator[int]:
    """The port of a server that treats each connection in this way."""
    over = threading.Event()

    def treat(connection: socket.socket) -> None:
        # a client that goes away in the middle is what is tested
        with connection, suppress(OSError):
            how(connection, over)

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:  # the test is over
                return
            threading.Thread(target=treat, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, daemon=True).start()
        try:
            yield listening.getsockname()[1]
        finally:
            over.set()
            with suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)


@contextmanager
def refusing() -> Iterator[int]:
    """A port that nobody listens on, and nobody can be given."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@contextmanager
def dropping() -> Iterator[int]:
    """A port whose queue is full: the kernel drops every further SYN, as a firewall does."""
    with ExitStack() as open_ones:
        full = open_ones.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):
            one = open_ones.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        yield full.getsockname()[1]


def silent(_: socket.socket, over: threading.Event) -> None:
    """Takes the connection and says nothing."""
    over.wait(60)


def after_hello(connection: socket.socket, over: threading.Event) -> None:
    """Reads what the client says first, and says nothing."""
    connection.recv(65536)
    over.wait(60)


def half(connection: socket.socket, over: threading.Event) -> None:
    """Says half a line, and nothing more."""
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Le")
    over.wait(60)


def cutting(connection: socket.socket, _: threading.Event) -> None:
    """Reads what the client says first, and hangs up."""
    connection.recv(65536)


def saying(words: bytes) -> How:
    """Answers everybody with these bytes, whatever was said."""

    def how(connection: socket.socket, _: threading.Event) -> None:
        connection.recv(65536)
        connection.sendall(words)

    return how


def behind_tls(certificate: Path, how: How) -> How:
    """Does so after a TLS handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def treat(connection: socket.socket, over: threading.Event) -> None:
        with context.wrap_socket(connection, server_side=True) as secure:
            how(secure, over)

    return treat


def tunnel(connection: socket.socket, over: threading.Event) -> None:
    """An HTTP proxy that connects everybody with port N of this machine, N the one asked for."""
    head = b""
    while b"\r\n\r\n" not in head:
        head += connection.recv(1024)
    port = int(head.split(b" ")[1].rpartition(b":")[2])
    with socket.create_connection(("127.0.0.1", port)) as there:
        connection.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        back = threading.Thread(target=_pump, args=(there, connection), daemon=True)
        back.start()
        _pump(connection, there)
        back.join(10)
    over.is_set()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@pytest.fixture
def dns(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """``*.test`` is this machine, but for ``unknown``, ``failing`` and ``hanging``."""
    over = threading.Event()
    real = socket.getaddrinfo

    def fake(host: str, port: int, *args: Any, **named: Any) -> list[Any]:
        if host == "hanging.test":
            over.wait(60)
        if host == "failing.test":
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        if host in ("unknown.test", "hanging.test"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        where = "127.0.0.1" if host.endswith(".test") else host
        return list(real(where, port, *args, **named))

    monkeypatch.setattr(socket, "getaddrinfo", fake)
    yield
    over.set()
