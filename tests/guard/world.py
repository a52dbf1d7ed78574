"""A small world for guard: an index of public builds, and a target with a vendor's."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.pythons import cached_wheels, make_venv, pip
from tests.support.wheels import make_wheel

TORCH = "2.10.0+das.opt1.dtk2604.20260325.g6b060a"
TRITON = "3.4.0+git1ef59765"
FLASH = "2.8.3+das.opt1.dtk2604.torch2100"

#: What an index has: versions, and what each of them requires.
PUBLIC: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "torch": (("2.9.1", "2.10.0", "2.11.0"), ("filelock", "triton>=3.4")),
    "triton": (("3.5.0", "3.6.0"), ()),
    "filelock": (("3.0", "3.1"), ()),
    "tabulate": (("0.8", "0.9"), ()),
    "xformers": (("0.0.33",), ("torch==2.9.1",)),
    "torchvision": (("0.26.0",), ("torch==2.11.0",)),
    "accelerate": (("1.0",), ("torch>=2.0",)),
    "peft": (("0.1",), ("torch>=1.13", "accelerate")),
    "exact": (("1.0",), ("torch==2.10.0",)),
    "capped": (("1.0",), ("torch<2.10",)),
    "unequal": (("1.0",), ("torch!=2.10.0",)),
    "kernels": (("1.0",), ("triton>=3.5",)),
    "deep": (("1.0",), ("kernels",)),
}


@dataclass(frozen=True, slots=True)
class World:
    """Folders of public and of vendor wheels, and a target to be copied."""

    folder: Path

    @property
    def index(self) -> Path:
        return self.folder / "index"

    @property
    def vendor(self) -> Path:
        return self.folder / "vendor"

    @property
    def target(self) -> Path:
        return self.folder / "target"

    def copy(self, path: Path) -> Path:
        """A target of one's own; returns its interpreter."""
        shutil.copytree(self.target, path, symlinks=True)
        return path / "bin" / "python"

    @property
    def pip_conf(self) -> Path:
        """Settings with which pip sees the index and nothing else."""
        path = self.folder / "pip.conf"
        path.write_text(f"[global]\nno-index = true\nfind-links = {self.index}\n")
        return path

    @property
    def uv_toml(self) -> Path:
        """The same for uv."""
        path = self.folder / "uv.toml"
        path.write_text(f'no-index = true\nfind-links = ["{self.index}"]\n')
        return path

    def env(self) -> dict[str, str]:
        """Variables that name those settings."""
        return {
            "PIP_CONFIG_FILE": str(self.pip_conf),
            "UV_CONFIG_FILE": str(self.uv_toml),
            "UV_CACHE_DIR": str(self.folder / "uv-cache"),
        }


def make_world(
    folder: Path, pip_version: str = "", torch_requires: Sequence[str] = ("triton==3.4.0",)
) -> World:
    """Builds it; with ``pip_version``, the target has that pip."""
    world = World(folder)
    for name, (versions, requires) in PUBLIC.items():
        for version in versions:
            make_wheel(world.index, name, version, requires=requires)
    make_wheel(world.vendor, "torch", TORCH, requires=["filelock", *torch_requires])
    make_wheel(world.vendor, "triton", TRITON)
    make_wheel(world.vendor, "flash_attn", FLASH, requires=["torch"])
    python = make_venv(world.target)
    pip(python, "install", "--no-index", "--no-deps", "-f", str(world.vendor), "-f",
        str(world.index), f"torch=={TORCH}", f"triton=={TRITON}", f"flash-attn=={FLASH}",
        "filelock==3.0")  # fmt: skip
    if pip_version:
        kept = cached_wheels(f"pip-{pip_version}", f"pip=={pip_version}")
        pip(python, "install", "--no-index", "-f", str(kept), f"pip=={pip_version}")
    return world


def tree(folder: Path) -> dict[str, str]:
    """Every file and link of a folder with what it holds; byte code and uv's lock left out."""
    found = {}
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in set(files) - {".lock"}:
            path = Path(root, name)
            link = path.is_symlink()
            data = os.fsencode(os.readlink(path)) if link else path.read_bytes()
            found[str(path.relative_to(folder))] = hashlib.sha256(data).hexdigest()
    return found


def protected_part(files: dict[str, str]) -> dict[str, str]:
    """The files of the vendor builds."""
    return {
        path: data
        for path, data in files.items()
        if Path(path).name in ("torch.py", "triton.py", "flash_attn.py")
        or any(f"/{stem}-" in path for stem in ("torch", "triton", "flash_attn"))
    }
