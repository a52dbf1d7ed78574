"""Damaged and hostile kits, full disks, killed runs: refused, and nothing is half-done."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from envlock.adapters import staging
from envlock.adapters.kitfile import KitWriter, PartsWriter
from envlock.errors import Refused, UnusableInput
from envlock.model.dist import Distribution
from envlock.model.kit import Contents, Part, dump_contents, load_contents
from envlock.wheelhouse import kit as packing
from envlock.wheelhouse import kit_read
from envlock.wheelhouse.check import check
from envlock.wheelhouse.extras import find_extras
from envlock.wheelhouse.folder import write_papers
from envlock.wheelhouse.kit import Wanted, open_house, pack
from envlock.wheelhouse.kit_read import unpack
from envlock.wheelhouse.kit_tool import Tool
from tests.support.kits import lock, make_house, packed, tree
from tests.support.wheels import make_wheel
from tests.wheelhouse.test_check import manifest_of


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A wheelhouse with a rebuilt and a published wheel."""
    return make_house(tmp_path / "W")


# --- damage ---------------------------------------------------------------------------------


def nothing_left(folder: Path, name: str) -> bool:
    return not any(path.name in (name, f".{name}.part") for path in folder.iterdir())


def test_one_flipped_byte(house: Path, tmp_path: Path) -> None:
    """Anywhere: refused with nothing left behind, or what comes out is right all the same (a byte
    that nobody reads: of a header that says again what the directory says)."""
    packed(house, tmp_path / "a.kit")
    whole = bytearray((tmp_path / "a.kit").read_bytes())
    unpack(str(tmp_path / "a.kit"), str(tmp_path / "right"))
    right = tree(tmp_path / "right")
    chosen, refused = random.Random(4), 0
    for number in range(80):
        at = chosen.randrange(len(whole))
        whole[at] ^= 1 << chosen.randrange(8)
        bad, out = tmp_path / "bad.kit", tmp_path / f"out{number}"
        bad.write_bytes(whole)
        whole[:] = (tmp_path / "a.kit").read_bytes()
        try:
            unpack(str(bad), str(out))
            assert tree(out) == right
        except UnusableInput as error:
            refused += 1
            assert "bad.kit" in error.message and nothing_left(tmp_path, out.name)
    assert refused > 20


@pytest.mark.parametrize("share", [0.0, 0.001, 0.2, 0.5, 0.99, 0.9999])
def test_cut(house: Path, tmp_path: Path, share: float) -> None:
    packed(house, tmp_path / "a.kit")
    whole = (tmp_path / "a.kit").read_bytes()
    (tmp_path / "cut.kit").write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(UnusableInput, match="cut short or damaged" if share > 0.01 else "no kit"):
        unpack(str(tmp_path / "cut.kit"), str(tmp_path / "out"))
    assert nothing_left(tmp_path, "out")


def test_python_says_that_a_kit_is_cut(house: Path, tmp_path: Path) -> None:
    """It takes what is no archive for a script, and the first line for its encoding. Where the end
    of a wheel is near the cut, it takes that for the archive and misses what would start."""
    (tmp_path / "model").write_bytes(random.Random(1).randbytes(300_000))
    packed(house, tmp_path / "a.kit", extras=find_extras([str(tmp_path / "model")]))
    whole = (tmp_path / "a.kit").read_bytes()
    for cut, words in ((200_000, "this-kit-is-not-whole"), (len(whole) - 100, "'__main__'")):
        (tmp_path / "cut.kit").write_bytes(whole[:cut])
        done = subprocess.run(
            [sys.executable, str(tmp_path / "cut.kit")], capture_output=True, text=True
        )
        assert done.returncode == 1 and words in done.stderr


def test_no_kit(tmp_path: Path) -> None:
    make_wheel(tmp_path, "a", "1")
    for name in ("a-1-py3-none-any.whl", "none"):
        with pytest.raises(UnusableInput, match=r"is no kit|does not exist"):
            unpack(str(tmp_path / name), str(tmp_path / "out"))


def evil(path: Path, change: Callable[[Contents], Contents], name: str = "extras/x") -> None:
    """A kit that somebody made by hand."""
    out = PartsWriter(str(path))
    kit = KitWriter(out)
    kit.add(name, [b"x"])
    contents = Contents(name="n", envlock="0", python="3.10", machine="", blobs=tuple(kit.blobs))
    kit.add("kit.json", [dump_contents(change(contents)).encode()])
    kit.finish()


@pytest.mark.parametrize(
    "path", ["../x", "/etc/x", "extras/../../x", "wheels/a/b", "extras//x", "x", "C:/x", "a\\b"]
)
def test_hostile_paths(tmp_path: Path, path: str) -> None:
    evil(tmp_path / "a.kit", lambda c: c, path)
    with pytest.raises(UnusableInput, match=r"belongs nowhere|expected a path|kit\.json"):
        unpack(str(tmp_path / "a.kit"), str(tmp_path / "out"))
    assert {path.name for path in tmp_path.iterdir()} == {"a.kit"}


def test_hostile_contents(tmp_path: Path) -> None:
    """Files that are not there, twice there, larger than they say, or of another format."""
    part = Part(file="extras/y", sha256="0" * 64, size=1)

    def changed(**more: object) -> Callable[[Contents], Contents]:
        return lambda contents: replace(contents, **more)  # type: ignore[arg-type]

    def sized(contents: Contents) -> Contents:
        return replace(contents, blobs=(replace(contents.blobs[0], size=10**15),))

    for change, message in (
        (changed(stream=(part,)), "compressed part is not there"),
        (changed(stream=(replace(part, file="extras/x"),)), "'extras/x' twice"),
        (sized, "MB free"),
    ):
        evil(tmp_path / "a.kit", change)
        with pytest.raises(UnusableInput, match=message):
            unpack(str(tmp_path / "a.kit"), str(tmp_path / "out"))
        assert nothing_left(tmp_path, "out")
    text = dump_contents(
        Contents(name="n", envlock="0", python="3.10", machine="", blobs=())
    ).replace('"format": 1', '"format": 2')
    with pytest.raises(UnusableInput, match="format 2"):
        load_contents(text, "a.kit")


# --- refusals, and nothing half-done --------------------------------------------------------


def test_a_wheelhouse_that_is_not_whole(house: Path, tmp_path: Path) -> None:
    """All that is wrong in one message, and no kit."""
    manifest = lock(house)
    vendor = Distribution(name="vendor", version="1+das", protected=True)
    write_papers(str(house), manifest_of(*manifest.distributions, vendor))
    (house / "sympy-1.0-py3-none-any.whl").write_bytes(b"other")
    (house / "torch-1.0-py3-none-any.whl").unlink()
    with pytest.raises(Refused) as caught:
        open_house(str(house))
    for part in ("sympy-1.0-py3-none-any.whl' has other bytes", "torch-1.0-py3-none-any.whl' is not there", "'vendor 1+das' has no wheel"):  # fmt: skip  # noqa: E501
        assert part in str(caught.value)


def test_what_is_left_out_is_said(house: Path, tmp_path: Path) -> None:
    egg = Distribution(name="egg", version="1", reason="no RECORD")
    write_papers(str(house), manifest_of(*lock(house).distributions, egg))
    make_wheel(house, "stranger", "1")
    done = packed(house, tmp_path / "a.kit")
    assert [(f.subject, f.what) for f in done.findings] == [
        ("egg", "'1' has no wheel here"),
        ("stranger-1-py3-none-any.whl", "is not in the manifest"),
    ]
    unpack(str(tmp_path / "a.kit"), str(tmp_path / "out"))
    assert not (tmp_path / "out/stranger-1-py3-none-any.whl").exists()


def test_a_wheel_that_is_changed_while_it_is_packed(house: Path, tmp_path: Path) -> None:
    opened = open_house(str(house))
    with open(house / "sympy-1.0-py3-none-any.whl", "ab") as file:
        file.write(b"x")
    with pytest.raises(Refused, match="changed while it was packed"):
        pack(opened, str(tmp_path / "a.kit"), Tool((), ""), Wanted(runner=opened.manifest.target))
    assert nothing_left(tmp_path, "a.kit")


def test_full_disk(house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kit of before stays, and nothing else is there."""
    (tmp_path / "a.kit").write_text("before")
    real = PartsWriter.write

    def full(self: PartsWriter, data: bytes) -> int:
        if self.position > 1000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(self, data)

    monkeypatch.setattr(PartsWriter, "write", full)
    with pytest.raises(UnusableInput, match="No space left"):
        packed(house, tmp_path / "a.kit")
    assert (tmp_path / "a.kit").read_text() == "before"
    assert not (tmp_path / ".a.kit.part").exists()


def test_room_is_asked_for_first(
    house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed(house, tmp_path / "a.kit")

    class Usage:
        free = 1000

    monkeypatch.setattr(packing.shutil, "disk_usage", lambda folder: Usage)  # type: ignore[attr-defined]
    with pytest.raises(UnusableInput, match=r"0 MB free; up to 1[67] MB"):
        packed(house, tmp_path / "b.kit")
    with pytest.raises(UnusableInput, match="0 MB free; 1 MB"):
        unpack(str(tmp_path / "a.kit"), str(tmp_path / "out"))
    assert nothing_left(tmp_path, "out") and nothing_left(tmp_path, "b.kit")


def test_killed_and_run_again(house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a killed run left behind is gone after the next one."""
    packed(house, tmp_path / "a.kit")
    (tmp_path / ".out.part/whole").mkdir(parents=True)
    (tmp_path / ".out.part/whole/half.whl").write_text("half")
    unpack(str(tmp_path / "a.kit"), str(tmp_path / "out"))
    assert not (tmp_path / ".out.part").exists() and check(str(tmp_path / "out")).sound
    monkeypatch.setattr(kit_read.files, "sync_filesystem", _interrupt)  # type: ignore[attr-defined]
    with pytest.raises(KeyboardInterrupt):
        unpack(str(tmp_path / "a.kit"), str(tmp_path / "other"))
    assert nothing_left(tmp_path, "other")


def _interrupt(_path: str) -> None:
    raise KeyboardInterrupt


def test_two_at_once(house: Path, tmp_path: Path) -> None:
    packed(house, tmp_path / "a.kit")
    with staging.staging(str(tmp_path / "out")), pytest.raises(UnusableInput, match="another run"):
        unpack(str(tmp_path / "a.kit"), str(tmp_path / "out"))


def test_a_folder_that_is_there(house: Path, tmp_path: Path) -> None:
    """An empty one is used, one with all of the kit is left, anything else is refused."""
    packed(house, tmp_path / "a.kit")
    out = tmp_path / "out"
    out.mkdir()
    assert not unpack(str(tmp_path / "a.kit"), str(out)).already
    assert unpack(str(tmp_path / "a.kit"), str(out)).already
    (out / "requirements.txt").write_text("mine")
    with pytest.raises(UnusableInput, match=r"'requirements\.txt' is not the kit's"):
        unpack(str(tmp_path / "a.kit"), str(out))
    assert (out / "requirements.txt").read_text() == "mine"
    (tmp_path / "file").write_text("")
    with pytest.raises(UnusableInput, match="is there already"):
        unpack(str(tmp_path / "a.kit"), str(tmp_path / "file"))
