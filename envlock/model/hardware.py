"""The devices of a machine, put together from everybody who tells of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from envlock.model.agents import Slot
from envlock.model.facts import Device, Finding, Machine
from envlock.model.profile import Profile

#: The source that is no tool.
KERNEL = "kernel"
#: Share of the memory by which two sources may differ: what the driver keeps for itself.
_MEMORY = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """A program that gave no answer, and what became of it.

    Attributes:
        program: its path.
        hung: it was stopped when its time was over.
        said: the end of its output; empty when there was none.
        seconds: its time.
    """

    program: str
    hung: bool = False
    said: str = ""
    seconds: float = 0.0

    @property
    def name(self) -> str:
        return self.program.rpartition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceNodes:
    """Files below ``/dev`` that programs open to reach a device, as patterns of the profile."""

    missing: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """Devices, their driver, and the tool that tells of them.

    Attributes:
        profile: the vendor that was looked for.
        devices: in the order of the vendor's tool, else of the bus.
        driver: its version; empty where nobody says.
        tool: of the vendor, with version and date; empty where there is none.
        topology: how several devices are linked to each other.
        slots: the vendor's devices on the bus, whether they can be used or not.
        told: source to the devices it told of: ``hy-smi``, ``rocminfo``, ``kernel``.
        silent: programs that gave no answer.
        noise: program to what it said before its answer.
        nodes: what stands between programs and the devices.
    """

    profile: Profile
    devices: tuple[Device, ...] = ()
    driver: str = ""
    tool: str = ""
    topology: str = ""
    slots: tuple[Slot, ...] = ()
    told: Mapping[str, tuple[Device, ...]] = field(default_factory=dict)
    silent: tuple[Silence, ...] = ()
    noise: Mapping[str, str] = field(default_factory=dict)
    nodes: DeviceNodes = field(default_factory=DeviceNodes)

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Rows for a table: what it is, and the value; what nobody says is left out."""
        rows = [
            ("devices", _named(self.devices)),
            ("device memory", _each(self.devices, lambda d: d.memory_mib, "{} MiB")),
            ("compute units", _each(self.devices, lambda d: d.compute_units)),
            ("architecture", _each(self.devices, _architecture)),
            ("wavefront", _each(self.devices, lambda d: d.wavefront)),
            ("clock", _each(self.devices, lambda d: d.clock_mhz, "{} MHz at most")),
            ("PCI address", ", ".join(d.bus for d in self.devices if d.bus)),
            ("PCI link", _each(self.devices, lambda d: d.link)),
            ("NUMA node", ", ".join(str(d.numa) for d in self.devices if d.numa is not None)),
            ("topology", self.topology),
            ("driver", self._driver()),
            ("tool", self.tool),
        ]
        return tuple((name, value) for name, value in rows if value)

    def _driver(self) -> str:
        modules = sorted({one.driver for one in self.devices if one.driver})
        return " ".join(filter(None, (self.driver, f"({', '.join(modules)})" if modules else "")))

    def findings(self) -> tuple[Finding, ...]:
        """What is not as it should be."""
        return tuple(
            finding
            for judge in (_silences, _absence, _doors, _disagreements, _links, _strangers, _noises)
            for finding in judge(self)
        )


def _named(devices: Sequence[Device]) -> str:
    names = [one.name or one.architecture or "unnamed" for one in devices]
    counts = dict.fromkeys(names)
    shown = ((name, names.count(name)) for name in counts)
    return ", ".join(f"{count} × {name}" if len(names) > 1 else name for name, count in shown)


def _each(devices: Iterable[Device], value: object, form: str = "{}") -> str:
    """The different values, in order."""
    assert callable(value)
    found = dict.fromkeys(value(one) for one in devices)
    return ", ".join(form.format(one) for one in found if one)


def _architecture(device: Device) -> str:
    return f"{device.architecture} ({device.features})" if device.features else device.architecture


# --- putting together ---------------------------------------------------------------------------


def joined(one: Device, other: Device) -> Device:
    """What the first does not know is taken from the second."""
    values = {item.name: getattr(one, item.name) for item in fields(one)}
    missing = {name: getattr(other, name) for name, value in values.items() if value in ("", 0)}
    for name in ("numa", "bf16"):  # 0 and no are answers
        if values[name] is None:
            missing[name] = getattr(other, name)
        else:
            missing.pop(name, None)
    return replace(one, **missing)


def merged(sources: Iterable[Sequence[Device]]) -> tuple[Device, ...]:
    """One list out of several, each in its own order.

    Devices are the same that have the same address; where only one of two sources tells addresses,
    those at the same place of lists of the same length.
    """
    found: list[Device] = []
    for devices in sources:
        if not found:
            found = list(devices)
        elif all(one.bus for one in (*found, *devices)):
            found = _by_address(found, devices)
        elif len(found) == len(devices):
            found = [joined(*pair) for pair in zip(found, devices, strict=True)]
    return tuple(found)


def _by_address(found: Sequence[Device], devices: Sequence[Device]) -> list[Device]:
    known = {one.bus: one for one in devices}
    places = {one.bus for one in found}
    kept = [joined(one, known[one.bus]) if one.bus in known else one for one in found]
    return [*kept, *(one for one in devices if one.bus not in places)]


def with_torch(machine: Machine, devices: Sequence[Device]) -> Machine:
    """The machine with what torch says of its devices besides."""
    return replace(machine, devices=merged([machine.devices, devices]))


def placed(devices: Sequence[Device], slots: Sequence[Slot]) -> tuple[Device, ...]:
    """The devices with what the bus says of them; one without an address is the only one there."""
    known = {slot.bus: slot.device for slot in slots}
    only = slots[0].device if len(slots) == len(devices) == 1 else Device()
    return tuple(joined(one, known.get(one.bus, Device() if one.bus else only)) for one in devices)


# --- judging ------------------------------------------------------------------------------------


def hung(one: Silence, level: str = "warning") -> Finding:
    """The finding of a program that did not answer in time: it may be slow."""
    return Finding(
        code="tool.hangs",
        subject=one.name,
        what=f"'{one.program}' gave no answer within {one.seconds:.0f} s",
        why="who asks a driver that is stuck waits for ever, and so may the first import of torch",
        hint=f"run '{one.program}' by hand; if it does not return, the machine has to be seen to "
        "by whoever runs it",
        level=level,
    )


def _silences(found: Hardware) -> Iterator[Finding]:
    answered = any(name != KERNEL for name in found.told)
    for one in found.silent:
        if one.hung:
            yield hung(one, "warning" if answered else "error")
        elif not found.told.get(one.name):
            yield Finding(
                code="tool.failed",
                subject=one.name,
                what=f"'{one.program}' tells of no device: {one.said or 'it printed nothing'}",
                hint=f"run '{one.program}' by hand",
            )


def _absence(found: Hardware) -> Iterator[Finding]:
    if found.devices or found.profile.device == "cpu":
        return
    if found.slots:
        yield Finding(
            code="device.unseen",
            subject=found.profile.name,
            what=f"{len(found.slots)} on the bus, and neither a tool nor the driver tells of one",
            why="nothing that needs a device can reach it",
            hint="a container is given its devices when it is started; on a host, see whether the "
            "driver is loaded",
            level="error",
        )
        return
    if found.profile.runtime.nodes and not found.nodes.missing:
        yield Finding(
            code="device.untold",
            subject=found.profile.name,
            what="the device nodes are there, and no tool tells of a device",
            why="some devices have no tool, and some images leave it out",
            hint="'envlock verify --level quick' says whether torch finds it",
            level="info",
        )
        return
    title, missing = found.profile.title, " and no ".join(found.nodes.missing)
    yield Finding(
        code="device.none",
        subject=found.profile.name,
        what=f"no device for {title} is here: there is no {missing}"
        if missing
        else f"no device for {title} is here",
        why="what needs one cannot be tried here; on some login nodes torch cannot be imported",
        hint="go to a machine with a device, or have the container started with its devices",
    )


def _doors(found: Hardware) -> Iterator[Finding]:
    if not found.devices:
        return
    if found.nodes.missing:
        yield Finding(
            code="device.no-node",
            subject=found.profile.name,
            what=f"there is no {' and no '.join(found.nodes.missing)}",
            why="programs reach a device through it",
            hint="have the container started with these devices",
            level="error",
        )
    if found.nodes.closed:
        yield Finding(
            code="device.closed",
            subject=found.profile.name,
            what=f"{', '.join(found.nodes.closed)} cannot be opened for reading and writing",
            why="torch finds no device then, and says nothing",
            hint="the user has to be in the group that owns it (video, render), or the program "
            "that started this shell left it out",
            level="error",
        )


def _disagreements(found: Hardware) -> Iterator[Finding]:
    counts = {name: len(devices) for name, devices in found.told.items()}
    if len(set(counts.values())) > 1:
        yield Finding(
            code="device.counts-differ",
            subject=found.profile.name,
            what=", ".join(f"{name} tells of {count}" for name, count in counts.items()),
            why="the runtime may be allowed fewer than the tools see",
        )
        return
    for index, sizes in enumerate(zip(*(_sizes(one) for one in found.told.values()), strict=True)):
        known = [size for size in sizes if size]
        if known and max(known) - min(known) > _MEMORY * max(known):
            told = zip(found.told, sizes, strict=True)
            yield Finding(
                code="device.memory-differs",
                subject=str(index),
                what=", ".join(f"{name}: {size} MiB" for name, size in told if size),
                why="sources that disagree this much do not mean the same device",
            )


def _sizes(devices: Sequence[Device]) -> list[int]:
    return [one.memory_mib for one in devices]


def _links(found: Hardware) -> Iterator[Finding]:
    used = {one.bus for one in found.devices}
    for slot in found.slots:
        now, most = slot.lanes
        if slot.bus in used and 0 < now < most:
            yield Finding(
                code="device.link-narrow",
                subject=slot.bus,
                what=f"linked by {now} of {most} lanes",
                why="copies to and from the host take longer; a card that is not seated well looks "
                "like this",
                hint="compare 'perf' checks of 'envlock verify --level full' with the other cards",
            )


def _strangers(found: Hardware) -> Iterator[Finding]:
    known = found.profile.architectures
    seen = dict.fromkeys(one.architecture for one in found.devices if one.architecture)
    odd = [name for name in seen if known and name not in known]
    if odd and found.profile.runtime.kind == "hip":
        yield Finding(
            code="device.unknown-architecture",
            subject=", ".join(odd),
            what=f"builds of this stack are for {', '.join(known)}",
            why="kernels for another architecture do not start",
        )


def _noises(found: Hardware) -> Iterator[Finding]:
    for program, said in found.noise.items():
        yield Finding(
            code="tool.warned",
            subject=program,
            what=f"it says before its answer: {said}",
            why="the answer is there all the same; whether the device computes is told by 'envlock "
            "verify'",
            level="info",
        )
