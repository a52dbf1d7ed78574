"""A small locked target: an environment, its wheels and its manifest."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from envlock.adapters.files import sha256
from envlock.adapters.installed import read_inventory
from envlock.adapters.interpreter import Named, read_target
from envlock.adapters.profiles import load_profile
from envlock.cli import main
from envlock.model.dist import WheelRef
from envlock.model.facts import Machine, Target
from envlock.model.manifest import Manifest, Stack, dump, load, with_wheels
from envlock.model.wheels import parse_wheel_name
from envlock.snapshot import Request, take
from tests.support.pythons import clean_env, make_venv, uv
from tests.support.wheels import make_wheel


@dataclass(frozen=True)
class World:
    """A target, and a wheelhouse that gives it back."""

    python: Path
    wheels: Path

    @property
    def target(self) -> Target:
        return read_target(Named(str(self.python), "--python"), clean_env())

    @property
    def prefix(self) -> Path:
        return self.python.parents[1]

    @property
    def site(self) -> Path:
        return Path(self.target.layout.purelib)

    @property
    def manifest(self) -> Manifest:
        return load((self.wheels / "envlock.yaml").read_text())

    def write(self, manifest: Manifest) -> None:
        """Replaces the wheelhouse's manifest."""
        (self.wheels / "envlock.yaml").write_text(dump(manifest))

    def run(self, *words: str) -> int:
        """``envlock WORDS --python TARGET``."""
        return main([*words, "--python", str(self.python)])

    def restore(self, *words: str) -> int:
        """``envlock restore --wheelhouse W WORDS``."""
        return self.run("restore", "--wheelhouse", str(self.wheels), *words)

    def versions(self) -> dict[str, str]:
        """Installed versions by name."""
        found = read_inventory(self.target.layout).distributions
        return {dist.name: dist.version for dist in found}


def take_snapshot(target: Target, profile: str = "dtk") -> Manifest:
    """A manifest of a target, without a machine."""
    request = Request(
        profile=load_profile(profile),
        machine=Machine(),
        stack=Stack(),
        created="2026-01-01T00:00:00Z",
        tool="tests",
    )
    manifest, _ = take(target, request)
    return manifest


def lock(python: Path, wheels: Path, profile: str = "dtk") -> World:
    """Writes the manifest of what is installed beside its wheels."""
    world = World(python, wheels)
    refs = {}
    for path in wheels.glob("*.whl"):
        name = parse_wheel_name(path.name).name
        refs[name] = WheelRef(
            file=path.name, sha256=sha256(path), size=path.stat().st_size, origin="file"
        )
    world.write(with_wheels(take_snapshot(world.target, profile), refs))
    return world


def install(python: Path, *wheels: Path) -> None:
    """Installs wheels without leaving a direct_url.json."""
    listed = [f"{w.name.split('-')[0]}=={w.name.split('-')[1]}" for w in wheels]
    folders = {str(w.parent) for w in wheels}
    found = [word for folder in sorted(folders) for word in ("--find-links", folder)]
    uv("pip", "install", "-q", "--python", str(python), "--no-index", "--no-deps", *found,
       "--reinstall", "--link-mode", "copy", *listed)  # fmt: skip


VENDOR = "2.10.0+das.opt1.dtk2604.20260325.g6b060a"


def vendor_wheels(folder: Path) -> list[Path]:
    """Three small builds: a package with scripts and data, a namespace share, a single module."""
    return [
        make_wheel(
            folder, "torch", VENDOR,
            {
                "torch/__init__.py": f"__version__ = '{VENDOR}'\n",
                "torch/lib/libtorch.so": b"\x7fELF vendor\n" * 50,
                "torch/bin/protoc": b"\x7fELF tool\n",
                "shared/torch/part.py": "PART = 1\n",
                ".data/scripts/torchrun-vendor": "#!python\nprint('run')\n",
                ".data/data/share/torch/notice.txt": "notice\n",
                ".data/headers/torch.h": "#define TORCH 1\n",
            },
            requires=["filelock"],
            entry_points="[console_scripts]\ntorchrun = torch:main\n",
            executable=["torch/bin/protoc"],
        ),
        make_wheel(
            folder, "triton", "3.4.0+git1ef59765",
            {"triton/__init__.py": "__version__ = '3.4.0'\n", "shared/triton/part.py": "X = 2\n"},
        ),
        make_wheel(folder, "filelock", "3.0.0", {"filelock.py": "def lock():\n    return 1\n"}),
    ]  # fmt: skip


def vendor_world(folder: Path) -> World:
    """A locked venv with :func:`vendor_wheels`."""
    wheels = vendor_wheels(folder / "W")
    python = make_venv(folder / "venv")
    install(python, *wheels)
    return lock(python, folder / "W")


def tree(folder: Path, leave_out: Iterable[str] = ("__pycache__",)) -> Mapping[str, str]:
    """Every path below a folder: sha256 and mode of files, target of links."""
    left = set(leave_out)
    found = {}
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in left]
        for name in (*folders, *names):
            path = Path(root, name)
            key = str(path.relative_to(folder))
            if path.is_symlink():
                found[key] = f"-> {os.readlink(path)}"
            elif path.is_dir():
                found[key] = "folder"
            else:
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                found[key] = f"{digest} {path.stat().st_mode & 0o777:o}"
    return found
