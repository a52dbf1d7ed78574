"""The machine, its limits, its devices and its stack, as sections. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict

from envlock.doctor.report import Row, Section, rows
from envlock.model.facts import Machine
from envlock.model.hardware import Hardware
from envlock.model.limits import Limits
from envlock.model.sizing import advice, cpus_text, findings, gib
from envlock.model.stack import StackFacts


def machine_section(machine: Machine, limits: Limits, sockets: int) -> Section:
    """The host, whatever may be used of it.

    Args:
        sockets: processors that one can hold in the hand; 0 where nobody says.
    """
    cpus = f"{limits.host_cpus} CPU{'' if limits.host_cpus == 1 else 's'}"
    parts = [machine.cpu, f"{sockets} sockets" if sockets > 1 else "", cpus]
    return Section(
        title="machine",
        rows=rows(
            [
                ("operating system", machine.os),
                ("kernel", machine.kernel),
                ("processor", ", ".join(filter(None, parts))),
                ("memory", gib(limits.host_memory) if limits.host_memory else ""),
                ("swap", gib(limits.host_swap) if limits.host_swap else "none"),
            ]
        ),
        data={"os": machine.os, "kernel": machine.kernel, "cpu": machine.cpu, "sockets": sockets},
    )


def limits_section(limits: Limits, env: Mapping[str, str], devices: int) -> Section:
    """What this process may use, and the numbers that follow.

    Args:
        devices: of the machine, as many as share its processors.
    """
    return Section(
        title="limits",
        rows=(*_limit_rows(limits), *_advice_rows(limits, devices)),
        findings=tuple(findings(limits, env, devices)),
        data={
            **asdict(limits),
            "advice": [
                {"name": one.name, "value": one.value, "why": one.why}
                for one in advice(limits, devices)
            ],
        },
    )


def _limit_rows(limits: Limits) -> Iterator[Row]:
    cpus = f"{cpus_text(limits.cpus)} of {limits.host_cpus}"
    yield Row(name="CPUs", value=_from(cpus, limits.cpus_from))
    if limits.memory:
        said = f"{gib(limits.memory)} of {gib(limits.host_memory)}" if limits.host_memory else ""
        yield Row(name="memory", value=_from(said or gib(limits.memory), limits.memory_from))
    if limits.memory_used is not None:
        yield Row(name="", value=f"{gib(limits.memory_used)} in use now")
    if limits.host_swap:
        swap = f"{gib(limits.swap)} of {gib(limits.host_swap)}" if limits.swap else "none"
        yield Row(name="swap", value=_from(swap, limits.swap_from))
    if limits.processes is not None:
        said = _from(f"{limits.processes}, threads counted", limits.processes_from)
        yield Row(name="processes", value=said)
    if limits.files is not None:
        yield Row(name="open files", value=str(limits.files), detail=True)


def _from(text: str, source: str) -> str:
    return text if source == "host" else f"{text}  ({source})"


def _advice_rows(limits: Limits, devices: int) -> Iterator[Row]:
    found = advice(limits, devices)
    width = max(len(one.shown) for one in found)
    for one in found:
        yield Row(name=one.name, value=f"{one.shown.ljust(width)}  {one.why}")


def devices_section(hardware: Hardware) -> Section:
    """What the vendor's tools and the kernel tell of devices."""
    found = rows(hardware.facts())
    nothing = "none is looked for" if hardware.profile.device == "cpu" else "none found"
    return Section(
        title="devices",
        rows=found if hardware.devices else (Row(name="devices", value=nothing), *found),
        findings=hardware.findings(),
        data={
            "profile": hardware.profile.name,
            "driver": hardware.driver,
            "tool": hardware.tool,
            "topology": hardware.topology,
            "devices": [asdict(device) for device in hardware.devices],
        },
    )


def stack_section(stack: StackFacts) -> Section:
    """The vendor's toolkit, and whether this shell has it."""
    return Section(
        title="stack",
        rows=rows(stack.facts()),
        findings=stack.findings(),
        data={
            "profile": stack.profile.name,
            "root": stack.root,
            "target": stack.target,
            "release": stack.release,
            "releases": dict(stack.releases),
            "hip": stack.hip,
            "compiler": stack.compiler,
            "driver": stack.driver,
            "needed_driver": stack.needed_driver,
            "active": stack.active,
            "type": stack.line,
        },
    )
