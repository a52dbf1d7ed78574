"""A kit in parts, and what an earlier kit of that name left."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from envlock.adapters import kitfile
from envlock.cli import kit as command
from envlock.errors import UnusableInput, UsageProblem
from envlock.wheelhouse.check import check
from envlock.wheelhouse.kit_read import unpack
from tests.support.kits import make_house, packed, tree


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A wheelhouse with a rebuilt and a published wheel."""
    return make_house(tmp_path / "W")


def test_parts(house: Path, tmp_path: Path) -> None:
    """Parts that fit, with sums; joined by cat they are the kit, and unpack takes them as well."""
    packed(house, tmp_path / "whole.kit")
    whole = (tmp_path / "whole.kit").read_bytes()
    (tmp_path / "a.kit").write_bytes(whole)
    for other in ("a.kit.old", "b.kit.099"):
        (tmp_path / other).write_text("another file")
    done = packed(house, tmp_path / "a.kit", split=2000)
    for other in ("a.kit.old", "b.kit.099"):
        (tmp_path / other).unlink()
    parts = sorted(tmp_path.glob("a.kit.*"))
    assert not (tmp_path / "a.kit").exists()
    assert [str(part) for part in parts] == list(done.files[:-1])
    assert {part.stat().st_size for part in parts[:-1]} == {2000}
    assert b"".join(part.read_bytes() for part in parts) == whole and done.size == len(whole)
    subprocess.run(["sha256sum", "-c", "a.kit-SHA256SUMS"], cwd=tmp_path, check=True)
    for number, name in enumerate(("a.kit", "a.kit.001")):
        unpack(str(tmp_path / name), str(tmp_path / f"out{number}"))
    assert tree(tmp_path / "out0") == tree(tmp_path / "out1")
    assert check(str(tmp_path / "out0")).findings == ()
    parts[3].unlink()
    with pytest.raises(UnusableInput, match="cut short"):
        unpack(str(tmp_path / "a.kit"), str(tmp_path / "out2"))
    packed(house, tmp_path / "a.kit")
    assert not list(tmp_path.glob("a.kit.*")) and not (tmp_path / "a.kit-SHA256SUMS").exists()


@pytest.mark.parametrize("sums", [True, False])
def test_the_parts_of_an_earlier_kit_go(house: Path, tmp_path: Path, sums: bool) -> None:
    """All of them, and no other file: neither where the new one is whole nor where it has parts."""
    kit = tmp_path / "stack"
    for size in (4000, None):
        old = packed(house, kit, split=2000).files
        if not sums:
            Path(old[-1]).unlink()
        if size is None:
            (tmp_path / "stack.20261129").write_text("mine")
        new = packed(house, kit, split=size).files
        assert {str(path) for path in tmp_path.glob("stack*")} - set(new) == (
            set() if size else {f"{kit}.20261129"}
        )
    assert (tmp_path / "stack.20261129").read_text() == "mine"
    (tmp_path / "stack.001").write_text("no kit")
    (tmp_path / "stack-SHA256SUMS").write_text(f"{'0' * 64}  stack\n{'0' * 64}  stack.001\n")
    packed(house, kit)
    assert (tmp_path / "stack.001").exists() and (tmp_path / "stack-SHA256SUMS").exists()


@pytest.mark.parametrize("name", ["stack", "stack.20261129", "stack.001", "stack.2b"])
def test_what_would_be_joined_with_the_parts(house: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(UnusableInput, match=f"'{name}' is no part of a kit"):
        packed(house, tmp_path / "stack", split=2000)
    assert (tmp_path / name).read_text() == "mine"


def test_too_many_parts(house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Known before the packing where the wheels alone are too many, else while it runs."""
    with pytest.raises(UnusableInput, match="more than 999"):
        packed(house, tmp_path / "a.kit", split=1)
    monkeypatch.setattr(kitfile, "MOST_PARTS", 3)
    with pytest.raises(UnusableInput, match="more than 3 parts of 2000 bytes"):
        packed(house, tmp_path / "a.kit", split=2000)
    assert not list(tmp_path.glob("*a.kit*"))


@pytest.mark.parametrize(
    ("text", "size"),
    [("2G", 2 * 10**9), ("500M", 5 * 10**8), ("5k", 5000), ("1GiB", 2**30), ("64 MiB", 2**26),
     ("1TB", 10**12), ("4096", 4096), ("4096b", 4096)],
)  # fmt: skip
def test_sizes(text: str, size: int) -> None:
    assert command._bytes(text) == size


@pytest.mark.parametrize("text", ["", "G", "2.5G", "-1G", "1X", "10", "2GG"])
def test_no_sizes(text: str) -> None:
    with pytest.raises(UsageProblem, match="--split"):
        command._bytes(text)
