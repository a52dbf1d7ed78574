"""What a vendor's runtime looks like from outside, as data: libraries, device nodes, variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from envlock.model.reading import Node

_NUMBERS = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})*")


def numbers(version: str) -> tuple[int, ...]:
    """The numeric part of a version, which is all that counts of a driver's.

    >>> numbers("6.3.31-V1.5.0a"), numbers("DTK-26.04-rc4")
    ((6, 3, 31), (26, 4))
    """
    found = _NUMBERS.search(version)
    return tuple(map(int, found.group().split("."))) if found else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """The runtime of a vendor.

    Attributes:
        kind: the variable of ``torch/version.py`` that a build for it sets: ``hip``, ``cuda``;
            empty for the processor.
        marks: names that the vendor's own modules define, ``__hcu_version__``.
        libraries: names without version of which one process must have one, ``libamdhip64.so``.
        driver_libraries: come with the driver, so that a machine without a device lacks them.
        nodes: patterns of device nodes that are needed.
        optional_nodes: patterns of device nodes that some machines do not have.
        visible: variables that choose devices, the one that counts first.
        triton: backend, architecture and lanes of a warp that Triton compiles for.
        drivers: release of the stack to the oldest driver for it.
        vendors: PCI ids of the devices' maker, four hexadecimal digits each.
        modules: kernel modules that drive them.
        linked: libraries, without version, that only a build for this runtime needs: what an index
            publishes for everybody does not.
    """

    kind: str = ""
    marks: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    driver_libraries: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    optional_nodes: tuple[str, ...] = ()
    visible: tuple[str, ...] = ()
    triton: tuple[str, ...] = ()
    drivers: Mapping[str, str] = field(default_factory=dict)
    vendors: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()

    def oldest_driver(self, release: str) -> str:
        """The oldest driver for a release, by the longest entry that fits; empty where nobody says.

        >>> Runtime(drivers={"26.04": "6.3.30"}).oldest_driver("DTK-26.04-DCC2602-0317")
        '6.3.30'
        """
        wanted = numbers(release)
        entries = ((numbers(name), oldest) for name, oldest in self.drivers.items())
        fitting = [entry for entry in entries if entry[0] and wanted[: len(entry[0])] == entry[0]]
        return max(fitting)[1] if fitting else ""


def read_runtime(node: Node) -> Runtime:
    """From the ``runtime`` of a profile; without one everything is empty.

    Raises:
        UnusableInput: a value is of the wrong kind.
    """
    if not node.present:
        return Runtime()
    node.only(*(item.name for item in fields(Runtime)))
    triton = node.get("triton").texts()
    if len(triton) not in (0, 3):
        raise node.get("triton").bad("backend, architecture and lanes of a warp")
    return Runtime(
        kind=node.get("kind").choice("hip", "cuda"),
        marks=node.get("marks").texts(),
        libraries=node.get("libraries").texts(),
        driver_libraries=node.get("driver_libraries").texts(),
        nodes=node.get("nodes").texts(),
        optional_nodes=node.get("optional_nodes").texts(),
        visible=node.get("visible").texts(),
        triton=triton,
        drivers=node.get("drivers").mapping(),
        vendors=node.get("vendors").each(_read_vendor),
        modules=node.get("modules").texts(),
        linked=node.get("linked").texts(),
    )


def _read_vendor(node: Node) -> str:
    text = node.text()
    if not re.fullmatch(r"[0-9a-f]{4}", text):
        raise node.bad("four hexadecimal digits")
    return text
