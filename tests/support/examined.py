"""What tests of doctor ask it, and disks that are large."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from envlock.adapters.rooms import Room
from envlock.cli import main

GIB = 1024**3
VENDOR = "2.10.0+das.opt1.dtk2604.20260325.g6b060a"


def large_room(path: str, _mounts: object) -> Room:
    return Room(
        path=path, there=True, device=9 if path == "/dev/shm" else 1,
        mount="/dev/shm" if path == "/dev/shm" else "/", kind="overlay", free=200 * GIB,
        size=500 * GIB,
    )  # fmt: skip


def site_of(python: Path) -> Path:
    return next((python.parents[1] / "lib").glob("python3.*")) / "site-packages"


def doctor(python: Path | str, *words: str) -> int:
    return main(["doctor", "--no-network", "--python", str(python), *words])


def document(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def codes(found: dict[str, Any]) -> dict[str, str]:
    return {one["code"]: one["level"] for one in found["findings"]}
