"""Asks every place that people and tools will want, at the same time and for a short while.

Where the way to a server ends is seen by :mod:`~envlock.adapters.walk`, who the servers are by
:mod:`~envlock.adapters.places`, what it means is in :mod:`~envlock.model.triage`.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPException, HTTPResponse, responses
from urllib.parse import urljoin, urlsplit

from envlock.adapters.index_settings import IndexSettings
from envlock.adapters.network import Server, has_route, starvation
from envlock.adapters.simple_index import from_html, from_json
from envlock.adapters.walk import Stopped, Walk, full_url
from envlock.adapters.web import Web
from envlock.model.transfer import shown
from envlock.model.triage import HANGS, Answer, Place, Verdict, What, findings

__all__ = ["findings", "triage"]

_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_REDIRECTS = 5
#: A project that every index of the public kind has; its page is not large.
_PROJECT = "pip"
#: So much of a page is read for a link to a file, in bytes: a page of JSON is read to its end.
_HEAD, _WHOLE, _PIECE = 256 * 1024, 8 * 1024 * 1024, 16 * 1024
_FILES = (".whl", ".tar.gz", ".zip", ".egg", ".tar.bz2")
_SILENT = {*HANGS, Verdict.NAME_HANGS, Verdict.PROXY_HANGS}
_ASKED = {
    What.INDEX: {"Accept": "text/html, */*;q=0.1", "Accept-Encoding": "identity"},
    What.FILES: {"Accept-Encoding": "identity", "Range": "bytes=0-63"},
}


def triage(
    places: Sequence[Place], *, seconds: float = 3.0, env: Mapping[str, str]
) -> tuple[Answer, ...]:
    """What became of a question to each place, to the host of an index's files, and to each proxy.

    Ends in time whatever hangs: looking up a name cannot be called off, so that each question has
    a thread of its own, which nobody waits for longer.

    Args:
        seconds: for all of it.
        env: for proxies, certificates and the place of ``.netrc``.

    Returns:
        Index and file host, code host, model hub, in the order of the places; proxies last.
    """
    started, starved = time.monotonic(), starvation()
    out = has_route()
    lines = [_Line(place, env, started + seconds, out) for place in places]
    threads = [threading.Thread(target=line.run, daemon=True) for line in lines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, started + seconds - time.monotonic()))
    busy = starved() > seconds / 3
    questions = [question for line in lines for question in line.questions]
    answers = [question.answer(busy, seconds) for question in questions]
    answers += [*_unasked(lines), *_proxies(questions, answers, env)]
    alike = {(one.what, one.url, one.words): one for one in reversed(answers)}
    return tuple(alike.values())[::-1]


class _Line:
    """What one thread asks: a place, and the host of its files where it is an index."""

    def __init__(self, place: Place, env: Mapping[str, str], until: float, out: bool) -> None:
        access = place.access
        settings = IndexSettings(
            index=place.url if place.what is What.INDEX else "",
            proxy=access.proxy,
            cert=access.cert,
            client_cert=access.client_cert,
            trusted=access.trusted,
        )
        self._web, self._until, self._out = Web(settings=settings, env=env), until, out
        self._place = place
        self.questions = [self._question(place.what, _asked(place), _told(place.url))]

    def run(self) -> None:
        first = self.questions[0]
        first.run()
        if first.file:
            url = _server_of(first.file)
            follows = self._question(What.FILES, first.file, url)
            self.questions.append(follows)
            follows.run()

    def _question(self, what: What, url: str, told: str) -> _Question:
        question = _Question(what, url, self._web, self._until, self._out)
        question.told, question.place = told, self._place
        return question


class _Question:
    """One server that is asked, redirects of an index and of a file followed.

    Attributes:
        told: the URL for people.
        file: URL of a file that the index links to; empty for none.
    """

    told: str
    place: Place

    def __init__(self, what: What, url: str, web: Web, until: float, out: bool) -> None:
        self.what, self.file, self._url, self._web, self._out = what, "", url, web, out
        self._started, self._until = time.monotonic(), until
        self._end: tuple[Verdict, str, float] | None = None
        self.walk = self._new_walk()

    def run(self) -> None:
        try:
            verdict, detail = self._go()
        except Stopped as stopped:
            verdict, detail = stopped.verdict, stopped.detail
        self._end = (verdict, detail, time.monotonic() - self._started)

    def answer(self, busy: bool, seconds: float) -> Answer:
        """What is known by now.

        Args:
            busy: silence proves nothing, since this process had no time to listen.
            seconds: that silence lasted.
        """
        verdict, detail, took = self._end or (self.walk.silent, "", seconds)
        if busy and verdict in _SILENT:
            verdict = Verdict.BUSY
        origin = self.place.origin
        if self.what is not self.place.what:
            origin = f"a link of {_told(self.place.url)}"
        return Answer(
            what=self.what, url=self.told, verdict=verdict, detail=detail, origin=origin,
            tools=self.place.tools, named=self.walk.named, proxy=self.walk.proxy,
            at_proxy=self.walk.at_proxy, seconds=took,
        )  # fmt: skip

    def _new_walk(self) -> Walk:
        return Walk(self._web, self._until - time.monotonic())

    def _go(self) -> tuple[Verdict, str]:
        if Server.of(self._url) is None:
            raise Stopped(Verdict.SETTINGS, "it is no URL")
        if not (self._out or self._stays_here()):
            raise Stopped(Verdict.NO_INTERFACE)
        if self.what is What.PROXY:
            self.walk.knock(self._url)
            return Verdict.ANSWERS, ""
        reply, url = self._follow(self.what in (What.INDEX, What.FILES))
        try:
            return self._judge(reply, url)
        except (OSError, HTTPException) as error:
            raise self.walk.stopped(error) from error
        finally:
            self.walk.close()

    def _stays_here(self) -> bool:
        """Whether the first connection leads to this machine (a tunnel, a proxy of its own)."""
        first = Server.of(self._web.proxy(self._url) or self._url)
        return first is not None and first.local

    def _follow(self, further: bool) -> tuple[HTTPResponse, str]:
        url = self._url
        for _ in range(_MOST_REDIRECTS):
            reply = self.walk.ask(url, dict(_ASKED.get(self.what, {})))
            where = reply.headers.get("Location", "")
            if reply.status not in _REDIRECTS or not where:
                return reply, url
            self.walk.close()
            url = urljoin(url, where)
            moved = _server_of(url) != _server_of(self._url)
            if not further and moved:
                raise Stopped(Verdict.ELSEWHERE, shown(url))
            if not further:
                return reply, url
            self.walk = self._new_walk()
            if moved:
                self.told = _server_of(url)
        raise Stopped(Verdict.ELSEWHERE, shown(url))

    def _judge(self, reply: HTTPResponse, url: str) -> tuple[Verdict, str]:
        status = f"{reply.status} {responses.get(reply.status, '')}".strip()
        moved = _server_of(url) != _server_of(self._url)
        if self.what is What.FILES:
            if reply.status not in (200, 206, 416):
                return Verdict.STATUS, status
            if "html" in reply.headers.get("Content-Type", ""):
                return (Verdict.ELSEWHERE, shown(url)) if moved else (Verdict.NOT_FILE, "")
            reply.read1(1)
            return Verdict.ANSWERS, ""
        if self.what is not What.INDEX:
            bad = reply.status >= 500 or reply.status == 429
            return (Verdict.STATUS, status) if bad else (Verdict.ANSWERS, "")
        if reply.status in (404, 410) and not self.place.page:  # one of a few projects
            return Verdict.ANSWERS, ""
        if reply.status != 200:
            return Verdict.STATUS, status
        self.file = next(filter(_is_file, _links(reply, url)), "")
        if self.file:
            return Verdict.ANSWERS, ""
        return (Verdict.ELSEWHERE, shown(url)) if moved else (Verdict.NOT_INDEX, "")


def _unasked(lines: Sequence[_Line]) -> list[Answer]:
    """In place of hosts of files that no index has named."""
    return [
        Answer(
            what=What.FILES,
            url="",
            verdict=Verdict.NOT_ASKED,
            detail="it is known from a page of the index",
        )
        for line in lines
        if [question.what for question in line.questions] == [What.INDEX]
    ][:1]


def _asked(place: Place) -> str:
    if place.what is What.INDEX and not place.page:
        return f"{place.url.rstrip('/')}/{_PROJECT}/"
    return full_url(place.url)


def _links(reply: HTTPResponse, url: str) -> Iterator[str]:
    """URLs of files on a page, as it comes in."""
    text, told = b"", reply.headers.get("Content-Type", "")
    as_json = "json" in told
    while len(text) < (_WHOLE if as_json else _HEAD) and (piece := reply.read1(_PIECE)):
        text += piece
        if not as_json:
            yield from (file.urls[0] for file in from_html(text.decode("utf-8", "replace"), url))
    if as_json:
        try:
            yield from [file.urls[0] for file in from_json(json.loads(text), url)]
        except (ValueError, KeyError, TypeError, AttributeError):
            return


def _is_file(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in ("http", "https") and parts.path.endswith(_FILES)


def _told(url: str) -> str:
    try:
        return shown(url)
    except ValueError:  # nobody knows what of it is a password
        return "(no URL)"


def _server_of(url: str) -> str:
    """Scheme, host and port of a URL, for people."""
    parts = urlsplit(shown(url))
    return f"{parts.scheme}://{parts.netloc}"


def _proxies(
    questions: Sequence[_Question], answers: Sequence[Answer], env: Mapping[str, str]
) -> list[Answer]:
    """What the questions that went through a proxy say about it: one that let somebody through is
    there, whatever it says to others."""
    found: dict[str, list[tuple[_Question, Answer]]] = {}
    for question, answer in zip(questions, answers, strict=True):
        if answer.proxy and answer.what is not What.PROXY:
            found.setdefault(answer.proxy, []).append((question, answer))
    return [_proxy(url, used, env) for url, used in found.items()]


def _proxy(url: str, used: Sequence[tuple[_Question, Answer]], env: Mapping[str, str]) -> Answer:
    ends = [one for _, one in used if one.at_proxy and one.verdict is not Verdict.PROXY_REFUSES]
    there = len(ends) < len(used)
    named = [
        name
        for name, value in env.items()
        if name.lower().endswith("_proxy") and value and shown(full_url(value)) == url
    ]
    own = [q.place.access.proxy_origin for q, _ in used if q.place.access.proxy]
    return Answer(
        what=What.PROXY,
        url=url,
        verdict=Verdict.ANSWERS if there else ends[0].verdict,
        detail="" if there else ends[0].detail,
        origin=", ".join(dict.fromkeys([*own, *(f"${name}" for name in sorted(named))])),
        seconds=used[0][1].seconds,
    )
