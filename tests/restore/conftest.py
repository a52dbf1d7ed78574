"""A broken world, and how it looks from outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.wheels import make_wheel
from tests.support.worlds import World, install, vendor_world


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A healthy locked target."""
    return vendor_world(tmp_path)


@pytest.fixture
def broken(world: World, tmp_path: Path) -> World:
    """torch replaced, a library changed, a shared folder damaged."""
    public = make_wheel(
        tmp_path / "public",
        "torch",
        "2.11.0",
        {"torch/__init__.py": "__version__ = '2.11.0'\n", "shared/torch/part.py": "PART = 0\n"},
    )
    install(world.python, public)
    (world.site / "triton/__init__.py").write_text("__version__ = 'broken'\n")
    return world
