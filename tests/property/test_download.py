"""Downloads from any server: the right file under its name, or no file and a reason."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from envlock.adapters.download import Download, NotFetched, Wanted
from envlock.adapters.partial import part_path
from envlock.adapters.resolving import RemoteFile
from envlock.adapters.web import Reply, Unreachable
from envlock.model.transfer import content_range, place_of, question, retry_after

DATA = bytes(range(256)) * 2
SHA = hashlib.sha256(DATA).hexdigest()
NAME = "a-1-py3-none-any.whl"


@dataclass(frozen=True)
class Answer:
    """What a server says to one request: anything, also what contradicts itself."""

    status: int
    data: bytes
    first: int | None  # where a range begins; None for where it was asked for
    told: int  # by how much its field lies
    total: int | None
    sent: int  # bytes of the body until it breaks off
    breaks: bool
    ranges: bool


_BODIES = st.one_of(
    st.just(DATA), st.binary(max_size=600), st.just(DATA[:-1]), st.just(DATA + b"x")
)
ANSWERS = st.builds(
    Answer,
    status=st.sampled_from([200, 200, 206, 206, 206, 404, 416, 429, 500]),
    data=_BODIES,
    first=st.none() | st.integers(0, 600),
    told=st.sampled_from([0, 0, 0, -1, 1, 100]),
    total=st.none() | st.just(len(DATA)) | st.integers(0, 700),
    sent=st.integers(0, 700),
    breaks=st.booleans(),
    ranges=st.booleans(),
)


@dataclass
class AnyWeb:
    """A web with these answers; the last for good."""

    answers: list[Answer]

    @contextmanager
    def get(self, url: str, headers: Mapping[str, str]) -> Iterator[Reply]:
        one = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        asked = int(headers.get("Range", "bytes=0-")[6:-1])
        found = {"etag": '"x"'}
        body = one.data
        if one.status == 206:
            start = asked if one.first is None else one.first
            body = one.data[start:]
            told, total = start + one.told, "*" if one.total is None else one.total
            found["content-range"] = f"bytes {told}-{told + len(body) - 1}/{total}"
        elif one.total is not None:
            found["content-length"] = str(one.total)
        yield Reply(status=one.status, headers=found, url=url, chunks=self._chunks(one, body))

    def _chunks(self, one: Answer, body: bytes) -> Iterator[bytes]:
        for start in range(0, min(len(body), one.sent), 50):
            yield body[start : min(start + 50, one.sent)]
        if one.breaks:
            raise Unreachable("broke off")


@given(
    answers=st.lists(ANSWERS, min_size=1, max_size=8),
    left=st.integers(0, len(DATA)).map(lambda count: DATA[:count]) | st.binary(max_size=600),
    size=st.sampled_from([None, len(DATA), len(DATA) - 1, len(DATA) + 1]),
)
def test_right_bytes_or_none(answers: list[Answer], left: bytes, size: int | None) -> None:
    """sha256 before the final name, whatever servers and earlier runs did."""
    with tempfile.TemporaryDirectory() as folder:
        final = Path(folder, NAME)
        part = Path(part_path(str(final), (SHA,)))
        if left:
            part.write_bytes(left)
        file = RemoteFile(file=NAME, urls=("http://a.invalid/a",), sha256=SHA, size=size)
        came: list[int] = []
        run = Download(
            wanted=Wanted(file=file, hashes=(SHA,)), folder=folder,
            web=AnyWeb(list(answers)),  # type: ignore[arg-type]
            advance=came.append, wait=lambda seconds: None,
        )  # fmt: skip
        try:
            run.run()
        except NotFetched as error:
            assert error.why
            assert not final.exists()
            assert (part.stat().st_size if part.exists() else 0) == error.have == sum(came)
        else:
            assert final.read_bytes() == DATA
            assert not part.exists()
            assert sum(came) == len(DATA)


@given(
    left=st.integers(0, len(DATA)),
    cuts=st.lists(st.integers(1, len(DATA)), max_size=4),
    ranges=st.booleans(),
)
def test_a_server_that_only_breaks_off_gives_the_file(
    left: int, cuts: list[int], ranges: bool
) -> None:
    """Survives servers without ranges, and connections that are cut."""
    status = 206 if ranges else 200
    common = {"data": DATA, "first": None, "told": 0, "total": len(DATA), "ranges": ranges}
    answers = [
        Answer(status=status, sent=cut, breaks=True, **common)  # type: ignore[arg-type]
        for cut in cuts
    ]
    answers.append(Answer(status=status, sent=700, breaks=False, **common))  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory() as folder:
        final = Path(folder, NAME)
        Path(part_path(str(final), (SHA,))).write_bytes(DATA[:left])
        file = RemoteFile(file=NAME, urls=("http://a.invalid/a",), sha256=SHA, size=len(DATA))
        Download(
            wanted=Wanted(file=file, hashes=(SHA,)), folder=folder,
            web=AnyWeb(answers),  # type: ignore[arg-type]
            advance=lambda count: None, wait=lambda seconds: None,
        ).run()  # fmt: skip
        assert final.read_bytes() == DATA


@given(
    have=st.integers(0, 1000),
    status=st.sampled_from([200, 206, 206, 416, 204]),
    length=st.text(max_size=5) | st.integers(0, 2000).map(str),
    near=st.integers(-12, 12),
    count=st.integers(-1, 999),
    total=st.integers(0, 2000) | st.just("*"),
    nonsense=st.none() | st.text(max_size=12),
)
def test_no_gap_can_arise(
    have: int, status: int, length: str, near: int, count: int, total: object, nonsense: str | None
) -> None:
    """What comes is written where the server says that it belongs, never beyond what is here."""
    start = have + near
    given_range = nonsense if nonsense is not None else f"bytes {start}-{start + count}/{total}"
    headers = {"content-length": length, "content-range": given_range}
    body = place_of(have, status, headers)
    if body is None:
        assert status != 200
    else:
        assert 0 <= body.start <= have
        told = content_range(given_range)
        assert body.start == (0 if status == 200 else told and told.start)


@given(value=st.text(), now=st.floats(0, 4e9), have=st.integers(0, 99), tag=st.text(max_size=5))
def test_any_field(value: str, now: float, have: int, tag: str) -> None:
    """What a server sends may be nonsense; that is no error of ours."""
    seconds = retry_after(value, now)
    assert seconds is None or seconds >= 0
    asked = question(have, tag)
    assert ("Range" in asked) == bool(have)
    assert "If-Range" not in asked or tag.startswith('"')
