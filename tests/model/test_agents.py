"""Devices as the runtime and the kernel tell of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.model.agents import (
    Node,
    Slot,
    agents,
    architecture,
    bus_address,
    from_location,
    properties,
    topology,
)
from envlock.model.facts import Device

# as a tool of the vendor's own keeps it: HCU, and the address as one number
BW = """\
Agent 1
  Name:                    Hygon C86 Processor
  Device Type:             CPU
Agent 9
  Name:                    gfx936
  Uuid:                    GPU-a
  Marketing Name:          BW
  BDFID:                   2304
  Device Type:             HCU
  Pool Info:
    Pool 1
      Segment:                 GLOBAL; FLAGS: COARSE GRAINED
      Size:                    67092480(0x3ffc000) KB
  ISA Info:
"""


def test_an_agent() -> None:
    [found] = agents(BW)
    assert found == Device(name="BW", memory_mib=65520, architecture="gfx936", bus="0000:09:00.0")


def test_the_rest_of_an_agent() -> None:
    more = BW + (
        "    ISA 1\n      Name:                    amdgcn-amd-amdhsa--gfx936:sramecc+:xnack-\n"
    )
    more = more.replace("  BDFID", "  Wavefront Size:          64(0x40)\n  BDFID")
    more = more.replace("  BDFID", "  Max Clock Freq. (MHz):   1500\n  BDFID")
    more = more.replace("  BDFID", "  Compute Unit:            80\n  BDFID")
    [found] = agents(f"hygon module is loaded\n{more}")
    assert (found.compute_units, found.wavefront, found.clock_mhz) == (80, 64, 1500)
    assert found.features == "sramecc+:xnack-"


@pytest.mark.parametrize("kind", ["GPU", "HCU", "DCU"])
def test_every_vendors_word_for_it(kind: str) -> None:
    assert len(agents(BW.replace("HCU", kind))) == 1


@pytest.mark.parametrize("text", ["", "ROCk module is NOT loaded\n", "Agent 1\nAgent 2\n", ":\n"])
def test_no_agents(text: str) -> None:
    assert agents(text) == ()


@given(st.text(max_size=200))
def test_whatever_it_says(text: str) -> None:
    agents(f"Agent 1\n  Device Type: GPU\n{text}")
    properties(text)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("0000:09:00.0 --> SN: 01-000206-07SCC2 --> OAM ID: 1", "0000:09:00.0"),
        ("00000000:9B:00.0", "0000:9b:00.0"),
        ("0001:B3:00.1", "0001:b3:00.1"),
        ("N/A", ""),
        (None, ""),
    ],
)
def test_addresses(text: object, address: str) -> None:
    assert bus_address(text) == address


@given(st.integers(0, 0xFFFF), st.integers(0, 0xFF), st.integers(0, 0x1F), st.integers(0, 7))
def test_an_address_and_its_number(domain: int, bus: int, device: int, function: int) -> None:
    shown = from_location(bus << 8 | device << 3 | function, domain)
    assert shown == bus_address(shown)
    assert shown == f"{domain:04x}:{bus:02x}:{device:02x}.{function}"
    assert from_location(domain << 16 | bus << 8 | device << 3 | function) == shown


@pytest.mark.parametrize(
    ("version", "name"),
    [(90306, "gfx936"), (90010, "gfx90a"), (90402, "gfx942"), (90006, "gfx906"),
     (110001, "gfx1101"), (120000, "gfx1200"), (0, "")],
)  # fmt: skip
def test_architectures(version: int, name: str) -> None:
    assert architecture(version) == name


def _node(number: int, *links: tuple[str, int], simds: int = 320) -> Node:
    return Node(
        number=number,
        text=f"simd_count {simds}\nsimd_per_cu 4\n",
        links=tuple(f"type {kind}\nnode_to {other}\n" for kind, other in links),
    )


def test_a_node_of_the_kernel() -> None:
    text = "simd_count 320\nsimd_per_cu 4\nwave_front_size 64\nlocation_id 21760\ndomain 0\n"
    node = Node(number=1, text=text, banks=("heap_type 1\nsize_in_bytes 68702699520\n",))
    assert node.device == Device(
        memory_mib=65520, compute_units=80, wavefront=64, bus="0000:55:00.0"
    )
    assert Node(number=0, text="cpu_cores_count 64\nsimd_count 0\n").device is None
    assert Node(number=0, text="").device is None  # of another container


def test_topologies() -> None:
    host = _node(0, simds=0)
    xgmi, pcie = "11", "2"
    assert topology([host, _node(1, (pcie, 0))]) == ""
    assert topology([host, _node(1, (pcie, 0)), _node(2, (pcie, 0))]) == "pcie"
    both = [_node(1, (xgmi, 2)), _node(2, (xgmi, 1))]
    assert topology([host, *both]) == "xgmi"
    assert topology([host, *both, _node(3)]) == "xgmi, some by pcie"
    assert topology([host, _node(1, (xgmi, 0)), _node(2)]) == "pcie"  # to the host, not to another


def _slot(**files: str) -> Slot:
    return Slot(bus="0000:55:00.0", driver="hycu", files=files)


def test_a_place_on_the_bus() -> None:
    slot = _slot(
        vendor="0x1d94", numa_node="2", max_link_speed="32.0 GT/s PCIe",
        current_link_speed="2.5 GT/s PCIe", current_link_width="16", max_link_width="16",
        **{"class": "0x038000"},
    )  # fmt: skip
    assert slot.device == Device(bus="0000:55:00.0", link="32.0 GT/s x16", numa=2, driver="hycu")
    assert (slot.vendor, slot.computes, slot.speed("current")) == ("1d94", True, "2.5 GT/s")
    bare = _slot(numa_node="-1", max_link_speed="Unknown", current_link_width="0")
    assert (bare.link, bare.numa, bare.computes, bare.lanes) == ("", None, False, (0, 0))
