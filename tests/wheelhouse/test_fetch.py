"""Many files at once: what is fetched, from where, and what is said when it does not work."""

from __future__ import annotations

import errno
import hashlib
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from envlock.adapters import partial
from envlock.adapters.index_settings import IndexSettings
from envlock.adapters.resolving import Pin, RemoteFile
from envlock.adapters.web import Web
from envlock.errors import ProgramFailed
from envlock.wheelhouse.fetch import Fetcher
from tests.support.loopback import Loopback, Turn, loopback, serve_wheels
from tests.support.wheels import make_wheel
from tests.wheelhouse.test_check import manifest_of

TARGET = manifest_of().target
ZEROS = bytes(100_000)


@pytest.fixture
def server() -> Iterator[Loopback]:
    with loopback() as running:
        yield running


@dataclass
class Shown:
    """What a person would see."""

    titles: list[tuple[str, int | None]] = field(default_factory=list)
    came: int = 0

    @contextmanager
    def __call__(self, title: str, total: int | None, /) -> Iterator[Callable[[int], None]]:
        self.titles.append((title, total))

        def advance(count: int, /) -> None:
            self.came += count

        yield advance


@pytest.fixture
def shown() -> Shown:
    return Shown()


def fetcher(shown: Shown, **settings: object) -> Fetcher:
    known = {"timeout": 30.0, "no_index": True, **settings}
    return Fetcher(web=Web(settings=IndexSettings(**known), env={}), progress=shown)  # type: ignore[arg-type]


def remote(server: Loopback, name: str, data: bytes, *turns: Turn) -> Pin:
    """A wheel on a server, as a resolver tells it."""
    file = f"{name}-1-py3-none-any.whl"
    url = server.add(f"/{file}", *(turns or [Turn(data=data)]))
    sha256 = hashlib.sha256(data).hexdigest()
    one = RemoteFile(file=file, urls=(url,), sha256=sha256, size=len(data))
    return Pin(name, "1", (sha256,), (one,))


def many(server: Loopback, count: int) -> list[Pin]:
    return [remote(server, f"d{n}", b"%d" % n * 1000) for n in range(count)]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_all_of_them(server: Loopback, shown: Shown, tmp_path: Path) -> None:
    pins = many(server, 20)
    found = fetcher(shown).download(pins, TARGET, str(tmp_path))
    assert found == tuple(pin.wheels[0].file for pin in pins)
    assert names(tmp_path) == sorted(found)
    total = sum(pin.wheels[0].size or 0 for pin in pins)
    assert shown.titles == [("downloading 20 files", total)]
    assert shown.came == total


def test_several_at_once(server: Loopback, shown: Shown, tmp_path: Path) -> None:
    """Each waits until all have been asked for."""
    together = threading.Barrier(6, timeout=20)
    original = server.next_turn

    def wait(path: str, headers: dict[str, str]) -> Turn:
        together.wait()
        return original(path, headers)

    server.next_turn = wait  # type: ignore[method-assign]
    fetcher(shown).download(many(server, 6), TARGET, str(tmp_path))
    assert len(names(tmp_path)) == 6


def test_second_run_takes_no_network(server: Loopback, shown: Shown, tmp_path: Path) -> None:
    pins = many(server, 3)
    first = fetcher(shown).download(pins, TARGET, str(tmp_path))
    asked = len(server.asked)
    assert fetcher(shown).download(pins, TARGET, str(tmp_path)) == first
    assert len(server.asked) == asked
    (tmp_path / first[1]).write_bytes(b"damaged")
    fetcher(shown).download(pins, TARGET, str(tmp_path))
    assert [path for path, _ in server.asked[asked:]] == [f"/{first[1]}"]
    assert shown.titles[1:] == [("downloading 1 of 3 files", 1000)]


def test_all_failures_in_one_report(server: Loopback, shown: Shown, tmp_path: Path) -> None:
    good = many(server, 4)
    bad = [
        remote(server, "gone", b"x", Turn(status=404)),
        remote(server, "other", b"x", Turn(data=b"y")),
        remote(server, "cut", ZEROS, Turn(data=ZEROS, cut=70_000), Turn(status=404)),
    ]  # fmt: skip
    with pytest.raises(ProgramFailed) as caught:
        fetcher(shown).download([bad[0], *good, *bad[1:]], TARGET, str(tmp_path))
    said = caught.value.message
    assert said.startswith("download: 3 files failed:\n")
    assert f"'gone-1-py3-none-any.whl': it does not have it ('{bad[0].wheels[0].urls[0]}')" in said
    assert "it serves other bytes" in said
    assert "70000 of 100000 bytes are kept" in said
    assert "run the same again" in caught.value.hint
    finished = [pin.wheels[0].file for pin in good]
    assert [name for name in names(tmp_path) if name.endswith(".whl")] == sorted(finished)
    assert len(names(tmp_path)) == 5  # and the one that can go on


def test_no_password_is_told(server: Loopback, shown: Shown, tmp_path: Path) -> None:
    pin = remote(server, "a", b"x", Turn(status=404))
    secret = pin.wheels[0].urls[0].replace("//", "//me:secret@") + "?signature=secret"
    pin = replace(pin, wheels=(replace(pin.wheels[0], urls=(secret,)),))
    with pytest.raises(ProgramFailed) as caught:
        fetcher(shown).download([pin], TARGET, str(tmp_path))
    assert "secret" not in caught.value.message


def test_no_room(
    server: Loopback, shown: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looked for before anything is asked; what is here already needs none."""
    pin = remote(server, "a", b"x" * 1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(9999, 9, 990))
    with pytest.raises(OSError, match="1000 more bytes are needed, 990 are free"):
        fetcher(shown).download([pin], TARGET, str(tmp_path))
    assert server.asked == []
    part = partial.part_path(str(tmp_path / pin.wheels[0].file), pin.hashes)
    Path(part).write_bytes(b"x" * 20)
    fetcher(shown).download([pin], TARGET, str(tmp_path))
    assert server.ranges(f"/{pin.wheels[0].file}") == ["bytes=20-"]


def test_disk_full(
    server: Loopback, shown: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error that says so, and what found room stays for the next run."""
    pins = [remote(server, name, name.encode() * 200_000) for name in ("a", "b", "c")]
    original = partial.Part.write

    def write(self: partial.Part, data: bytes) -> None:
        room = 100_000 - self.have
        original(self, data[:room])
        if len(data) > room:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(partial.Part, "write", write)
    with pytest.raises(OSError, match="No space left on device"):
        fetcher(shown).download(pins, TARGET, str(tmp_path))
    left = list(tmp_path.iterdir())
    assert left
    assert all(path.suffix == ".part" for path in left)
    assert max(path.stat().st_size for path in left) == 100_000
    monkeypatch.undo()
    fetcher(shown).download(pins, TARGET, str(tmp_path))
    assert names(tmp_path) == [pin.wheels[0].file for pin in pins]
    assert any("bytes=100000-" in server.ranges(f"/{name}") for name in names(tmp_path))


def test_interrupted(server: Loopback, shown: Shown, tmp_path: Path) -> None:
    """Ctrl-C ends it at once, also while servers hang, and leaves what can go on."""
    pins = [remote(server, f"d{n}", bytes(90_000), Turn(data=bytes(90_000), hang=50_000))
            for n in range(3)]  # fmt: skip

    class Pressed(Shown):
        @contextmanager
        def __call__(self, title: str, total: int | None, /) -> Iterator[Callable[[int], None]]:
            yield self.press

        def press(self, count: int, /) -> None:
            self.came += count
            if self.came == 150_000:
                import _thread

                _thread.interrupt_main()

    with pytest.raises(KeyboardInterrupt):
        fetcher(Pressed(), timeout=60).download(pins, TARGET, str(tmp_path))
    assert len(server.asked) == 3  # nobody waited until a server was given up
    assert {path.suffix for path in tmp_path.iterdir()} == {".part"}


# --------------------------------------------------------------------------- where files are


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """Wheels of one version for several targets."""
    folder = tmp_path / "index"
    for tag in ("cp310-cp310-manylinux_2_17_x86_64", "cp310-cp310-manylinux_2_28_x86_64",
                "cp311-cp311-manylinux_2_17_x86_64", "py3-none-any"):  # fmt: skip
        make_wheel(folder, "a", "1", tag=tag)
    return folder


def hashes(folder: Path) -> tuple[str, ...]:
    return tuple(hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.whl"))


def test_best_for_the_target(server: Loopback, shown: Shown, tmp_path: Path, index: Path) -> None:
    """A resolver that names hashes only: the index says where, the target's tags say which."""
    url = serve_wheels(server, index)
    (tmp_path / "W").mkdir()
    found = fetcher(shown, no_index=False, index=url).download(
        [Pin("a", "1", hashes(index))], TARGET, str(tmp_path / "W")
    )
    assert found == ("a-1-cp310-cp310-manylinux_2_28_x86_64.whl",)


def test_none_for_the_target(server: Loopback, shown: Shown, tmp_path: Path, index: Path) -> None:
    url = serve_wheels(server, index)
    pins = [Pin("a", "2", ("0" * 64,)), Pin("a", "1", ("0" * 64,)), Pin("b", "1")]
    with pytest.raises(ProgramFailed, match="3 files failed") as caught:
        fetcher(shown, no_index=False, index=url).download(pins, TARGET, str(tmp_path))
    assert "'a 2': no wheel of it fits the target" in caught.value.message
    assert "'a 1': no wheel of it has a sha256 that was resolved" in caught.value.message


def test_second_index_when_a_mirror_lies(
    server: Loopback, shown: Shown, tmp_path: Path, index: Path
) -> None:
    good = serve_wheels(server, index)
    file = "a-1-py3-none-any.whl"
    sha256 = hashlib.sha256((index / file).read_bytes()).hexdigest()
    lie = server.add("/mirror", Turn(data=b"something else"))
    pin = Pin("a", "1", (sha256,), (RemoteFile(file=file, urls=(lie,), sha256=sha256),))
    (tmp_path / "W").mkdir()
    found = fetcher(shown, no_index=False, index=server.url("/none"), more=(good,)).download(
        [pin], TARGET, str(tmp_path / "W")
    )
    assert found == (file,)
    assert (tmp_path / "W" / file).read_bytes() == (index / file).read_bytes()
    alone = replace(pin, origin="url")  # the request names the very place: nobody else is asked
    (tmp_path / "W" / file).unlink()
    with pytest.raises(ProgramFailed, match=re.escape(f"it serves other bytes ('{lie}')")):
        fetcher(shown, no_index=False, index=good).download([alone], TARGET, str(tmp_path / "W"))


def test_a_file_name_that_leads_out(server: Loopback, shown: Shown, tmp_path: Path) -> None:
    pin = remote(server, "a", b"x")
    for file in ("../a-1-py3-none-any.whl", "a-1-py3-none-any./../x.whl", "b-1-py3-none-any.whl"):
        bad = replace(pin, wheels=(replace(pin.wheels[0], file=file),))
        with pytest.raises(ProgramFailed, match="no wheel of it fits the target"):
            fetcher(shown).download([bad], TARGET, str(tmp_path))
    assert list(tmp_path.iterdir()) == []
