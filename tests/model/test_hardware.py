"""One list of devices out of several, and what is said of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.adapters.profiles import load_profile
from envlock.model.agents import Slot
from envlock.model.facts import Device
from envlock.model.hardware import DeviceNodes, Hardware, Silence, joined, merged, placed
from tests.property.strategies import devices

DTK = load_profile("dtk")
ONE, TWO = Device(bus="0000:09:00.0"), Device(bus="0000:d5:00.0")


@given(devices, devices)
def test_nothing_that_is_known_is_lost(one: Device, other: Device) -> None:
    both = joined(one, other)
    for name in ("name", "memory_mib", "bus"):
        assert getattr(both, name) == (getattr(one, name) or getattr(other, name))
    assert both.numa == (other.numa if one.numa is None else one.numa)
    assert joined(one, Device()) == one
    assert joined(Device(), other) == other


@given(st.permutations([ONE, TWO]), st.permutations([ONE, TWO]))
def test_by_address_whatever_the_order(one: list[Device], other: list[Device]) -> None:
    named = [replace(device, name=device.bus) for device in other]
    found = merged([one, named])
    assert [device.bus for device in found] == [device.bus for device in one]
    assert all(device.name == device.bus for device in found)


def test_by_place_where_there_is_no_address() -> None:
    names = [Device(name="a"), Device(name="b")]
    assert merged([names, [ONE, TWO]]) == (replace(ONE, name="a"), replace(TWO, name="b"))
    assert merged([names, [ONE]]) == tuple(names)  # nobody knows which
    assert merged([[], [ONE]]) == (ONE,)
    assert merged([[ONE], [TWO]]) == (ONE, TWO)
    assert merged([]) == ()


def _slot(bus: str = ONE.bus, now: int = 16) -> Slot:
    files = {
        "current_link_width": str(now), "max_link_width": "16",
        "max_link_speed": "32.0 GT/s PCIe", "numa_node": "0",
    }  # fmt: skip
    return Slot(bus=bus, driver="hycu", files=files)


def test_a_device_without_address_is_the_only_one_on_the_bus() -> None:
    assert placed([Device(name="BW")], [_slot()])[0].bus == ONE.bus
    assert placed([Device(name="BW")], [_slot(), _slot(TWO.bus)]) == (Device(name="BW"),)
    assert placed([TWO], [_slot()]) == (TWO,)  # it has one, and another one
    assert placed([ONE], [_slot()])[0].numa == 0


GONE = DeviceNodes(missing=("/dev/kfd",))


@pytest.mark.parametrize(
    ("values", "codes"),
    [
        ({}, ["device.untold"]),
        ({"nodes": GONE}, ["device.none"]),
        ({"slots": (_slot(),)}, ["device.unseen"]),
        ({"devices": (ONE,)}, []),
        ({"devices": (ONE,), "nodes": GONE}, ["device.no-node"]),
        ({"devices": (ONE,), "nodes": DeviceNodes(closed=("/dev/kfd",))}, ["device.closed"]),
        ({"devices": (ONE,), "slots": (_slot(now=8),)}, ["device.link-narrow"]),
        ({"devices": (TWO,), "slots": (_slot(now=8),)}, []),  # another one's
        ({"devices": (ONE,), "slots": (_slot(now=0),)}, []),
        ({"devices": (replace(ONE, architecture="gfx1030"),)}, ["device.unknown-architecture"]),
        ({"devices": (ONE, TWO), "told": {"a": (ONE, TWO), "b": (ONE,)}}, ["device.counts-differ"]),
        ({"devices": (ONE,), "noise": {"hy-smi": "fallback"}}, ["tool.warned"]),
        ({"devices": (ONE,), "silent": (Silence(program="/x/hy-smi", hung=True),)}, ["tool.hangs"]),
        ({"devices": (ONE,), "silent": (Silence(program="/x/rocminfo"),)}, ["tool.failed"]),
        # another question of the same tool was answered
        (
            {"devices": (ONE,), "told": {"a": (ONE,)}, "silent": (Silence(program="/x/a"),)},
            [],
        ),
    ],
)
def test_findings(values: dict[str, Any], codes: list[str]) -> None:
    found = Hardware(profile=DTK, **values).findings()
    assert [one.code for one in found] == codes


@pytest.mark.parametrize(("size", "differ"), [(65536, False), (65000, False), (49152, True)])
def test_memories_that_are_not_one_devices(size: int, differ: bool) -> None:
    told = {"hy-smi": (replace(ONE, memory_mib=65520),), "kernel": (replace(ONE, memory_mib=size),)}
    codes = [one.code for one in Hardware(profile=DTK, devices=(ONE,), told=told).findings()]
    assert codes == (["device.memory-differs"] if differ else [])


def test_one_tool_of_two_may_be_slow() -> None:
    """All of them are not."""
    silent = (Silence(program="/x/rocminfo", hung=True),)
    told = {"hy-smi": (ONE,)}
    some = Hardware(profile=DTK, devices=(ONE,), told=told, silent=silent)
    none = Hardware(profile=DTK, devices=(ONE,), told={"kernel": (ONE,)}, silent=silent)
    assert [one.level for one in some.findings()] == ["warning"]
    assert [one.level for one in none.findings()] == ["error"]


def test_no_device_is_missed_where_none_is_meant() -> None:
    assert Hardware(profile=load_profile("cpu")).findings() == ()


def test_facts_of_unlike_devices() -> None:
    mixed = (
        Device(name="K100_AI", memory_mib=65520, architecture="gfx928", features="xnack-"),
        Device(name="BW", memory_mib=65520, compute_units=80, numa=0, driver="hycu"),
        Device(architecture="gfx906"),
    )
    facts = dict(Hardware(profile=DTK, devices=mixed, driver="6.3").facts())
    assert facts == {
        "devices": "1 × K100_AI, 1 × BW, 1 × gfx906",
        "device memory": "65520 MiB",
        "compute units": "80",
        "architecture": "gfx928 (xnack-), gfx906",
        "NUMA node": "0",
        "driver": "6.3 (hycu)",
    }
    assert Hardware(profile=DTK).facts() == ()
