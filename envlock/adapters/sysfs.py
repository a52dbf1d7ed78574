"""Devices as the kernel writes them down: nothing here asks a driver, so nothing here can hang."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path

from envlock.adapters.machine import under
from envlock.model.agents import Node, Slot
from envlock.model.hardware import DeviceNodes
from envlock.model.profile import Profile
from envlock.model.runtime import Runtime

_NODES = "/sys/class/kfd/kfd/topology/nodes"
_BUS = "/sys/bus/pci/devices"
_SLOT = (
    "vendor", "class", "numa_node",
    "current_link_speed", "max_link_speed", "current_link_width", "max_link_width",
)  # fmt: skip


def _text(*parts: str) -> str:
    try:
        return Path(*parts).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _numbered(folder: str) -> list[str]:
    try:
        return sorted((name for name in os.listdir(folder) if name.isdecimal()), key=int)
    except OSError:
        return []


def read_nodes(below: str = "/") -> tuple[Node, ...]:
    """The nodes of the driver's topology; of a node that this process may not look at, the text is
    empty."""
    top = under(below, _NODES)
    return tuple(
        Node(
            number=int(name),
            text=_text(top, name, "properties"),
            banks=tuple(_properties(os.path.join(top, name, "mem_banks"))),
            links=tuple(_properties(os.path.join(top, name, "io_links"))),
        )
        for name in _numbered(top)
    )


def _properties(folder: str) -> Iterator[str]:
    for name in _numbered(folder):
        yield _text(folder, name, "properties")


def read_slots(runtime: Runtime, below: str = "/") -> tuple[Slot, ...]:
    """The vendor's devices on the bus that compute, by their address.

    Of a maker of processors the bus is full of bridges: what counts has the class of a device that
    computes, or the vendor's driver.
    """
    top = under(below, _BUS)
    try:
        names = sorted(os.listdir(top)) if runtime.vendors else []
    except OSError:
        return ()
    found = (_slot(top, name) for name in names if _vendor(top, name) in runtime.vendors)
    return tuple(slot for slot in found if slot.computes or slot.driver in runtime.modules)


def _vendor(top: str, name: str) -> str:
    return _text(top, name, "vendor").strip().removeprefix("0x")


def _slot(top: str, name: str) -> Slot:
    driver = os.path.join(top, name, "driver")
    return Slot(
        bus=name,
        driver=os.path.basename(os.readlink(driver)) if os.path.islink(driver) else "",
        files={key: _text(top, name, key).strip() for key in _SLOT},
    )


def module_version(runtime: Runtime, below: str = "/") -> str:
    """What the driver's module says of its version; empty where it is not loaded."""
    said = (_text(under(below, f"/sys/module/{name}/version")) for name in runtime.modules)
    return next((text.strip() for text in said if text.strip()), "")


def device_nodes(profile: Profile, below: str = "/") -> DeviceNodes:
    """Which of the files that programs open to reach a device are not there, or not open to this
    user."""
    missing, closed = [], []
    for pattern in profile.runtime.nodes:  # "/dev/nvidiactl|/dev/dxg": one of them will do
        either = [under(below, one) for one in pattern.split("|")]
        found = [path for one in either for path in sorted(glob.glob(one))]
        if not found:
            missing.append(pattern.split("|")[0])
        elif not any(os.access(path, os.R_OK | os.W_OK) for path in found):
            closed.append(pattern.split("|")[0])
    return DeviceNodes(missing=tuple(missing), closed=tuple(closed))
