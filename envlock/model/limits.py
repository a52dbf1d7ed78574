"""What a process may use of a machine. Pure.

Control groups nest: a group's processes are counted in every group above it too, so the smallest
limit on the way to the root is the one in force (the kernel's cgroup-v2.rst and cgroup-v1/*.rst).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

#: Files of a group that are read, by controller: version 1 has a hierarchy for each or several of
#: them, version 2 has them all in one.
CPU_FILES = {
    "cpu": ("cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us"),
    "cpuset": ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"),
}
FILES: Mapping[str, tuple[str, ...]] = {
    **CPU_FILES,
    "memory": (
        "memory.max", "memory.high", "memory.swap.max", "memory.current", "memory.stat",
        "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.usage_in_bytes",
        "memory.use_hierarchy",
    ),
    "pids": ("pids.max",),
}  # fmt: skip

#: Microseconds of a quota that names no period: the kernel's default.
_PERIOD = 100_000
_NUMBER = re.compile(r"\d+\Z", re.A)
_RANGE = re.compile(r"(\d+)(?:-(\d+))?\Z", re.A)
_MOST_CPUS = 1 << 16  # a list that names more is none


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A control group as its files describe it.

    Attributes:
        path: of its folder, as this process sees it.
        files: text of those of :data:`FILES` that it has.
    """

    path: str
    files: Mapping[str, str]

    def text(self, name: str) -> str:
        return self.files.get(name, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What the kernel says without looking at control groups.

    Attributes:
        cpus: that are online; empty where it does not say.
        affinity: on which this process may run; empty where it does not say.
        memory: bytes; 0 where it does not say.
        swap: bytes.
        free: bytes of memory that could be had now; None where it does not say.
        address_space: bytes that this process may map (``ulimit -v``); None without a limit.
        files: that it may have open (``ulimit -n``); None without a limit.
    """

    cpus: frozenset[int] = frozenset()
    affinity: frozenset[int] = frozenset()
    memory: int = 0
    swap: int = 0
    free: int | None = None
    address_space: int | None = None
    files: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What this process may use. Where something comes from is the path of a file, ``affinity``,
    ``ulimit -v``, or ``host`` where nothing stands between.

    Attributes:
        cpus: as many as may run at once; a quota is often no whole number.
        cpus_from: where that comes from.
        seen_cpus: as many as programs find that look at affinity (``nproc``, torch).
        host_cpus: online.
        memory: bytes; 0 where nobody says.
        memory_from: where that comes from.
        memory_used: bytes in use where the limit is, without what the kernel can drop; it moves.
        host_memory: bytes.
        swap: bytes on top of the memory.
        swap_from: where that comes from.
        host_swap: bytes.
        processes: with their threads; None without a limit.
        processes_from: where that comes from.
        files: open at once; None without a limit.
    """

    cpus: float
    cpus_from: str
    seen_cpus: int
    host_cpus: int
    memory: int = 0
    memory_from: str = "host"
    memory_used: int | None = None
    host_memory: int = 0
    swap: int = 0
    swap_from: str = "host"
    host_swap: int = 0
    processes: int | None = None
    processes_from: str = ""
    files: int | None = None

    @property
    def whole_cpus(self) -> int:
        """For what takes a whole number: at least one, and never more than may run."""
        return max(1, math.floor(self.cpus))

    def document(self) -> dict[str, float | int]:
        """What does not move while the machine is idle, for a manifest: no path, no 0."""
        kept = {
            "cpus": int(self.cpus) if self.cpus == int(self.cpus) else round(self.cpus, 3),
            "host_cpus": self.host_cpus,
            "memory": self.memory,
            "host_memory": self.host_memory,
            "swap": self.swap,
            "host_swap": self.host_swap,
            "processes": self.processes or 0,
        }
        return {name: value for name, value in kept.items() if value}


class _Bound(NamedTuple):
    """A limit and where it comes from; the smallest one sorts first."""

    value: float
    source: str


def whole(text: str) -> int | None:
    """A number of a group's file; None for ``max``, -1 and what is no number."""
    text = text.strip()
    return int(text) if _NUMBER.match(text) else None


def cpu_list(text: str) -> frozenset[int]:
    """``0-3,8``; empty for what is no such list."""
    found: set[int] = set()
    for part in text.strip().split(",") if text.strip() else ():
        span = _RANGE.match(part.strip())
        if span is None:
            return frozenset()
        first, last = int(span[1]), int(span[2] or span[1])
        if last >= _MOST_CPUS:
            return frozenset()
        found.update(range(first, last + 1))
    return frozenset(found)


def judge(host: Host, chains: Iterable[Sequence[Group]]) -> Limits:
    """The limits in force.

    Args:
        chains: for each hierarchy that is mounted, this process's group and those above it.
    """
    lines = [list(chain) for chain in chains]
    seen, seen_from = _seen(host, lines)
    cpus = _least(_Bound(seen, seen_from), _quotas(lines))
    memory = _least(_Bound(host.memory or math.inf, "host"), _memories(host, lines))
    swap = _swap(host, lines, memory)
    pids = min((bound for line in lines for bound in _numbers(line, "pids.max")), default=None)
    return Limits(
        cpus=cpus.value,
        cpus_from=cpus.source,
        seen_cpus=seen,
        host_cpus=len(host.cpus) or seen,
        memory=0 if memory.value == math.inf else int(memory.value),
        memory_from=memory.source,
        memory_used=_used(host, lines, memory.source),
        host_memory=host.memory,
        swap=int(swap.value),
        swap_from=swap.source,
        host_swap=host.swap,
        processes=int(pids.value) if pids else None,
        processes_from=pids.source if pids else "",
        files=host.files,
    )


def _least(start: _Bound, others: Iterable[_Bound]) -> _Bound:
    """The smallest; one that is no smaller than what there is anyway is no limit."""
    least = start
    for bound in others:
        if bound.value < least.value:
            least = bound
    return least


def _seen(host: Host, lines: Sequence[Sequence[Group]]) -> tuple[int, str]:
    """How many processors affinity and cpusets leave, and which of them says so.

    A kernel never lets a process run outside its cpuset: a list that contradicts all others (of a
    group that is not this process's, say) is not believed.
    """
    kept, source = host.cpus, "host"
    limits = [("affinity", host.affinity)]
    limits += [found for line in lines for group in line if (found := _cpuset(group))]
    for name, cpus in limits:
        left = kept & cpus if kept else cpus
        if left and left != kept:
            kept, source = left, name
    return (len(kept), source) if kept else (1, "host")


def _cpuset(group: Group) -> tuple[str, frozenset[int]] | None:
    for name in CPU_FILES["cpuset"]:
        cpus = cpu_list(group.text(name))  # empty where nobody has set it
        if cpus:
            return f"{group.path}/{name}", cpus
    return None


def _quotas(lines: Sequence[Sequence[Group]]) -> Iterator[_Bound]:
    for group in (group for line in lines for group in line):
        words = group.text("cpu.max").split() or [""]
        second, first = whole(words[0]), whole(group.text("cpu.cfs_quota_us"))
        if second:
            period = whole(words[1]) if len(words) > 1 else _PERIOD
            yield _Bound(second / (period or _PERIOD), f"{group.path}/cpu.max")
        if first:
            period = whole(group.text("cpu.cfs_period_us"))
            yield _Bound(first / (period or _PERIOD), f"{group.path}/cpu.cfs_quota_us")


def _numbers(line: Sequence[Group], *names: str) -> Iterator[_Bound]:
    """The limits of these files in each group; 0 is one nobody could live under."""
    for group in line:
        for name in names:
            value = whole(group.text(name))
            if value:
                yield _Bound(value, f"{group.path}/{name}")


def _charged(line: Sequence[Group]) -> list[Group]:
    """The groups that this process's memory is counted in.

    Version 1 had groups whose children are counted for themselves (``memory.use_hierarchy`` of 0,
    in kernels before 5.11).
    """
    kept = list(line[:1])
    for group in line[1:]:
        if group.text("memory.use_hierarchy").strip() == "0":
            break
        kept.append(group)
    return kept


def _stat(group: Group, name: str) -> int | None:
    found = re.search(rf"^{name} (\d+)$", group.text("memory.stat"), re.M | re.A)
    return int(found[1]) if found else None


def _hierarchical(line: Sequence[Group], name: str) -> Iterator[_Bound]:
    """What version 1 says of all groups above, those too that are not mounted here."""
    for group in line[:1]:
        value = _stat(group, name)
        if value:
            yield _Bound(value, f"{group.path}/memory.stat")


def _memories(host: Host, lines: Sequence[Sequence[Group]]) -> Iterator[_Bound]:
    for line in lines:
        names = ("memory.max", "memory.high", "memory.limit_in_bytes")
        yield from _numbers(_charged(line), *names)
        yield from _hierarchical(line, "hierarchical_memory_limit")
    if host.address_space:
        yield _Bound(host.address_space, "ulimit -v")


def _swap(host: Host, lines: Sequence[Sequence[Group]], memory: _Bound) -> _Bound:
    """Version 2 limits swap by itself, version 1 limits memory and swap together."""
    bounds = []
    for line in lines:
        for group in line:
            value = whole(group.text("memory.swap.max"))
            if value is not None:  # 0 means none
                bounds.append(_Bound(value, f"{group.path}/memory.swap.max"))
        together = [
            *_numbers(_charged(line), "memory.memsw.limit_in_bytes"),
            *_hierarchical(line, "hierarchical_memsw_limit"),
        ]
        bounds += [_Bound(max(0.0, b.value - memory.value), b.source) for b in together]
    return _least(_Bound(host.swap, "host"), bounds)


def _used(host: Host, lines: Sequence[Sequence[Group]], source: str) -> int | None:
    """Bytes in use where the limit is: file pages that have not been touched lately are dropped
    before anything is killed."""
    for group in (group for line in lines for group in line):
        if source.rpartition("/")[0] != group.path:
            continue
        if source.endswith("/memory.stat"):
            return None  # the limit is that of a group above, and nobody tells what it has in use
        current = whole(group.text("memory.current") or group.text("memory.usage_in_bytes"))
        names = ("total_inactive_file", "inactive_file")
        idle = next((v for name in names if (v := _stat(group, name)) is not None), 0)
        return None if current is None else max(0, current - idle)
    return host.memory - host.free if host.free is not None else None
