"""One file from servers that behave badly: the right bytes or the right error, nothing else."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path

import pytest

from envlock.adapters import partial
from envlock.adapters.download import TRIES, NotFetched
from tests.support.fetching import (
    DATA,
    GOOD,
    HALF,
    IMPATIENT,
    NAME,
    OTHER,
    PATIENT,
    SHA,
    Fetch,
)
from tests.support.loopback import Loopback, Turn, loopback


@pytest.fixture
def server() -> Iterator[Loopback]:
    with loopback() as running:
        yield running


@pytest.fixture
def fetch(tmp_path: Path) -> Fetch:
    return Fetch(tmp_path)


def patience(turns: list[Turn]) -> float:
    """Seconds to wait for a byte: few only where none will come."""
    return IMPATIENT if any(turn.hang is not None for turn in turns) else PATIENT


DATE = formatdate(time.time() + 3, usegmt=True)
ENDS_WELL = {
    "as it should": [GOOD],
    "cut": [Turn(data=DATA, cut=HALF), GOOD],
    "cut at once": [Turn(data=DATA, cut=0), GOOD],
    "cut again and again": [Turn(data=DATA, cut=40_000)],
    "cut, no ranges": [Turn(data=DATA, cut=HALF, ranges=False), Turn(data=DATA, ranges=False)],
    "cut, no length": [Turn(data=DATA, cut=HALF, length=-1), Turn(data=DATA, length=-1)],
    "length too small": [Turn(data=DATA, length=HALF), GOOD],
    "length too large": [Turn(data=DATA, length=len(DATA) + 9)],
    "hangs": [Turn(data=DATA, hang=HALF), GOOD],
    "hangs before a byte": [Turn(data=DATA, hang=0), GOOD],
    "hangs at its end": [Turn(data=DATA, hang=len(DATA), length=len(DATA) + 9)],
    "range of another place": [Turn(data=DATA, cut=HALF), Turn(data=DATA, shift=7), GOOD],
    "range of an earlier place": [Turn(data=DATA, cut=HALF), Turn(data=DATA, shift=-7), GOOD],
    "range without its field": [
        Turn(data=DATA, cut=HALF),
        Turn(data=DATA, headers={"Content-Range": ""}),
        GOOD,
    ],
    "gzip that nobody asked for": [Turn(data=DATA, coded=True, ranges=False)],
    "gzip of a range": [Turn(data=DATA, cut=HALF), Turn(data=DATA, coded=True), GOOD],
    "busy": [Turn(status=503), Turn(status=500), GOOD],
    "busy, asks to wait": [Turn(status=429, headers={"Retry-After": "7"}), GOOD],
    "busy, says until when": [Turn(status=503, headers={"Retry-After": DATE}), GOOD],
    "other bytes after a cut": [Turn(data=OTHER, cut=HALF), GOOD],
    "changed while it was fetched": [
        Turn(data=OTHER, cut=HALF, headers={"ETag": '"old"'}),
        Turn(data=DATA, ranges=False, headers={"ETag": '"new"'}),
    ],
}


@pytest.mark.parametrize("turns", ENDS_WELL.values(), ids=ENDS_WELL)
@pytest.mark.parametrize("size", [len(DATA), None], ids=["size known", "size not known"])
def test_right_bytes(server: Loopback, tmp_path: Path, turns: list[Turn], size: int | None) -> None:
    fetch = Fetch(tmp_path, timeout=patience(turns))
    url = server.add("/a", *turns)
    if size is None and turns[0].length == HALF:
        with pytest.raises(NotFetched):  # nothing says that this is not all of it
            fetch(url, size=None)
        return
    assert fetch(url, size=size) == DATA
    assert fetch.came == len(DATA)
    assert [path.name for path in fetch.folder.iterdir()] == [NAME]


ENDS_BADLY = {
    "not there": ([Turn(status=404)], "it does not have it"),
    "closed": ([Turn(status=403)], "it refuses"),
    "odd answer": ([Turn(status=418)], "it answers 418"),
    "other bytes": ([Turn(data=OTHER)], "it serves other bytes"),
    "other length": ([Turn(data=DATA + b"more")], "it serves other bytes"),
    "too short": ([Turn(data=DATA[:HALF])], "the connection was cut"),
    "always busy": ([Turn(status=503)], "it answers 503"),
    "busy for hours": (
        [Turn(status=429, headers={"Retry-After": "7200"})],
        "it answers 429 and asks to wait 7200 seconds",
    ),
    "always cut": ([Turn(data=DATA, cut=9, ranges=False)], "the connection was cut"),
    "hangs for good": ([Turn(data=DATA, hang=0)], "no answer in time"),
    "circle": ([Turn(status=302, headers={"Location": "/a"})], "leads in a circle"),
    "to a file": (
        [Turn(status=302, headers={"Location": "file:///etc/passwd"})],
        "leads to 'file:///etc/passwd', which is no http",
    ),
    "no coding": (
        [Turn(data=DATA, headers={"Content-Encoding": "gzip"})],
        "the body is not coded as it says",
    ),
    "range for the whole": (
        [Turn(data=DATA, status=206)],
        "its answer does not fit the question",
    ),
}


@pytest.mark.parametrize(("turns", "why"), ENDS_BADLY.values(), ids=ENDS_BADLY)
def test_right_error(server: Loopback, tmp_path: Path, turns: list[Turn], why: str) -> None:
    fetch = Fetch(tmp_path, timeout=patience(turns))
    url = server.add("/a", *turns)
    with pytest.raises(NotFetched) as caught:
        fetch(url)
    assert caught.value.why == [(url, why)]
    assert not fetch.final.exists()
    assert fetch.came == caught.value.have
    assert len(server.asked) <= max(10, TRIES)


def test_pauses_grow(server: Loopback, fetch: Fetch) -> None:
    with pytest.raises(NotFetched):
        fetch(server.add("/a", Turn(status=503)))
    assert fetch.waited == [0.5, 1.0, 2.0, 4.0]


def test_waits_as_asked(server: Loopback, fetch: Fetch) -> None:
    fetch(server.add("/a", *ENDS_WELL["busy, asks to wait"]))
    assert fetch.waited == [7.0]


def test_goes_on_where_it_stopped(server: Loopback, fetch: Fetch) -> None:
    url = server.add("/a", Turn(data=DATA, cut=HALF), Turn(status=404))
    with pytest.raises(NotFetched) as caught:
        fetch(url)
    assert caught.value.have == fetch.part.stat().st_size == HALF
    server.add("/a", GOOD)
    assert fetch(url) == DATA
    assert server.ranges("/a") == ["", f"bytes={HALF}-", f"bytes={HALF}-"]


def test_goes_on_under_the_same_tag_only(server: Loopback, fetch: Fetch) -> None:
    for tag, sent in (('"x"', '"x"'), ('W/"x"', None)):
        fetch.final.unlink(missing_ok=True)
        server.asked.clear()
        fetch(server.add("/a", Turn(data=DATA, cut=HALF, headers={"ETag": tag}), GOOD))
        assert server.asked[1][1].get("if-range") == sent


@pytest.mark.parametrize("left", [DATA, DATA + b"x", OTHER, OTHER[:HALF], DATA[:HALF], b""])
def test_whatever_an_earlier_run_left(server: Loopback, fetch: Fetch, left: bytes) -> None:
    fetch.part.write_bytes(left)
    assert fetch(server.add("/a", GOOD)) == DATA
    assert not fetch.part.exists()
    assert bool(server.asked) == (left != DATA)


def test_a_wrong_file_of_that_name_is_replaced(server: Loopback, fetch: Fetch) -> None:
    fetch.final.write_bytes(OTHER)
    assert fetch(server.add("/a", GOOD)) == DATA


@pytest.mark.parametrize("first", ENDS_BADLY.values(), ids=ENDS_BADLY)
def test_another_source(server: Loopback, tmp_path: Path, first: tuple[list[Turn], str]) -> None:
    fetch = Fetch(tmp_path, timeout=patience(first[0]))
    urls = server.add("/a", *first[0]), server.add("/b", GOOD)
    assert fetch(*urls) == DATA


def test_another_source_is_looked_for_late(server: Loopback, fetch: Fetch) -> None:
    looked = []

    def more() -> list[str]:
        looked.append(True)
        return [server.url("/a"), server.url("/b")]

    server.add("/b", GOOD)
    assert fetch(server.add("/a", GOOD), more=more) == DATA
    assert looked == []
    fetch.final.unlink()
    server.add("/a", Turn(data=OTHER))
    assert fetch(server.url("/a"), more=more) == DATA
    assert [path for path, _ in server.asked] == ["/a", "/a", "/b"]


def test_no_server(fetch: Fetch) -> None:
    with loopback() as gone:
        url = gone.url("/a")
    with pytest.raises(NotFetched) as caught:
        fetch(url)
    assert caught.value.why == [(url, "no connection")]


def test_a_file_on_disk(fetch: Fetch, tmp_path: Path) -> None:
    source = tmp_path / "my files"
    source.write_bytes(DATA)
    fetch.part.write_bytes(DATA[:HALF])
    assert fetch(source.as_uri()) == DATA
    with pytest.raises(NotFetched, match=NAME):
        fetch.final.unlink()
        fetch((tmp_path / "none").as_uri())


# --------------------------------------------------------------------------- two at once


def test_two_at_once(server: Loopback, tmp_path: Path) -> None:
    """The second waits for the first, and asks nobody."""
    url = server.add("/a", Turn(data=DATA, slow=0.01))
    errors: list[BaseException] = []

    def run() -> None:
        mine = Fetch(tmp_path)
        mine.wait = lambda seconds: time.sleep(min(seconds, 0.01))  # type: ignore[method-assign]
        try:
            assert mine(url) == DATA
        except (AssertionError, NotFetched, OSError) as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(server.asked) == 1
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def test_where_there_are_no_locks(
    server: Loopback, fetch: Fetch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has a part of its own, and leaves none."""
    monkeypatch.setattr(partial, "try_lock", lambda descriptor: None)
    fetch.part.write_bytes(b"another's")
    assert fetch(server.add("/a", Turn(data=DATA, cut=HALF), GOOD)) == DATA
    fetch.final.unlink()
    with pytest.raises(NotFetched):
        fetch(server.add("/a", Turn(data=DATA, cut=HALF), Turn(status=404)))
    assert [path.read_bytes() for path in fetch.folder.iterdir()] == [b"another's"]


def test_ended_between_two_steps(fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    """The part that a second process opened has become the file before it had the lock."""
    first = partial.Part.open(str(fetch.final), (SHA,), fetch.wait)
    first.write(DATA)
    lock = partial.try_lock

    def late(descriptor: int) -> bool | None:
        if fetch.part.exists() and not fetch.final.exists():
            first.finish()
        return lock(descriptor)

    monkeypatch.setattr(partial, "try_lock", late)
    second = partial.Part.open(str(fetch.final), (SHA,), fetch.wait)
    assert second.have == 0
    second.close()
    assert [path.read_bytes() for path in fetch.folder.iterdir()] == [DATA]


def test_where_there_is_no_fcntl(
    server: Loopback, fetch: Fetch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows has other locks."""
    monkeypatch.setitem(sys.modules, "fcntl", None)
    assert fetch(server.add("/a", GOOD)) == DATA
    assert [path.name for path in fetch.folder.iterdir()] == [NAME]
