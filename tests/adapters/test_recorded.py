"""Recorded machines: the right facts and findings for each, within the time."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from envlock.adapters.installed import read_installed
from envlock.adapters.profiles import bundled_profiles, load_profile, present_profiles
from envlock.adapters.stack import (
    describe,
    read_accelerator,
    read_hardware,
    read_stack,
)
from envlock.model.facts import Device
from envlock.model.hardware import Hardware
from envlock.model.manifest import Manifest, dump, load
from envlock.model.profile import choose_profile
from envlock.model.stack import StackFacts
from envlock.snapshot import Request, take
from tests.support.machines import NAMES, Recorded, build

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the tools are shell scripts")

#: A tool may be slow on a busy machine; one that hangs takes all of its time.
PATIENT, HANGING = 30.0, 3.0


@pytest.fixture(params=NAMES)
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Recorded:
    return build(request.param, tmp_path)


def seconds(machine: Recorded) -> float:
    return HANGING if "tool.hangs" in machine.expect["findings"] else PATIENT


def look(machine: Recorded) -> tuple[Hardware, StackFacts]:
    profile = load_profile(machine.expect["profile"])
    return read_accelerator(profile, machine.env, machine.root, seconds(machine))


def test_there_are_enough() -> None:
    assert len(NAMES) >= 12


def test_the_profile_is_found_without_being_named(machine: Recorded) -> None:
    installed = {dist.name: dist.version for dist in read_installed(machine.target().layout)}
    present = present_profiles(machine.env, machine.root)
    assert choose_profile(bundled_profiles(), installed, present) == machine.expect["profile"]


def test_facts(machine: Recorded) -> None:
    expect = machine.expect
    hardware, stack = look(machine)
    wanted = [Device(**values) for values in expect["devices"]]
    assert list(hardware.devices[: len(wanted)]) == wanted
    assert len(hardware.devices) == expect.get("count", len(wanted))
    assert (hardware.driver, hardware.tool) == (expect["driver"], expect["tool"])
    assert stack.driver == expect["driver"]
    assert (stack.hip, stack.compiler) == (expect.get("hip", ""), expect.get("compiler", ""))
    found = {"root": stack.root, "release": stack.release, "target": stack.target}
    assert found == expect["stack"]
    assert (stack.active, stack.line) == (expect["active"], expect.get("type", ""))
    shown = dict((*hardware.facts(), *stack.facts()))
    assert shown.get("driver", "").startswith(expect["driver"])
    assert all(shown.values())
    if "links" in expect:
        assert hardware.topology == expect["links"]


def test_findings(machine: Recorded) -> None:
    hardware, stack = look(machine)
    found = (*hardware.findings(), *stack.findings())
    assert {one.code: one.level for one in found} == machine.expect["findings"]
    for one in found:
        assert one.hint or one.level == "info"
        assert machine.root not in f"{one.what}{one.why}{one.hint}"  # as the machine itself says it
        if machine.expect.get("type") and one.code.startswith("stack.not-"):
            assert one.hint == f"type: {machine.expect['type']}"


def snap(machine: Recorded) -> tuple[Manifest, list[str]]:
    profile = load_profile(machine.expect["profile"])
    described, stack, hung = describe(profile, machine.env, machine.root)
    asked = Request(
        profile=profile,
        machine=described,
        stack=stack,
        noticed=hung,
        created="2026-11-30T08:00:00Z",
        tool="tests",
    )
    manifest, findings = take(machine.target(), asked)
    assert load(dump(manifest)) == manifest
    return manifest, [f"{one.code} {one.subject}" for one in findings]


def test_snapshot(machine: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envlock.adapters.stack._PATIENCE", seconds(machine))
    expect = machine.expect
    manifest, said = snap(machine)
    assert manifest.profile == expect["profile"]
    signals = {dist.name: list(dist.vendor) for dist in manifest.distributions}
    assert signals == {**signals, **expect["signals"]}
    assert [dist.name for dist in manifest.protected] == expect["protected"]
    assert len(manifest.machine.devices) == expect.get("count", len(expect["devices"]))
    found = manifest.machine
    for name in ("os", "kernel", "cpu", "driver", "tool"):
        assert getattr(found, name) == expect.get(name, getattr(found, name))
    kept = manifest.stack
    assert kept.tag == expect.get("tag", kept.tag)
    assert (kept.root, kept.release) == (expect["stack"]["root"], expect["stack"]["release"])
    assert (found.hip, found.compiler) == (expect.get("hip", ""), expect.get("compiler", ""))
    modules = {dist.name: dict(dist.module) for dist in manifest.distributions}
    for name, values in expect.get("modules", {}).items():
        assert modules[name] == {**modules[name], **values}
    hangs = [one for one in said if one.startswith("tool.hangs ")]
    assert bool(hangs) is ("tool.hangs" in expect["findings"])
    for name in expect.get("looks_public", ()):
        assert f"stack.looks-public {name}" in said
    for name in expect.get("shadowed", ()):
        assert f"path.shadowed {name}" in said


def test_a_manifest_says_nothing_that_names_one_machine(tmp_path: Path) -> None:
    """Serial numbers stand beside what is wanted; they stay there."""
    for name in ("k100-dtk2504", "bw-8-cards", "bw-dtk2604-container"):
        machine = build(name, tmp_path)
        text = dump(snap(machine)[0])
        for secret in ("TRCW280005090201", "7137d9b2a08a4841", "01-000206-07SCC2", "7137920824841"):
            assert secret not in text
        assert machine.root not in text


def test_two_looks_are_the_same(machine: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envlock.adapters.stack._PATIENCE", seconds(machine))
    profile = load_profile(machine.expect["profile"])
    hiding = {**machine.env, "HIP_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": ""}
    one, other = (describe(profile, env, machine.root) for env in (machine.env, hiding))
    assert one[:2] == other[:2]  # how long a tool was waited for may differ


@pytest.mark.parametrize("script", ["sleep 600", "trap '' TERM; sleep 600"])
def test_whatever_hangs_there_is_an_answer(script: str, tmp_path: Path) -> None:
    machine = build("hanging-tool", tmp_path)
    machine.path("/opt/dtk/env.sh").write_text(f"{script}\n")
    hardware, stack = read_accelerator(load_profile("dtk"), machine.env, machine.root, HANGING)
    assert [one.architecture for one in hardware.devices] == ["gfx936"]
    codes = {one.code for one in (*hardware.findings(), *stack.findings())}
    assert codes >= {"tool.hangs", "stack.no-script"}
    assert stack.compiler == "dcc 25.10.0-0, clang 17.0.0"  # there was time for who answers


def test_a_module_that_is_loaded(tmp_path: Path) -> None:
    """It sets the variables, and there is no script to source."""
    machine = build("login-node", tmp_path)
    root = "/public/software/compiler/rocm/dtk-24.04"
    env = {
        **machine.env,
        "ROCM_PATH": root,
        "LOADEDMODULES": "compiler/gcc/12.2:compiler/dtk/24.04",
    }
    _, stack = read_accelerator(load_profile("dtk"), env, machine.root, PATIENT)
    assert (stack.root, stack.release, stack.active, stack.line) == (root, "24.04", True, "")
    assert dict(stack.facts())["modules"] == "compiler/dtk/24.04"
    assert {one.code for one in stack.findings()} == {"stack.no-companion"}


def test_a_module_system_on_a_disk_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = threading.Event()

    def walk(top: str) -> Iterator[tuple[str, list[str], list[str]]]:
        yield top, [], ["dtk-25.04"]
        gone.wait()

    machine = build("login-node", tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr("envlock.adapters.stack.os.walk", walk)
        _, stack = look(machine)
    gone.set()
    assert stack.line == "module load dtk-25.04"


@pytest.mark.parametrize("variable", ["ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"])
def test_what_is_hidden_is_here_all_the_same(variable: str, tmp_path: Path) -> None:
    machine = build("bw-dtk2604-container", tmp_path)
    tool = machine.path("/opt/dtk/bin/rocminfo")
    says = tool.read_text().partition("\n")[2]
    tool.write_text(f'#!/bin/sh\n[ -z "${{{variable}+x}}" ] || exit 0\n{says}')
    machine = Recorded(machine.name, machine.root, {**machine.env, variable: ""}, machine.document)
    [device] = look(machine)[0].devices
    assert device.features == "sramecc+:xnack-"  # only rocminfo tells that


def test_one_half_of_it(tmp_path: Path) -> None:
    machine = build("bw-8-cards", tmp_path)
    hardware, stack = look(machine)
    profile = load_profile("dtk")
    assert read_hardware(profile, machine.env, machine.root, PATIENT) == hardware
    assert read_stack(profile, machine.env, machine.root, PATIENT) == stack


def test_devices_of_two_vendors(tmp_path: Path) -> None:
    """A processor of AMD's has a small device of its own inside."""
    machine = build("rocm-box", tmp_path)
    for name in ("cuda", "dtk"):
        found, _ = read_accelerator(load_profile(name), {"PATH": ""}, machine.root, PATIENT)
        assert found.devices == ()
    found, _ = read_accelerator(load_profile("rocm"), {"PATH": ""}, machine.root, PATIENT)
    assert [one.architecture for one in found.devices] == ["gfx942"]


def test_another_vendors_stack_behind_the_same_variable(tmp_path: Path) -> None:
    machine = build("rocm-box", tmp_path)
    assert present_profiles(machine.env, machine.root) == {"rocm"}
    moved = {**machine.env, "ROCM_PATH": "/opt/mine"}
    machine.path("/opt/mine").symlink_to("rocm-6.4.1")
    assert present_profiles(moved, machine.root) == {"rocm"}
    machine.path("/opt/mine/.hyhal").mkdir()
    assert "dtk" in present_profiles(moved, machine.root)


def _without(machine: Recorded, place: str) -> None:
    for path in sorted(machine.path(place).rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"/dev": None}, "device.no-node"),
        ({"/opt/hyhal/bin/hy-smi": "#!/bin/sh\nexit 3\n"}, ""),
        ({"/opt/dtk/bin/rocminfo": "#!/bin/sh\necho no\nexit 1\n"}, "tool.failed"),
        ({"/opt/dtk/env.sh": None}, "stack.no-script"),
        ({"/opt/dtk/env.sh": "exit 3\n"}, "stack.no-script"),
    ],
)
def test_what_is_gone_is_told(change: dict[str, Any], code: str, tmp_path: Path) -> None:
    machine = build("bw-dtk2604-container", tmp_path)
    for place, text in change.items():
        if text is None and machine.path(place).is_dir():
            _without(machine, place)
        elif text is None:
            machine.path(place).unlink()
        else:
            machine.path(place).write_text(text)
    hardware, stack = look(machine)
    assert len(hardware.devices) == 1  # somebody else tells of it
    codes = [one.code for one in (*hardware.findings(), *stack.findings())]
    assert code in codes if code else "device.none" not in codes


def test_fewer_devices_than_the_bus_has(tmp_path: Path) -> None:
    """The container was given none, and the kernel shows the host's all the same."""
    machine = build("bw-8-cards", tmp_path)
    machine.path("/opt/hyhal/bin/hy-smi").write_text("#!/bin/sh\nexit 1\n")
    _without(machine, "/dev")
    hardware, _ = look(machine)
    assert (hardware.devices, hardware.topology) == ((), "")
    [finding] = [one for one in hardware.findings() if one.code == "device.unseen"]
    assert finding.what.startswith("8 on the bus")
    assert finding.level == "error"
