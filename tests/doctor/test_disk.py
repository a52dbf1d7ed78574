"""Room on the disks: rows for each file system, and when it is too little."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from envlock.adapters import rooms, space
from envlock.adapters.rooms import Room, read_rooms
from envlock.doctor.disk import Place, disk_section, places
from envlock.model.sizing import GIB

ROOM = Room(path="/t", there=True, device=1, mount="/", kind="ext4", free=50 * GIB, size=99 * GIB)
NEEDED = Place(name="target", path="/t", needed=True)
CACHE = Place(name="pip's cache", path="/t/c", variable="PIP_CACHE_DIR")


def codes(*pairs: tuple[Place, Room]) -> dict[str, str]:
    section = disk_section([place for place, _ in pairs], [room for _, room in pairs])
    return {finding.code: finding.level for finding in section.findings}


def where(env: dict[str, str]) -> dict[str, str]:
    return {place.name: place.path for place in places(env, "/home/a", "/t/site", "/w")}


def test_places_as_the_tools_look_for_them() -> None:
    assert where({"USER": "a"}) == {
        "target": "/t/site",
        "working folder": "/w",
        "temporary files": "/tmp",
        "pip's cache": "/home/a/.cache/pip",
        "uv's cache": "/home/a/.cache/uv",
        "models (Hugging Face)": "/home/a/.cache/huggingface/hub",
        "torch.hub": "/home/a/.cache/torch",
        "Triton's cache": "/home/a/.triton/cache",
        "Inductor's cache": "/tmp/torchinductor_a",
        "vLLM's cache": "/home/a/.cache/vllm",
        "shared memory": "/dev/shm",
    }


@pytest.mark.parametrize(
    ("variable", "value", "name", "path"),
    [
        ("TMPDIR", "/big", "temporary files", "/big"),
        ("TMPDIR", "/big", "Inductor's cache", "/big/torchinductor"),
        ("XDG_CACHE_HOME", "/c", "uv's cache", "/c/uv"),
        ("PIP_CACHE_DIR", "/p", "pip's cache", "/p"),
        ("UV_CACHE_DIR", "/u", "uv's cache", "/u"),
        ("HF_HOME", "/hf", "models (Hugging Face)", "/hf/hub"),
        ("HF_HUB_CACHE", "/hub", "models (Hugging Face)", "/hub"),
        ("TORCH_HOME", "/th", "torch.hub", "/th"),
        ("TRITON_HOME", "/tr", "Triton's cache", "/tr/.triton/cache"),
        ("TRITON_CACHE_DIR", "/tc", "Triton's cache", "/tc"),
        ("TORCHINDUCTOR_CACHE_DIR", "/ti", "Inductor's cache", "/ti"),
        ("VLLM_CACHE_ROOT", "/v", "vLLM's cache", "/v"),
        ("MODELSCOPE_CACHE", "/ms", "models (ModelScope)", "/ms"),
    ],
)
def test_variables_move_them(variable: str, value: str, name: str, path: str) -> None:
    assert where({variable: value})[name] == path


def test_no_target() -> None:
    assert "target" not in {place.name for place in places({}, "/home/a", "", "")}


def test_one_row_for_each_file_system() -> None:
    other = replace(ROOM, device=2, mount="/data", kind="nfs4", free=None, size=0)
    section = disk_section([NEEDED, CACHE, CACHE], [ROOM, ROOM, other])
    shown = [(row.name, row.value) for row in section.rows if not row.detail]
    assert shown == [
        ("/", "50 GiB free of 99 GiB (ext4): target, pip's cache"),
        ("/data", "free space is not told (nfs4): pip's cache"),
    ]
    assert section.findings == ()
    assert [row.name for row in section.rows if row.detail] == ["target"] + ["pip's cache"] * 2


def test_little_room() -> None:
    little, none = replace(ROOM, free=3 * GIB), replace(ROOM, free=GIB // 16)
    assert codes((NEEDED, little)) == {"disk.little": "warning"}
    assert codes((NEEDED, none)) == {"disk.full": "error"}
    assert codes((CACHE, none)) == {"disk.full": "warning"}
    [found] = disk_section([NEEDED, CACHE], [none, none]).findings
    assert "target, pip's cache" in found.why
    assert found.hint.endswith("export PIP_CACHE_DIR=…")


def test_a_quota_is_not_in_what_the_file_system_says() -> None:
    full = replace(ROOM, refused="Disk quota exceeded")
    assert codes((NEEDED, full)) == {"disk.quota": "error"}
    assert codes((CACHE, full)) == {"disk.quota": "warning"}


def test_other_faults() -> None:
    assert codes((NEEDED, replace(ROOM, inodes=5000))) == {"disk.inodes": "warning"}
    assert codes((NEEDED, replace(ROOM, closed="Read-only file system"))) == {
        "disk.closed": "warning"
    }
    assert codes((CACHE, replace(ROOM, closed="Permission denied"))) == {"disk.closed": "info"}
    assert codes((NEEDED, replace(ROOM, kind="tmpfs"))) == {"disk.in-memory": "info"}
    assert codes((CACHE, replace(ROOM, kind="tmpfs"))) == {}


def test_shared_memory() -> None:
    place = Place(name="shared memory", path="/dev/shm")
    small = Room(path="/dev/shm", there=True, device=9, kind="tmpfs", free=1, size=64 << 20)
    assert codes((place, small)) == {"disk.shared-memory": "warning"}
    assert codes((place, replace(small, size=8 * GIB))) == {}
    assert codes((place, replace(small, there=False))) == {}


def test_rooms_of_this_machine(tmp_path: Path) -> None:
    [here, below] = read_rooms([str(tmp_path), str(tmp_path / "not/there/yet")])
    assert here.there and not below.there
    assert here.device == below.device == tmp_path.stat().st_dev
    assert here.free is None or 0 < here.free <= here.size
    assert here.mount in ("", "/") or str(tmp_path).startswith(here.mount)


def test_kind_of_a_mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"/": "overlay", str(tmp_path): "tmpfs"}
    monkeypatch.setattr(rooms, "_mounts", lambda: known)
    asked: list[str] = []

    def refuse(folder: str, _size: int) -> str:
        asked.append(folder)
        return "quota"

    monkeypatch.setattr(space, "why_no_room", refuse)
    [memory, disk] = read_rooms([str(tmp_path / "a"), "/"])
    assert (memory.kind, memory.mount, memory.in_memory) == ("tmpfs", str(tmp_path), True)
    assert (disk.kind, disk.in_memory) == ("overlay", False)
    assert str(tmp_path) not in asked  # what is asked of memory is taken from it


def test_a_file_server_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks it waits for ever; the others are told all the same."""
    over = threading.Event()
    real = rooms._room

    def hang(path: str, mounts: dict[str, str]) -> Room:
        if path == "/gone":
            over.wait()
        return real(path, mounts)

    monkeypatch.setattr(rooms, "_room", hang)
    [gone, here] = read_rooms(["/gone", "/"], 0.5)
    over.set()
    assert (gone.silent, here.silent, here.there) == (True, False, True)
    section = disk_section([CACHE, NEEDED], [gone, ROOM])
    [found] = section.findings
    assert (found.code, found.level) == ("disk.hangs", "error")
    assert found.hint == "export PIP_CACHE_DIR=FOLDER"
    assert [row.name for row in section.rows if not row.detail] == ["/", "/gone"]
