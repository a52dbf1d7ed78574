"""The door to servers: credentials, proxies and certificates, each for whom it is meant."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from envlock.adapters.download import NotFetched
from envlock.errors import UnusableInput
from tests.support.fetching import DATA, GOOD, NAME, Fetch
from tests.support.loopback import Loopback, Turn, loopback


@pytest.fixture
def server() -> Iterator[Loopback]:
    with loopback() as running:
        yield running


@pytest.fixture
def fetch(tmp_path: Path) -> Fetch:
    return Fetch(tmp_path)


def login(user: str) -> str:
    return f"Basic {base64.b64encode(user.encode()).decode()}"


def test_credentials(server: Loopback, tmp_path: Path) -> None:
    server.add("/a", Turn(data=DATA, login=login("me:p@ss")))
    plain = server.url("/a")
    for number, (settings, url) in enumerate([
        ({}, plain.replace("//", "//me:p%40ss@")),
        ({"index": server.url("/simple").replace("//", "//me:p%40ss@")}, plain),
    ]):  # fmt: skip
        folder = tmp_path / str(number)
        folder.mkdir()
        assert Fetch(folder, **settings)(url) == DATA
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password p@ss\n")
    assert Fetch(tmp_path)(plain) == DATA
    (tmp_path / NAME).unlink()
    (tmp_path / ".netrc").write_text("machine\n")  # broken: as if it were not there
    with pytest.raises(NotFetched) as caught:
        Fetch(tmp_path)(plain.replace("//", "//me:no@"))
    assert caught.value.why == [(plain, "it wants a name and a password")]


def test_no_credentials_for_another_server(server: Loopback, fetch: Fetch) -> None:
    with loopback() as other:
        where = other.add("/b", GOOD)
        url = server.add("/a", Turn(status=307, headers={"Location": where}))
        assert fetch(url.replace("//", "//me:secret@")) == DATA
        assert server.asked[0][1]["authorization"] == login("me:secret")
        assert "authorization" not in other.asked[0][1]


def test_proxy(server: Loopback, tmp_path: Path) -> None:
    """It is asked with its own password, and only for what it is there for."""
    server.add("/a", GOOD)
    proxy = server.url("").replace("//", "//us:er@")
    ways: list[dict[str, object]] = [
        {"proxy": proxy},
        {"env": {"http_proxy": proxy}},
        {"env": {"ALL_PROXY": proxy}},
    ]
    for number, settings in enumerate(ways):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert Fetch(folder, **settings)("http://far.invalid/a") == DATA
    for _, headers in server.asked:
        assert headers["proxy-authorization"] == login("us:er")
        assert headers["host"] == "far.invalid"
    env = {"http_proxy": "http://proxy.invalid:1", "no_proxy": "127.0.0.1"}
    assert Fetch(tmp_path, env=env)(server.url("/a")) == DATA
    (tmp_path / NAME).unlink()
    with pytest.raises(UnusableInput, match=r"'socks9://h' cannot be used"):
        Fetch(tmp_path, proxy="socks9://me:pw@h")(server.url("/b"))


def test_certificates_that_are_not_there(tmp_path: Path) -> None:
    for settings in ({"cert": "/no/such.pem"}, {"env": {"SSL_CERT_FILE": "/no/such.pem"}}):
        with pytest.raises(UnusableInput, match=r"certificates: '/no/such.pem' cannot be used"):
            Fetch(tmp_path, **settings)("https://127.0.0.1:1/a")


def test_certificates(server: Loopback, tmp_path: Path, authority: Path) -> None:
    """Checked against what pip's settings and the usual variables name; not for trusted hosts."""
    server.speak_tls(authority / "server.pem")
    certificate = str(authority / "ca.pem")
    url = server.add("/a", GOOD)
    with pytest.raises(NotFetched) as caught:
        Fetch(tmp_path)(url)
    assert caught.value.why[0][1].startswith("its certificate is not trusted: ")
    port = server.server_address[1]
    ways: list[dict[str, object]] = [
        {"cert": certificate},
        {"env": {"SSL_CERT_FILE": certificate}},
        {"env": {"REQUESTS_CA_BUNDLE": certificate}},
        {"env": {"PIP_CERT": certificate}},
        {"trusted": ("127.0.0.1",)},
        {"trusted": (f"127.0.0.1:{port}",)},
    ]
    for number, settings in enumerate(ways):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert Fetch(folder, **settings)(url) == DATA
    with pytest.raises(NotFetched):
        Fetch(tmp_path, trusted=("127.0.0.1:1", "other"))(url)
