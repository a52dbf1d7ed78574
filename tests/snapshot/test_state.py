"""What is remembered of a target, and what is never written over."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from envlock.adapters.state import Memory, keep_manifest, memory_of, read_manifest
from envlock.errors import Refused, UnusableInput
from envlock.model.dist import Distribution
from envlock.model.manifest import Manifest, dump
from tests.support.fake_manifest import fake_layout, locked

TORCH = Distribution(
    name="torch",
    version="2.10.0+das.opt1.dtk2604",
    vendor=("label",),
    protected=True,
    content="sha256:" + "a" * 64,
)
GOOD = locked(TORCH)
CHANGED = locked(replace(TORCH, content="sha256:" + "b" * 64))
OTHER = locked(replace(TORCH, version="2.11.0+das.opt1.dtk2604", content="sha256:" + "c" * 64))
PUBLIC = locked(replace(TORCH, version="2.11.0", vendor=(), content="sha256:" + "d" * 64))
BROKEN = locked(replace(TORCH, content="", reason="no RECORD"))
GONE = locked()


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(tmp_path / "state/key")


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "manifests/a.yaml")


def keep(file: str, manifest: Manifest, memory: Memory, *, force: bool = False) -> list[str]:
    found = keep_manifest(file, manifest, memory, force=force)
    return [finding.code for finding in found]


@pytest.mark.parametrize("bad", [CHANGED, OTHER, PUBLIC, BROKEN, GONE])
def test_a_good_manifest_is_not_written_over(file: str, memory: Memory, bad: Manifest) -> None:
    assert keep(file, GOOD, memory) == []
    with pytest.raises(Refused, match=r"'torch': '2\.10\.0") as caught:
        keep(file, bad, memory)
    assert "--force" in caught.value.hint
    assert read_manifest(file) == memory.manifest() == GOOD
    assert keep(file, bad, memory, force=True) == []
    assert read_manifest(file) == memory.manifest() == bad


def test_memory_guards_another_file_too(file: str, memory: Memory) -> None:
    keep(file, GOOD, memory)
    with pytest.raises(Refused, match="would be lost"):
        keep(f"{file}.other.yaml", GONE, memory)
    assert not os.path.exists(f"{file}.other.yaml")


@pytest.mark.parametrize("text", ["not a manifest\n", "schema: '9.0'\n", ""])
def test_a_file_that_is_no_manifest(file: str, memory: Memory, text: str) -> None:
    os.makedirs(os.path.dirname(file))
    Path(file).write_text(text)
    with pytest.raises(UnusableInput, match="what it protects is not known") as caught:
        keep(file, GOOD, memory)
    assert "--force" in caught.value.hint
    assert Path(file).read_text() == text
    assert keep(file, GOOD, memory, force=True) == []


def test_a_memory_that_nobody_can_read(file: str, memory: Memory) -> None:
    memory.folder.mkdir(parents=True)
    memory.manifest_path.write_text("---\nschema: '1.0'\n")
    assert memory.known() is None
    with pytest.raises(UnusableInput, match="what it protects is not known"):
        keep(file, GOOD, memory)
    assert keep(file, GOOD, memory, force=True) == []
    assert memory.known() == GOOD


def test_folder_that_cannot_be_written(tmp_path: Path, memory: Memory) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UnusableInput, match="cannot be written") as caught:
        keep(str(tmp_path / "file/a.yaml"), GOOD, memory)
    assert "-o" in caught.value.hint
    assert memory.manifest() is None
    (tmp_path / "folder").mkdir()
    with pytest.raises(UnusableInput, match="Is a directory"):
        keep(str(tmp_path / "folder"), GOOD, memory)


def test_state_that_cannot_be_written_is_a_finding(file: str, tmp_path: Path) -> None:
    """The manifest is written: that it is not remembered is worth a word, no failure."""
    (tmp_path / "file").touch()
    memory = Memory(tmp_path / "file/key")
    assert keep(file, GOOD, memory) == ["state.unwritable"]
    assert read_manifest(file) == GOOD
    assert [one.code for one in memory.remember_restored(GOOD)] == ["state.unwritable"]
    assert [one.code for one in memory.remember_wheels(str(tmp_path))] == ["state.unwritable"]


@pytest.mark.parametrize(
    ("restored", "remembered"),
    [(CHANGED, True), (OTHER, True), (PUBLIC, False), (BROKEN, False), (GONE, False)],
)
def test_what_a_restore_remembers(memory: Memory, restored: Manifest, remembered: bool) -> None:
    """Another build is one that a person chose; a vanished one is never remembered."""
    memory.remember(GOOD)
    found = memory.remember_restored(restored)
    assert [finding.code for finding in found] == ([] if remembered else ["state.not-remembered"])
    assert memory.manifest() == (restored if remembered else GOOD)


def test_first_memory(memory: Memory) -> None:
    assert memory.manifest() is None
    assert memory.remember_restored(GONE) == []
    assert memory.manifest() == GONE


def test_wheels_are_remembered_while_they_are_there(memory: Memory, tmp_path: Path) -> None:
    assert memory.wheels() is None
    folder = tmp_path / "the wheels"
    folder.mkdir()
    assert memory.remember_wheels(str(folder)) == []
    assert memory.wheels() == folder
    folder.rmdir()
    assert memory.wheels() is None


def home() -> str:
    return pwd.getpwuid(os.getuid()).pw_dir


@pytest.mark.parametrize(
    ("env", "base"),
    [
        ({"XDG_STATE_HOME": "/state"}, "/state"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/home/me"}, "/home/me/.local/state"),
        ({"XDG_STATE_HOME": "", "HOME": "/home/me"}, "/home/me/.local/state"),
        ({}, f"{home()}/.local/state"),
        ({"HOME": ""}, f"{home()}/.local/state"),
        ({"HOME": "relative"}, f"{home()}/.local/state"),
    ],
)
def test_state_folder(env: Mapping[str, str], base: str, tmp_path: Path) -> None:
    """Never below the working folder, whatever is unset."""
    assert memory_of(fake_layout(tmp_path), env).folder.parent == Path(base) / "envlock"


def test_user_that_nobody_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_uid: int) -> None:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert memory_of(fake_layout(tmp_path), {}).folder.is_absolute()


def test_key_is_the_real_folder(tmp_path: Path) -> None:
    layout = fake_layout(tmp_path / "venv")
    (tmp_path / "link").symlink_to("venv")
    linked = fake_layout(tmp_path / "link")
    assert memory_of(layout, {}) == memory_of(linked, {})
    assert memory_of(layout, {}) != memory_of(fake_layout(tmp_path / "other"), {})


def test_dump_is_what_is_kept(file: str, memory: Memory) -> None:
    keep(file, GOOD, memory)
    assert Path(file).read_text() == memory.manifest_path.read_text() == dump(GOOD)
