"""Whether an index can be reached is known within a second or so."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseRequestHandler, ThreadingTCPServer

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


@pytest.fixture
def slow() -> Iterator[int]:
    """Port of a server that thinks for a second before its first byte, whoever asks."""

    class Slow(BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(1)
            time.sleep(1)
            self.request.sendall(b"\x15")

    with ThreadingTCPServer(("127.0.0.1", 0), Slow) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_the_first_byte_is_a_sign_of_life(scheme: str, slow: int) -> None:
    assert network.reachable([f"{scheme}://127.0.0.1:{slow}/simple"], 10)


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that has time for everybody."""
    monkeypatch.setattr(network, "_run_delays", dict)


def test_who_takes_the_connection_elsewhere_is_given_time(
    slow: int, idle: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way there is open: not for this machine, where the kernel takes it."""
    monkeypatch.setattr(network, "_LOOPBACK", ())
    assert network.reachable([f"http://127.0.0.1:{slow}/simple"], 0.9)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert not network.reachable([f"http://127.0.0.1:{silent.getsockname()[1]}/"], 0.05)


def test_what_the_machine_took_from_us_does_not_count(
    slow: int, idle: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    delays = iter([{"1": 5_000_000_000}])
    monkeypatch.setattr(
        network, "_run_delays", lambda: next(delays, {"1": 6_000_000_000, "2": 7_000_000_000})
    )
    assert network.reachable([f"http://127.0.0.1:{slow}/simple"], 0.2)


def test_a_kernel_that_does_not_say_how_busy_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envlock.adapters.network._TASKS", "/proc/self/none/*")
    assert network._run_delays() == {}
    assert network._delayed({}) == 0.0


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


@pytest.mark.parametrize(
    "url",
    ["http://[::1]:8080/simple", "https://me:p@[fe80::1%eth0]/simple", "http://[2001:db8::1]"],
)
def test_an_address_in_brackets_is_a_host(url: str) -> None:
    assert network.urls_in(f"index-url = {url}", f"urls = [{url}]") == [url, url]


def test_what_is_no_url_is_nobody_who_answers(listening: str) -> None:
    broken = network.urls_in("-i http://[::1", "-i http://[x]:1/simple")
    assert broken
    assert not network.reachable(broken)
    assert network.reachable([*broken, listening])


@pytest.mark.skipif(not socket.has_ipv6, reason="IPv6")
def test_a_server_behind_an_address_in_brackets() -> None:
    class Six(ThreadingHTTPServer):
        address_family = socket.AF_INET6

    try:
        server = Six(("::1", 0), BaseHTTPRequestHandler)
    except OSError:
        pytest.skip("IPv6")
    with server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        assert network.reachable(network.urls_in(f"http://[::1]:{server.server_port}/simple"))
        server.shutdown()


def test_a_proxy_hides_who_can_be_reached() -> None:
    assert network.uses_proxy({"https_proxy": "http://p:1"})
    assert network.uses_proxy({"ALL_PROXY": "socks5://p:1"})
    assert not network.uses_proxy({"HTTPS_PROXY": "", "PATH": "/bin"})
