"""Limits from fake trees: every kind of control groups, and what is missing or wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from envlock.adapters import limits
from envlock.adapters.limits import read_limits, usable_cpus
from tests.support.group_trees import HOST, build_tree

MIB = 1024**2
TREES: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "limits.yaml").read_text(encoding="utf-8")
)


def test_there_are_many() -> None:
    assert len(TREES) >= 25
    assert len({tree["name"] for tree in TREES}) == len(TREES)


@pytest.mark.parametrize("tree", TREES, ids=[tree["name"] for tree in TREES])
def test_limits(tree: dict[str, Any], tmp_path: Path) -> None:
    wanted = {**HOST, **tree.get("limits", {})}
    root = build_tree(tmp_path, tree)
    found = read_limits(str(root))
    assert {
        "cpus": found.cpus,
        "cpus_from": found.cpus_from,
        "seen": found.seen_cpus,
        "host_cpus": found.host_cpus,
        "memory": found.memory / MIB,
        "memory_from": found.memory_from,
        "host_memory": found.host_memory / MIB,
        "swap": found.swap / MIB,
        "swap_from": found.swap_from,
        "host_swap": found.host_swap / MIB,
        "processes": found.processes,
        "processes_from": found.processes_from,
        "files": found.files,
    } == {key: value for key, value in wanted.items() if key != "whole"}
    assert found.whole_cpus == wanted.get("whole", wanted["cpus"])
    assert usable_cpus(str(root)) == found.whole_cpus


def test_memory_in_use(tmp_path: Path) -> None:
    """Where the limit is; file pages that nobody has touched lately are not counted."""
    tree: dict[str, Any] = {"groups": ["0::/job/step"], "mounts": ["/ /sys/fs/cgroup cgroup2 rw"]}
    tree["tree"] = {
        "job/memory.max": str(100 * MIB),
        "job/memory.current": str(70 * MIB),
        "job/memory.stat": f"anon 5\ninactive_file {30 * MIB}\nactive_file 7\n",
        "job/step/memory.current": str(20 * MIB),
    }
    assert read_limits(str(build_tree(tmp_path / "a", tree))).memory_used == 40 * MIB
    tree["tree"].pop("job/memory.max")
    assert read_limits(str(build_tree(tmp_path / "b", tree))).memory_used == 100 * 1024 * MIB


def test_memory_in_use_of_version_1(tmp_path: Path) -> None:
    tree: dict[str, Any] = {
        "groups": ["4:memory:/"],
        "mounts": ["/ /sys/fs/cgroup/memory cgroup rw,memory"],
        "tree": {
            "memory/memory.limit_in_bytes": str(100 * MIB),
            "memory/memory.usage_in_bytes": str(70 * MIB),
            "memory/memory.stat": f"inactive_file 1\ntotal_inactive_file {30 * MIB}\n",
        },
    }
    assert read_limits(str(build_tree(tmp_path / "a", tree))).memory_used == 40 * MIB
    tree["tree"]["memory/memory.stat"] = f"hierarchical_memory_limit {50 * MIB}\n"
    assert read_limits(str(build_tree(tmp_path / "b", tree))).memory_used is None


def test_nothing_can_be_read(tmp_path: Path) -> None:
    found = read_limits(str(tmp_path))
    assert (found.cpus, found.host_cpus, found.memory, found.memory_used) == (1, 1, 0, None)


def test_this_machine() -> None:
    """Whatever it is: never more than the kernel lets a process have."""
    found = read_limits()
    assert 0 < found.cpus <= len(os.sched_getaffinity(0)) <= found.host_cpus
    assert 0 < found.memory <= found.host_memory
    assert 0 <= found.swap <= found.host_swap
    assert usable_cpus() == found.whole_cpus


def test_a_host_without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a Mac is."""
    monkeypatch.setattr(limits._Tree, "text", lambda *_: "")
    monkeypatch.setattr(limits._Tree, "names", lambda *_: [])
    monkeypatch.setattr(os, "cpu_count", lambda: 12)
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 1024, "SC_PAGE_SIZE": 16384}.__getitem__)
    found = read_limits()
    assert (found.cpus, found.host_cpus, found.memory) == (12, 12, 16 * MIB)
    assert usable_cpus() == 12
