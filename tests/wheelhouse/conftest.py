"""Targets with known files, and manifests of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from envlock.adapters.interpreter import Named, read_target
from envlock.model.facts import Target
from envlock.model.manifest import Manifest
from tests.support.pythons import clean_env, make_venv, pip, uv
from tests.support.wheels import make_wheel
from tests.support.worlds import take_snapshot

LABEL = "1.0+das.opt1.dtk2604"


def vendor_wheel(folder: Path) -> Path:
    """Everything a wheel can hold: each scheme, exec bits, scripts of both kinds, odd names."""
    return make_wheel(
        folder,
        "Vend.Or",
        LABEL,
        {
            "vendor/__init__.py": "import vendor.lib\n",
            "vendor/lib.so": b"\x7fELF" + bytes(5000),
            "vendor/bin/ptxas": b"\x7fELF tool",
            "vendor/größe.txt": "ö",
            "vendor/empty": "",
            "vendor/sourceless.pyc": b"code",
            ".data/purelib/vendor.data/not_a_scheme.txt": "x",
            ".data/scripts/run": "#!python\nprint('run')\n",
            ".data/scripts/shell": "#!/bin/sh\necho\n",
            ".data/data/bin/helper.txt": "no script",
            ".data/data/share/vendor/x.cfg": "x",
            ".data/headers/vendor.h": "int x;\n",
        },
        entry_points="[console_scripts]\nvend = vendor:main\n",
        executable=["vendor/bin/ptxas", ".data/scripts/run", ".data/scripts/shell"],
        tag="cp36.cp37-abi3-manylinux_2_17_x86_64",
        file_name=f"vend_or-{LABEL}-py3-none-any.whl",
    )


@dataclass(frozen=True)
class Place:
    """A venv, what it is, and what it should be."""

    python: Path
    target: Target
    manifest: Manifest

    @property
    def site(self) -> Path:
        return Path(self.target.layout.purelib)


def place(path: Path, wheels: list[Path], tool: str = "uv") -> Place:
    """A venv with these wheels, and the manifest of it."""
    python = make_venv(path)
    files = [str(wheel) for wheel in wheels]
    if tool == "uv":
        uv("pip", "install", "--offline", "--no-index", "--no-deps", "--link-mode", "copy",
           "--python", str(python), *files)  # fmt: skip
    else:
        pip(python, "install", "--no-index", "--no-deps", "--no-compile", *files)
    return described(python)


def described(python: Path) -> Place:
    """What is in a venv now."""
    target = read_target(Named(str(python), "--python"), clean_env())
    # health is left out: 'direct-url' and time of making are those of the wheel files
    return Place(python, target, replace(take_snapshot(target), health=()))


@pytest.fixture
def two(tmp_path: Path) -> Place:
    """A venv with a vendor build and a plain distribution."""
    wheels = [vendor_wheel(tmp_path / "in"), make_wheel(tmp_path / "in", "plain", "2.0")]
    return place(tmp_path / "venv", wheels)


@pytest.fixture
def damage() -> Callable[[Place, str, bytes | None], None]:
    """Changes or removes a file of a place."""

    def change(where: Place, name: str, data: bytes | None) -> None:
        path = where.site / name
        path.unlink()
        if data is not None:
            path.write_bytes(data)

    return change
