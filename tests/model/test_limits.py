"""Limits as values: numbers of the kernel's files, and what does not move."""

from __future__ import annotations

import pytest

from envlock.model.limits import Group, Host, Limits, cpu_list, judge, whole


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("150000\n", 150000), (" 7 ", 7), ("max", None), ("-1", None), ("", None),
     ("1e6", None), ("12 GiB", None), ("٣", None), ("+4", None)],
)  # fmt: skip
def test_whole(text: str, value: int | None) -> None:
    assert whole(text) == value


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("0", {0}), ("0-3\n", {0, 1, 2, 3}), ("0-1,8,10-11", {0, 1, 8, 10, 11}), ("", set()),
     ("\n", set()), ("max", set()), ("3-1", set()), ("0-99999999999", set()), ("0-3:1/2", set()),
     ("0,,1", set())],
)  # fmt: skip
def test_cpu_list(text: str, cpus: set[int]) -> None:
    assert cpu_list(text) == cpus


def test_without_control_groups() -> None:
    found = judge(Host(cpus=frozenset(range(8)), memory=1 << 30), [])
    assert (found.cpus, found.cpus_from, found.memory, found.swap) == (8, "host", 1 << 30, 0)


def test_a_cpuset_that_contradicts_everything_is_not_believed() -> None:
    group = Group(path="/g", files={"cpuset.cpus.effective": "64-127"})
    found = judge(Host(cpus=frozenset(range(4)), affinity=frozenset(range(2))), [[group]])
    assert (found.cpus, found.cpus_from) == (2, "affinity")


def test_document_has_no_path_and_nothing_that_moves() -> None:
    limits = Limits(
        cpus=15.5, cpus_from="/sys/fs/cgroup/cpu.max", seen_cpus=128, host_cpus=128,
        memory=1 << 36, memory_from="/x", memory_used=5, host_memory=1 << 39, processes=4096,
        files=1024,
    )  # fmt: skip
    assert limits.document() == {
        "cpus": 15.5, "host_cpus": 128, "memory": 1 << 36, "host_memory": 1 << 39,
        "processes": 4096,
    }  # fmt: skip
    plain = Limits(cpus=2.0, cpus_from="host", seen_cpus=2, host_cpus=2)
    assert plain.document() == {"cpus": 2, "host_cpus": 2}
    assert isinstance(plain.document()["cpus"], int)
