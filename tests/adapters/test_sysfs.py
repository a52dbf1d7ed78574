"""Devices in the kernel's own files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from envlock.adapters.profiles import load_profile
from envlock.adapters.sysfs import device_nodes, module_version, read_nodes, read_slots
from envlock.model.hardware import DeviceNodes

DTK = load_profile("dtk")


def put(root: Path, place: str, text: str = "") -> Path:
    path = root / place.lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def slot(root: Path, bus: str, vendor: str, kind: str, driver: str = "") -> None:
    folder = f"/sys/bus/pci/devices/{bus}"
    put(root, f"{folder}/vendor", f"0x{vendor}\n")
    put(root, f"{folder}/class", f"0x{kind}\n")
    if driver:
        put(root, f"/sys/bus/pci/drivers/{driver}/uevent")
        os.symlink(f"../../drivers/{driver}", root / folder.lstrip("/") / "driver")


def test_the_vendor_makes_more_than_devices(tmp_path: Path) -> None:
    """Its processors' bridges are on the bus too; some devices have the class of a bridge."""
    slot(tmp_path, "0000:00:01.0", "1d94", "060400", "pcieport")
    slot(tmp_path, "0000:00:02.0", "1d94", "060000")
    slot(tmp_path, "0000:09:00.0", "1d94", "038000", "hycu")
    slot(tmp_path, "0000:0a:00.0", "1d94", "120000")
    slot(tmp_path, "0000:0b:00.0", "1d94", "068000", "hycu")
    slot(tmp_path, "0000:0c:00.0", "1002", "030000", "amdgpu")
    found = read_slots(DTK.runtime, str(tmp_path))
    assert [(one.bus, one.driver) for one in found] == [
        ("0000:09:00.0", "hycu"),
        ("0000:0a:00.0", ""),
        ("0000:0b:00.0", "hycu"),
    ]
    assert read_slots(load_profile("cpu").runtime, str(tmp_path)) == ()
    assert read_slots(DTK.runtime, str(tmp_path / "none")) == ()


def test_nodes_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    top = "/sys/class/kfd/kfd/topology/nodes"
    for number in (10, 2, 0):
        put(tmp_path, f"{top}/{number}/properties", f"simd_count {number}\n")
    put(tmp_path, f"{top}/2/io_links/0/properties", "type 2\n")
    put(tmp_path, f"{top}/notes", "")
    (tmp_path / top.lstrip("/") / "3").mkdir()  # of another container
    found = read_nodes(str(tmp_path))
    assert [(one.number, one.text, one.links) for one in found] == [
        (0, "simd_count 0\n", ()),
        (2, "simd_count 2\n", ("type 2\n",)),
        (3, "", ()),
        (10, "simd_count 10\n", ()),
    ]
    assert read_nodes(str(tmp_path / "none")) == ()


def test_the_drivers_own_version(tmp_path: Path) -> None:
    assert module_version(DTK.runtime, str(tmp_path)) == ""
    put(tmp_path, "/sys/module/hycu/version", "6.3.31-V1.5.0a\n")
    assert module_version(DTK.runtime, str(tmp_path)) == "6.3.31-V1.5.0a"


def test_device_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = str(tmp_path)
    assert device_nodes(DTK, root).missing == ("/dev/kfd", "/dev/dri/renderD*")
    put(tmp_path, "/dev/kfd")
    put(tmp_path, "/dev/dri/renderD128")
    put(tmp_path, "/dev/dri/renderD129")
    assert device_nodes(DTK, root) == DeviceNodes()
    # root may open everything
    monkeypatch.setattr(os, "access", lambda path, _: "renderD128" not in path)
    assert device_nodes(DTK, root) == DeviceNodes()  # one of them is enough
    monkeypatch.setattr(os, "access", lambda path, _: "renderD" not in path)
    assert device_nodes(DTK, root) == DeviceNodes(closed=("/dev/dri/renderD*",))


def test_one_of_several_nodes_will_do(tmp_path: Path) -> None:
    cuda = load_profile("cuda")
    assert device_nodes(cuda, str(tmp_path)).missing == ("/dev/nvidiactl", "/dev/nvidia[0-9]*")
    put(tmp_path, "/dev/dxg")  # WSL
    assert device_nodes(cuda, str(tmp_path)) == DeviceNodes()
    assert (
        device_nodes(replace(cuda, runtime=load_profile("cpu").runtime), "/none") == DeviceNodes()
    )
