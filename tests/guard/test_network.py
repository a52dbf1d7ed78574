"""Whether an index can be reached is known within a second or so."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from envlock.adapters import network


@pytest.fixture
def listening() -> Iterator[str]:
    """URL of a server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/simple"
        server.shutdown()


def test_who_accepts_and_says_nothing_is_not_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        started = time.monotonic()
        assert not network.reachable([f"http://127.0.0.1:{port}/simple"], 0.3)
        assert not network.reachable([f"https://127.0.0.1:{port}/simple"], 0.3)
        assert time.monotonic() - started < 2


def test_one_host_that_answers_is_enough(listening: str) -> None:
    assert network.reachable([listening])
    assert network.reachable(["http://127.0.0.1:9/simple", listening])


def test_nobody_is_waited_for() -> None:
    started = time.monotonic()
    assert not network.reachable(["http://127.0.0.1:9/simple"])
    # TEST-NET-1 and a name that cannot exist (RFC 5737, RFC 2606)
    assert not network.reachable(
        ["https://192.0.2.1/simple", "https://nowhere.invalid/simple"], 0.3
    )
    assert time.monotonic() - started < 3


def test_without_a_route_only_this_machine_is_asked(
    listening: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "has_route", lambda: False)
    assert network.reachable([listening])
    assert not network.reachable(["https://192.0.2.1/simple"])


def test_urls_are_found_in_settings_and_variables() -> None:
    text = "index-url = https://a.example/simple\n"
    assert network.urls_in(text, "-f http://b.example/x ./w", 'url = "https://c.example"') == [
        "https://a.example/simple",
        "http://b.example/x",
        "https://c.example",
    ]


def test_a_proxy_hides_who_can_be_reached() -> None:
    assert network.uses_proxy({"https_proxy": "http://p:1"})
    assert network.uses_proxy({"ALL_PROXY": "socks5://p:1"})
    assert not network.uses_proxy({"HTTPS_PROXY": "", "PATH": "/bin"})
