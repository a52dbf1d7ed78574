"""Whether the indexes that a command would ask can be reached, found out quickly."""

from __future__ import annotations

import os
import re
import socket
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from urllib.parse import urlsplit

_URL = re.compile(r"https?://[^\s'\",\]\)]+")
_PORTS = {"http": 80, "https": 443}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")

#: Asked before a dry run; a host that is there answers much sooner.
PROBE_SECONDS = 1.0


def has_route() -> bool:
    """Whether this machine has any way out; a machine that cannot tell is taken to have one."""
    try:
        lines = Path("/proc/net/route").read_text().splitlines()[1:]
        six = Path("/proc/net/ipv6_route").read_text().splitlines()
    except OSError:
        return True
    return any(lines) or any(line and line.split()[-1] != "lo" for line in six)


def default_index() -> list[str]:
    """The index that pip and uv ask when nobody has named another one, as envlock's own pip knows
    it; empty where pip does not say, and then the network is taken to be there."""
    try:
        # no part of pip's interface, and the only place where the address is written down
        from pip._internal.models.index import PyPI
    except ImportError:
        return []
    return [PyPI.simple_url]


def urls_in(*texts: str) -> list[str]:
    """Every http and https URL in command lines, variables and configuration files."""
    return [url for text in texts for url in _URL.findall(text)]


def config_folders(env: Mapping[str, str]) -> list[str]:
    """Where tools look for settings of the machine and of the person (XDG base directories)."""
    home = env.get("HOME", "")
    machine = env.get("XDG_CONFIG_DIRS") or "/etc/xdg"
    return [*machine.split(os.pathsep), env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")]


def uses_proxy(env: Mapping[str, str]) -> bool:
    """Whether a proxy stands between: then a direct connection proves nothing."""
    return any(env.get(name) for name in env if name.lower() in ("http_proxy", "https_proxy",
                                                                 "all_proxy"))  # fmt: skip


def reachable(urls: Iterable[str], seconds: float = PROBE_SECONDS) -> bool:
    """Whether one of the hosts answers in time; a connection that is accepted is no answer yet.

    Names are looked up in threads of their own: a resolver without a network answers after ten
    seconds, and nothing can interrupt it.
    """
    wanted = {_Server.of(url) for url in urls}
    if not has_route():
        wanted = {server for server in wanted if server.host in _LOOPBACK}
    answers: Queue[bool] = Queue()
    for server in wanted:
        threading.Thread(target=_ask, args=(server, seconds, answers), daemon=True).start()
    until = time.monotonic() + seconds
    try:
        return any(answers.get(timeout=max(0.0, until - time.monotonic())) for _ in wanted)
    except Empty:
        return False


@dataclass(frozen=True, slots=True)
class _Server:
    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> _Server:
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = None
        return cls(parts.scheme, parts.hostname or "", port or _PORTS.get(parts.scheme, 443))


def _ask(server: _Server, seconds: float, answers: Queue[bool]) -> None:
    try:
        with socket.create_connection((server.host, server.port), seconds) as connection:
            answers.put(_speaks(connection, server))
    except (OSError, ValueError):  # no host name, one that IDNA does not know
        answers.put(False)


def _speaks(connection: socket.socket, server: _Server) -> bool:
    """Whether there is a server behind the connection. Nothing is asked for and nothing believed:
    a TLS handshake whose certificate nobody looks at, or a request that any server can answer."""
    if server.scheme == "https":
        import ssl  # 27 ms, needed by few

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # reading the authorities takes 20 ms
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        with context.wrap_socket(connection, server_hostname=server.host):
            return True
    connection.sendall(f"OPTIONS * HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
    return bool(connection.recv(1))
