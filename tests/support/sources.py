"""Sources of distributions, and a build backend that needs nothing else."""

from __future__ import annotations

import tarfile
from pathlib import Path

#: A build backend that needs nothing: sources can be built without an index.
OWN_BACKEND = """
import os, re, zipfile

def _read():
    text = open("PKG-INFO").read()
    return text, *(re.search(f"^{key}: (.*)$", text, re.M)[1] for key in ("Name", "Version"))

def prepare_metadata_for_build_wheel(folder, config_settings=None):
    text, name, version = _read()
    info = f"{name}-{version}.dist-info"
    os.mkdir(os.path.join(folder, info))
    open(os.path.join(folder, info, "METADATA"), "w").write(text)
    return info

def build_wheel(folder, config_settings=None, metadata_directory=None):
    text, name, version = _read()
    file = f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(os.path.join(folder, file), "w") as wheel:
        wheel.write(f"{name}.py")
        wheel.writestr(f"{info}/METADATA", text)
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nTag: py3-none-any\\n")
        members = [f"{name}.py", *(f"{info}/{one}" for one in ("METADATA", "WHEEL", "RECORD"))]
        wheel.writestr(f"{info}/RECORD", "".join(f"{one},,\\n" for one in members))
    return file
"""


def source(folder: Path, name: str, version: str) -> Path:
    """A source whose metadata needs no build."""
    stem = f"{name}-{version}"
    tree = folder / "tree" / stem
    tree.mkdir(parents=True)
    (tree / "PKG-INFO").write_text(f"Metadata-Version: 2.2\nName: {name}\nVersion: {version}\n")
    (tree / f"{name}.py").write_text("X = 1\n")
    backend = "requires = []\nbuild-backend = 'own'\nbackend-path = ['.']\n"
    (tree / "pyproject.toml").write_text(
        f"[build-system]\n{backend}[project]\nname = '{name}'\nversion = '{version}'\n"
    )
    (tree / "own.py").write_text(OWN_BACKEND)
    path = folder / f"{stem}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(tree, arcname=stem)
    return path
