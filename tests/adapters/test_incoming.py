"""File lists of wheels, from the disk and over HTTP: from servers good and bad."""

from __future__ import annotations

import base64
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from envlock.adapters.incoming import read_members
from tests.support.wheels import make_wheel

FILES = {"torch/__init__.py": "x = 1\n", "torch/sub/a.py": "y" * 100}


class Server(ThreadingHTTPServer):
    """Keeps what it was asked for; what it does is set by the test."""

    daemon_threads = True

    def __init__(self, data: bytes, mode: str, login: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.data, self.mode, self.login = data, mode, login
        self.asked: list[str] = []
        self.authorized: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/torch_like-1.0-py3-none-any.whl"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Quiet."""

    def do_GET(self) -> None:
        data, mode = self.server.data, self.server.mode
        wanted = self.headers.get("Range", "")
        self.server.asked.append(wanted)
        self.server.authorized.append(self.headers.get("Authorization", ""))
        if mode == "hangs":
            time.sleep(5)
            return
        if mode == "missing":
            self.send_error(404)
            return
        if mode.startswith("http"):
            self.send_response(302)
            self.send_header("Location", mode)
            self.end_headers()
            return
        found = re.match(r"bytes=(\d*)-(\d*)", wanted)
        if mode == "no-ranges" or not found:
            self._answer(200, data, "")
            return
        start = int(found[1]) if found[1] else max(0, len(data) - int(found[2]))
        end = int(found[2]) if found[1] and found[2] else len(data) - 1
        self._answer(206, data[start : end + 1], f"bytes {start}-{end}/{len(data)}")

    def _answer(self, status: int, body: bytes, range_: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if range_:
            self.send_header("Content-Range", range_)
        self.end_headers()
        try:
            self.wfile.write(body[: len(body) // 2] if self.server.mode == "cut" else body)
        except OSError:
            return  # the client knows enough


Serve = Callable[..., Server]


@pytest.fixture
def serve() -> Iterator[Serve]:
    servers = []

    def start(data: bytes, mode: str = "ranges") -> Server:
        server = Server(data, mode)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@contextmanager
def within(seconds: float) -> Iterator[None]:
    start = time.monotonic()
    yield
    assert time.monotonic() - start < seconds


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return make_wheel(tmp_path / "a b", "torch_like", "1.0", FILES)


def test_a_file_on_this_machine(wheel: Path) -> None:
    members = read_members({"one": wheel.as_uri(), "two": "file:///nowhere.whl"}, {})
    assert members.keys() == {"one"}
    assert members["one"]["torch/sub/a.py"][1] == 100
    wheel.write_bytes(wheel.read_bytes()[:50])
    assert read_members({"one": wheel.as_uri()}, {}) == {}


def test_only_the_end_is_fetched(wheel: Path, tmp_path: Path, serve: Serve) -> None:
    small = serve(wheel.read_bytes())
    found = read_members({"one": small.url}, {}, 5)
    assert found == read_members({"one": wheel.as_uri()}, {})
    assert small.asked == ["bytes=-131072"]
    # a directory that is larger than what is fetched first takes one more request
    names = {f"torch/{i:05}-{'n' * 150}.py": "" for i in range(1500)}
    large = make_wheel(tmp_path / "large", "torch_like", "1.0", {**names, "torch/big": "z" * 9999})
    server = serve(large.read_bytes())
    found = read_members({"one": server.url}, {}, 10)
    assert found["one"].keys() >= names.keys()
    assert len(server.asked) == 2


def test_a_password_goes_to_its_host_alone(wheel: Path, serve: Serve) -> None:
    files = serve(wheel.read_bytes())
    index = serve(b"", files.url)
    url = index.url.replace("//", "//me:p%40ss@")
    assert read_members({"one": f"{url}#sha256=0"}, {}, 5).keys() == {"one"}
    assert index.authorized == ["Basic " + base64.b64encode(b"me:p@ss").decode()]
    assert set(files.authorized) == {""}


@pytest.mark.parametrize("mode", ["no-ranges", "missing", "cut"])
def test_what_cannot_be_had_is_not_known(mode: str, wheel: Path, serve: Serve) -> None:
    data = wheel.read_bytes()
    more = 5 * 1024 * 1024 if mode == "no-ranges" else 1000
    good, bad = serve(data), serve(data + b"\0" * more, mode)
    assert read_members({"good": good.url, "bad": bad.url}, {}, 3).keys() == {"good"}


def test_a_small_wheel_is_read_whole_where_there_are_no_ranges(wheel: Path, serve: Serve) -> None:
    server = serve(wheel.read_bytes(), "no-ranges")
    found = read_members({"one": server.url, "broken": "http://[::1/a.whl"}, {}, 5)
    assert found == read_members({"one": wheel.as_uri()}, {})
    assert len(server.asked) == 1


def test_nobody_waits_for_a_server_that_hangs(wheel: Path, serve: Serve) -> None:
    good, bad = serve(wheel.read_bytes()), serve(wheel.read_bytes(), "hangs")
    with within(2):
        found = read_members({"good": good.url, "bad": bad.url}, {}, 1)
    assert found.keys() == {"good"}


def test_a_dead_proxy_is_no_error(wheel: Path, serve: Serve) -> None:
    server = serve(wheel.read_bytes())
    env = {"http_proxy": "http://127.0.0.1:9"}
    assert read_members({"one": server.url}, env, 3) == {}
    assert read_members({"one": server.url}, {**env, "no_proxy": "127.0.0.1"}, 3).keys() == {"one"}


def test_certificates_that_cannot_be_read_are_no_error() -> None:
    url = "https://127.0.0.1:9/x-1-py3-none-any.whl"
    assert read_members({"one": url}, {"SSL_CERT_FILE": "/nowhere"}, 1) == {}
