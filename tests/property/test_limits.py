"""Limits nest: a model that knows nothing of files says the same as the files.

"A read-write […] file. […] The memory usage hard limit", of a group and everything below it
(the kernel's cgroup-v2.rst): whoever is in a group is bound by every group above it.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from envlock.adapters.limits import read_limits, usable_cpus
from tests.support.group_trees import build_tree

CPUS = 128
MEMORY, SWAP = 503 * 1024**3, 8 * 1024**3
UNLIMITED_1 = 9223372036854771712
FEW = settings().max_examples // 2  # a tree of files each
PARTS = {"cpu": "cpu,cpuacct", "memory": "memory", "cpuset": "cpuset"}


@dataclass(frozen=True)
class Level:
    """One group: what it allows, None for whatever is above."""

    name: str
    quota: tuple[int, int] | None
    memory: int | None
    swap: int | None
    cpus: frozenset[int] | None


@dataclass(frozen=True)
class World:
    """Groups from the top down to the process; which version has each controller; how many of the
    top groups are outside of what is mounted, and whether paths still name those; or whether all
    are mounted, and those are outside of the namespace alone."""

    levels: list[Level]
    versions: dict[str, int]
    hidden: int
    host_paths: bool
    younger: bool
    affinity: frozenset[int]

    @property
    def first(self) -> int:
        """The first group that is mounted; the one that is the mount's top is a group itself."""
        return 0 if self.younger else max(0, self.hidden - 1)


def ranges(cpus: frozenset[int]) -> str:
    """As short as the kernel writes it."""
    spans: list[list[int]] = []
    for cpu in sorted(cpus):
        if spans and spans[-1][1] == cpu - 1:
            spans[-1][1] = cpu
        else:
            spans.append([cpu, cpu])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)


def file_texts(level: Level, versions: dict[str, int]) -> dict[str, dict[str, str]]:
    """Files of one group, by controller."""
    quota, memory, swap = level.quota, level.memory, level.swap
    cpu = {
        1: {"cpu.cfs_quota_us": str(quota[0] if quota else -1),
            "cpu.cfs_period_us": str(quota[1] if quota else 100000)},
        2: {"cpu.max": f"{quota[0]} {quota[1]}" if quota else "max 100000"},
    }  # fmt: skip
    together = UNLIMITED_1 if memory is None or swap is None else memory + swap
    memories = {
        1: {"memory.limit_in_bytes": str(UNLIMITED_1 if memory is None else memory),
            "memory.memsw.limit_in_bytes": str(together), "memory.use_hierarchy": "1"},
        2: {"memory.max": "max" if memory is None else str(memory),
            "memory.swap.max": "max" if swap is None else str(swap)},
    }  # fmt: skip
    listed = ranges(level.cpus) if level.cpus is not None else ""
    cpusets = {1: {"cpuset.cpus": listed}, 2: {"cpuset.cpus": "", "cpuset.cpus.effective": listed}}
    return {
        "cpu": cpu[versions["cpu"]],
        "memory": memories[versions["memory"]],
        "cpuset": cpusets[versions["cpuset"]],
    }


def as_tree(world: World) -> dict[str, Any]:
    """The files of a world, as its process finds them."""
    names = [level.name for level in world.levels]
    own = "/" + "/".join(names if world.host_paths else names[world.hidden :])
    shown = "/"
    if world.younger:
        own, shown = "/" + "/".join(names[world.hidden :]), "/.." * world.hidden or "/"
    elif world.host_paths:
        shown = "/" + "/".join(names[: world.hidden])
    shown = shown.replace(" ", "\\040")
    points = {part: f"/sys/fs/cgroup/{folder}" for part, folder in PARTS.items()}
    mounts = ["/ /sys/fs/cgroup tmpfs rw", f"{shown} /sys/fs/cgroup/unified cgroup2 rw"]
    groups = [f"0::{own}"]
    for number, (part, folder) in enumerate(PARTS.items(), 2):
        if world.versions[part] == 1:
            mounts.append(f"{shown} {points[part]} cgroup rw,{folder}")
            groups.append(f"{number}:{folder}:{own}")
        else:
            points[part] = "/sys/fs/cgroup/unified"
    status = f"Pid:\t42\nCpus_allowed_list:\t{ranges(world.affinity)}\n"
    files: dict[str, str] = {"proc/self/status": status}
    # the mount's top is the last hidden group, or the root of all, which has no limits
    below = 0 if world.younger else world.hidden
    for number, level in enumerate(world.levels[world.first :], world.first + 1):
        path = "".join(f"/{name}" for name in names[below:number])
        for part, texts in file_texts(level, world.versions).items():
            if number == len(names):
                texts["cgroup.procs"] = "7\n42\n"
            files |= {f"{points[part][1:]}{path}/{name}": text for name, text in texts.items()}
    return {"groups": groups, "mounts": mounts, "files": files}


def in_force(world: World) -> tuple[Fraction, int, int]:
    """The model: CPUs, memory, swap."""
    counted = world.levels[world.first :]
    cpus = set(world.affinity)
    memory, quota = MEMORY, Fraction(CPUS)
    for level in counted:
        cpus &= level.cpus if level.cpus is not None else cpus
        quota = min(quota, Fraction(*level.quota)) if level.quota else quota
        memory = min(memory, level.memory) if level.memory is not None else memory
    swap = SWAP
    for level in counted:
        if world.versions["memory"] == 2:
            swap = min(swap, level.swap) if level.swap is not None else swap
        elif level.memory is not None and level.swap is not None:
            swap = min(swap, level.memory + level.swap - memory)
    return min(quota, Fraction(len(cpus))), memory, swap


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


@st.composite
def worlds(draw: st.DrawFn) -> World:
    depth = draw(st.integers(1, 5))
    kept = draw(st.integers(0, CPUS - 1))  # in every set: none leaves a process without a processor
    sets = st.frozensets(st.integers(0, CPUS - 1), max_size=40).map(lambda cpus: cpus | {kept})
    names = st.sampled_from(["job_1", "step_0", "a:b", "x.slice", "docker", "Ü 1"])
    levels = [
        Level(
            name=draw(names),
            quota=draw(maybe(st.tuples(st.integers(1000, 20_000_000), st.integers(1000, 10**6)))),
            memory=draw(maybe(st.integers(4096, 2 * MEMORY))),
            swap=draw(maybe(st.integers(0, 2 * SWAP))),
            cpus=draw(maybe(sets)),
        )
        for _ in range(depth)
    ]
    return World(
        levels=levels,
        versions={part: draw(st.sampled_from([1, 2])) for part in PARTS},
        hidden=draw(st.integers(0, depth)),
        host_paths=draw(st.booleans()),
        younger=draw(st.booleans()),
        affinity=draw(st.just(frozenset(range(CPUS))) | sets),
    )


@settings(max_examples=FEW)
@given(worlds())
def test_the_smallest_limit_on_the_way_up(world: World) -> None:
    tree = as_tree(world)
    with tempfile.TemporaryDirectory() as folder:
        root = str(build_tree(Path(folder), tree))
        found = read_limits(root)
        workers = usable_cpus(root)
    cpus, memory, swap = in_force(world)
    assert (found.cpus, found.memory, found.swap) == (float(cpus), memory, max(0, swap))
    assert found.whole_cpus == workers == max(1, int(cpus))
    sources = {
        "cpus": (found.cpus_from, cpus < CPUS),
        "memory": (found.memory_from, memory < MEMORY),
        "swap": (found.swap_from, swap < SWAP),
    }
    for what, (source, limited) in sources.items():
        assert (source != "host") == limited, what


@settings(max_examples=FEW // 3)
@given(worlds(), st.integers(1, 64))
def test_a_group_more_never_gives_more(world: World, cpus: int) -> None:
    """Whatever is put between a process and its group, it may use no more than before."""
    level = Level(name="in", quota=(cpus * 1000, 1000), memory=cpus << 30, swap=None, cpus=None)
    inner = World(**{**world.__dict__, "levels": [*world.levels, level]})
    with tempfile.TemporaryDirectory() as folder:
        before = read_limits(str(build_tree(Path(folder, "a"), as_tree(world))))
        after = read_limits(str(build_tree(Path(folder, "b"), as_tree(inner))))
    assert after.cpus == min(before.cpus, cpus)
    assert after.memory == min(before.memory, cpus << 30)


#: What the kernel writes, cut anywhere and put together again.
PIECES = st.sampled_from(
    ["max", "-1", "100000", " ", "\n", "\t", ":", "/", "..", "0::/a", "4:memory:/a/b", "cgroup2",
     "cgroup", "rw,memory", " - ", "/sys/fs/cgroup", "30 21 0:30 / ", "\\040", "\\999", "0-3", ",",
     "٣", "9" * 40, "Pid:\t42", "MemTotal: 1 kB", "Cpus_allowed_list:\t0-1"]
)  # fmt: skip
GARBAGE = st.lists(PIECES | st.text(max_size=3), max_size=12).map("".join)
PLACES = (
    "proc/self/mountinfo", "proc/self/cgroup", "proc/self/status", "proc/self/limits",
    "proc/meminfo", "sys/devices/system/cpu/online", "sys/fs/cgroup/cpu.max",
    "sys/fs/cgroup/memory.max", "sys/fs/cgroup/a/cpuset.cpus", "sys/fs/cgroup/a/memory.stat",
)  # fmt: skip


@given(st.fixed_dictionaries(dict.fromkeys(PLACES, GARBAGE)))
def test_whatever_stands_there_there_is_an_answer(files: dict[str, str]) -> None:
    """At least one processor to work with, and never a negative amount of anything."""
    with tempfile.TemporaryDirectory() as folder:
        for place, text in files.items():
            path = Path(folder, place)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8", "surrogatepass"))
        found = read_limits(folder)
        assert usable_cpus(folder) == found.whole_cpus >= 1
    assert found.cpus > 0
    assert min(found.memory, found.swap, found.host_cpus - 1) >= 0
