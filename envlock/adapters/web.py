"""The door to servers: one request, with the certificates, proxies and credentials that people
configured for pip."""

from __future__ import annotations

import netrc
import os
import ssl
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import unquote, urljoin, urlsplit

import urllib3
from urllib3.exceptions import HTTPError, InsecureRequestWarning, LocationParseError
from urllib3.util import make_headers

from envlock import __version__
from envlock.adapters.index_settings import IndexSettings
from envlock.errors import UnusableInput
from envlock.model.transfer import is_coded, shown

_CHUNK = 256 * 1024
_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_REDIRECTS = 10
#: pip's own (``--timeout``): seconds without a connection, or without a byte.
SECONDS = 15.0


class Unreachable(Exception):
    """A request that got no answer, or none to its end.

    Attributes:
        final: asking the same again cannot help.
    """

    def __init__(self, why: str, *, final: bool = False) -> None:
        super().__init__(why)
        self.why, self.final = why, final


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer whose body is still to be read.

    Attributes:
        status: of HTTP; what a folder gives has one as well.
        headers: names in small letters.
        url: where it came from at last, after redirects.
        chunks: the body, not empty ones; raises :class:`Unreachable` where it breaks off.
    """

    status: int
    headers: Mapping[str, str]
    url: str
    chunks: Iterator[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Web:
    """Asks servers, and folders through ``file:`` URLs. May be used by several threads."""

    settings: IndexSettings
    env: Mapping[str, str]
    _pools: dict[tuple[str, bool], urllib3.PoolManager] = field(default_factory=dict)

    @contextmanager
    def get(self, url: str, headers: Mapping[str, str]) -> Iterator[Reply]:
        """One GET, redirects followed.

        Args:
            url: ``https:``, ``http:`` or ``file:``, absolute.

        Raises:
            Unreachable: there is no answer, or it breaks off while it is read.
        """
        if urlsplit(url).scheme == "file":
            yield _from_disk(url, headers)
            return
        response, last = self._follow(url, headers)
        try:
            found = {name.lower(): value for name, value in response.headers.items()}
            chunks = _body(response, is_coded(found))
            yield Reply(status=response.status, headers=found, url=last, chunks=chunks)
        finally:
            response.close()  # read to its end, its connection serves the next request all the same

    def _follow(self, url: str, headers: Mapping[str, str]) -> tuple[urllib3.BaseHTTPResponse, str]:
        for _ in range(_MOST_REDIRECTS):
            response = self._ask(url, headers)
            where = response.headers.get("location", "")
            if response.status not in _REDIRECTS or not where:
                return response, url
            response.close()
            url = urljoin(url, where)
            if urlsplit(url).scheme not in ("http", "https"):
                raise Unreachable(f"leads to '{shown(url)}', which is no http", final=True)
        raise Unreachable("leads in a circle", final=True)

    def _ask(self, url: str, headers: Mapping[str, str]) -> urllib3.BaseHTTPResponse:
        seconds = self.settings.timeout or SECONDS
        sent = {"User-Agent": f"envlock/{__version__}", **headers, **self.credentials(url)}
        try:
            return self._pool(url).request(
                "GET", without_user(url), headers=sent, preload_content=False, retries=False,
                redirect=False, timeout=urllib3.Timeout(connect=seconds, read=seconds),
            )  # fmt: skip
        except (HTTPError, OSError, ValueError) as error:
            raise _unreachable(error) from error

    # ------------------------------------------------------------------ who and through what

    def _pool(self, url: str) -> urllib3.PoolManager:
        key = (self.proxy(url), self.trusts(url))
        if key not in self._pools:
            self._pools[key] = self._new_pool(*key)
        return self._pools[key]

    def _new_pool(self, proxy: str, trusted: bool) -> urllib3.PoolManager:
        context = self.tls(trusted)
        if not proxy:
            return urllib3.PoolManager(ssl_context=context, maxsize=16)
        if "://" not in proxy:
            proxy = f"http://{proxy}"
        headers = proxy_login(proxy) or None
        try:
            return urllib3.ProxyManager(
                without_user(proxy), proxy_headers=headers, ssl_context=context, maxsize=16
            )
        except (HTTPError, ValueError) as error:
            raise UnusableInput(
                f"proxy: '{shown(proxy)}' cannot be used: {error}", "name an http or https proxy"
            ) from error

    def trusts(self, url: str) -> bool:
        """Whether the certificate of its server is taken as it is."""
        parts = urlsplit(url)
        return not {parts.hostname, f"{parts.hostname}:{parts.port}"}.isdisjoint(
            self.settings.trusted
        )

    def tls(self, trusted: bool) -> ssl.SSLContext:
        """The certificates of pip's ``cert``, of the variables that other tools read, or the
        machine's own.

        Raises:
            UnusableInput: the file is not there, or holds none.
        """
        named = next(
            filter(None, [self.settings.cert, *map(self.env.get, _CERT_VARIABLES)]), ""
        )  # fmt: skip
        try:
            context = _own_store() if not named else ssl.create_default_context()
            if named and os.path.isdir(named):
                context.load_verify_locations(capath=named)
            elif named:
                context.load_verify_locations(cafile=named)
            if self.settings.client_cert:
                context.load_cert_chain(self.settings.client_cert)
        except OSError as error:
            raise UnusableInput(
                f"certificates: '{named or self.settings.client_cert}' cannot be used: "
                f"{error.strerror or error}",
                "mend pip's 'cert' setting or the variable that names it",
            ) from error
        if trusted:  # the person has said so, and is not told again
            urllib3.disable_warnings(InsecureRequestWarning)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def proxy(self, url: str) -> str:
        """The URL of the proxy that a request goes through, as it was written; empty for none."""
        if self.settings.proxy:
            return self.settings.proxy
        scheme, host = urlsplit(url).scheme, urlsplit(url).hostname or ""
        known = {
            name.lower().removesuffix("_proxy"): value
            for name, value in sorted(self.env.items())  # small letters last: they win
            if name.lower().endswith("_proxy") and value
        }
        if not known and sys.platform in ("darwin", "win32"):
            known = urllib.request.getproxies()  # what the system's own settings say
        if urllib.request.proxy_bypass_environment(host, known):  # type: ignore[attr-defined]
            return ""
        return known.get(scheme) or known.get("all") or ""

    def credentials(self, url: str) -> dict[str, str]:
        """Those of the URL, of an index on the same server, or of netrc; never another server's."""
        same = (place for place in self._places() if _origin(place) == _origin(url))
        user = next(filter(None, map(_user_of, [url, *same])), "") or self._netrc(url)
        return make_headers(basic_auth=user) if user else {}

    def _places(self) -> tuple[str, ...]:
        return (self.settings.index, *self.settings.more, *self.settings.links)

    def _netrc(self, url: str) -> str:
        home = self.env.get("HOME") or os.path.expanduser("~")
        names = [os.path.join(home, name) for name in (".netrc", "_netrc")]
        for path in filter(None, [self.env.get("NETRC"), *names]):
            try:
                found = netrc.netrc(path).authenticators(urlsplit(url).hostname or "")
            except (OSError, netrc.NetrcParseError, UnicodeDecodeError):
                continue
            if found:
                return f"{found[0]}:{found[2]}"
        return ""


#: Read by curl, requests and OpenSSL itself.
_CERT_VARIABLES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")


def _own_store() -> ssl.SSLContext:
    """A context that trusts what the machine trusts."""
    if sys.platform in ("darwin", "win32"):
        # Python has no certificates of its own there; pip asks the system in the same way
        import truststore

        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return ssl.create_default_context()


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    try:
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        port = None
    return parts.scheme, parts.hostname or "", port


def _user_of(url: str) -> str:
    """``user:password`` of a URL, decoded; empty without one."""
    parts = urlsplit(url)
    if parts.username is None:
        return ""
    return f"{unquote(parts.username)}:{unquote(parts.password or '')}"


def proxy_login(proxy: str) -> dict[str, str]:
    """The header field with the credentials of a proxy's URL; nothing where it has none."""
    user = _user_of(proxy)
    return make_headers(proxy_basic_auth=user) if user else {}


def without_user(url: str) -> str:
    """A URL without credentials and fragment, as a request names it."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="").geturl()


def _body(response: urllib3.BaseHTTPResponse, coded: bool) -> Iterator[bytes]:
    """The body as it was before it was coded for the way.

    Raises:
        Unreachable: it breaks off.
    """
    try:
        if coded:
            yield from filter(None, response.stream(_CHUNK, decode_content=True))
        # as it comes: a reader that waits for a full piece loses what came before a break
        while not coded and (chunk := response.read1(_CHUNK, decode_content=False)):
            yield chunk
    except (HTTPError, OSError) as error:
        raise _unreachable(error) from error


_WORDS = (
    # the special before the general: urllib3 derives some of these from each other
    (urllib3.exceptions.NameResolutionError, "the name is not known"),
    (urllib3.exceptions.NewConnectionError, "no connection"),
    (urllib3.exceptions.ConnectTimeoutError, "no connection in time"),
    (urllib3.exceptions.ReadTimeoutError, "no answer in time"),
    (urllib3.exceptions.ProxyError, "the proxy cannot be used"),
    (urllib3.exceptions.IncompleteRead, "the connection was cut"),
    (urllib3.exceptions.InvalidChunkLength, "the connection was cut"),
    (urllib3.exceptions.ProtocolError, "the connection was cut"),
    (urllib3.exceptions.DecodeError, "the body is not coded as it says"),
)


def _unreachable(error: Exception) -> Unreachable:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return Unreachable(
                f"its certificate is not trusted: {cause.verify_message}", final=True
            )
        cause = cause.__cause__ or cause.__context__
    for kind, words in _WORDS:
        if isinstance(error, kind):
            return Unreachable(words)
    final = isinstance(error, LocationParseError | ValueError)
    return Unreachable(f"{type(error).__name__}: {error}", final=final)


def _from_disk(url: str, headers: Mapping[str, str]) -> Reply:
    """A file as a server would give it, its ``index.html`` for a folder."""
    path = path_of(url)
    if os.path.isdir(path):
        path, url = os.path.join(path, "index.html"), f"{url.rstrip('/')}/"
    try:
        size = os.stat(path).st_size
    except OSError as error:
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            return Reply(status=404, headers={}, url=url, chunks=iter(()))
        raise Unreachable(error.strerror or str(error), final=True) from error
    start = int(headers.get("Range", "bytes=0-")[6:-1])
    if not start:
        answer = {"content-length": str(size)}
        return Reply(status=200, headers=answer, url=url, chunks=_chunks(path, 0))
    answer = {"content-range": f"bytes {start}-{size - 1}/{size}"}
    return Reply(status=206, headers=answer, url=url, chunks=_chunks(path, start))


def _chunks(path: str, start: int) -> Iterator[bytes]:
    try:
        with open(path, "rb") as file:
            file.seek(start)
            while chunk := file.read(_CHUNK):
                yield chunk
    except OSError as error:
        raise Unreachable(error.strerror or str(error), final=True) from error


def path_of(url: str) -> str:
    """The path of a ``file:`` URL."""
    parts = urlsplit(url)
    host = f"//{parts.netloc}" if parts.netloc not in ("", "localhost") else ""
    return urllib.request.url2pathname(host + parts.path)
