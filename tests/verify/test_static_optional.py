"""static.ldd on modules for libraries that are not on every machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from envlock.model.check import Status
from envlock.model.facts import Target
from tests.support.objects import NO_COMPILER, extension, library
from tests.support.static_world import World

pytestmark = NO_COMPILER


@pytest.fixture
def world(tmp_path: Path, own_target: Target) -> World:
    made = World(tmp_path / "world", own_target)
    made.build()
    return made


def _other_distribution(world: World, name: str) -> None:
    """A module for a library that is not on this machine, beside one that can be imported."""
    folder = world.site / name
    lost = library(world.site.parent / "elsewhere" / "liboptional.so", "optional")
    extension(folder, "main")
    extension(folder, "extra", "-Wl,--unresolved-symbols=ignore-all", needs=[lost])
    lost.unlink()
    info = world.site / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\n")
    rows = [f"{path.relative_to(world.site)},,\n" for path in sorted(folder.iterdir())]
    (info / "RECORD").write_text("".join(rows))


@pytest.mark.parametrize(
    ("name", "status"),
    [("mpi4py", Status.WARNED), ("triton", Status.FAILED), ("vllm", Status.FAILED)],
)
def test_a_module_for_an_optional_library(world: World, name: str, status: Status) -> None:
    _other_distribution(world, name)
    case = world.cases("static.ldd")[f"{name} 1.0"]
    assert case.status is status, case
    assert "needs 'liboptional.so', which is not found" in case.reason
