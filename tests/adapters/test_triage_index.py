"""An index is asked, then the host that it says the files are on."""

from __future__ import annotations

import json

import pytest

from envlock.model.triage import Place, Verdict, What, as_data, findings
from tests.support.bad_servers import refusing
from tests.support.loopback import Turn
from tests.support.triage import PAGE, WHEEL, World, ask, idle, index, open_ones, verdicts, world

__all__ = ["idle", "open_ones", "world"]

pytestmark = pytest.mark.usefixtures("idle")


def test_a_body_that_never_comes(world: World) -> None:
    server = world.index(hang=4)
    with_file = world.index()
    world.add_file(with_file, hang=0)
    found = ask(world, index(server), index(with_file), seconds=3.0)
    assert [(one.what, one.verdict) for one in found] == [
        (What.INDEX, Verdict.HTTP_HANGS),
        (What.INDEX, Verdict.ANSWERS),
        (What.FILES, Verdict.HTTP_HANGS),
        (What.FILES, Verdict.NOT_ASKED),
    ]


def test_slow_is_not_silent(world: World) -> None:
    server = world.index(slow=0.3, piece=30)
    assert verdicts(ask(world, index(server))) == {
        "index": Verdict.ANSWERS,
        "file host": Verdict.ANSWERS,
    }
    # a file is large: of it only the beginning is asked for
    assert server.ranges(WHEEL) == ["bytes=0-63"]


def test_the_host_of_the_files_is_asked_too(world: World) -> None:
    """The index may answer while its file host does not."""
    files = world.port(refusing())
    page = f'<a href="/x">x</a><a href="http://127.0.0.1:{files}/a/pip-1.tar.gz#sha256=0">p</a>'
    server = world.index(page.encode())
    first, second = ask(world, index(server, origin="$PIP_INDEX_URL"))
    assert first.verdict is Verdict.ANSWERS
    assert (second.what, second.verdict) == (What.FILES, Verdict.REFUSED)
    assert second.url == f"http://127.0.0.1:{files}"
    assert second.origin == f"a link of {server.url('/simple')}"


def test_a_file_that_is_kept_elsewhere(world: World) -> None:
    """A mirror sends to its storage, and that is what hangs."""
    dead = world.port(refusing())
    server = world.index()
    where = {"Location": f"http://127.0.0.1:{dead}/f.whl?signature=secret"}
    server.add(WHEEL, Turn(status=302, headers=where))
    _, answer = ask(world, index(server))
    assert (answer.verdict, answer.url) == (Verdict.REFUSED, f"http://127.0.0.1:{dead}")
    assert "secret" not in str(findings([answer]))


def test_an_index_of_json(world: World) -> None:
    page = {"files": [{"filename": "pip-1.whl", "url": "/files/pip-1-py3-none-any.whl"}]}
    server = world.index(
        json.dumps(page).encode(),
        headers={"Content-Type": "application/vnd.pypi.simple.v1+json"},
    )
    assert verdicts(ask(world, index(server))) == {
        "index": Verdict.ANSWERS,
        "file host": Verdict.ANSWERS,
    }
    broken = world.index(b"{", headers={"Content-Type": "application/json"})
    assert verdicts(ask(world, index(broken)))["index"] is Verdict.NOT_INDEX


def test_an_index_with_few_projects(world: World) -> None:
    """It answers; where its files are nobody knows."""
    server = world.loopback()
    assert verdicts(ask(world, index(server))) == {
        "index": Verdict.ANSWERS,
        "file host": Verdict.NOT_ASKED,
    }


def test_a_page_of_links(world: World) -> None:
    server = world.loopback()
    url = server.add("/wheels.html", Turn(data=PAGE))
    found = ask(world, Place(what=What.INDEX, url=url, page=True))
    assert [one.verdict for one in found] == [Verdict.ANSWERS, Verdict.STATUS]
    gone = Place(what=What.INDEX, url=server.url("/none.html"), page=True)
    assert verdicts(ask(world, gone))["index"] is Verdict.STATUS


def test_a_login_page_in_the_way(world: World) -> None:
    """With a redirect, and in place of the page itself."""
    portal = world.loopback()
    login = portal.add("/login", Turn(data=b'<form><a href="/help">?</a></form>'))
    server = world.index(status=302, headers={"Location": login})
    [answer] = [one for one in ask(world, index(server)) if one.what is What.INDEX]
    assert answer.words == f"leads to '{login}' instead of answering"
    assert findings([answer])[0].code == "network.elsewhere"
    server.add("/simple/pip/", Turn(data=portal.turns["/login"][0].data))
    assert verdicts(ask(world, index(server)))["index"] is Verdict.NOT_INDEX
    server = world.index()
    server.add(WHEEL, Turn(status=302, headers={"Location": login}))
    assert verdicts(ask(world, index(server)))["file host"] is Verdict.ELSEWHERE
    server.add(WHEEL, Turn(data=b"<p>log in"))
    assert verdicts(ask(world, index(server)))["file host"] is Verdict.NOT_FILE


def test_a_circle_of_redirects(world: World) -> None:
    server = world.index(status=302, headers={"Location": "/simple/pip/"})
    assert verdicts(ask(world, index(server)))["index"] is Verdict.ELSEWHERE


def test_the_index_wants_a_password(world: World) -> None:
    """Which goes to it, and is never shown."""
    server = world.index(login="Basic bWU6c2VjcmV0")
    [answer] = [one for one in ask(world, index(server)) if one.what is What.INDEX]
    assert answer.words == "answers with status 401 Unauthorized"
    url = server.url("/simple").replace("//", "//me:secret@")
    place = Place(what=What.INDEX, url=url)
    found = ask(world, place)
    assert verdicts(found)["index"] is Verdict.ANSWERS
    assert "secret" not in f"{place}{found}{as_data(found)}{findings(found)}"
