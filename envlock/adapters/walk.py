"""One request, step by step, so that another thread sees at any time which step it is in."""

from __future__ import annotations

import errno
import ipaddress
import os
import selectors
import socket
import ssl
import time
from contextlib import suppress
from http.client import (
    BadStatusLine,
    HTTPConnection,
    HTTPException,
    HTTPResponse,
    IncompleteRead,
)
from typing import Any
from urllib.parse import urlsplit

from envlock import __version__
from envlock.adapters.network import Server
from envlock.adapters.web import Web, proxy_login, without_user
from envlock.errors import UnusableInput
from envlock.model.transfer import shown
from envlock.model.triage import Verdict

_NO_WAY = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EADDRNOTAVAIL)
#: Addresses of one name that are tried, all at the same time.
_ADDRESSES = 6


class Stopped(Exception):
    """The way ends here.

    Attributes:
        detail: of :class:`~envlock.model.triage.Answer`.
    """

    def __init__(self, verdict: Verdict, detail: str = "") -> None:
        super().__init__(verdict.value, detail)
        self.verdict, self.detail = verdict, detail


class Walk:
    """The way to one server: its name, the connection, the proxy, TLS, the answer.

    Attributes:
        silent: the verdict if nothing more comes from now on.
        named: DNS has answered to the server's name.
        proxy: the way goes through it, for people.
        at_proxy: the way has not come further than that.
    """

    def __init__(self, web: Web, seconds: float) -> None:
        self.silent = Verdict.NAME_HANGS
        self.named = self.at_proxy = False
        self.proxy = ""
        self._web, self._until = web, time.monotonic() + seconds
        self._open: list[socket.socket | HTTPResponse] = []

    def close(self) -> None:
        """Ends a conversation of which enough was heard."""
        for one in self._open:
            with suppress(OSError):
                one.close()

    def ask(self, url: str, headers: dict[str, str]) -> HTTPResponse:
        """One GET, no redirect followed; the head of the answer has come.

        Raises:
            Stopped: it did not get there.
        """
        try:
            return self._ask(url, headers)
        except Stopped:
            self.close()
            raise
        except (OSError, ValueError, HTTPException, UnusableInput) as error:
            self.close()
            raise self.stopped(error) from error

    def knock(self, url: str) -> None:
        """Connects to a proxy, and no more.

        Raises:
            Stopped: it does not take the connection.
        """
        try:
            self._to_proxy(_server(url))
            self.close()
        except (OSError, ValueError, UnusableInput) as error:
            raise self.stopped(error) from error

    def stopped(self, error: Exception) -> Stopped:
        """What an error says in the step that this is in."""
        if isinstance(error, TimeoutError):
            return Stopped(self.silent)
        if isinstance(error, UnusableInput):
            return Stopped(Verdict.SETTINGS, error.message)
        return Stopped(*_READERS[self.silent](error))

    def _ask(self, url: str, headers: dict[str, str]) -> HTTPResponse:
        server, proxy = _server(url), self._web.proxy(url)
        secure = server.scheme == "https"
        connection = self._through(proxy, server) if proxy else self._connect(server)
        self.named = not proxy and not _is_address(server.host)
        if secure:
            self.silent = Verdict.TLS_HANGS
            context = self._web.tls(self._web.trusts(url))
            connection = self._handshake(context, connection, server.host)
        self.silent = Verdict.HTTP_HANGS
        sent = {"User-Agent": f"envlock/{__version__}", **headers, **self._web.credentials(url)}
        where = without_user(url)
        if secure or not proxy:
            parts = urlsplit(where)
            where = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        else:
            sent |= proxy_login(proxy)
        talk = HTTPConnection(server.host, server.port)
        talk.sock = connection
        talk.request("GET", where, headers=sent)
        answer = talk.getresponse()
        self._open.append(answer)
        if answer.status == 407:
            self.at_proxy = True
            raise Stopped(Verdict.PROXY_LOGIN)
        return answer

    def _through(self, proxy: str, server: Server) -> socket.socket:
        proxy = full_url(proxy)
        self.proxy, self.at_proxy = shown(proxy), True
        connection = self._to_proxy(_server(proxy))
        if server.scheme == "https":
            self.silent = Verdict.PROXY_HANGS
            place = f"[{server.host}]" if ":" in server.host else server.host
            lines = [f"CONNECT {place}:{server.port} HTTP/1.1", f"Host: {place}:{server.port}"]
            lines += [f"{name}: {value}" for name, value in proxy_login(proxy).items()]
            connection.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))
            answer = HTTPResponse(connection, method="CONNECT")
            self._open.append(answer)
            answer.begin()
            if answer.status == 407:
                raise Stopped(Verdict.PROXY_LOGIN)
            if answer.status != 200:
                raise Stopped(Verdict.PROXY_REFUSES, str(answer.status))
        self.at_proxy = False
        return connection

    def _to_proxy(self, there: Server) -> socket.socket:
        if there.scheme not in ("http", "https"):
            raise Stopped(Verdict.NOT_ASKED, f"envlock does not speak {there.scheme.upper()}")
        connection = self._connect(there)
        if there.scheme == "https":
            self.silent = Verdict.TLS_HANGS
            connection = self._handshake(self._web.tls(False), connection, there.host)
        return connection

    def _connect(self, server: Server) -> socket.socket:
        self.silent = Verdict.NAME_HANGS
        found = socket.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM)
        self.named, self.silent = not _is_address(server.host), Verdict.CONNECTION_HANGS
        connection = _first(found[:_ADDRESSES], self._until)
        self._open.append(connection)
        return connection

    def _handshake(self, context: ssl.SSLContext, plain: Any, host: str) -> socket.socket:
        if isinstance(plain, ssl.SSLSocket):  # inside the TLS of a proxy
            from urllib3.util.ssltransport import SSLTransport

            return SSLTransport(plain, context, server_hostname=host)  # type: ignore[return-value]
        secure = context.wrap_socket(plain, server_hostname=host)
        self._open.append(secure)
        return secure


def full_url(proxy: str) -> str:
    """A proxy's URL, which people write without a scheme too."""
    return proxy if "://" in proxy else f"http://{proxy}"


def _server(url: str) -> Server:
    server = Server.of(url)
    if server is None or not server.host or not _has_port(url):
        raise Stopped(Verdict.SETTINGS, "it is no URL of a server")
    return server


def _has_port(url: str) -> bool:
    """Whether the port of a URL is a number, or not there."""
    try:
        urlsplit(url).port  # noqa: B018
    except ValueError:
        return False
    return True


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _first(addresses: list[Any], until: float) -> socket.socket:
    """A connection to the address that takes one first: a name may have another one that nobody
    answers at (IPv6, as a rule).

    Raises:
        OSError: the first refusal, where all refuse.
        TimeoutError: some say nothing.
    """
    problem: OSError | None = None
    with selectors.DefaultSelector() as open_ones:
        for family, kind, protocol, _, address in addresses:
            try:
                one = socket.socket(family, kind, protocol)
                one.setblocking(False)
                code = one.connect_ex(address)
            except OSError as error:  # a family that this machine does not have
                problem = problem or error
                continue
            if code in (0, errno.EINPROGRESS, errno.EWOULDBLOCK):
                open_ones.register(one, selectors.EVENT_WRITE)
            else:
                problem = problem or OSError(code, os.strerror(code))
                one.close()
        try:
            return _wait(open_ones, until, problem)
        finally:
            for key in list(open_ones.get_map().values()):
                key.fileobj.close()  # type: ignore[union-attr]


def _wait(
    open_ones: selectors.BaseSelector, until: float, problem: OSError | None
) -> socket.socket:
    while open_ones.get_map():
        left = until - time.monotonic()
        ready = open_ones.select(max(0.0, left))
        if not ready and left <= 0:
            raise TimeoutError
        for key, _ in ready:
            one = key.fileobj
            assert isinstance(one, socket.socket)
            open_ones.unregister(one)
            code = one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if not code:
                one.settimeout(max(0.1, until - time.monotonic()))
                return one
            one.close()
            problem = problem or OSError(code, os.strerror(code))
    raise problem or TimeoutError


# --------------------------------------------------------------------- what errors mean


def _said(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _of_name(error: Exception) -> tuple[Verdict, str]:
    if isinstance(error, UnicodeError) or not isinstance(error, OSError):
        return Verdict.SETTINGS, "its host name is none"
    unknown = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}
    if isinstance(error, socket.gaierror) and error.errno in unknown:
        return Verdict.NAME_UNKNOWN, ""
    return Verdict.NAME_FAILS, _said(error)


def _of_connection(error: Exception) -> tuple[Verdict, str]:
    number = getattr(error, "errno", None)
    if number == errno.ECONNREFUSED:
        return Verdict.REFUSED, ""
    if number in _NO_WAY:
        return Verdict.NO_ROUTE, _said(error)
    return Verdict.CONNECTION_FAILS, _said(error)


def _of_tls(error: Exception) -> tuple[Verdict, str]:
    if isinstance(error, ssl.SSLCertVerificationError):
        return Verdict.UNTRUSTED, error.verify_message
    if isinstance(error, ssl.SSLEOFError | ConnectionError):
        return Verdict.TLS_CUT, ""
    reason = (getattr(error, "reason", None) or _said(error)).replace("_", " ").lower()
    return Verdict.NOT_TLS, reason


def _of_answer(error: Exception) -> tuple[Verdict, str]:
    return (Verdict.NOT_HTTP, "") if _garbled(error) else (Verdict.HTTP_CUT, "")


def _garbled(error: Exception) -> bool:
    if isinstance(error, BadStatusLine):
        # http.client's own way to say that the connection was closed
        return not isinstance(error, ConnectionError)
    return isinstance(error, HTTPException | ValueError) and not isinstance(error, IncompleteRead)


_READERS = {
    Verdict.NAME_HANGS: _of_name,
    Verdict.CONNECTION_HANGS: _of_connection,
    Verdict.TLS_HANGS: _of_tls,
    Verdict.PROXY_HANGS: _of_answer,
    Verdict.HTTP_HANGS: _of_answer,
}
