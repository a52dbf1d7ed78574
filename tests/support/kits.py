"""Kits made by tests: a wheelhouse with little in it, and an envlock with nothing in it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from envlock.model.dist import Distribution
from envlock.model.manifest import Manifest, load
from envlock.wheelhouse.folder import write_papers
from envlock.wheelhouse.kit import Packed, Wanted, open_house, pack
from envlock.wheelhouse.kit_tool import Tool
from tests.support.wheels import make_wheel
from tests.wheelhouse.test_check import add, manifest_of


def rebuilt(dist: Distribution) -> Distribution:
    """The same, with a wheel that nobody published."""
    assert dist.wheel is not None
    return replace(dist, wheel=replace(dist.wheel, origin="rebuilt"))


def packed(house: Path, kit: Path, **more: object) -> Packed:
    """A kit whose envlock is a wheel with nothing in it."""
    tool = Tool((str(make_wheel(kit.parent / "tool", "envlock", "0")),), "made by the test")
    opened = open_house(str(house))
    wanted = Wanted(runner=opened.manifest.target, **more)  # type: ignore[arg-type]
    return pack(opened, str(kit), tool, wanted)


def tree(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def lock(folder: Path) -> Manifest:
    return load((folder / "envlock.yaml").read_text())


def make_house(folder: Path) -> Path:
    """A wheelhouse with a rebuilt and a published wheel."""
    library = {"torch/lib.so": bytes(range(256)) * 400, "torch/__init__.py": "", "größe.txt": "ö"}
    torch = rebuilt(add(folder, "torch", files=library, executable=["torch/lib.so"]))
    write_papers(str(folder), manifest_of(torch, add(folder, "sympy")))
    return folder
