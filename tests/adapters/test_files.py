"""The one door to the disk."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from envlock.adapters.files import (
    Hashed,
    Job,
    append_line,
    hash_files,
    remove_tree,
    sha256,
    sync_filesystem,
    workers,
    write_whole,
)
from envlock.adapters.limits import usable_cpus

QUARTER, WHOLE = 256 * 1024, 1024 * 1024
SIZES = sorted(
    {0, 1, 8191, 8192, 8193}
    | {base + more for base in (QUARTER, WHOLE, QUARTER + WHOLE) for more in (-1, 0, 1)}
    | {3 * WHOLE + 12345}
)


def some_bytes(size: int) -> bytes:
    return (b"0123456789abcdef" * (size // 16 + 1))[:size]


@pytest.mark.parametrize("script", [False, True])
def test_same_as_hashlib(tmp_path: Path, script: bool) -> None:
    paths = []
    for size in SIZES:
        path = tmp_path / str(size)
        path.write_bytes(some_bytes(size))
        paths.append(path)
    found = hash_files([Job(str(path), script) for path in paths])
    assert [one.hex for one in found] == [
        hashlib.sha256(some_bytes(size)).hexdigest() for size in SIZES
    ]
    assert [one.size for one in found] == SIZES
    assert not any(one.executable or one.error for one in found)


@pytest.mark.parametrize("size", [0, QUARTER, WHOLE + 5])
def test_first_line_of_a_script(tmp_path: Path, size: int) -> None:
    body = some_bytes(size)
    script = tmp_path / "tool"
    script.write_bytes(b"#!/some/where/bin/python3.10\n" + body)
    [seen] = hash_files([Job(str(script), True)])
    assert seen.hex == hashlib.sha256(b"#!python\n" + body).hexdigest()
    [raw] = hash_files([Job(str(script))])
    assert raw.hex == hashlib.sha256(script.read_bytes()).hexdigest()


def test_file_system_that_reads_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read may give less than was asked for; the rest still counts."""
    path = tmp_path / "file"
    path.write_bytes(some_bytes(100_000))
    real = os.read
    monkeypatch.setattr(os, "read", lambda descriptor, _: real(descriptor, 1000))
    assert sha256(path) == hashlib.sha256(some_bytes(100_000)).hexdigest()


def test_exec_bit(tmp_path: Path) -> None:
    path = tmp_path / "tool"
    path.write_text("x")
    path.chmod(0o755)
    assert hash_files([Job(str(path))])[0].executable


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("x")
    (tmp_path / "link").symlink_to("real")
    one, other = hash_files([Job(str(tmp_path / name)) for name in ("real", "link")])
    assert one == other


def test_what_cannot_be_read_is_a_value(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "good").write_text("x")
    names = ["none", "dangling", "loop", ".", "pipe", "good/x", "nul\0", "good"]
    found = hash_files([Job(str(tmp_path / name)) for name in names])
    assert [one.error for one in found] == [
        "No such file or directory",
        "No such file or directory",
        "Too many levels of symbolic links",
        "not a file",
        "not a file",
        "Not a directory",
        "embedded null byte",
        "",
    ]
    assert all(one == Hashed(error=one.error) for one in found[:-1])


def test_order_and_progress_over_many_batches(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / str(number)).write_text(str(number))
    jobs = [Job(str(tmp_path / str(number % 50))) for number in range(1500)]
    steps: list[int] = []
    found = hash_files(jobs, steps.append)
    expected = [hashlib.sha256(str(number % 50).encode()).hexdigest() for number in range(1500)]
    assert [one.hex for one in found] == expected
    assert sum(steps) == 1500
    assert len(steps) > 1
    assert hash_files([]) == []


def test_one_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    assert sha256(tmp_path / "a") == hashlib.sha256(b"abc").hexdigest()
    with pytest.raises(OSError, match="No such file"):
        sha256(tmp_path / "none")


def test_workers_are_those_of_the_limits() -> None:
    assert workers() == usable_cpus() <= len(os.sched_getaffinity(0))


# --- whole or not there ---------------------------------------------------------------------


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


@pytest.mark.parametrize(("data", "expected"), [("é\n", b"\xc3\xa9\n"), (b"\0\xff", b"\0\xff")])
def test_write(tmp_path: Path, data: str | bytes, expected: bytes) -> None:
    path = tmp_path / "lock.yaml"
    path.write_text("old")
    write_whole(path, data)
    assert path.read_bytes() == expected
    assert os.listdir(tmp_path) == ["lock.yaml"]


@pytest.mark.usefixtures("umask")
def test_mode_follows_the_umask(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", "x")
    write_whole(tmp_path / "b", "x", mode=0o600)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "ab"]
    assert modes == [0o640, 0o600]
    assert os.umask(0o027) == 0o027


@pytest.mark.parametrize("step", ["fsync", "chmod", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_failing_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    path = tmp_path / "lock.yaml"
    path.write_text("old")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(type(error)):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["lock.yaml"]


def test_readers_never_see_half_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the last rename the old file is there; no half-written one has the real name."""
    path = tmp_path / "lock.yaml"
    path.write_text("old")
    seen: list[tuple[str, list[str]]] = []
    real = os.replace

    def look(source: str, target: str) -> None:
        others = [name for name in os.listdir(tmp_path) if name != "lock.yaml"]
        seen.append((path.read_text(), others))
        assert Path(source).read_text() == "new"
        real(source, target)

    monkeypatch.setattr(os, "replace", look)
    write_whole(path, "new")
    [(text, others)] = seen
    assert text == "old"
    assert [name.startswith(".lock.yaml.") for name in others] == [True]


def test_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "none" / "a", "x")


def test_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_whole("a", "x")
    assert (tmp_path / "a").read_text() == "x"


def test_append(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_text("one\n")
    append_line(str(path), "two")
    assert path.read_text() == "one\ntwo\n"


def test_sync(tmp_path: Path) -> None:
    sync_filesystem(str(tmp_path))
    with pytest.raises(FileNotFoundError):
        sync_filesystem(str(tmp_path / "none"))


# --- removing -------------------------------------------------------------------


def fill(folder: Path, names: Sequence[str]) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def test_remove(tmp_path: Path) -> None:
    fill(tmp_path, ["keep/a", "gone/b/c", "file"])
    (tmp_path / "link").symlink_to("keep")
    for name in ("gone", "file", "link", "none"):
        assert remove_tree(str(tmp_path / name)) == []
    assert os.listdir(tmp_path) == ["keep"]
    assert os.listdir(tmp_path / "keep") == ["a"]


def test_what_cannot_be_removed_is_returned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, ["file"])

    def fail(_: str) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "unlink", fail)
    assert remove_tree(str(tmp_path / "file")) == [str(tmp_path / "file")]


def test_hashing_uses_no_time_on_missing_files(tmp_path: Path) -> None:
    started = time.monotonic()
    hash_files([Job(str(tmp_path / str(number))) for number in range(2000)])
    assert time.monotonic() - started < 5
