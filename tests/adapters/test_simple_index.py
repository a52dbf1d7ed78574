"""Where files of a project are: pages of indexes, as JSON and as HTML, and folders."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from envlock.adapters.index_settings import IndexSettings
from envlock.adapters.resolving import Pin, RemoteFile
from envlock.adapters.simple_index import Found, SimpleIndex, from_html, from_json, is_wheel_of
from envlock.adapters.web import Web
from tests.support.loopback import Loopback, Turn, loopback
from tests.support.wheels import make_wheel

BASE = "http://a.invalid/simple/a/"
WHEEL = "a-1.0-py3-none-any.whl"
PIN = Pin("a", "1.0")


@pytest.fixture
def server() -> Iterator[Loopback]:
    with loopback() as running:
        yield running


def find(pin: Pin = PIN, **settings: object) -> Found:
    known = {"timeout": 30.0, **settings}
    web = Web(settings=IndexSettings(**known), env={})  # type: ignore[arg-type]
    return SimpleIndex(web=web, wait=lambda seconds: None).wheels(pin)


def test_json() -> None:
    page = {
        "files": [
            {"filename": WHEEL, "url": "../../f/a.whl#x", "hashes": {"sha256": "AB"}, "size": 3},
            {"filename": "b.whl", "url": "http://b.invalid/b.whl", "hashes": {"md5": "0"}},
        ]
    }
    assert list(from_json(page, BASE)) == [
        RemoteFile(file=WHEEL, urls=("http://a.invalid/f/a.whl",), sha256="ab", size=3),
        RemoteFile(file="b.whl", urls=("http://b.invalid/b.whl",)),
    ]


def test_html() -> None:
    page = (
        '<a href="../../f/a-1.0%2Bx-py3-none-any.whl?k=1&amp;l#sha256=AB">text</a>'
        '<A HREF="b.whl#md5=0">b</A><a name="no link">'
    )
    assert list(from_html(page, BASE)) == [
        RemoteFile(
            file="a-1.0+x-py3-none-any.whl",
            urls=("http://a.invalid/f/a-1.0%2Bx-py3-none-any.whl?k=1&l",),
            sha256="ab",
        ),
        RemoteFile(file="b.whl", urls=(f"{BASE}b.whl",)),
    ]
    based = '<base href="http://c.invalid/x/"><a href="b.whl">b</a>'
    assert next(from_html(based, BASE)).urls == ("http://c.invalid/x/b.whl",)


@pytest.mark.parametrize(
    ("file", "is_one"),
    [
        (WHEEL, True),
        ("A-1.0.0-py3-none-any.whl", True),
        ("a-1.1-py3-none-any.whl", False),
        ("b-1.0-py3-none-any.whl", False),
        ("a-1.0.tar.gz", False),
        ("../a-1.0-py3-none-any.whl", False),
        ("a-1.0-py3-none-any./../x.whl", False),
        ("a-1.0-py3-none-any\\..\\x.whl", False),
    ],
)
def test_names(file: str, is_one: bool) -> None:
    """Whoever runs an index chooses no place on this disk."""
    assert is_wheel_of(file, PIN) == is_one


def test_asks_all_alike(server: Loopback, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "links", "a", "1.0")
    page = {"files": [{"filename": WHEEL, "url": "/f/1", "hashes": {"sha256": "1"}}]}
    kind = {"Content-Type": "application/vnd.pypi.simple.v1+json"}
    server.add("/one/a/", Turn(status=503), Turn(data=json.dumps(page).encode(), headers=kind))
    server.add("/two/a/", Turn(data=f'<a href="/f/2/{WHEEL}#sha256=2">'.encode()))
    server.add("/list", Turn(data=f'<a href="/f/3/{WHEEL}">'.encode()))
    found = find(
        index=server.url("/one/"),
        more=(server.url("/two"), server.url("/none")),
        links=(str(wheel.parent), wheel.parent.as_uri(), server.url("/list")),
    )
    assert found.problems == ()
    assert [(file.urls[0], file.sha256) for file in found.files] == [
        (wheel.as_uri(), ""),
        (wheel.as_uri(), ""),
        (server.url(f"/f/3/{WHEEL}"), ""),
        (server.url("/f/1"), "1"),
        (server.url(f"/f/2/{WHEEL}"), "2"),
    ]
    assert "simple.v1+json" in server.asked[0][1]["accept"]


def test_an_index_on_disk(tmp_path: Path) -> None:
    page = tmp_path / "simple/a/index.html"
    page.parent.mkdir(parents=True)
    page.write_text(f'<a href="../../files/{WHEEL}#sha256=1">{WHEEL}</a>')
    found = find(index=(tmp_path / "simple").as_uri())
    assert found.files == (
        RemoteFile(file=WHEEL, urls=((tmp_path / "files" / WHEEL).as_uri(),), sha256="1"),
    )
    assert find(Pin("b", "1"), index=(tmp_path / "simple").as_uri()).files == ()


@pytest.mark.parametrize(
    ("turn", "why"),
    [
        (Turn(status=503), "it answers 503"),
        (Turn(status=403), "it answers 403"),
        (Turn(data=b"{", headers={"Content-Type": "application/json"}), "no page of an index"),
        (Turn(data=b"[1]", headers={"Content-Type": "application/json"}), "no page of an index"),
        (Turn(data=b"<a>", hang=0), "no answer in time"),
    ],
)
def test_problems_are_told_and_others_asked(server: Loopback, turn: Turn, why: str) -> None:
    bad = server.add("/bad/a/", turn)
    server.add("/good/a/", Turn(data=f'<a href="{WHEEL}#sha256=1">'.encode()))
    seconds = 30.0 if turn.hang is None else 0.5
    found = find(index=server.url("/bad"), more=(server.url("/good"),), timeout=seconds)
    assert len(found.files) == 1
    ((url, said),) = found.problems
    assert url == bad
    assert why in said


def test_no_index(server: Loopback) -> None:
    assert find(no_index=True, index=server.url("/simple")).files == ()
    assert server.asked == []
