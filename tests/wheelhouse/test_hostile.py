"""Hostile wheels: each is refused with its own message, by check and by restore alike."""

from __future__ import annotations

import stat
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from envlock.adapters.files import sha256
from envlock.adapters.interpreter import Named, read_target
from envlock.model.dist import Distribution, WheelRef
from envlock.model.facts import Finding, Target
from envlock.restore.preflight import look_at_wheels
from envlock.restore.stage import Beside
from envlock.wheelhouse.check import check
from envlock.wheelhouse.folder import write_papers
from tests.support.pythons import clean_env
from tests.support.wheels import make_wheel, record_hash
from tests.wheelhouse.test_check import manifest_of

pytestmark = pytest.mark.filterwarnings("ignore:Duplicate name")

INFO = "pkg-1.0.dist-info"
RECORD = f"{INFO}/RECORD"
Members = dict[str, bytes]


def sound() -> Members:
    """The members of a good wheel, RECORD left out."""
    return {
        "pkg/__init__.py": b"VERSION = 1\n",
        "pkg/data.bin": bytes(range(250)) * 10,
        f"{INFO}/METADATA": b"Metadata-Version: 2.1\nName: pkg\nVersion: 1.0\n",
        f"{INFO}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }


def record_of(members: Members) -> list[str]:
    return [f"{name},{record_hash(data)},{len(data)}" for name, data in members.items()]


def write(
    folder: Path,
    members: Members,
    rows: Sequence[str] | None = None,
    *,
    twice: str = "",
    modes: dict[str, int] | None = None,
) -> Path:
    """A wheel with these members and these lines of RECORD, however wrong they are."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "pkg-1.0-py3-none-any.whl"
    lines = [*(record_of(members) if rows is None else rows), f"{RECORD},,"]
    everything = [*members.items(), (RECORD, "\n".join(lines).encode())]
    everything += [(twice, b"evil")] if twice else []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in everything:
            entry = zipfile.ZipInfo("x")
            entry.filename = name  # as it stands: the constructor would mend it
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (modes or {}).get(name, 0o100644) << 16
            archive.writestr(entry, data)
    return path


def with_member(name: str, mode: int = 0o100644) -> Callable[[Path], Path]:
    """A wheel with one more member, which RECORD knows."""
    return lambda folder: write(folder, {**sound(), name: b"evil"}, modes={name: mode})


def with_rows(change: Callable[[list[str]], list[str]]) -> Callable[[Path], Path]:
    """A wheel with a changed RECORD."""
    return lambda folder: write(folder, sound(), change(record_of(sound())))


def without(name: str) -> Callable[[Path], Path]:
    """A wheel without one of its members."""
    return lambda folder: write(folder, {n: d for n, d in sound().items() if n != name})


def patched(change: Callable[[bytes], bytes]) -> Callable[[Path], Path]:
    """A good wheel whose bytes are changed afterwards."""

    def make(folder: Path) -> Path:
        path = write(folder, sound())
        path.write_bytes(change(path.read_bytes()))
        return path

    return make


def instead(name: str, data: bytes) -> Callable[[Path], Path]:
    return lambda folder: write(folder, {**sound(), name: data})


def duplicate(folder: Path) -> Path:
    return write(folder, sound(), twice="pkg/__init__.py")


def encrypted(data: bytes) -> bytes:
    """Sets the flag of the first member, in its header and in the directory."""
    at = data.index(b"PK\1\2")
    return data[:6] + b"\1" + data[7 : at + 8] + b"\1" + data[at + 9 :]


def huge(data: bytes) -> bytes:
    """The directory claims that a few bytes are 1 GiB."""
    at = data.index(b"PK\1\2")
    return data[: at + 24] + (1 << 30).to_bytes(4, "little") + data[at + 28 :]


def shared(data: bytes) -> bytes:
    """The second member's entry points into the first."""
    first = data.index(b"PK\1\2")
    second = data.index(b"PK\1\2", first + 4)
    return data[: second + 42] + (10).to_bytes(4, "little") + data[second + 46 :]


def smaller(data: bytes) -> bytes:
    """Header and directory say that 2500 bytes are 100."""
    size = (2500).to_bytes(4, "little")
    assert data.count(size) == 2
    return data.replace(size, (100).to_bytes(4, "little"))


def renamed(data: bytes) -> bytes:
    """The header says ``pkg/dat0.bin``, the directory ``pkg/data.bin``."""
    return data.replace(b"pkg/data.bin", b"pkg/dat0.bin", 1)


def other_digest(rows: list[str]) -> list[str]:
    return [f"pkg/__init__.py,{record_hash(b'other')},12", *rows[1:]]


@dataclass(frozen=True)
class Case:
    """A hostile wheel, and what is said of it.

    ``late``: only its inflated bytes show it, and restore compares those in its stage.
    ``before``: what is said before anything is inflated, where that is not the same.
    """

    make: Callable[[Path], Path]
    said: str
    late: bool = False
    before: str = ""


CASES = {
    "absolute": Case(with_member("/etc/x"), "wheel.path: '/etc/x': absolute path"),
    "parent": Case(with_member("pkg/../../x"), "wheel.path: 'pkg/../../x': leads out of the wheel"),
    "drive": Case(with_member("C:/x"), "wheel.path: 'C:/x': a drive letter, an absolute path"),
    "backslash": Case(with_member("a\\..\\x"), "wheel.path: 'a\\..\\x': a backslash"),
    "dot": Case(with_member("./x"), "wheel.path: './x': not a normal path"),
    "two slashes": Case(with_member("a//x"), "wheel.path: 'a//x': not a normal path"),
    "NUL": Case(with_member("a.py\0.txt"), r"wheel.path: 'a.py\x00.txt': control character"),
    "escape": Case(with_member("a\x1b[2Jb"), r"wheel.path: 'a\x1b[2Jb': control character"),
    "line end": Case(with_member("a\nb"), r"wheel.path: 'a\nb': control character or line end"),
    "symlink": Case(with_member("a", stat.S_IFLNK | 0o777), "wheel.kind: 'a' is a symlink"),
    "device": Case(with_member("a", stat.S_IFCHR | 0o666), "wheel.kind: 'a' is a special file"),
    "encrypted": Case(patched(encrypted), "wheel.kind: 'pkg/__init__.py' is encrypted"),
    "duplicate": Case(duplicate, "wheel.duplicate: 'pkg/__init__.py' is in the archive twice"),
    "file and folder": Case(with_member("pkg"), "wheel.duplicate: 'pkg' is a file and a folder"),
    "case": Case(
        with_member("pkg/__INIT__.py"),
        "wheel.case: 'pkg/__init__.py' and 'pkg/__INIT__.py' are one file where case does not",
    ),
    "same place": Case(
        with_member("pkg-1.0.data/purelib/pkg/__init__.py"),
        "wheel.duplicate: two members are installed as 'lib/pkg/__init__.py'",
    ),
    "scheme": Case(with_member("pkg-1.0.data/etc/x"), "unknown scheme 'etc'"),
    "data of another": Case(
        with_member("other-1.0.data/scripts/x"),
        "wheel.scheme: 'other-1.0.data' does not belong to 'pkg 1.0'",
    ),
    "leads out by its scheme": Case(
        with_member("pkg-1.0.data/data/../../x"),
        "wheel.path: 'pkg-1.0.data/data/../../x': leads out of the wheel",
    ),
    "two dist-infos": Case(
        with_member("other-1.0.dist-info/METADATA"), "wheel.dist-info: 2 .dist-info folders"
    ),
    "dist-info of another": Case(
        lambda folder: write(
            folder, {n.replace("pkg-1.0.d", "other-1.0.d"): d for n, d in sound().items()}
        ),
        "wheel.dist-info: 2 .dist-info folders",
    ),
    "no METADATA": Case(without(f"{INFO}/METADATA"), f"wheel.dist-info: no METADATA in '{INFO}'"),
    "METADATA of another": Case(
        instead(f"{INFO}/METADATA", b"Name: other\nVersion: 1.0\n"),
        "wheel.metadata: METADATA names another project: 'other'",
    ),
    "METADATA of another version": Case(
        instead(f"{INFO}/METADATA", b"Name: pkg\nVersion: 1.0+evil\n"),
        "wheel.metadata: METADATA has version '1.0+evil', the file name '1.0'",
    ),
    "format": Case(
        instead(f"{INFO}/WHEEL", b"Wheel-Version: 2.0\nTag: py3-none-any\n"),
        "wheel.format: Wheel-Version is '2.0', not 1.x",
    ),
    "RECORD ./": Case(
        with_rows(lambda rows: [*rows, "./,,"]),
        "wheel.record: RECORD lists './': not a normal path",
    ),
    "RECORD ..": Case(
        with_rows(lambda rows: [*rows, "../../x,,"]),
        "wheel.record: RECORD lists '../../x': leads out of the wheel",
    ),
    "RECORD absolute": Case(
        with_rows(lambda rows: [*rows, "/etc/x,,"]),
        "wheel.record: RECORD lists '/etc/x': absolute path",
    ),
    "RECORD twice": Case(
        with_rows(lambda rows: [*rows, rows[0]]),
        "wheel.record: RECORD lists 'pkg/__init__.py' twice",
    ),
    "RECORD too short": Case(
        with_rows(lambda rows: rows[1:]), "wheel.record: 'pkg/__init__.py' is not in RECORD"
    ),
    "RECORD too long": Case(
        with_rows(lambda rows: [*rows, "pkg/more.py,,"]),
        "wheel.record: RECORD lists 'pkg/more.py', the wheel does not have it",
    ),
    "RECORD size": Case(
        with_rows(lambda rows: [rows[0].rpartition(",")[0] + ",99", *rows[1:]]),
        "wheel.record: 'pkg/__init__.py' has 12 bytes, RECORD says 99",
    ),
    "RECORD digest": Case(
        with_rows(other_digest),
        "wheel.record: 'pkg/__init__.py' has other bytes than RECORD says",
        late=True,
    ),
    "RECORD algorithm": Case(
        with_rows(lambda rows: ["pkg/__init__.py,md5=abc,12", *rows[1:]]),
        "wheel.record: RECORD: 'pkg/__init__.py': 'md5' is not sha256, sha384, sha512",
    ),
    "before": Case(patched(lambda data: b"#!/bin/sh\n" + data), "wheel.zip: 10 bytes stand before"),
    "after": Case(patched(lambda data: data + b"more"), "wheel.zip: 4 bytes stand after"),
    "comment": Case(
        patched(lambda data: data[:-2] + b"\4\0PK\3\4"),
        "wheel.zip: the archive's comment looks like another archive",
    ),
    "bomb": Case(patched(huge), "wheel.size: 'pkg/__init__.py' claims 1073741824 bytes out of"),
    "shared bytes": Case(patched(shared), "share bytes of the archive"),
    "longer than said": Case(
        patched(smaller),
        "wheel.damaged: 'pkg/data.bin': it is longer than the directory says",
        before="wheel.record: 'pkg/data.bin' has 100 bytes, RECORD says 2500",
    ),
    "two names": Case(
        patched(renamed),
        "wheel.damaged: 'pkg/data.bin': its header has another name than the directory",
        late=True,
    ),
    "cut": Case(patched(lambda data: data[:-30]), "wheel.zip: the zip archive is cut short"),
    "no zip": Case(patched(lambda data: b"hello"), "wheel.zip: no zip"),
}


@pytest.fixture(scope="module")
def target() -> Target:
    return read_target(Named(sys.executable, "--python"), clean_env())


def lock(folder: Path, wheel: Path) -> Distribution:
    """Papers that agree with the file, so that only what is inside speaks against it."""
    ref = WheelRef(file=wheel.name, sha256=sha256(wheel), size=wheel.stat().st_size, origin="index")
    dist = Distribution(name="pkg", version="1.0", content="sha256:" + "0" * 64, wheel=ref)
    write_papers(str(folder), manifest_of(dist))
    return dist


def spoken(findings: Sequence[Finding]) -> str:
    return "\n".join(f"{f.code}: {f.what}" for f in findings if f.level == "error")


@pytest.mark.parametrize("name", CASES)
def test_refused(tmp_path: Path, target: Target, name: str) -> None:
    case = CASES[name]
    dist = lock(tmp_path, case.make(tmp_path))
    report = check(str(tmp_path))
    assert case.said in spoken(report.findings)
    assert not report.sound
    for finding in report.findings:
        assert finding.what.isprintable()
    pinned, problems = look_at_wheels([dist], target, str(tmp_path), Beside())
    if case.late:
        assert (len(pinned), problems) == (1, [])
    else:
        assert pinned == [] and (case.before or case.said) in spoken(problems)


def test_each_has_its_own_message() -> None:
    assert len({case.said for case in CASES.values()}) >= len(CASES) - 1


@pytest.mark.parametrize("extra", ["", "RECORD.jws", "RECORD.p7s"])
def test_sound(tmp_path: Path, target: Target, extra: str) -> None:
    """What the cases start from, and signatures, are nothing to refuse."""
    more = {f"{INFO}/{extra}": b"{}"} if extra else {}
    dist = lock(tmp_path, write(tmp_path, {**sound(), **more}, record_of(sound())))
    assert {f.code for f in check(str(tmp_path)).findings} <= {"wheelhouse.content"}
    pinned, problems = look_at_wheels([dist], target, str(tmp_path), Beside())
    assert (len(pinned), problems) == (1, [])


def test_headers_that_differ_in_case(tmp_path: Path) -> None:
    """Linux's own headers do; there it costs nothing, elsewhere one of them is lost."""
    wheel = make_wheel(tmp_path, "pkg", "1.0", {"inc/xt_MARK.h": "a", "inc/xt_mark.h": "b"})
    lock(tmp_path, wheel)
    found = [f for f in check(str(tmp_path)).findings if f.code == "wheel.case"]
    assert [finding.level for finding in found] == ["warning"]
