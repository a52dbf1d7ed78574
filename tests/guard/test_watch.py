"""What is noticed about a protected set, and what is not mistaken for harm."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from envlock.adapters.installed import read_inventory
from envlock.adapters.interpreter import Named, read_target
from envlock.adapters.watch import Watched, Watching, changes, watch
from envlock.model.facts import Layout
from tests.guard.world import TORCH, World, make_world
from tests.support.pythons import clean_env


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture
def layout(world: World, tmp_path: Path) -> Layout:
    python = world.copy(tmp_path / "target")
    return read_target(Named(str(python), "--python"), clean_env()).layout


def watched(layout: Layout) -> list[Watched]:
    names = ("torch", "triton")
    return watch([d for d in read_inventory(layout).distributions if d.name in names], layout)


def said(before: list[Watched], layout: Layout) -> dict[str, str]:
    return {finding.subject: finding.what for finding in changes(before, layout)}


def test_nothing_happened(layout: Layout) -> None:
    before = watched(layout)
    assert [one.name for one in before] == ["torch", "triton"]
    assert said(before, layout) == {}


def test_what_is_noted_step_by_step(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of it while others decide, and the rest when it is asked for."""
    monkeypatch.setattr("envlock.adapters.watch._STEP", 1)
    dists = read_inventory(layout).distributions
    before = Watching(dists, layout)
    next(before.steps())
    next(before.steps())
    assert before.result() == watch(dists, layout)
    Path(layout.purelib, "triton.py").unlink()
    assert said(before.result(), layout)["triton"].startswith("1 files are gone")


def test_a_file_that_moved_and_has_its_bytes_is_no_change(layout: Layout) -> None:
    before = watched(layout)
    file = Path(layout.purelib, "torch.py")
    os.utime(file, (1, 1))
    shutil.copyfile(file, f"{file}.new")
    os.replace(f"{file}.new", file)
    assert said(before, layout) == {}


def test_other_bytes_of_the_same_size_and_time(layout: Layout) -> None:
    before = watched(layout)
    file = Path(layout.purelib, "torch.py")
    status = file.stat()
    file.write_bytes(file.read_bytes().replace(b"VERSION", b"VERSIOM"))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    found = said(before, layout)
    assert set(found) == {"torch"}
    assert found["torch"].startswith("0 files are gone and 1 have other bytes")


def test_a_file_that_is_gone(layout: Layout) -> None:
    before = watched(layout)
    Path(layout.purelib, "triton.py").unlink()
    assert said(before, layout)["triton"].startswith("1 files are gone")


def test_another_version_a_twin_and_none(layout: Layout) -> None:
    before = watched(layout)
    info = Path(layout.purelib, f"torch-{TORCH}.dist-info")
    other = info.with_name("torch-2.11.0.dist-info")
    shutil.copytree(info, other)
    assert "'torch-2.11.0.dist-info'" in said(before, layout)["torch"]
    shutil.rmtree(info)
    assert "is now 'torch-2.11.0.dist-info'; it was" in said(before, layout)["torch"]
    shutil.rmtree(other)
    assert said(before, layout) == {"torch": "is not installed any more"}


def test_what_installers_note_about_a_build_is_no_change(layout: Layout) -> None:
    before = watched(layout)
    Path(layout.purelib, f"torch-{TORCH}.dist-info", "RECORD").touch()
    assert said(before, layout) == {}
