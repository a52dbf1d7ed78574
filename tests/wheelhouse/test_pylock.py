"""pylock.toml: valid, relative, and installable after the folder has moved."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.pylock import Pylock

from envlock.adapters.installed import read_inventory
from envlock.adapters.interpreter import Named, read_target
from envlock.adapters.pylock import fitting, lock_text, read_pins
from envlock.adapters.resolving import RemoteFile
from envlock.errors import ProgramFailed, Refused
from envlock.model.dist import Distribution, WheelRef
from envlock.wheelhouse.folder import write_papers
from tests.support.pythons import clean_env, make_venv, pip, uv
from tests.support.worlds import VENDOR, vendor_world
from tests.wheelhouse.test_check import manifest_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TORCH = Distribution(
    name="torch",
    version="2.10.0+das.opt1",
    wheel=WheelRef(file="torch-2.10.0+das.opt1-py3-none-any.whl", sha256="1" * 64, origin="file"),
)


def test_text() -> None:
    markers = {"python_version": "3.10", "sys_platform": "linux", "platform_machine": "x86_64"}
    odd = replace(TORCH, name="odd", version="1_x")
    text = lock_text([TORCH, Distribution(name="bare", version="1"), odd], markers)
    lock = Pylock.from_dict(tomllib.loads(text))
    assert [(str(p.name), str(p.version)) for p in lock.packages] == [("torch", "2.10.0+das.opt1")]
    [wheel] = lock.packages[0].wheels or ()
    assert wheel.path == TORCH.wheel.file if TORCH.wheel else False
    assert wheel.url is None and wheel.hashes == {"sha256": "1" * 64}
    assert str(lock.requires_python) == "==3.10.*"
    assert "sys_platform" in str((lock.environments or [])[0])


def test_one_file_name_does_not_spoil_it() -> None:
    """Two ``+``: pip and uv would refuse the lock as a whole."""
    file = "vllm-0.3.3+das1.0+git3380931-py3-none-any.whl"
    ref = WheelRef(file=file, sha256="2" * 64, origin="file")
    odd = Distribution(name="vllm", version="0.3.3+git3380931", wheel=ref)
    lock = Pylock.from_dict(tomllib.loads(lock_text([TORCH, odd], {})))
    assert [str(package.name) for package in lock.packages] == ["torch"]


def test_empty() -> None:
    assert Pylock.from_dict(tomllib.loads(lock_text([], {}))).packages == []


def test_fitting_joins_the_places_of_one_file() -> None:
    def file(name: str, host: str, sha256: str = "0" * 64) -> RemoteFile:
        return RemoteFile(file=name, urls=(f"https://{host}/{name}",), sha256=sha256, size=1)

    old, new = "x-1-cp310-cp310-manylinux_2_17_x86_64.whl", "x-1-py3-none-any.whl"
    found = fitting(
        [file(new, "a"), file(old, "a"), file(old, "b"), file("x-1-cp39-cp39-win32.whl", "a")],
        manifest_of().target.tags,
    )
    assert [(f.file, [u.split("/")[2] for u in f.urls]) for f in found] == [
        (old, ["a", "b"]),
        (new, ["a"]),
    ]


def lock_file(folder: Path, package: str) -> Path:
    path = folder / "pylock.toml"
    path.write_text(f"lock-version = '1.0'\ncreated-by = 'x'\n[[packages]]\n{package}\n")
    return path


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    package = "name = 'x'\nvcs = {type = 'git', url = 'https://h/x', commit-id = '0'}"
    with pytest.raises(Refused, match="'x' is not resolved to a version"):
        read_pins(lock_file(tmp_path, package), manifest_of().target)


def test_what_is_no_lock(tmp_path: Path) -> None:
    with pytest.raises(ProgramFailed, match=r"pylock\.toml: "):
        read_pins(lock_file(tmp_path, "name = 3"), manifest_of().target)


@pytest.mark.integration
@pytest.mark.parametrize("tool", ["uv", "pip"])
def test_installs_after_the_folder_has_moved(tmp_path: Path, tool: str) -> None:
    world = vendor_world(tmp_path / "first")
    write_papers(str(world.wheels), world.manifest)
    moved = tmp_path / "another place"
    world.wheels.rename(moved)
    python = make_venv(tmp_path / "new")
    lock = str(moved / "pylock.toml")
    if tool == "uv":
        uv("pip", "sync", "--python", str(python), "--no-index", lock)
    else:
        pip(python, "install", "--no-index", "-r", lock)
    target = read_target(Named(str(python), "--python"), clean_env())
    found = {d.name: d.version for d in read_inventory(target.layout).distributions}
    assert found == {"torch": VENDOR, "triton": "3.4.0+git1ef59765", "filelock": "3.0.0"}
