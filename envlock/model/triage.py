"""Where a way to a server ends, and what that means for the person at the machine. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from envlock.model.facts import Finding


class What(str, Enum):
    """What a server is needed for."""

    INDEX = "index"
    FILES = "file host"
    CODE = "code host"
    HUB = "model hub"
    PROXY = "proxy"


class Verdict(str, Enum):
    """How a question ended; the value is the last part of a finding's code."""

    ANSWERS = "answers"
    NOT_ASKED = "not-asked"
    BUSY = "busy"
    SETTINGS = "settings"
    NO_INTERFACE = "no-interface"
    NAME_UNKNOWN = "name-unknown"
    NAME_FAILS = "name-fails"
    NAME_HANGS = "name-hangs"
    REFUSED = "refused"
    NO_ROUTE = "no-route"
    CONNECTION_FAILS = "connection-fails"
    CONNECTION_HANGS = "connection-hangs"
    TLS_CUT = "tls-cut"
    TLS_HANGS = "tls-hangs"
    NOT_TLS = "not-tls"
    UNTRUSTED = "untrusted"
    HTTP_CUT = "http-cut"
    HTTP_HANGS = "http-hangs"
    NOT_HTTP = "not-http"
    STATUS = "status"
    ELSEWHERE = "elsewhere"
    NOT_INDEX = "not-index"
    NOT_FILE = "not-file"
    PROXY_HANGS = "proxy-hangs"
    PROXY_LOGIN = "proxy-login"
    PROXY_REFUSES = "proxy-refuses"


#: Silence on the way to a server, by what it was silent about.
HANGS = {
    Verdict.CONNECTION_HANGS: "nobody takes the connection",
    Verdict.TLS_HANGS: "the connection is taken, and TLS gets no answer",
    Verdict.HTTP_HANGS: "the request gets no answer",
}

#: ``{detail}`` is the answer's own; a verdict of :data:`HANGS` is put together in ``words``.
_WORDS = {
    Verdict.ANSWERS: "answers",
    Verdict.NOT_ASKED: "not asked: {detail}",
    Verdict.BUSY: "not known: this machine had no time to ask",
    Verdict.SETTINGS: "cannot be asked: {detail}",
    Verdict.NO_INTERFACE: "no network interface leads out of this machine",
    Verdict.NAME_UNKNOWN: "DNS says that there is no such name",
    Verdict.NAME_FAILS: "DNS fails: {detail}",
    Verdict.NAME_HANGS: "DNS hangs: no answer to the name",
    Verdict.REFUSED: "the connection is refused",
    Verdict.NO_ROUTE: "there is no way to its address: {detail}",
    Verdict.CONNECTION_FAILS: "no connection: {detail}",
    Verdict.TLS_CUT: "the connection is cut as soon as TLS begins",
    Verdict.NOT_TLS: "answers, but not with TLS: {detail}",
    Verdict.UNTRUSTED: "its certificate is not trusted: {detail}",
    Verdict.HTTP_CUT: "the connection is cut after the request",
    Verdict.NOT_HTTP: "answers, but not with HTTP",
    Verdict.STATUS: "answers with status {detail}",
    Verdict.ELSEWHERE: "leads to '{detail}' instead of answering",
    Verdict.NOT_INDEX: "answers with a page that is none of an index",
    Verdict.NOT_FILE: "answers with a page where a file should be",
    Verdict.PROXY_HANGS: "takes the connection and says nothing",
    Verdict.PROXY_LOGIN: "wants a name and a password (status 407)",
    Verdict.PROXY_REFUSES: "refuses to connect (status {detail})",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What a tool's own configuration says about how its servers are reached.

    Attributes:
        proxy: its URL, as it was written; empty where the variables decide.
        proxy_origin: where it was configured.
        cert: a file of certificate authorities.
        client_cert: a file with this client's own certificate and key.
        trusted: hosts whose certificate is not checked.
    """

    proxy: str = ""
    proxy_origin: str = ""
    cert: str = ""
    client_cert: str = ""
    trusted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A server that somebody will want to ask.

    Attributes:
        url: as it was configured, with its password: never for people.
        origin: where it was configured: a variable, a file and its section, ``default``.
        tools: who asks it, e.g. ``pip and uv``.
        page: the URL is a page of links itself, and not the index that has one for each project.
    """

    what: What
    url: str = field(repr=False)
    origin: str = "default"
    tools: str = ""
    page: bool = False
    access: Access = field(default=Access(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What became of the question to one place. Holds no password.

    Attributes:
        url: for people.
        detail: what the verdict's words need besides.
        named: the server was looked up by its name, which DNS has answered.
        proxy: that the way goes through, for people; empty for none.
        at_proxy: the way ended there.
        seconds: until it was known.
    """

    what: What
    url: str
    verdict: Verdict
    origin: str = "default"
    tools: str = ""
    detail: str = ""
    named: bool = False
    proxy: str = ""
    at_proxy: bool = False
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        """Whether nothing is wrong with it, as far as anybody knows."""
        return self.verdict in (Verdict.ANSWERS, Verdict.NOT_ASKED)

    @property
    def blocked(self) -> bool:
        """Whether its name is answered and nothing else: what is usual on a machine whose way out
        is closed."""
        return self.named and not self.at_proxy and self.verdict in HANGS and self._secure

    @property
    def _secure(self) -> bool:
        return self.url.startswith("https:")

    @property
    def words(self) -> str:
        """The verdict in words.

        >>> Answer(what=What.HUB, url="https://a.invalid", verdict=Verdict.TLS_HANGS,
        ...        named=True).words
        'DNS answers but HTTPS hangs: the connection is taken, and TLS gets no answer'
        """
        if self.at_proxy or self.what is What.PROXY:
            said = HANGS.get(self.verdict) or _WORDS[self.verdict].format(detail=self.detail)
        elif self.verdict in HANGS:
            said = f"{'HTTPS' if self._secure else 'HTTP'} hangs: {HANGS[self.verdict]}"
            said = f"DNS answers but {said}" if self.named else said
        else:
            said = _WORDS[self.verdict].format(detail=self.detail)
        if self.what is What.PROXY or not self.proxy:
            return said
        way = "the proxy" if self.at_proxy else "through the proxy"
        return f"{way} '{self.proxy}': {said}"


def as_data(answers: Iterable[Answer]) -> list[dict[str, Any]]:
    """Plain values for a JSON document, one for each answer."""
    return [
        {
            "what": one.what.value,
            "url": one.url,
            "origin": one.origin,
            "tools": one.tools,
            "verdict": one.verdict.value,
            "words": one.words,
            "proxy": one.proxy,
            "seconds": round(one.seconds, 2),
        }
        for one in answers
    ]


_CARRY = "on a machine that has a network: envlock wheelhouse build, and carry it here as a kit"
#: What to do without a server.
_WITHOUT = {
    What.INDEX: _CARRY,
    What.FILES: _CARRY,
    What.CODE: "clone on a machine that has a network, and carry the files here",
    What.HUB: "carry the model here, or name a hub that answers: HF_ENDPOINT=URL",
    What.PROXY: "take the proxy out of the settings, or ask for one that works",
}
_NO_NEED = "guard, restore and verify need no network"
_PROXY = "ask whoever runs the proxy, or take it out of the settings"

#: Why it matters, what to do and how bad it is; no hint: that of :data:`_WITHOUT`.
_MEANING: Mapping[Verdict, tuple[str, str, str]] = {
    Verdict.BUSY: ("", "ask again when there is less to do", "info"),
    Verdict.SETTINGS: ("", "mend the setting", "error"),
    Verdict.NAME_UNKNOWN: ("a typing error, or DNS of a closed network", "", "warning"),
    Verdict.NAME_FAILS: ("no name is answered here", "see /etc/resolv.conf", "warning"),
    Verdict.NAME_HANGS: ("every tool waits for DNS, ten seconds and more", "", "warning"),
    Verdict.REFUSED: ("nobody listens there, or a firewall says no", "", "warning"),
    Verdict.TLS_CUT: ("something on the way does not let this name through", "", "warning"),
    Verdict.NOT_TLS: (
        "a proxy or a login page may be answering in its place", "is it http, not https?", "error",
    ),
    Verdict.UNTRUSTED: (
        "another machine may be answering in its place, or the network has its own authority",
        "name the authority's file: PIP_CERT, SSL_CERT_FILE, GIT_SSL_CAINFO; see also the clock",
        "error",
    ),
    Verdict.ELSEWHERE: (
        "a network that wants a login first (a captive portal) does this",
        "open the page in a browser and log in, or name another server", "warning",
    ),
    Verdict.NOT_INDEX: (
        "a login page, or a URL that is not the index's own",
        "see the URL in a browser; that of an index ends with /simple as a rule", "error",
    ),
    Verdict.NOT_FILE: ("a login page, or a mirror that lost the file", "", "warning"),
    Verdict.PROXY_HANGS: ("every tool waits for it", _PROXY, "error"),
    Verdict.PROXY_LOGIN: (
        "", "put them into its URL: http://USER:PASSWORD@HOST:PORT, special signs as %XX", "error",
    ),
    Verdict.PROXY_REFUSES: ("", _PROXY, "error"),
}  # fmt: skip


def findings(answers: Sequence[Answer]) -> tuple[Finding, ...]:
    """What is wrong, each thing once with all places that it is true of; nothing when all is well.

    The state that is usual on a closed machine is one finding, not one for each place.
    """
    bad = [one for one in answers if not one.good]
    blocked = [one for one in bad if one.blocked]
    if len(blocked) > 1 and not any(one.verdict is Verdict.ANSWERS for one in answers):
        found = [_closed(blocked)]
    else:
        found, blocked = [], []
    groups: dict[tuple[str, ...], list[Answer]] = {}
    for one in bad:
        if one not in blocked:
            groups.setdefault(_alike(one), []).append(one)
    return (*found, *map(_finding, groups.values()))


def _alike(answer: Answer) -> tuple[str, ...]:
    """What is the same for answers that make one finding."""
    if answer.at_proxy or answer.what is What.PROXY:
        return ("proxy", answer.proxy or answer.url, answer.verdict, answer.detail)
    return (answer.verdict, answer.words)


def _closed(blocked: Sequence[Answer]) -> Finding:
    return Finding(
        code="network.https-hangs",
        subject=_subjects(blocked),
        what="DNS answers but HTTPS hangs",
        why="usual where the way out is closed: pip, git and downloads wait here and do not fail",
        hint=f"nothing to mend on this machine; {_CARRY}; {_NO_NEED}",
    )


def _finding(alike: Sequence[Answer]) -> Finding:
    first = alike[0]
    why, hint, level = _MEANING.get(first.verdict, ("", "", "warning"))
    subject, what = _subjects(alike), f"{first.words} ({_where(alike)})"
    through = first.at_proxy or first.what is What.PROXY
    if through:
        users = list(dict.fromkeys(one.what.value for one in alike if one.what is not What.PROXY))
        subject = What.PROXY.value
        what = f"'{first.proxy or first.url}': {_alone(first)}"
        why = f"needed for: {', '.join(users)}" if users else why
        level = "error"
    code = "https-hangs" if first.blocked else first.verdict.value
    return Finding(
        code=f"network.{'proxy-' if through and 'proxy' not in code else ''}{code}",
        subject=subject,
        what=what,
        why=why,
        hint=hint or _without(alike, through),
        level=level,
    )


def _without(alike: Sequence[Answer], through: bool) -> str:
    if through:
        return _WITHOUT[What.PROXY]
    hints = {_WITHOUT[one.what] for one in alike}
    return hints.pop() if len(hints) == 1 else f"{_CARRY}; {_NO_NEED}"


def _alone(answer: Answer) -> str:
    """The words without the proxy in front."""
    return answer.words.removeprefix(f"the proxy '{answer.proxy}': ")


def _subjects(answers: Sequence[Answer]) -> str:
    return ", ".join(dict.fromkeys(one.what.value for one in answers))


def _where(answers: Sequence[Answer]) -> str:
    places = dict.fromkeys(
        one.url if one.origin == "default" else f"{one.url}, from {one.origin}" for one in answers
    )
    return "; ".join(places)
