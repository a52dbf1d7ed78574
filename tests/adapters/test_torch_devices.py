"""Asking the target's torch about its devices; every torch here is a module of a few lines."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from envlock.adapters.interpreter import Named, read_target
from envlock.adapters.profiles import load_profile
from envlock.adapters.torch_devices import ask_torch
from envlock.model.facts import Device, Finding, Machine
from envlock.model.hardware import with_torch

TORCH = """
import contextlib, os
print("noise of a native library")
class _One:
    name, multi_processor_count, warp_size = {name!r}, {units}, {lanes}
    major, minor, gcnArchName = 9, 0, {arch!r}
    total_memory = 65520 * 2**20
    pci_domain_id, pci_bus_id, pci_device_id = 0, 0x55, 0
class cuda:
    device = staticmethod(lambda index: contextlib.nullcontext())
    device_count = staticmethod(lambda: 0 if "HIP_VISIBLE_DEVICES" in os.environ else {count})
    get_device_properties = staticmethod(lambda index: _One)
    @staticmethod
    def is_bf16_supported():
        return {bf16}
"""


def fake(folder: Path, **values: object) -> dict[str, str]:
    """The variables of a shell in which that torch is imported."""
    given = {"name": "BW", "units": 80, "lanes": 64, "arch": "gfx936:sramecc+:xnack-", "count": 1,
             "bf16": True, **values}  # fmt: skip
    return written(folder, TORCH.format(**given))


def written(folder: Path, text: str) -> dict[str, str]:
    (folder / "torch.py").write_text(text)
    return {**os.environ, "PYTHONPATH": str(folder)}


def ask(
    env: dict[str, str], profile: str = "dtk", seconds: float = 60.0
) -> tuple[tuple[Device, ...], tuple[Finding, ...]]:
    target = read_target(Named(sys.executable, "tests"), {**os.environ})
    bare = replace(load_profile(profile), roots=(), env_script="")
    return ask_torch(target, bare, env, seconds)


BW = Device(
    name="BW",
    memory_mib=65520,
    compute_units=80,
    architecture="gfx936",
    features="sramecc+:xnack-",
    wavefront=64,
    bus="0000:55:00.0",
    bf16=True,
)


def test_a_device(tmp_path: Path) -> None:
    assert ask(fake(tmp_path)) == ((BW,), ())


def test_of_another_vendor(tmp_path: Path) -> None:
    env = fake(tmp_path, name="NVIDIA H200", units=132, lanes=32, arch="", bf16=False)
    [found], said = ask(env, "cuda")
    assert (found.architecture, found.features, found.compute_units) == ("sm_90", "", 132)
    assert found.bf16 is False
    assert said == ()


def test_devices_that_are_hidden_in_this_shell(tmp_path: Path) -> None:
    env = fake(tmp_path)
    assert ask({**env, "HIP_VISIBLE_DEVICES": "7"}) == ((BW,), ())


def test_an_older_torch(tmp_path: Path) -> None:
    """It tells no address, and its question about bfloat16 fails."""
    text = TORCH.format(name="BW", units=80, lanes=64, arch="gfx906", count=1, bf16="1 / 0")
    env = written(tmp_path, text.replace("pci_domain_id, pci_bus_id, pci_device_id", "a, b, c"))
    [found], _ = ask(env)
    assert (found.bus, found.bf16) == ("", None)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("raise ImportError('libgalaxyhip.so.5: cannot open')", "ImportError: libgalaxyhip.so.5"),
        ("class cuda:\n    device_count = lambda: 0", "it finds none"),
        ("import os; os._exit(3)", "exit 3"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "exit -9"),
    ],
)
def test_no_answer(text: str, why: str, tmp_path: Path) -> None:
    found, [finding] = ask(written(tmp_path, text))
    assert found == ()
    assert finding.code == "torch.silent"
    assert why in finding.what
    assert finding.hint


def test_a_python_that_is_gone() -> None:
    target = replace(read_target(Named(sys.executable, "tests"), {**os.environ}), executable="/no")
    found, [finding] = ask_torch(target, load_profile("cpu"), {})
    assert (found, finding.code) == ((), "torch.silent")
    assert "cannot be started" in finding.what


def test_an_import_that_hangs_is_not_waited_for(tmp_path: Path) -> None:
    found, [finding] = ask(written(tmp_path, "import time; time.sleep(600)"), seconds=0.5)
    assert found == ()
    assert "within 0 s" in finding.what or "within 1 s" in finding.what


def test_what_the_tools_know_counts_first() -> None:
    known = Device(name="NVIDIA H200", memory_mib=143771, bus=BW.bus, link="32.0 GT/s x16", numa=0)
    machine = with_torch(Machine(os="x", devices=(known,)), (BW,))
    [found] = machine.devices
    assert (found.name, found.memory_mib, found.numa) == ("NVIDIA H200", 143771, 0)
    assert (found.compute_units, found.bf16) == (80, True)
    assert with_torch(machine, ()) == machine
    assert with_torch(Machine(), (BW,)).devices == (BW,)
