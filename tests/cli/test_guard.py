"""envlock guard: exit codes, words, and what happens when a tool does harm all the same."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from envlock.cli import main
from tests.guard.world import TORCH, TRITON, World, make_world, tree
from tests.support.pythons import clean_env, make_venv, pip
from tests.support.worlds import lock

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture
def python(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A target of one's own, named by $VIRTUAL_ENV, and settings that know the index."""
    monkeypatch.delenv("UV_NO_CONFIG", raising=False)
    for name, value in world.env().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "target"))
    return world.copy(tmp_path / "target")


def version_of(python: Path, name: str) -> str:
    code = f"import importlib.metadata as m; print(m.version({name!r}))"
    return subprocess.run(
        [str(python), "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_a_refusal_names_both_versions_and_what_to_type(
    python: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = tree(python.parents[1])
    assert main(["guard", "pip", "install", "-U", "torch", "tabulate"]) == 3
    said = capfd.readouterr()
    assert said.out == ""
    assert TORCH in said.err
    assert "2.11.0" in said.err
    assert "envlock: refused, and nothing was changed: pip install -U torch tabulate" in said.err
    assert "envlock guard pip install -U tabulate" in said.err
    assert tree(python.parents[1]) == before


def test_what_is_allowed_is_run_as_it_was_typed(
    python: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["guard", "--", "python", "-m", "pip", "install", "tabulate==0.8"]) == 0
    said = capfd.readouterr()
    assert "Successfully installed tabulate-0.8" in said.out
    assert f"target: {python.parents[1]}" in said.err
    assert version_of(python, "tabulate") == "0.8"
    assert main(["guard", "pip", "list"]) == 0
    assert "tabulate" in capfd.readouterr().out


def test_help_after_the_command_is_the_tools_own(
    python: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["guard", "pip", "install", "--help"]) == 0
    assert "--no-deps" in capfd.readouterr().out


def test_plan_only_decides(python: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = tree(python.parents[1])
    assert main(["guard", "--plan", "pip", "install", "peft"]) == 0
    said = capfd.readouterr().out
    assert said.splitlines() == [
        "allowed: pip install peft",
        "  accelerate: none -> 1.0",
        "  peft: none -> 0.1",
    ]
    assert main(["guard", "--plan", "uv", "pip", "install", "xformers"]) == 3
    assert tree(python.parents[1]) == before


@pytest.mark.parametrize(
    "line",
    ["conda install x", "--plan pip install --bogus torch", "--plan pip install",
     "--plan pip uninstall --bogus tabulate", "--plan pip install no-such-project",
     "--plan uv pip install --bogus x", "--bogus pip install x", ""],
)  # fmt: skip
def test_a_wrong_command_line_is_2(
    line: str, python: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["guard", *line.split()]) == 2
    assert capfd.readouterr().err.startswith("error: ")


def test_a_path_means_its_own_interpreter(
    python: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other = make_venv(tmp_path / "other")
    for words in (
        [str(other), "-m", "pip", "install", "tabulate"],
        ["uv", "pip", "install", "-p", str(other), "tabulate"],
        ["pip", "--python", str(other), "install", "tabulate"],
        ["pip3.9", "install", "tabulate"],
        ["uv", "pip", "install", "--system", "tabulate"],
    ):
        assert main(["guard", *words]) == 4
        assert "error: target: " in capfd.readouterr().err
    assert main(["guard", "--plan", str(python), "-m", "pip", "list"]) == 0
    assert main(["guard", "uv", "pip", "install", "-q", "-p", str(python), "tabulate"]) == 0
    assert version_of(python, "tabulate") == "0.9"


def test_the_document(python: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["guard", "--json", "pip", "install", "xformers"]) == 3
    document = json.loads(capfd.readouterr().out)
    assert (document["command"], document["exit"]) == ("guard", 3)
    assert [finding["code"] for finding in document["findings"]] == ["guard.replaced"]
    data = document["data"]
    assert data["verdict"] == "refused"
    assert {change["name"]: change["new"] for change in data["plan"]["changes"]} == {
        "torch": "2.9.1",
        "xformers": "0.0.33",
    }
    assert "'xformers 0.0.33' requires 'torch==2.9.1'" in data["reasons"][0]["why"]


def test_uv_is_asked_who_requires_what(python: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["guard", "uv", "pip", "install", "deep"]) == 3
    said = capfd.readouterr().err
    assert "triton: " in said
    assert "kernels==1.0 depends on triton>=3.5" in said or "kernels depend on triton>=3.5" in said


def test_the_manifest_in_force_says_what_is_protected(
    python: Path, world: World, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["snapshot", "-o", str(tmp_path / "m.yaml"), "--protect", "filelock"]) == 0
    capfd.readouterr()
    assert main(["guard", "pip", "install", "-U", "filelock"]) == 3
    assert "filelock: '3.0' would be replaced by '3.1'" in capfd.readouterr().err
    pip(python, "install", "--no-index", "-f", str(world.index), "--no-deps", "torch==2.11.0")
    assert main(["guard", "--plan", "pip", "install", "tabulate"]) == 0
    assert f"torch: '{TORCH}' is lost already: '2.11.0' is installed" in capfd.readouterr().err


def test_where_only_the_vendors_metadata_is_in_the_way_the_rest_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """torch requires another triton than the one the vendor ships: every resolver "repairs" it."""
    world = make_world(tmp_path / "world", torch_requires=["triton==3.6.0"])
    for name, value in world.env().items():
        monkeypatch.setenv(name, value)
    python = world.target / "bin" / "python"
    assert main(["guard", "--python", str(python), "pip", "install", "peft"]) == 0
    said = capfd.readouterr().err
    assert "installing with --no-deps in place of what was typed: accelerate===1.0" in said
    assert "requires 'triton==3.6.0'" in said
    assert version_of(python, "peft") == "0.1"
    assert version_of(python, "accelerate") == "1.0"
    assert version_of(python, "triton") == TRITON
    assert main(["guard", "--python", str(python), "pip", "install", "torch"]) == 0
    assert "nothing: all of it is there" in capfd.readouterr().err


def test_a_wheel_of_the_same_bytes_may_be_installed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    world = make_world(tmp_path / "world")
    for name, value in world.env().items():
        monkeypatch.setenv(name, value)
    python = world.target / "bin" / "python"
    lock(python, world.vendor)
    (wheel,) = world.vendor.glob("torch-*.whl")
    manifest = str(world.vendor / "envlock.yaml")
    words = ["guard", "--python", str(python), "--manifest", manifest, "--plan"]
    assert main([*words, "uv", "pip", "install", "--no-deps", str(wheel)]) == 0
    assert main([*words, "pip", "install", "--force-reinstall", "--no-deps", str(wheel)]) == 0
    with wheel.open("ab") as file:
        file.write(b"another byte")
    capfd.readouterr()
    assert main([*words, "pip", "install", "--force-reinstall", "--no-deps", str(wheel)]) == 3
    assert "would be installed again from other bytes" in capfd.readouterr().err


@pytest.fixture
def faithless(tmp_path: Path, python: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A uv on PATH that ends well and breaks torch, whatever it was asked."""
    folder = tmp_path / "bin"
    folder.mkdir()
    site = next((python.parents[1] / "lib").iterdir()) / "site-packages"
    script = folder / "uv"
    script.write_text(f"#!/bin/sh\necho changed > '{site}/torch.py'\ntouch '{site}/triton.py'\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return site / "torch.py"


def test_what_changed_all_the_same_is_put_back_from_kept_wheels(
    faithless: Path, python: Path, world: World, tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    healthy = faithless.read_bytes()
    wheels = tmp_path / "W"
    wheels.mkdir()
    for wheel in (*world.vendor.glob("*.whl"), world.index / "filelock-3.0-py3-none-any.whl"):
        (wheels / wheel.name).write_bytes(wheel.read_bytes())
    lock(python, wheels)
    assert main(["restore", "--wheelhouse", str(wheels)]) == 0
    capfd.readouterr()
    assert main(["guard", "uv", "pip", "install", "tabulate"]) == 3
    said = capfd.readouterr().err
    assert "torch: 0 files are gone and 1 have other bytes" in said
    assert "envlock: put back from kept wheels: torch" in said
    assert "triton" not in said
    assert faithless.read_bytes() == healthy


def test_what_cannot_be_put_back_is_7(faithless: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["guard", "uv", "pip", "install", "tabulate"]) == 7
    assert "envlock: not put back: torch: " in capfd.readouterr().err


def _without_network(python: Path, *words: str, state: Path) -> tuple[Any, float]:
    if subprocess.run(["unshare", "-rn", "true"], capture_output=True).returncode:
        pytest.skip("network namespaces are not permitted here")
    command = ["unshare", "-rn", sys.executable, "-m", "envlock", "guard", "--python", str(python)]
    started = time.monotonic()
    env = clean_env(XDG_STATE_HOME=str(state))
    done = subprocess.run([*command, *words], env=env, capture_output=True, text=True, timeout=60)
    return done, time.monotonic() - started


@pytest.mark.parametrize("tool", ["pip", "uv pip"])
def test_without_a_network_a_refusal_comes_at_once(tool: str, world: World, tmp_path: Path) -> None:
    python = world.copy(tmp_path / "target")
    words = [*tool.split(), "install", "-U", "torch"]
    done, seconds = _without_network(python, *words, state=tmp_path)
    assert done.returncode == 3, done.stderr
    assert "[guard.asked-upgrade]" in done.stderr
    assert seconds < 5


def test_without_a_network_what_cannot_hurt_is_allowed(world: World, tmp_path: Path) -> None:
    python = world.copy(tmp_path / "target")
    done, seconds = _without_network(python, "--plan", "pip", "install", "peft", state=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "constraints keep the 3 protected builds" in done.stderr
    assert seconds < 5


@pytest.mark.parametrize("tool", ["pip", "uv pip"])
def test_an_index_that_accepts_and_never_answers_is_not_waited_for(
    tool: str, python: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.delenv("UV_CONFIG_FILE")
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        index = f"http://127.0.0.1:{silent.getsockname()[1]}/simple"
        started = time.monotonic()
        assert main(["guard", *tool.split(), "install", "-i", index, "-U", "torch"]) == 3
        assert time.monotonic() - started < 5
    assert "[guard.asked-upgrade]" in capfd.readouterr().err


@pytest.mark.parametrize("tool", ["pip", "uv pip"])
def test_an_index_that_is_turned_off_keeps_nobody_from_asking(
    tool: str, world: World, python: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """A folder of wheels on a card: the mirror in its settings answers nobody, and need not."""
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "http://127.0.0.1:1/simple")
    monkeypatch.setenv("UV_INDEX", "http://127.0.0.1:1/simple")
    monkeypatch.delenv("UV_CONFIG_FILE")
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    from_folder = ["--no-index", "--find-links", str(world.index)]
    assert main(["guard", "--plan", *tool.split(), "install", *from_folder, "xformers"]) == 3
    assert "would be replaced by '2.9.1'" in capfd.readouterr().err
    assert main(["guard", "--plan", *tool.split(), "install", *from_folder, "peft"]) == 0
    assert "peft: none -> 0.1" in capfd.readouterr().out
