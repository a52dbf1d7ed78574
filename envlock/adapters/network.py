"""Whether the indexes that a command would ask can be reached, found out quickly."""

from __future__ import annotations

import glob
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from urllib.parse import urlsplit

#: The brackets are those of an IPv6 address (RFC 3986, 3.2.2); any other one ends a list.
_URL = re.compile(
    r"https?://(?:(?:[^\s'\",\]\)/@]*@)?\[[0-9A-Za-z:.%~_-]+\][^\s'\",\]\)]*|[^\s'\",\]\)]+)"
)
_PORTS = {"http": 80, "https": 443}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")

_TASKS = "/proc/self/task/*"

#: Asked before a dry run; a host that is there answers much sooner.
PROBE_SECONDS = 1.0
#: So many times as long for the first words of one that took the connection: the way there is open.
#: Not on this machine, where the kernel takes it for a server that may be hanging.
_TAKEN = 4
#: Seconds given at most for time in which this process was ready to run and had no processor.
_STARVED = 3.0


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

    A name that is not known, a refusal and a missing route are answers that come at once. Only
    silence is waited for, and a busy machine is no silent host: what the machine took from this
    process does not count.

    Names are looked up in threads of their own: a resolver without a network answers after ten
    seconds, and nothing can interrupt it.

    Args:
        seconds: for a host that gives no sign of life; it may be four times as long for one that
            took the connection, and three seconds more on a machine that has no time for us.
    """
    wanted = {server for url in urls if (server := Server.of(url))}
    if not has_route():
        wanted = {server for server in wanted if server.local}
    if any(server.scheme == "https" for server in wanted):
        import ssl  # noqa: F401 - 27 ms on an idle machine: before anybody looks at the clock
    questions = [_Question(server, seconds * _TAKEN + _STARVED) for server in wanted]
    answers: Queue[bool] = Queue()
    started, starved = time.monotonic(), starvation()
    for question in questions:
        threading.Thread(target=question.ask, args=(answers,), daemon=True).start()
    left = len(questions)
    while left:
        open_way = any(question.taken for question in questions)
        limit = seconds * (_TAKEN if open_way else 1) + min(starved(), _STARVED)
        patience = started + limit - time.monotonic()
        try:
            if answers.get(timeout=max(0.0, patience)):
                return True
            left -= 1
        except Empty:
            if patience <= 0:  # else there may be more of it by now
                return False
    return False


def starvation() -> Callable[[], float]:
    """What tells, from now on, for how many seconds this process was ready and did not run."""
    before = _run_delays()
    return lambda: _delayed(before)


def _run_delays() -> dict[str, int]:
    """Nanoseconds for which each thread of this process was ready and did not run, by its number
    (Linux, ``schedstat``); empty where the kernel does not say."""
    found = {}
    for task in glob.glob(_TASKS):
        with suppress(OSError, IndexError, ValueError):  # a thread that has ended meanwhile
            found[task] = int(Path(task, "schedstat").read_text().split()[1])
    return found


def _delayed(before: Mapping[str, int]) -> float:
    """Seconds for which the thread that fared worst did not run though it was ready."""
    now = _run_delays()
    return max((ns - before.get(task, 0) for task, ns in now.items()), default=0) / 1e9


@dataclass(frozen=True, slots=True)
class Server:
    """Whom a URL names.

    Attributes:
        host: empty where the URL has none.
        port: the scheme's own where the URL has none.
    """

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> Server | None:
        """The server of a URL; None for a text that only begins like one."""
        try:
            parts = urlsplit(url)
        except ValueError:
            return None
        try:
            port = parts.port
        except ValueError:
            port = None
        return cls(parts.scheme, parts.hostname or "", port or _PORTS.get(parts.scheme, 443))

    @property
    def local(self) -> bool:
        """Whether it is this machine."""
        return self.host in _LOOPBACK


class _Question:
    """One server that is asked for a sign of life.

    Attributes:
        taken: whether a server elsewhere has taken the connection and said nothing yet.
    """

    def __init__(self, server: Server, seconds: float) -> None:
        self.taken = False
        self._server, self._seconds = server, seconds

    def ask(self, answers: Queue[bool]) -> None:
        spoke = False
        place = (self._server.host, self._server.port)
        try:
            with socket.create_connection(place, self._seconds) as connection:
                self.taken = not self._server.local
                connection.sendall(_first_words(self._server))
                spoke = bool(connection.recv(1))
        except (OSError, ValueError):  # no host name, one that IDNA does not know
            pass
        self.taken = False
        answers.put(spoke)


def _first_words(server: Server) -> bytes:
    """What any server has an answer to. Nothing is asked for and nothing believed: the beginning
    of a TLS handshake, which needs no certificate yet, or a request about the server itself."""
    if server.scheme == "https":
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # reading the authorities takes 20 ms
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        words = ssl.MemoryBIO()
        handshake = context.wrap_bio(ssl.MemoryBIO(), words, server_hostname=server.host)
        with suppress(ssl.SSLWantReadError):
            handshake.do_handshake()
        return words.read()
    return f"OPTIONS * HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode()
