"""Devices as the runtime and the kernel tell of them: rocminfo's agents, the driver's nodes. Pure.

The kernel's nodes (``/sys/class/kfd``) and the buses (``/sys/bus/pci``) are read without asking the
driver anything: they are there when every tool hangs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from envlock.model.facts import Device

_BUS = re.compile(r"([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\.(\d)")
_AGENT = re.compile(r"\s*Agent \d+\s*\Z")
_FIRST = re.compile(r"[0-9]{1,18}")  # more of them are no figure of anything
_WHOLE = re.compile(r"[0-9]{1,18}\Z")
_ISA = re.compile(r"amdgcn-amd-amdhsa--(gfx\w+)((?::\w+[+-])*)\Z")
_SPEED = re.compile(r"\d+(?:\.\d+)? GT/s")
# HSA's own words for a device, and a vendor's
_KINDS = frozenset({"HCU", "DCU", "GPU"})
# kinds of links between nodes (HSA_IOLINKTYPE of the kernel's kfd_topology.h)
_XGMI = "11"


def bus_address(text: object) -> str:
    """``0000:09:00.0`` however it is written; empty when there is none.

    >>> bus_address("00000000:9B:00.0")
    '0000:9b:00.0'
    """
    found = _BUS.search(str(text))
    if found is None:
        return ""
    domain, bus, device, function = found.groups()
    return f"{int(domain, 16):04x}:{bus}:{device}.{function}".lower()


def from_location(location: int, domain: int = 0) -> str:
    """The address of rocminfo's BDFID and the kernel's ``location_id``: 2304 is 0x0900."""
    bus, device = location >> 8 & 0xFF, location >> 3 & 0x1F
    return f"{domain or location >> 16:04x}:{bus:02x}:{device:02x}.{location & 7}"


def _first(text: str) -> int:
    found = _FIRST.search(text)
    return int(found.group()) if found else 0


def agents(text: str) -> tuple[Device, ...]:
    """The devices of rocminfo's answer, in its order; processors are agents too and left out."""
    lines: list[list[tuple[str, str]]] = []
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if _AGENT.match(line):
            lines.append([])
        elif colon and lines:
            lines[-1].append((key.strip(), value.strip()))
    return tuple(_agent(pairs) for pairs in lines if dict(pairs).get("Device Type") in _KINDS)


def _agent(pairs: Sequence[tuple[str, str]]) -> Device:
    said: dict[str, str] = {}
    for key, value in pairs:
        said.setdefault(key, value)  # pools and instruction sets have names too: the first counts
    sizes = [_first(value) for key, value in pairs if key == "Size" and value.endswith("KB")]
    isa = next((found for _, value in pairs if (found := _ISA.match(value))), None)
    location = said.get("BDFID", "")
    return Device(
        name=said.get("Marketing Name", ""),
        memory_mib=max(sizes, default=0) >> 10,
        compute_units=_first(said.get("Compute Unit", "")),
        architecture=said.get("Name", "").partition(":")[0],
        features=isa[2].lstrip(":") if isa else "",
        wavefront=_first(said.get("Wavefront Size", "")),
        clock_mhz=_first(said.get("Max Clock Freq. (MHz)", "")),
        bus=from_location(int(location)) if _WHOLE.match(location) else "",
    )


def properties(text: str) -> dict[str, int]:
    """Lines of ``name number``, as the kernel writes them."""
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and _WHOLE.match(pair[1])}


def architecture(version: int) -> str:
    """Of the kernel's ``gfx_target_version``: 90306 is ``gfx936``, 90010 ``gfx90a``."""
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}" if version else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node of the driver's topology: a device, or a processor with the memory near it.

    Attributes:
        number: of the node.
        text: of its ``properties``.
        banks: texts of its memory's.
        links: texts of its links'.
    """

    number: int
    text: str
    banks: tuple[str, ...] = ()
    links: tuple[str, ...] = ()

    @property
    def vendor(self) -> str:
        """Four hexadecimal digits, as on the bus; empty where nobody says."""
        said = properties(self.text).get("vendor_id", 0)
        return f"{said:04x}" if said else ""

    @property
    def device(self) -> Device | None:
        """None for a processor, and for a device that this process may not look at."""
        said = properties(self.text)
        simds = said.get("simd_count", 0)
        if not simds:
            return None
        sizes = [properties(bank).get("size_in_bytes", 0) for bank in self.banks]
        return Device(
            memory_mib=max(sizes, default=0) >> 20,
            compute_units=simds // (said.get("simd_per_cu") or 1),
            architecture=architecture(said.get("gfx_target_version", 0)),
            wavefront=said.get("wave_front_size", 0),
            clock_mhz=said.get("max_engine_clk_fcompute", 0),
            bus=from_location(said.get("location_id", 0), said.get("domain", 0)),
        )


def topology(nodes: Sequence[Node]) -> str:
    """How the devices of a topology are linked to each other: all by ``xgmi``, some, or by ``pcie``
    alone; empty for fewer than two."""
    cards = {node.number for node in nodes if node.device}
    if len(cards) < 2:
        return ""
    linked = {pair for node in nodes if node.number in cards for pair in _direct(node, cards)}
    if not linked:
        return "pcie"
    return "xgmi" if len(linked) == len(cards) * (len(cards) - 1) else "xgmi, some by pcie"


def _direct(node: Node, cards: set[int]) -> Iterator[tuple[int, int]]:
    for text in node.links:
        said = dict(line.split()[:2] for line in text.splitlines() if len(line.split()) > 1)
        other = said.get("node_to", "")
        if said.get("type") == _XGMI and _WHOLE.match(other) and int(other) in cards:
            yield node.number, int(other)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A device on the bus: the texts of its files, without their line ends.

    Attributes:
        bus: its address.
        driver: kernel module that has it; empty where none has.
        files: name to text: ``vendor``, ``class``, ``numa_node``, ``max_link_speed`` and so on.
    """

    bus: str
    driver: str = ""
    files: Mapping[str, str]

    @property
    def vendor(self) -> str:
        """Four hexadecimal digits."""
        return self.files.get("vendor", "").removeprefix("0x")

    @property
    def computes(self) -> bool:
        """By its class: a display controller, or a processing accelerator."""
        return self.files.get("class", "").removeprefix("0x")[:2] in ("03", "12")

    @property
    def numa(self) -> int | None:
        said = self.files.get("numa_node", "")
        return int(said) if _WHOLE.match(said) else None  # -1: nobody knows

    @property
    def lanes(self) -> tuple[int, int]:
        """In use, and possible; 0 where nobody says."""
        return tuple(  # type: ignore[return-value]
            _first(self.files.get(f"{which}_link_width", "")) for which in ("current", "max")
        )

    def speed(self, which: str = "max") -> str:
        """``32.0 GT/s``, at most or ``current``; empty where nobody says."""
        found = _SPEED.match(self.files.get(f"{which}_link_speed", ""))
        return found.group() if found else ""

    @property
    def link(self) -> str:
        """``32.0 GT/s x16``: the speed that both ends can have and the lanes in use."""
        lanes = self.lanes[0]
        return " ".join(filter(None, (self.speed(), f"x{lanes}" if lanes else "")))

    @property
    def device(self) -> Device:
        return Device(bus=self.bus, link=self.link, numa=self.numa, driver=self.driver)
