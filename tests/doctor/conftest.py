"""A target for doctor."""

from __future__ import annotations

from pathlib import Path

import pytest

from envlock.adapters import rooms
from tests.support.examined import large_room
from tests.support.pythons import make_venv


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty venv, on a machine whose disks are large."""
    monkeypatch.setattr(rooms, "_room", large_room)
    monkeypatch.chdir(tmp_path)
    return make_venv(tmp_path / "venv")
