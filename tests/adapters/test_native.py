"""The native backend alone: what it refuses, what it notices, and how it ends."""

from __future__ import annotations

import errno
import hashlib
import os
import threading
import time
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from envlock.adapters import native_wheel, native_write, zipmember
from envlock.adapters.files import seal_of, sha256
from envlock.adapters.installed import read_contents, read_installed
from envlock.adapters.installer import Pinned
from envlock.adapters.native import NativeStager
from envlock.errors import ProgramFailed
from envlock.model.facts import Layout, Target
from envlock.model.wheels import parse_wheel_name
from tests.support.hard_wheels import HARD
from tests.support.wheels import make_wheel, record_hash

LAYOUT = Layout(
    prefix="/t",
    purelib="/t/lib/python3.10/site-packages",
    platlib="/t/lib64/python3.10/site-packages",
    scripts="/t/bin",
    headers="/t/include/site/python3.10",
    data="/t",
)
TARGET = Target(
    executable="/t/bin/python",
    source="test",
    python="3.10.1",
    markers={},
    tags=("py3-none-any",),
    layout=LAYOUT,
    sys_path=(),
    glibc=None,
    venv=True,
    pip=None,
    externally_managed=None,
)
INFO = "pkg-1.0.dist-info"


@pytest.fixture
def stage(tmp_path: Path) -> Path:
    folder = tmp_path / "txn" / "stage"
    folder.mkdir(parents=True)
    return folder


def pin(path: Path) -> Pinned:
    name = parse_wheel_name(path.name)
    return Pinned(name.name, name.version, sha256(path), str(path))


def unpack(stage: Path, *wheels: Path) -> None:
    NativeStager().stage([pin(path) for path in wheels], TARGET, str(stage), None)


def refused(stage: Path, wheel: Path) -> str:
    more = [make_wheel(stage.parent.parent / "more", name, "1.0") for name in ("first", "last")]
    with pytest.raises(ProgramFailed) as caught:
        unpack(stage, more[0], wheel, more[1])
    assert caught.value.message.startswith(f"native: '{wheel.name}': ")
    assert caught.value.hint == "try again with --backend uv"
    assert os.listdir(stage.parent) == ["stage"]
    return caught.value.message.removeprefix(f"native: '{wheel.name}': ")


def change(wheel: Path, old: bytes, new: bytes) -> Path:
    """Replaces bytes of a wheel file by as many others."""
    data = wheel.read_bytes()
    assert len(old) == len(new)
    assert old in data
    wheel.write_bytes(data.replace(old, new))
    return wheel


@pytest.mark.parametrize(
    "member",
    ["../evil.py", "/evil.py", "pkg/../../../evil.py", "pkg//evil.py", "pkg\\evil.py", "./evil.py"],
)
def test_a_path_that_leads_out_is_refused(stage: Path, tmp_path: Path, member: str) -> None:
    wheel = make_wheel(tmp_path / "w", "pkg", "1.0", {"pkg/__init__.py": "", member: "evil"})
    assert "evil" in refused(stage, wheel)
    assert not list(stage.iterdir())


def test_the_first_fault_is_said(
    stage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not that another worker was stopped by it."""
    monkeypatch.setattr(native_write, "workers", lambda: 8)
    files = {f"pkg/{number}.bin": bytes(3_000_000) for number in range(8)}
    files["pkg/bad.bin"] = b"x"
    wrong = {"pkg/bad.bin": record_hash(b"y")}
    wheel = make_wheel(tmp_path / "w", "pkg", "1.0", files, extra_record=wrong)
    assert refused(stage, wheel) == "'pkg/bad.bin' has other bytes than RECORD says"


@pytest.mark.parametrize("name", ["../../evil", "/evil", "a/b", ".."])
def test_an_entry_point_that_leads_out_is_refused(stage: Path, tmp_path: Path, name: str) -> None:
    wheel = make_wheel(
        tmp_path / "w", "pkg", "1.0", entry_points=f"[console_scripts]\n{name} = pkg:main\n"
    )
    assert refused(stage, wheel) == f"entry_points.txt: '{name} = pkg:main' is no script"


@pytest.mark.parametrize("text", ["[console_scripts]\nrun = pkg\n", "[console_scripts]\nrun = \n"])
def test_an_entry_point_without_a_function(stage: Path, tmp_path: Path, text: str) -> None:
    assert "entry_points.txt" in refused(
        stage, make_wheel(tmp_path / "w", "pkg", "1.0", entry_points=text)
    )


def test_a_link_is_refused(stage: Path, tmp_path: Path) -> None:
    files = {"pkg/link": "/etc/passwd"}
    wheel = make_wheel(tmp_path / "w", "pkg", "1.0", files, modes={"pkg/link": 0o120777})
    assert refused(stage, wheel) == "'pkg/link': a symlink"


def test_two_members_for_one_file(stage: Path, tmp_path: Path) -> None:
    files = {"pkg.py": "1", ".data/purelib/pkg.py": "2"}
    wheel = make_wheel(tmp_path / "w", "pkg", "1.0", files)
    assert refused(stage, wheel) == "two members are installed as 'pkg.py'"


def test_a_scheme_that_does_not_exist(stage: Path, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "w", "pkg", "1.0", {".data/elsewhere/pkg.py": ""})
    assert "unknown scheme 'elsewhere'" in refused(stage, wheel)


def test_what_is_there_already_stays(stage: Path, tmp_path: Path) -> None:
    """Also a link that somebody laid in the way: it is not followed."""
    site = stage / "lib/python3.10/site-packages"
    site.mkdir(parents=True)
    (site / "pkg.py").symlink_to(tmp_path / "outside")
    with pytest.raises(FileExistsError):
        unpack(stage, make_wheel(tmp_path / "w", "pkg", "1.0"))
    assert not (tmp_path / "outside").exists()


SIZES = [100, native_write.LARGE + 100]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("member", ["pkg/data.bin", ".data/scripts/run"])
def test_bytes_that_are_not_those_of_record(
    stage: Path, tmp_path: Path, size: int, member: str
) -> None:
    path = member.replace(".data", "pkg-1.0.data")
    wheel = make_wheel(
        tmp_path / "w", "pkg", "1.0", {member: b"x" * size},
        extra_record={path: record_hash(b"y" * size)},
    )  # fmt: skip
    assert refused(stage, wheel) == f"'{path}' has other bytes than RECORD says"


@pytest.mark.parametrize("size", SIZES)
def test_bytes_that_are_not_those_of_the_archive(stage: Path, tmp_path: Path, size: int) -> None:
    wheel = make_wheel(
        tmp_path / "w", "pkg", "1.0", {"pkg/data.bin": b"abcdefgh" * size}, stored=["pkg/data.bin"]
    )
    change(wheel, b"abcdefgh" * size, b"abcdefgX" * size)
    assert refused(stage, wheel) == "'pkg/data.bin': bad CRC"


@pytest.mark.parametrize("kind", ["sha384", "sha512"])
@pytest.mark.parametrize("right", [True, False])
def test_other_algorithms_of_record(stage: Path, tmp_path: Path, kind: str, right: bool) -> None:
    digest = hashlib.new(kind, b"data" if right else b"else").digest()
    claimed = f"{kind}={native_write.urlsafe(digest)}"
    wheel = make_wheel(
        tmp_path / "w", "pkg", "1.0", {"pkg.bin": b"data"}, extra_record={"pkg.bin": claimed}
    )
    if right:
        unpack(stage, wheel)
    else:
        assert refused(stage, wheel) == "'pkg.bin' has other bytes than RECORD says"


def test_a_script_of_its_own_gives_way_to_the_entry_point(stage: Path, tmp_path: Path) -> None:
    """pip and uv leave a line in RECORD for a file that is not there."""
    wheel = make_wheel(
        tmp_path / "w", "pkg", "1.0", {"pkg.py": "", ".data/scripts/run": "#!python\nown\n"},
        entry_points="[console_scripts]\nrun = pkg:main\n",
    )  # fmt: skip
    unpack(stage, wheel)
    assert "from pkg import main" in (stage / "bin/run").read_text()
    layout = LAYOUT.moved(str(stage))
    [content] = read_contents(read_installed(layout), layout)
    assert content.digest


def test_root_goes_where_wheel_says(stage: Path, tmp_path: Path) -> None:
    unpack(
        stage,
        make_wheel(tmp_path / "w", "pure", "1.0", {"pure.py": ""}),
        make_wheel(
            tmp_path / "w", "plat", "1.0", {"plat.py": "", ".data/purelib/p.py": ""}, purelib=False
        ),
    )
    assert (stage / "lib/python3.10/site-packages/pure.py").exists()
    assert (stage / "lib64/python3.10/site-packages/plat.py").exists()
    assert (stage / "lib/python3.10/site-packages/p.py").exists()
    record = (stage / "lib64/python3.10/site-packages/plat-1.0.dist-info/RECORD").read_text()
    assert "../../../lib/python3.10/site-packages/p.py,sha256=" in record


def test_a_sealed_wheel_is_hashed_once(
    stage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def hash_descriptor(descriptor: int) -> str:
        asked.append(descriptor)
        return "another"

    monkeypatch.setattr(native_wheel, "hash_descriptor", hash_descriptor)
    wheel = make_wheel(tmp_path / "w", "pkg", "1.0")
    sealed = replace(pin(wheel), seal=seal_of(str(wheel)))
    NativeStager().stage([sealed], TARGET, str(stage), None)
    assert not asked
    os.utime(wheel, ns=(0, 0))
    with pytest.raises(ProgramFailed, match="another sha256"):
        NativeStager().stage([sealed], TARGET, str(stage), None)
    assert asked


def test_a_wheel_that_changes_while_it_is_unpacked(
    stage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = make_wheel(tmp_path / "w", "pkg", "1.0")
    real = native_wheel.read_wheel

    def read(*args: object) -> native_wheel.Wheel:
        os.utime(wheel, ns=(0, 0))
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr("envlock.adapters.native.read_wheel", read)
    assert refused(stage, wheel) == "it changed while it was unpacked"


def test_writes_may_be_short(stage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data)[:7]))
    unpack(stage, make_wheel(tmp_path / "w", "pkg", "1.0", {"pkg.bin": bytes(range(100))}))
    assert (stage / "lib/python3.10/site-packages/pkg.bin").read_bytes() == bytes(range(100))


@pytest.mark.parametrize("size", SIZES)
def test_a_full_disk_is_said_with_the_path(
    stage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    def full(_descriptor: int, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    wheel = make_wheel(tmp_path / "w", "pkg", "1.0", {"pkg.bin": b"x" * size})
    listed = pin(wheel)
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left") as caught:
        NativeStager().stage([listed], TARGET, str(stage), None)
    assert str(caught.value.filename).startswith(str(stage))


def test_nobody_writes_after_an_interrupt(
    stage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What undoes a restore must not race with workers that still make files."""
    files = {f"pkg/{number}.bin": b"x" for number in range(2000)}
    listed = pin(make_wheel(tmp_path / "w", "pkg", "1.0", files))
    real = native_write._write

    def slow(*args: object) -> native_write.Written:
        time.sleep(0.001)
        return real(*args)  # type: ignore[arg-type]

    def interrupted(_: object) -> Sequence[native_write.Written]:
        raise KeyboardInterrupt

    monkeypatch.setattr(native_write, "_write", slow)
    monkeypatch.setattr(native_write._Crew, "results", interrupted)
    before = set(threading.enumerate())  # some of other tests may end meanwhile
    with pytest.raises(KeyboardInterrupt):
        NativeStager().stage([listed], TARGET, str(stage), None)
    assert set(threading.enumerate()) <= before
    assert len(list(stage.rglob("*.bin"))) < 2000


@pytest.mark.parametrize("name", HARD)
def test_small_members_are_read_as_large_ones_are(tmp_path: Path, name: str) -> None:
    wheel = HARD[name](tmp_path)
    with wheel.open("rb") as file, zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            data = archive.read(info)
            assert b"".join(zipmember.read_member(file.fileno(), info)) == data
            assert zipmember.read_whole(file.fileno(), info) == data


def test_damage_is_found_in_small_members_too(tmp_path: Path) -> None:
    """Every byte of a deflated and of a stored member, changed: never other data, never silence."""
    data = b"some text, some more text, and some text again " * 3
    for stored in ([], ["pkg.txt"]):
        wheel = make_wheel(tmp_path, "pkg", "1.0", {"pkg.txt": data}, stored=stored)
        whole = wheel.read_bytes()
        with zipfile.ZipFile(wheel) as archive:
            info = archive.getinfo("pkg.txt")
        start = info.header_offset + zipmember.LOCAL.size + len("pkg.txt")
        for place in range(start, start + info.compress_size):
            wheel.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
            with wheel.open("rb") as file, pytest.raises(zipmember.DAMAGED):
                zipmember.read_whole(file.fileno(), info)
        wheel.write_bytes(whole[: start + 3])
        with wheel.open("rb") as file, pytest.raises(zipmember.DAMAGED):
            zipmember.read_whole(file.fileno(), info)
