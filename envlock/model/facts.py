"""Facts about a target and a machine, and the finding: one thing that is not as it should be."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from packaging import tags as packaging_tags


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is not as it should be.

    Attributes:
        code: stable dotted id, e.g. ``dist.no-record``.
        subject: what it is about: a distribution, a path, a device.
        what: what was found.
        why: why it matters; may be empty.
        hint: what to do; may be empty.
        level: ``error``, ``warning`` or ``info``.
    """

    code: str
    subject: str
    what: str
    why: str = ""
    hint: str = ""
    level: str = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where a target keeps installed files; absolute paths as its own ``sysconfig`` gives them."""

    prefix: str
    purelib: str
    platlib: str
    scripts: str
    headers: str
    data: str

    def relative(self) -> dict[str, str]:
        """The same relative to the prefix, for a manifest that may be shared."""
        return {
            name: posixpath.relpath(getattr(self, name), self.prefix)
            for name in ("purelib", "platlib", "scripts", "headers", "data")
        }

    def moved(self, prefix: str) -> Layout:
        """The same layout under another prefix (a staging folder, say)."""
        there = {
            k: posixpath.normpath(posixpath.join(prefix, v)) for k, v in self.relative().items()
        }
        return Layout(prefix=prefix, **there)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A Python environment as its own interpreter describes it.

    Attributes:
        executable: absolute path of the interpreter, not resolved (a venv's is a symlink).
        source: where it was named, for the line ``target: … (…, from $VIRTUAL_ENV)``.
        python: full version, e.g. ``3.10.12``.
        markers: the PEP 508 environment.
        tags: supported wheel tags, best first.
        sys_path: what its ``import`` sees, without the script's own folder.
        glibc: ``(major, minor)`` or None where the C library is another one.
        pip: version of its own pip, or None.
        externally_managed: path of the PEP 668 marker file, or None.
        home: its ``sys.prefix``, where pip looks for ``pip.conf``; Debian's system Python puts
            what it installs under another prefix (``layout``).
        stdlib: where such a marker is looked for.
    """

    executable: str
    source: str
    python: str
    markers: Mapping[str, str]
    tags: tuple[str, ...]
    layout: Layout
    sys_path: tuple[str, ...]
    glibc: tuple[int, int] | None
    venv: bool
    pip: str | None
    externally_managed: str | None
    home: str = ""
    stdlib: str = ""

    @property
    def short(self) -> str:
        """``cp310``: implementation and version as in wheel tags."""
        return self.tags[0].split("-")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """An accelerator; what nobody says is empty, 0 or None.

    Attributes:
        name: of the product, ``BW``, as the vendor's tool calls it.
        memory_mib: all its memory, in MiB.
        compute_units: what the vendor calls compute units.
        architecture: what code is built for, ``gfx936``, ``sm_90``.
        features: what else code depends on, ``sramecc+:xnack-``.
        wavefront: lanes that work in step.
        clock_mhz: the highest of its cores.
        bus: PCI address, ``0000:55:00.0``.
        link: to the host: the speed that both ends can have, and the lanes in use, ``32.0 GT/s
            x16``. The speed at the moment moves while idle.
        numa: node of the host's memory that is near.
        driver: kernel module that has it, ``hycu``.
        bf16: whether the target's torch supports bfloat16 on it; None where it was not asked.
    """

    name: str = ""
    memory_mib: int = 0
    compute_units: int = 0
    architecture: str = ""
    features: str = ""
    wavefront: int = 0
    clock_mhz: int = 0
    bus: str = ""
    link: str = ""
    numa: int | None = None
    driver: str = ""
    bf16: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What the machine is; nothing that moves while it is idle, nothing that names it.

    Attributes:
        driver: version of the devices' driver.
        tool: the vendor's tool with its version and date, ``hy-smi 1.24.0 (2026-03-23)``.
        hip: what the stack's compiler says of HIP; torch says another version, and rightly.
        compiler: and of itself, ``dcc 25.10.0-0, clang 17.0.0``.
        topology: how several devices are linked to each other, ``xgmi``, ``pcie``.
        limits: name to figure: what a process may use, and what the host has.
    """

    os: str = ""
    kernel: str = ""
    cpu: str = ""
    driver: str = ""
    tool: str = ""
    hip: str = ""
    compiler: str = ""
    topology: str = ""
    limits: Mapping[str, float] = field(default_factory=dict)
    devices: tuple[Device, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TagFacts:
    """What is needed to compute a target's tags on any machine."""

    version: tuple[int, int]
    abi: str
    platform: str
    glibc: tuple[int, int] | None = None
    extra_abis: tuple[str, ...] = field(default=())


def _linux_platforms(arch: str, glibc: tuple[int, int] | None) -> Iterable[str]:
    """The bare platform tag, then manylinux ones, newest first (PEP 600, 599, 571, 513).

    A wheel built for this very machine comes before the portable ones, as ``packaging`` 26 and pip
    have it; uv and older ones try it last. Architectures other than x86_64 and i686 start at glibc
    2.17, as PEP 599 defines them.
    """
    yield f"linux_{arch}"
    if glibc is not None and glibc[0] == 2:
        oldest = 5 if arch in ("x86_64", "i686") else 17
        legacy = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
        for minor in range(glibc[1], oldest - 1, -1):
            yield f"manylinux_2_{minor}_{arch}"
            if minor in legacy:
                yield f"{legacy[minor]}_{arch}"


def supported_tags(facts: TagFacts) -> tuple[str, ...]:
    """Wheel tags a CPython target accepts, best first.

    Computed from facts and not from the running interpreter, so that a laptop can resolve for a
    card. The order is that of ``packaging.tags.sys_tags``; a contract test compares the two.
    """
    if facts.platform.startswith("linux_"):
        arch = facts.platform.removeprefix("linux_")
        platforms = list(_linux_platforms(arch, facts.glibc))
    else:
        platforms = [facts.platform]
    abis = [facts.abi, *facts.extra_abis]
    found = list(packaging_tags.cpython_tags(facts.version, abis, platforms))
    interpreter = f"cp{facts.version[0]}{facts.version[1]}"
    found += packaging_tags.compatible_tags(facts.version, interpreter, platforms)
    return tuple(dict.fromkeys(str(tag) for tag in found))
