"""What a vendor's runtime looks like from outside, as data: libraries, device nodes, variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from envlock.model.reading import Node


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


def read_runtime(node: Node) -> Runtime:
    """From the ``runtime`` of a profile; without one everything is empty.

    Raises:
        UnusableInput: a value is of the wrong kind.
    """
    if not node.present:
        return Runtime()
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
    )
