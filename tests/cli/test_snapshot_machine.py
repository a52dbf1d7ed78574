"""envlock snapshot on recorded machines, and with a profile of one's own, as people type it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envlock.cli import main
from envlock.model.facts import Device, Machine
from envlock.model.manifest import load
from tests.support.elf_files import shared_object
from tests.support.machines import build
from tests.support.pythons import make_venv
from tests.support.wheels import make_wheel
from tests.support.worlds import World, install, vendor_world

pytestmark = pytest.mark.integration


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = vendor_world(tmp_path)
    monkeypatch.chdir(tmp_path)
    return world


def snapshot(world: World, *words: str) -> Machine:
    assert main(["snapshot", "-o", "lock.yaml", "--python", str(world.python), *words]) == 0
    return load(Path("lock.yaml").read_text(encoding="utf-8")).machine


def test_the_machine_is_in_the_manifest(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build("bw-dtk2604-container", tmp_path).enter(monkeypatch)
    found = snapshot(world)
    assert (found.os, found.cpu) == ("Ubuntu 22.04.5 LTS", "Hygon C86 Processor")
    assert (found.driver, found.tool) == ("6.3.31-V1.5.0a", "hy-smi 1.24.0 (2026-03-23)")
    assert (found.hip, found.compiler) == ("6.2.0-0", "dcc 25.10.0-0, clang 17.0.0")
    assert [(one.name, one.compute_units, one.bus) for one in found.devices] == [
        ("BW", 80, "0000:55:00.0")
    ]
    assert found.limits["host_memory"] == 527433728 * 1024
    manifest = load(Path("lock.yaml").read_text(encoding="utf-8"))
    assert (manifest.profile, manifest.stack.root) == ("dtk", "/opt/dtk")
    assert manifest.stack.release == "DTK-26.04-DCC2602-0317"
    torch = manifest.find("torch")
    assert torch is not None
    assert torch.module == ()  # it says what its metadata says


def test_another_machine_is_a_change_of_the_machine_alone(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build("bw-dtk2604-container", tmp_path).enter(monkeypatch)
    one = snapshot(world)
    build("bw-8-cards", tmp_path).enter(monkeypatch)
    other = snapshot(world)
    assert len(one.devices) == 1
    assert len(other.devices) == 8
    assert other.topology == "xgmi"


def test_builds_for_a_processor_on_a_machine_with_devices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The vendor's torch was replaced before anything was locked: nothing but the machine tells."""
    replaced = World(python=make_venv(tmp_path / "venv"), wheels=tmp_path)
    install(replaced.python, make_wheel(tmp_path, "torch", "2.13.0+cpu"))
    monkeypatch.chdir(tmp_path)
    build("bw-dtk2604-container", tmp_path).enter(monkeypatch)
    snapshot(replaced)
    said = capsys.readouterr().err
    assert "warning: Hygon DCU (DTK): its devices are here, and no build for them" in said
    assert "[stack.processor-builds]" in said
    snapshot(replaced, "--profile", "dtk", "--force")
    said = capsys.readouterr().err
    assert "[stack.processor-builds]" not in said
    assert "[stack.looks-public]" in said
    build("login-node", tmp_path).enter(monkeypatch)
    snapshot(replaced, "--force")
    assert "[stack.processor-builds]" not in capsys.readouterr().err


def test_torch_is_asked_only_when_somebody_says_so(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    (world.site / "torch/__init__.py").write_text(
        "from types import SimpleNamespace as N\n"
        "one = N(name='X', total_memory=2**30, multi_processor_count=4, major=9, minor=0)\n"
        "cuda = N(device_count=lambda: 1, get_device_properties=lambda i: one)\n"
    )
    assert snapshot(world).devices == ()
    [found] = snapshot(world, "--ask-torch", "--force").devices
    assert found == Device(name="X", memory_mib=1024, compute_units=4, architecture="sm_90")
    (world.site / "torch/__init__.py").write_text("raise ImportError('libgalaxyhip.so.5')\n")
    capsys.readouterr()
    assert snapshot(world, "--ask-torch", "--force").devices == ()
    assert "torch: the target's torch tells of no device: ImportError" in capsys.readouterr().err


def test_a_build_that_is_known_by_its_libraries_is_not_lost(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a manifest, and to guard where there is none."""
    objects: dict[str, str | bytes] = {
        "flash_mla/__init__.py": "",
        "flash_mla/cuda.so": shared_object(["libgalaxyhip.so.5"]),
    }
    plain: dict[str, str | bytes] = {"plain/core.so": shared_object(["libc.so.6"])}
    install(
        world.python,
        make_wheel(tmp_path / "more", "flash_mla", "1.0.0", objects),
        make_wheel(tmp_path / "more", "plain", "1.0.0", plain),
    )
    plan = ["guard", "--python", str(world.python), "--plan", "--", "pip"]
    assert main([*plan, "uninstall", "-y", "flash-mla"]) == 3
    assert "flash-mla" in capsys.readouterr().err
    assert main([*plan, "uninstall", "-y", "plain"]) == 0
    snapshot(world)
    locked = load(Path("lock.yaml").read_text(encoding="utf-8")).find("flash-mla")
    assert locked is not None
    assert (locked.vendor, locked.protected) == (("runtime-library",), True)


MINE = """
name: mine
title: A card of mine
labels: [das]
names: [filelock]
device: cuda
runtime: {kind: hip}
"""


def test_a_profile_of_ones_own(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.yaml").write_text(MINE)
    snapshot(world, "--profile", "mine.yaml")
    manifest = load(Path("lock.yaml").read_text(encoding="utf-8"))
    assert manifest.profile == "mine"
    assert [dist.name for dist in manifest.protected] == ["filelock", "torch"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("names: [filelock]", "names: filelock", "mine.yaml: names: expected a list"),
        ("labels: [das]", "labels: [das, '(']", "mine.yaml: labels[1]: expected a regular"),
        ("kind: hip", "kind: ocl", "mine.yaml: runtime.kind: expected hip | cuda, found 'ocl'"),
        ("names:", "nmaes:", "mine.yaml: nmaes: no such key"),
        ("kind: hip", "kind: hip, nods: []", "mine.yaml: runtime.nods: no such key"),
        ("device: cuda", "device: [", "mine.yaml: line"),
    ],
)
def test_a_profile_with_a_slip(
    old: str, new: str, said: str, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("mine.yaml").write_text(MINE.replace(old, new))
    words = ["snapshot", "--python", str(world.python), "--profile", "mine.yaml", "--json"]
    assert main(words) == 4
    out, err = capsys.readouterr()
    assert f"error: {said}" in err
    assert json.loads(out)["exit"] == 4
