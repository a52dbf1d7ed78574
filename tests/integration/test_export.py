"""Every exported file is taken by pip and by uv, and gives what was locked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from envlock.cli import main
from envlock.model.manifest import dump
from tests.support.loopback import Loopback, loopback, serve_wheels
from tests.support.pythons import make_venv, pip, uv
from tests.support.wheels import make_wheel
from tests.support.worlds import VENDOR, World, install, lock, vendor_wheels

pytestmark = pytest.mark.integration

LOCKED = {"torch": VENDOR, "triton": "3.4.0+git1ef59765", "filelock": "3.0.0"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A locked target; its wheelhouse has newer builds beside, which nobody may take."""
    folder = tmp_path_factory.mktemp("export")
    wheels = vendor_wheels(folder / "W")
    python = make_venv(folder / "venv")
    install(python, *wheels)
    locked = lock(python, folder / "W")
    for name, version in (("torch", "2.13.0"), ("filelock", "3.0.0+other"), ("triton", "3.6.0")):
        make_wheel(folder / "W", name, version)
    return locked


@pytest.fixture
def server() -> Iterator[Loopback]:
    with loopback() as running:
        yield running


def exported(world: World, path: Path, *words: str) -> str:
    path.parent.mkdir(exist_ok=True)
    manifest = str(world.wheels / "envlock.yaml")
    assert main(["export", "--manifest", manifest, "-o", str(path), *words]) == 0
    return str(path)


def installed(python: Path) -> dict[str, str]:
    return World(python, python.parent).versions()


@pytest.fixture(params=["pip", "uv", "uv sync"])
def tool(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def take(tool: str, python: Path, *words: str, file: str) -> None:
    """Installs what a file says, and nothing but that, with this tool."""
    if tool == "pip":
        pip(python, "install", *words, "-r", file)
    elif tool == "uv":
        uv("pip", "install", "--python", str(python), *words, "-r", file)
    else:
        uv("pip", "sync", "--python", str(python), *words, file)


def test_a_lock(world: World, tool: str, tmp_path: Path) -> None:
    """It lies elsewhere than the wheels, and leads to them."""
    file = exported(world, tmp_path / "locks" / "pylock.toml", "--format", "pylock")
    python = make_venv(tmp_path / "new")
    take(tool, python, "--no-index", file=file)
    assert installed(python) == LOCKED


def test_a_lock_of_an_index(world: World, tool: str, tmp_path: Path, server: Loopback) -> None:
    """Without the wheels at hand it leads to where they can be had."""
    serve_wheels(server, world.wheels)
    there = world.manifest
    dists = [
        replace(d, wheel=replace(d.wheel, origin="index", url=server.url(f"/files/{d.wheel.file}")))
        for d in there.distributions
        if d.wheel is not None
    ]
    named = tmp_path / "m.yaml"
    named.write_text(dump(replace(there, distributions=tuple(dists))))
    file = tmp_path / "pylock.toml"
    words = ["--format", "pylock", "--only", "triton", "--only", "filelock"]
    assert main(["export", "--manifest", str(named), "-o", str(file), *words]) == 0
    assert f'url = "{server.url("/files/")}' in file.read_text()
    python = make_venv(tmp_path / "new")
    take(tool, python, file=str(file))
    assert installed(python) == {name: LOCKED[name] for name in ("triton", "filelock")}


def test_requirements_with_hashes(world: World, tool: str, tmp_path: Path) -> None:
    file = exported(world, tmp_path / "r.txt", "--format", "requirements")
    python = make_venv(tmp_path / "new")
    words = ["--no-index", "--find-links", str(world.wheels), "--require-hashes"]
    take(tool, python, *words, *([] if tool == "uv sync" else ["--no-deps"]), file=file)
    assert installed(python) == LOCKED


def test_requirements_without_hashes(world: World, tool: str, tmp_path: Path) -> None:
    """A build with another label is still no match."""
    file = exported(world, tmp_path / "r.txt", "--format", "requirements", "--no-hashes")
    python = make_venv(tmp_path / "new")
    take(tool, python, "--no-index", "--find-links", str(world.wheels), file=file)
    assert installed(python) == LOCKED


@pytest.mark.parametrize("tool_name", ["pip", "uv"])
def test_constraints(world: World, tool_name: str, tmp_path: Path) -> None:
    """Of the newer builds beside it none is taken."""
    file = exported(world, tmp_path / "c.txt", "--format", "constraints", "--only", "protected")
    python = make_venv(tmp_path / "new")
    words = ["--no-index", "--find-links", str(world.wheels), "-c", file, "torch", "triton"]
    if tool_name == "pip":
        pip(python, "install", *words)
    else:
        uv("pip", "install", "--python", str(python), *words)
    found = installed(python)
    assert {name: found[name] for name in ("torch", "triton")} == {
        name: LOCKED[name] for name in ("torch", "triton")
    }


def test_what_is_remembered(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After snapshot and harvest nobody has to name anything but the format."""
    monkeypatch.chdir(tmp_path)
    assert world.run("snapshot") == 0
    assert world.run("wheelhouse", "harvest") == 0
    assert world.run("export", "--format", "pylock", "-o", "pylock.toml") == 0
    python = make_venv(tmp_path / "new")
    take("uv sync", python, "--no-index", file="pylock.toml")
    assert installed(python) == LOCKED
