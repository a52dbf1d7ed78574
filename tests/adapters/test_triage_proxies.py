"""A proxy has its own words, and what is behind it has its own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from envlock.model.triage import Access, Answer, Place, Verdict, What, as_data, findings
from tests.support.bad_servers import (
    after_hello,
    answering,
    cutting,
    dns,
    dropping,
    refusing,
    saying,
    silent,
    tunnel,
)
from tests.support.triage import OK, World, ask, code, idle, index, open_ones, verdicts, world

__all__ = ["dns", "idle", "open_ones", "world"]

pytestmark = pytest.mark.usefixtures("idle")


def through(
    world: World, server: AbstractContextManager[int], scheme: str = "https"
) -> list[Answer]:
    """The answers behind a proxy, whose password is in its URL."""
    proxy = f"http://me:secret@127.0.0.1:{world.port(server)}"
    env = {f"{scheme}_proxy": proxy}
    found = ask(world, code(f"{scheme}://far.test/"), seconds=3.0, **env)
    assert "secret" not in f"{found}{as_data(found)}{findings(found)}"
    assert found[-1].origin == f"${scheme}_proxy"
    return found


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (refusing, "the connection is refused"),
        (dropping, "nobody takes the connection"),
        (lambda: answering(silent), "takes the connection and says nothing"),
        (
            lambda: answering(saying(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")),
            "wants a name and a password (status 407)",
        ),
        (lambda: answering(cutting), "the connection is cut after the request"),
        (lambda: answering(saying(b"SSH-2.0\r\n\r\n")), "answers, but not with HTTP"),
    ],
)
def test_a_proxy_that_does_not_do_it(
    server: Callable[[], AbstractContextManager[int]], words: str, world: World
) -> None:
    """It is one finding, whoever goes through it."""
    behind, proxy = through(world, server())
    assert (behind.at_proxy, proxy.what) == (True, What.PROXY)
    assert proxy.words == words
    assert behind.words == f"the proxy '{proxy.url}': {words}"
    [found] = findings([behind, proxy])
    assert (found.subject, found.level) == ("proxy", "error")
    assert found.code.startswith("network.proxy-")
    assert found.why == "needed for: code host"


def test_a_proxy_that_refuses_one_server(world: World) -> None:
    answer = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"
    behind, proxy = through(world, answering(saying(answer)))
    assert behind.words == f"the proxy '{proxy.url}': refuses to connect (status 403)"
    assert proxy.good


def test_a_proxy_for_plain_requests(world: World) -> None:
    wants = b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n"
    behind, proxy = through(world, answering(saying(wants)), "http")
    assert [behind.verdict, proxy.verdict] == [Verdict.PROXY_LOGIN] * 2
    behind, proxy = through(world, answering(OK), "http")
    assert [behind.verdict, proxy.verdict] == [Verdict.ANSWERS] * 2


def test_the_way_through_a_proxy(world: World, dns: None) -> None:
    """What is behind it has its own words; the name is the proxy's business."""
    proxy = f"http://127.0.0.1:{world.port(answering(tunnel))}"
    good = world.secure(OK)
    dead = world.port(answering(after_hello))
    found = ask(
        world,
        code(f"https://right.test:{good}/"),
        Place(what=What.HUB, url=f"https://right.test:{dead}/"),
        seconds=3.0,
        HTTPS_PROXY=proxy,
    )
    silence = "HTTPS hangs: the connection is taken, and TLS gets no answer"
    assert [one.words for one in found] == [
        f"through the proxy '{proxy}': answers",
        f"through the proxy '{proxy}': {silence}",
        "answers",
    ]


def test_who_goes_around_the_proxy(world: World) -> None:
    server = world.index()
    dead = f"http://127.0.0.1:{world.port(refusing())}"
    assert verdicts(ask(world, index(server), http_proxy=dead, no_proxy="127.0.0.1")) == {
        "index": Verdict.ANSWERS,
        "file host": Verdict.ANSWERS,
    }


def test_the_proxy_of_pips_configuration(world: World) -> None:
    """It is pip's alone: git does not know it."""
    port = world.port(refusing())
    access = Access(proxy=f"127.0.0.1:{port}", proxy_origin="/etc/pip.conf [global]")
    git = world.port(answering(OK))
    place = Place(what=What.INDEX, url="https://far.test/simple", access=access)
    found = ask(world, place, code(f"http://127.0.0.1:{git}/"))
    assert verdicts(found) == {
        "index": Verdict.REFUSED,
        "file host": Verdict.NOT_ASKED,
        "code host": Verdict.ANSWERS,
        "proxy": Verdict.REFUSED,
    }
    assert found[-1].origin == "/etc/pip.conf [global]"


def test_a_proxy_that_was_named_itself(world: World) -> None:
    port = world.port(answering(silent))
    there = Place(what=What.PROXY, url=f"http://127.0.0.1:{port}", origin="by hand")
    gone = Place(what=What.PROXY, url=f"127.0.0.1:{world.port(refusing())}")
    assert [one.verdict for one in ask(world, there, gone)] == [Verdict.ANSWERS, Verdict.REFUSED]


def test_a_proxy_with_tls_of_its_own(world: World) -> None:
    """TLS inside TLS."""
    proxy = f"https://127.0.0.1:{world.secure(tunnel)}"
    port = world.secure(OK)
    found = ask(world, code(f"https://127.0.0.1:{port}/"), https_proxy=proxy)
    assert [one.verdict for one in found] == [Verdict.ANSWERS] * 2


def test_a_kind_of_proxy_that_is_not_spoken(world: World) -> None:
    [answer, _] = ask(world, code("https://far.test/"), ALL_PROXY="socks5h://127.0.0.1:1")
    assert answer.verdict is Verdict.NOT_ASKED
    assert "SOCKS5H" in answer.words
