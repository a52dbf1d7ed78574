"""Wheel files: what is wrong with one is said, and one that is written is right."""

from __future__ import annotations

import hashlib
import os
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from envlock.adapters.wheeldirectory import read_directory
from envlock.adapters.wheelfile import MOST, inspect_wheel
from envlock.adapters.zipmember import open_archive, open_shared
from tests.support.wheels import make_wheel, record_hash

INFO = "Pkg-1.0.dist-info"
FILE = "pkg-1.0-py3-none-any.whl"


def rewrite(wheel: Path, change: Callable[[zipfile.ZipFile, zipfile.ZipInfo, bytes], None]) -> None:
    """Writes a wheel again, member by member, as ``change`` does it."""
    with zipfile.ZipFile(wheel) as old:
        members = [(info, old.read(info)) for info in old.infolist()]
    with zipfile.ZipFile(wheel, "w") as new:
        for info, data in members:
            change(new, info, data)


def add(wheel: Path, name: str, data: bytes = b"", mode: int = 0o100644) -> None:
    """Adds a member behind RECORD's back."""
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr(info, data)


def codes(wheel: Path) -> set[str]:
    return {problem.code for problem in inspect_wheel(str(wheel)).problems}


def said(wheel: Path) -> str:
    return "\n".join(f"{p.code}: {p.what}" for p in inspect_wheel(str(wheel)).problems)


def test_sound_wheel(tmp_path: Path) -> None:
    wheel = make_wheel(
        tmp_path,
        "Pkg",
        "1.0+Das.1",
        {
            "pkg/__init__.py": "",
            "pkg/tool": b"\x7fELF",
            ".data/scripts/run": "#!python\nprint()\n",
            ".data/data/bin/helper": "x",
            ".data/headers/h.h": "int x;",
            ".data/data/share/pkg/näme.txt": "x",
        },
        entry_points="[console_scripts]\ngen = pkg:main\n",
        requires=["numpy>=1"],
        executable=["pkg/tool", ".data/scripts/run"],
    )
    found = inspect_wheel(str(wheel))
    assert found.problems == ()
    assert (found.name, found.version, found.requires) == ("pkg", "1.0+Das.1", ("numpy>=1",))
    assert found.tags == ("py3-none-any",)
    assert found.sha256 == hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert found.size == wheel.stat().st_size
    assert set(found.files) == {
        "lib/pkg/__init__.py",
        "lib/pkg/tool",
        "bin/run",
        "bin/helper",
        "include/h.h",
        "data/share/pkg/näme.txt",
        "lib/Pkg-1.0+Das.1.dist-info/METADATA",
        "lib/Pkg-1.0+Das.1.dist-info/WHEEL",
        "lib/Pkg-1.0+Das.1.dist-info/entry_points.txt",
    }
    assert found.executable == ("bin/run", "lib/pkg/tool")
    assert found.content.startswith("sha256:")


def test_exec_bit_needs_a_file_mode(tmp_path: Path) -> None:
    """pip sets +x only where the mode has S_IFREG."""
    wheel = make_wheel(tmp_path, "pkg", "1.0", {"pkg/tool": "x"}, executable=["pkg/tool"])

    def without_kind(new: zipfile.ZipFile, info: zipfile.ZipInfo, data: bytes) -> None:
        info.external_attr = 0o755 << 16
        new.writestr(info, data)

    assert inspect_wheel(str(wheel)).executable == ("lib/pkg/tool",)
    rewrite(wheel, without_kind)
    assert inspect_wheel(str(wheel)).executable == ()


@pytest.mark.parametrize(
    ("member", "message"),
    [
        ("/etc/passwd", "wheel.path: '/etc/passwd': absolute path"),
        ("../x", "wheel.path: '../x': leads out of the wheel"),
        ("C:/x", "wheel.path: 'C:/x': a drive letter"),
        ("a\\b", "wheel.path: 'a\\b': a backslash"),
        ("other-2.0.dist-info/METADATA", "wheel.dist-info: 2 .dist-info folders"),
        ("pkg-1.0.data/etc/x", "wheel.scheme: 'pkg-1.0.data/etc/x': unknown scheme 'etc'"),
        ("pkg-1.0.data/purelib/pkg.py", "two members are installed as 'lib/pkg.py'"),
        ("unlisted.py", "wheel.record: 'unlisted.py' is not in RECORD"),
    ],
)
def test_hostile_member(tmp_path: Path, member: str, message: str) -> None:
    wheel = make_wheel(tmp_path, "pkg", "1.0")
    add(wheel, member)
    assert message in said(wheel)


def test_symlink_member(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "pkg", "1.0")
    add(wheel, "link", b"/etc/passwd", stat.S_IFLNK | 0o777)
    add(wheel, "pipe", b"", stat.S_IFIFO | 0o644)
    assert "wheel.kind: 'link' is a symlink" in said(wheel)
    assert "wheel.kind: 'pipe' is a special file" in said(wheel)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_duplicate_member(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "pkg", "1.0")
    add(wheel, "pkg.py", b"evil")
    assert "wheel.duplicate: 'pkg.py' is in the archive twice" in said(wheel)


def test_truncated(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "pkg", "1.0")
    wheel.write_bytes(wheel.read_bytes()[:-30])
    found = inspect_wheel(str(wheel))
    assert [problem.code for problem in found.problems] == ["wheel.zip"]
    assert "cut short" in found.problems[0].what
    assert found.content == "" and found.sha256


def test_flipped_byte(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "pkg", "1.0", {"pkg.py": os.urandom(3000)})
    data = bytearray(wheel.read_bytes())
    data[1000] ^= 1
    wheel.write_bytes(data)
    found = inspect_wheel(str(wheel))
    assert {problem.code for problem in found.problems} == {"wheel.damaged"}
    assert "'pkg.py'" in found.problems[0].what
    assert found.content == ""
    assert inspect_wheel(str(wheel), members=False).problems == ()
    assert inspect_wheel(str(wheel), members=False, inflate=True).problems == found.problems


def test_every_flipped_byte_is_noticed(tmp_path: Path) -> None:
    """Of the data that installers use: times and versions in zip headers are not."""
    wheel = make_wheel(tmp_path, "pkg", "1.0")
    good = inspect_wheel(str(wheel))
    data = wheel.read_bytes()
    quiet = 0
    for position in range(len(data)):
        broken = bytearray(data)
        broken[position] ^= 0x10
        wheel.write_bytes(broken)
        found = inspect_wheel(str(wheel))
        if found.problems:
            continue
        quiet += 1
        assert found.content == good.content, position
        assert found.sha256 != good.sha256
    assert quiet < len(data) / 3


def test_wrong_record_digest(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "pkg", "1.0", extra_record={"pkg.py": record_hash(b"other")})
    assert said(wheel) == "wheel.record: 'pkg.py' has other bytes than RECORD says"


def test_stronger_record_digest(tmp_path: Path) -> None:
    data = b"VERSION = '1.0'\n"
    import base64

    digest = base64.urlsafe_b64encode(hashlib.sha512(data).digest()).rstrip(b"=").decode()
    wheel = make_wheel(tmp_path, "pkg", "1.0", extra_record={"pkg.py": f"sha512={digest}"})
    assert inspect_wheel(str(wheel)).problems == ()
    wheel = make_wheel(tmp_path, "pkg", "1.0", extra_record={"pkg.py": f"sha512={digest[:-4]}AAAA"})
    assert "other bytes" in said(wheel)


def test_names_that_disagree(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "pkg", "1.0", file_name="pkg-2.0-py3-none-any.whl")
    assert "'pkg-1.0.dist-info' does not belong to 'pkg 2.0'" in said(wheel)
    wheel = make_wheel(tmp_path, "pkg", "1.0", file_name="pkg-1.0%2Bx-py3-none-any.whl")
    assert "wheel.name: file name: URL-encoded" in said(wheel)


def test_metadata_of_another_version(tmp_path: Path) -> None:
    """flash-attention#1423: the label stands in the file name, not in METADATA."""
    wheel = make_wheel(tmp_path, "pkg", "1.0")

    def lie(new: zipfile.ZipFile, info: zipfile.ZipInfo, data: bytes) -> None:
        if info.filename.endswith("/METADATA"):
            data = b"Name: pkg\nVersion: 1.0+cu12\n"
        new.writestr(info, data)

    rewrite(wheel, lie)
    assert "METADATA has version '1.0+cu12', the file name '1.0'" in said(wheel)


def test_odd_tags_are_a_warning(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "pkg", "1.0", file_name="pkg-1.0-py2-none-any.whl")
    found = inspect_wheel(str(wheel))
    assert [p.level for p in found.problems] == ["warning"] and found.errors == ()


def test_many_problems_are_counted(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "pkg", "1.0")
    for number in range(MOST + 5):
        add(wheel, f"file{number}")
    found = inspect_wheel(str(wheel))
    assert len(found.problems) == MOST + 1
    assert found.problems[-1].what == "and 5 more like this"


def test_no_file(tmp_path: Path) -> None:
    found = inspect_wheel(str(tmp_path / FILE))
    assert [problem.code for problem in found.problems] == ["wheel.unreadable"]
    (tmp_path / FILE).write_text("hello")
    assert codes(tmp_path / FILE) == {"wheel.zip"}


def test_longer_than_said(tmp_path: Path) -> None:
    """A member that inflates to more than its header says is not inflated to its end."""
    wheel = make_wheel(tmp_path, "pkg", "1.0", {"pkg.py": bytes(1 << 20)})
    data = wheel.read_bytes()
    size = (1 << 20).to_bytes(4, "little")
    wheel.write_bytes(data.replace(size, (100).to_bytes(4, "little")))
    assert "longer than the directory says" in said(wheel)


def test_without_members(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "pkg", "1.0", extra_record={"pkg.py": record_hash(b"other")})
    found = inspect_wheel(str(wheel), members=False)
    assert (found.problems, found.content, dict(found.files)) == ((), "", {})
    assert found.version == "1.0" and found.sha256


def test_where_there_is_no_pread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows has none: many workers share one descriptor all the same."""
    files = {f"pkg/{number}.bin": os.urandom(70_000) for number in range(40)}
    wheel = make_wheel(tmp_path, "pkg", "1.0", files)
    there = inspect_wheel(str(wheel))
    monkeypatch.delattr(os, "pread")
    assert inspect_wheel(str(wheel)) == there
    assert there.problems == ()


def test_the_directory_is_read_beside_others(tmp_path: Path) -> None:
    """While the directory is read, another worker hashes the file: none moves its position."""
    wheel = make_wheel(tmp_path, "pkg", "1.0", {"pkg/a.py": b"x = 1\n"})
    descriptor = open_shared(str(wheel))
    try:
        os.lseek(descriptor, 3, os.SEEK_SET)
        with open_archive(descriptor) as archive:
            assert archive.read("pkg/a.py") == b"x = 1\n"
            assert os.lseek(descriptor, 0, os.SEEK_CUR) == 3
        assert [info.filename for info in read_directory(descriptor, pytest.fail)]
        assert os.lseek(descriptor, 0, os.SEEK_CUR) == 3
    finally:
        os.close(descriptor)
