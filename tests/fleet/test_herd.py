"""A node's own copy of what it needs from a wheelhouse that all of them read."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import pytest

from envlock.adapters import space
from envlock.errors import UnusableInput
from envlock.fleet import herd

FILES = {f"w{number}.whl": bytes([number]) * 3_000_000 for number in range(6)}
SUMS = {name: sha256(data).hexdigest() for name, data in FILES.items()}


@pytest.fixture
def house(tmp_path: Path) -> Path:
    folder = tmp_path / "W"
    folder.mkdir()
    for name, data in FILES.items():
        (folder / name).write_bytes(data)
    (folder / "envlock.yaml").write_text("schema: 1\n")
    return folder


def test_only_what_is_wanted(house: Path, tmp_path: Path) -> None:
    seen: list[int] = []
    with herd.scratch_folder(str(tmp_path)) as folder:
        size = herd.copy(str(house), folder, SUMS, ["w1.whl", "w4.whl"], seen.append)
        assert sorted(os.listdir(folder)) == ["envlock.yaml", "w1.whl", "w4.whl"]
        assert Path(folder, "w4.whl").read_bytes() == FILES["w4.whl"]
        assert size == sum(seen) == 6_000_010
    assert not os.path.exists(folder)


def test_nodes_read_in_different_orders(
    house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 40 nodes with five files: that fewer than three are ever first has a chance of 10^-15."""
    first: list[str] = []
    copied = herd._copied

    def noted(source: str, target: str, advance: object) -> str:
        first[-1] = first[-1] or os.path.basename(source)
        return copied(source, target, None)

    monkeypatch.setattr(herd, "_copied", noted)
    for number in range(40):
        first.append("")
        folder = tmp_path / str(number)
        folder.mkdir()
        herd.copy(str(house), str(folder), SUMS, ["w0.whl", "w1.whl", "w2.whl", "w3.whl"])
    assert len(set(first)) >= 3


def test_a_file_that_changes_on_the_way_is_read_again(
    house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = []
    copied = herd._copied

    def once_wrong(source: str, target: str, advance: object) -> str:
        times.append(source)
        return "0" * 64 if len(times) == 1 else copied(source, target, None)

    monkeypatch.setattr(herd, "_copied", once_wrong)
    (house / "envlock.yaml").unlink()
    herd.copy(str(house), str(tmp_path), SUMS, ["w1.whl"])
    assert len(times) == 2


def test_other_bytes(house: Path, tmp_path: Path) -> None:
    (house / "w1.whl").write_bytes(b"x")
    with pytest.raises(UnusableInput, match=r"'w1\.whl' has other bytes than its digest says"):
        herd.copy(str(house), str(tmp_path), SUMS, ["w1.whl"])


def test_a_wheel_is_missing(house: Path, tmp_path: Path) -> None:
    (house / "w1.whl").unlink()
    with pytest.raises(UnusableInput, match=r"'w1\.whl' cannot be read: No such file"):
        herd.copy(str(house), str(tmp_path), SUMS, ["w1.whl"])


def test_no_room_is_known_before(
    house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(space, "free", lambda folder: (2_000_000, None))
    with pytest.raises(UnusableInput, match=r"scratch: no room for 3\.0 MB in .*: 2\.0 MB free"):
        herd.copy(str(house), str(folder), SUMS, ["w1.whl"])
    assert list(folder.iterdir()) == []


def test_a_disk_that_fills_up_meanwhile(house: Path) -> None:
    """What a disk says when it is full in the middle of a file."""
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    with pytest.raises(UnusableInput, match="scratch: '/dev' is full: No space left"):
        herd._copied(str(house / "w1.whl"), "/dev/full", None)


def test_no_such_scratch(tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    with pytest.raises(UnusableInput, match="cannot be written"), herd.scratch_folder(missing):
        pass


def test_a_wheelhouse_without_checksums(house: Path) -> None:
    assert herd.read_sums(str(house)) == ""
