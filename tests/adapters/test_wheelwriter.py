"""Writing wheels: what is packed comes out, and the same members give the same bytes."""

from __future__ import annotations

import random
import shutil
import zipfile
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from isal import isal_zlib

from envlock.adapters import wheelwriter
from envlock.adapters.deflating import BEST, COMPRESSORS, FAST, NONE, Compressor
from envlock.adapters.wheelfile import WheelFile, inspect_wheel
from envlock.adapters.wheelwriter import CHUNK, Member, write_wheel

INFO = "Pkg-1.0.dist-info"
FILE = "pkg-1.0-py3-none-any.whl"


def pack(
    folder: Path,
    files: dict[str, tuple[bytes, bool]],
    out: Path,
    compressor: Compressor = FAST,
) -> WheelFile:
    """Files on the disk, written as a wheel, inspected."""
    files = files | {
        f"{INFO}/METADATA": (b"Metadata-Version: 2.1\nName: Pkg\nVersion: 1.0\n", False),
        f"{INFO}/WHEEL": (b"Wheel-Version: 1.0\nTag: py3-none-any\n", False),
    }
    folder.mkdir(parents=True)
    members = []
    for number, (name, (data, executable)) in enumerate(files.items()):
        path = folder / str(number)
        path.write_bytes(data)
        script = "/scripts/" in name
        members.append(Member(name=name, path=str(path), executable=executable, script=script))
    out.mkdir(parents=True, exist_ok=True)
    random.Random(len(files)).shuffle(members)
    write_wheel(str(out / FILE), members, INFO, compressor=compressor)
    return inspect_wheel(str(out / FILE))


def test_written_wheel(tmp_path: Path) -> None:
    big = random.Random(1).randbytes(300_000) * 9
    files = {
        "pkg/b.py": (b"b = 1\n", False),
        "pkg/a.py": (b"", True),
        "pkg/big.so": (big, True),
        "Pkg-1.0.data/scripts/run": (b"#!/some/where/bin/python3\nprint()\n", True),
        'Pkg-1.0.data/data/näme, "quoted".txt': (b"x", False),
    }
    found = pack(tmp_path / "files", files, tmp_path / "out")
    assert found.problems == ()
    assert found.executable == ("bin/run", "lib/pkg/a.py", "lib/pkg/big.so")
    with zipfile.ZipFile(tmp_path / "out" / FILE) as archive:
        names = archive.namelist()
        infos = archive.infolist()
        assert archive.testzip() is None
        assert archive.read("pkg/big.so") == big
        assert archive.read("Pkg-1.0.data/scripts/run") == b"#!python\nprint()\n"
    others = [name for name in names if not name.startswith(INFO)]
    assert names == [*sorted(others), f"{INFO}/METADATA", f"{INFO}/WHEEL", f"{INFO}/RECORD"]
    assert {info.date_time for info in infos} == {(1980, 1, 1, 0, 0, 0)}
    assert {info.external_attr >> 16 for info in infos} == {0o100644, 0o100755}


def test_same_bytes_whatever_the_interpreter_path(tmp_path: Path) -> None:
    """A script over a chunk long: its first line must not shift what follows."""
    body = random.Random(2).randbytes(2 * CHUNK)
    results = []
    for number, head in enumerate((b"#!/a/python\n", b"#!/a/much/longer/path/to/python3.11\n")):
        files = {"Pkg-1.0.data/scripts/run": (head + body, True)}
        pack(tmp_path / f"files{number}", files, tmp_path / f"out{number}")
        results.append((tmp_path / f"out{number}" / FILE).read_bytes())
    assert results[0] == results[1]


def test_same_bytes_whatever_the_number_of_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = random.Random(3)
    files = {
        f"pkg/{number}": (source.randbytes(source.choice([10, 5000, 400_000])) * 4, False)
        for number in range(60)
    }
    results = set()
    for count in (1, 2, 7):
        monkeypatch.setattr(wheelwriter, "workers", lambda count=count: count)
        pack(tmp_path / f"files{count}", files, tmp_path / f"out{count}")
        results.add((tmp_path / f"out{count}" / FILE).read_bytes())
    assert len(results) == 1


def _crc32c(value: int) -> int:
    crc = value
    for _ in range(32):
        crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc


def test_output_does_not_depend_on_addresses() -> None:
    """Data made so that the fault of ISA-L shows at once: the first four bytes it sees (after the
    one that is stored) fall into the slot of its hash table that the address of the compressor
    chooses."""
    source = random.Random(4)
    data = bytearray(source.randbytes(2500))
    made: list[object] = []
    real = isal_zlib.compressobj

    def prepare(*args: object, **more: object) -> object:
        made.append(real(*args, **more))  # type: ignore[arg-type]
        slot = _crc32c(id(made[-1]) >> 16 & 0xFFFFFFFF) & 0x7FFF
        words = iter(lambda: source.randbytes(4), b"")
        word = next(w for w in words if _crc32c(int.from_bytes(w, "little")) & 0x7FFF == slot)
        data[1:5] = word
        data[400:464] = data[1:65]
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(isal_zlib, "compressobj", prepare)
        first = FAST.whole(memoryview(data))
    blocks = []
    for _ in range(20):
        blocks.append(bytearray(200_000))  # so that the next compressor lies elsewhere
        assert FAST.whole(memoryview(data)) == first
    assert len(made) == 1
    assert zlib.decompress(first, -15) == data


_NAMES = st.text(
    st.characters(exclude_characters="/\\:", exclude_categories=["Cs", "Cc", "Zl", "Zp"]),
    min_size=1,
    max_size=8,
).filter(lambda name: name not in (".", "..") and not name.endswith((".data", ".dist-info")))
_DATA = st.one_of(
    st.binary(max_size=200),
    st.integers(0, 3).map(lambda n: bytes(n * (CHUNK // 2))),
    st.binary(max_size=20).map(lambda line: b"#!/usr/bin/python" + line),
)
_FILES = st.dictionaries(
    st.builds(lambda scheme, parts: scheme + "/".join(parts),
              st.sampled_from(["", "Pkg-1.0.data/scripts/", "Pkg-1.0.data/data/"]),
              st.lists(_NAMES, min_size=1, max_size=3)),
    st.tuples(_DATA, st.booleans()),
    max_size=8,
)  # fmt: skip


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_FILES, st.sampled_from(list(COMPRESSORS.values())))
def test_write_and_inspect(
    tmp_path: Path, files: dict[str, tuple[bytes, bool]], compressor: Compressor
) -> None:
    """Whatever is packed comes out: content, exec bits, and a RECORD that is right."""
    folder = tmp_path / "run"
    shutil.rmtree(folder, ignore_errors=True)
    found = pack(folder / "files", files, folder / "out", compressor)
    assert [p for p in found.problems if p.code != "wheel.duplicate"] == []
    with zipfile.ZipFile(folder / "out" / FILE) as archive:
        for name, (data, executable) in files.items():
            if "/scripts/" not in name:
                assert archive.read(name) == data
            assert bool(archive.getinfo(name).external_attr >> 16 & 0o100) == executable


def test_sizes(tmp_path: Path) -> None:
    """Each compressor does what its name says, across chunks."""
    text = b"".join(f"line {n * n} of a text\n".encode() for n in range(3 * CHUNK // 20))
    sizes = {}
    for one in COMPRESSORS.values():
        found = pack(tmp_path / f"files {one.name}", {"pkg/text": (text, False)},
                     tmp_path / f"out {one.name}", one)  # fmt: skip
        assert found.problems == ()
        sizes[one.name] = found.size
    assert sizes["best"] < sizes["fast"] < len(text) < sizes["none"]


def test_stored_is_what_the_specification_says(tmp_path: Path) -> None:
    """No program and no version has a part in it: the bytes can be written down."""
    pack(tmp_path / "files", {"pkg/a": (b"abc", False)}, tmp_path / "out", NONE)
    data = (tmp_path / "out" / FILE).read_bytes()
    crc = zlib.crc32(b"abc").to_bytes(4, "little")
    head = b"PK\3\4" + b"\x14\0" + bytes(4) + b"\0\0\x21\0" + crc + b"\3\0\0\0" * 2
    assert data.startswith(head + b"\5\0\0\0" + b"pkg/a" + b"abc")
    assert BEST.version.startswith("zlib ") and FAST.version.startswith("isa-l ")


def test_large_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The 64-bit structures, with limits lowered so that small files need them."""
    monkeypatch.setattr(wheelwriter, "_LARGE", CHUNK)
    data = random.Random(5).randbytes(CHUNK) * 3
    found = pack(tmp_path / "files", {"pkg/big": (data, False), "small": (b"x", False)},
                 tmp_path / "out")  # fmt: skip
    assert found.problems == ()
    with zipfile.ZipFile(tmp_path / "out" / FILE) as archive:
        assert archive.getinfo("pkg/big").extract_version == 45
        assert archive.read("pkg/big") == data


def test_many_members(tmp_path: Path) -> None:
    """More than a 16-bit number can count."""
    (tmp_path / "one").write_bytes(b"x")
    (tmp_path / "meta").write_bytes(b"Metadata-Version: 2.1\nName: Pkg\nVersion: 1.0\n")
    (tmp_path / "wheel").write_bytes(b"Wheel-Version: 1.0\nTag: py3-none-any\n")
    members = [Member(name=f"pkg/{n}", path=str(tmp_path / "one")) for n in range(66_000)]
    members += [
        Member(name=f"{INFO}/METADATA", path=str(tmp_path / "meta")),
        Member(name=f"{INFO}/WHEEL", path=str(tmp_path / "wheel")),
    ]
    write_wheel(str(tmp_path / FILE), members, INFO)
    found = inspect_wheel(str(tmp_path / FILE))
    assert found.problems == () and len(found.files) == 66_002
