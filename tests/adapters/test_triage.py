"""Where the way to each server ends is known within the time, whatever hangs on it."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from envlock.adapters import network
from envlock.adapters import triage as adapter
from envlock.adapters.triage import triage
from envlock.model.triage import Access, Place, Verdict, What, findings
from tests.support.bad_servers import (
    after_hello,
    answering,
    behind_tls,
    cutting,
    dns,
    dropping,
    half,
    refusing,
    saying,
    silent,
    tunnel,
)
from tests.support.triage import OK, PLENTY, World, ask, code, idle, open_ones, verdicts, world

__all__ = ["dns", "idle", "open_ones", "world"]

pytestmark = pytest.mark.usefixtures("idle")

# --------------------------------------------------------------------- what answers, however badly


@pytest.mark.parametrize(
    ("host", "server", "words"),
    [
        ("http://127.0.0.1", lambda w: answering(OK), "answers"),
        ("http://right.test", lambda w: answering(OK), "answers"),
        ("http://127.0.0.1", lambda w: refusing(), "the connection is refused"),
        ("https://127.0.0.1", lambda w: refusing(), "the connection is refused"),
        ("https://unknown.test", lambda w: refusing(), "DNS says that there is no such name"),
        (
            "https://failing.test",
            lambda w: refusing(),
            "DNS fails: Temporary failure in name resolution",
        ),
        (
            "https://127.0.0.1",
            lambda w: answering(saying(b"SSH-2.0-OpenSSH_9.6\r\n")),
            "answers, but not with TLS: ",
        ),
        ("https://127.0.0.1", lambda w: answering(OK), "answers, but not with TLS: "),
        (
            "https://127.0.0.1",
            lambda w: answering(cutting),
            "the connection is cut as soon as TLS begins",
        ),
        (
            "https://wrong.test",
            lambda w: answering(behind_tls(w.authority / "server.pem", OK)),
            "its certificate is not trusted: Hostname mismatch, certificate is not valid for",
        ),
        (
            "https://right.test",
            lambda w: answering(behind_tls(w.authority / "server.pem", OK)),
            "answers",
        ),
        (
            "http://127.0.0.1",
            lambda w: answering(cutting),
            "the connection is cut after the request",
        ),
        (
            "https://127.0.0.1",
            lambda w: answering(behind_tls(w.authority / "server.pem", cutting)),
            "the connection is cut after the request",
        ),
        (
            "http://127.0.0.1",
            lambda w: answering(saying(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")),
            "answers, but not with HTTP",
        ),
        (
            "http://127.0.0.1",
            lambda w: answering(saying(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")),
            "answers with status 503 Service Unavailable",
        ),
        (
            "http://127.0.0.1",
            lambda w: answering(saying(b"HTTP/1.1 302 x\r\nLocation: http://login.test/\r\n\r\n")),
            "leads to 'http://login.test/' instead of answering",
        ),
        (
            "http://127.0.0.1",
            lambda w: answering(saying(b"HTTP/1.1 302 x\r\nLocation: /start\r\n\r\n")),
            "answers",
        ),
    ],
)
def test_what_answers(
    host: str,
    server: Callable[[World], AbstractContextManager[int]],
    words: str,
    world: World,
    dns: None,
) -> None:
    [answer] = ask(world, code(f"{host}:{world.port(server(world))}/"))
    assert answer.words.startswith(words)
    assert answer.good == (words == "answers")
    assert bool(findings([answer])) != answer.good


def test_an_authority_that_nobody_named(world: World) -> None:
    port = world.secure(OK)
    [answer] = triage([code(f"https://127.0.0.1:{port}/")], seconds=PLENTY, env={})
    assert answer.verdict is Verdict.UNTRUSTED
    [found] = findings([answer])
    assert (found.code, found.level) == ("network.untrusted", "error")


def test_certificates_that_are_not_there(world: World) -> None:
    port = world.secure(OK)
    [answer] = ask(world, code(f"https://127.0.0.1:{port}/"), SSL_CERT_FILE="/no/such.pem")
    assert answer.verdict is Verdict.SETTINGS
    assert "'/no/such.pem' cannot be used" in answer.words


def test_a_trusted_host(world: World) -> None:
    """As pip's ``trusted-host`` says, and only for pip's own places."""
    port = world.secure(saying(b"HTTP/1.1 404 x\r\nContent-Length: 0\r\n\r\n"))
    url = f"https://127.0.0.1:{port}/simple"
    trusting = Place(what=What.INDEX, url=url, access=Access(trusted=("127.0.0.1",)))
    found = triage([trusting, code(url)], seconds=PLENTY, env={})
    assert [one.verdict for one in found[:1]] == [Verdict.ANSWERS]
    assert verdicts(list(found))["code host"] is Verdict.UNTRUSTED


@pytest.mark.parametrize("url", ["http://[::1", "http://h:port/x", "http://"])
def test_what_is_no_url(url: str, world: World) -> None:
    [answer] = ask(world, code(url))
    assert answer.verdict is Verdict.SETTINGS


def test_an_address_that_nobody_answers_at(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name may have another one, which does: IPv6 without a way out is not rare."""
    good = world.port(answering(OK))
    bad = world.port(dropping())
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", p)) for p in (bad, good)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    [answer] = ask(world, code("http://two.test/"))
    assert answer.verdict is Verdict.ANSWERS


# --------------------------------------------------------------------- what hangs


def test_whatever_hangs_it_ends_in_time(world: World, dns: None) -> None:
    """All of it in the time that one of them has, and each with its own words."""
    waits = [
        ("http://127.0.0.1", dropping(), "HTTP hangs: nobody takes the connection"),
        (
            "https://right.test",
            dropping(),
            "DNS answers but HTTPS hangs: nobody takes the connection",
        ),
        (
            "https://right.test",
            answering(silent),
            "DNS answers but HTTPS hangs: the connection is taken, and TLS gets no answer",
        ),
        (
            "https://127.0.0.1",
            answering(after_hello),
            "HTTPS hangs: the connection is taken, and TLS gets no answer",
        ),
        (
            "https://right.test",
            answering(behind_tls(world.authority / "server.pem", silent)),
            "DNS answers but HTTPS hangs: the request gets no answer",
        ),
        ("http://127.0.0.1", answering(silent), "HTTP hangs: the request gets no answer"),
        (
            "http://127.0.0.1",
            answering(half),
            "HTTP hangs: the request gets no answer",
        ),
        ("https://hanging.test", refusing(), "DNS hangs: no answer to the name"),
    ]
    places = [code(f"{host}:{world.port(server)}/") for host, server, _ in waits]
    started = time.monotonic()
    found = triage(places, env=world.env)
    assert time.monotonic() - started < 6
    assert [one.words for one in found] == [words for _, _, words in waits]
    assert not any(one.good for one in found)


def test_a_machine_that_is_busy_proves_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    delays = iter([{"1": 0}])
    monkeypatch.setattr(network, "_run_delays", lambda: next(delays, {"1": 5_000_000_000}))
    port = world.port(answering(silent))
    [answer] = ask(world, code(f"http://127.0.0.1:{port}/"), seconds=0.2)
    assert answer.verdict is Verdict.BUSY
    assert [found.level for found in findings([answer])] == ["info"]


def test_no_interface(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is on this machine is asked: a tunnel that somebody made, say."""
    monkeypatch.setattr(adapter, "has_route", lambda: False)
    port = world.port(answering(OK))
    there, here = ask(world, code("https://192.0.2.1/"), code(f"http://127.0.0.1:{port}/"))
    assert there.words == "no network interface leads out of this machine"
    assert here.verdict is Verdict.ANSWERS
    proxy = f"http://127.0.0.1:{world.port(answering(tunnel))}"
    away = f"https://192.0.2.1:{world.secure(OK)}/"
    found = verdicts(ask(world, code(away), https_proxy=proxy))
    assert found == {"code host": Verdict.UNTRUSTED, "proxy": Verdict.ANSWERS}
