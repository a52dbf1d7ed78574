"""What follows from the limits: numbers that fit, and variables that do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from envlock.model.limits import Limits
from envlock.model.sizing import GIB, advice, cpus_text, findings, gib

#: The notebook of the first article: 15 of 128 processors, 59 of 503 GiB.
NOTEBOOK = Limits(
    cpus=15.0, cpus_from="/sys/fs/cgroup/cpu.max", seen_cpus=128, host_cpus=128, memory=59 * GIB,
    memory_from="/sys/fs/cgroup/memory.max", host_memory=503 * GIB,
)  # fmt: skip
PLAIN = Limits(
    cpus=8.0, cpus_from="host", seen_cpus=8, host_cpus=8, memory=64 * GIB, host_memory=64 * GIB
)


def numbers(limits: Limits, devices: int = 1) -> dict[str, int]:
    return {one.name: one.value for one in advice(limits, devices)}


def test_a_notebook() -> None:
    found = numbers(NOTEBOOK)
    assert (found["num_workers"], found["OMP_NUM_THREADS"]) == (15, 15)
    assert found["MAX_JOBS"] == 14  # 59 GiB at 4 GiB each
    assert found["offload"] == int(59 * GIB * 0.4)
    assert found["offload"] + found["cache"] == int(59 * GIB * 0.7)


@pytest.mark.parametrize(
    ("cpus", "memory", "devices", "workers", "jobs"),
    [
        (0.5, 64 * GIB, 1, 1, 1),
        (15.5, 64 * GIB, 1, 15, 15),
        (128.0, 503 * GIB, 8, 16, 125),
        (4.0, 2 * GIB, 1, 4, 1),
        (4.0, 0, 1, 4, 4),  # nobody tells the memory
        (4.0, 64 * GIB, 8, 1, 4),
        (4.0, 64 * GIB, 0, 4, 4),
    ],
)
def test_numbers_fit(cpus: float, memory: int, devices: int, workers: int, jobs: int) -> None:
    limits = replace(NOTEBOOK, cpus=cpus, memory=memory)
    found = numbers(limits, devices)
    assert (found["num_workers"], found["OMP_NUM_THREADS"], found["MAX_JOBS"]) == (
        workers, workers, jobs,
    )  # fmt: skip
    assert ("offload" in found) == bool(memory)


def test_words() -> None:
    shown = {one.name: (one.shown, one.why) for one in advice(NOTEBOOK)}
    assert shown["MAX_JOBS"] == ("14", "59 GiB at 4 GiB a compiler job")
    assert shown["offload"][0] == "23.6 GiB"
    assert advice(replace(NOTEBOOK, cpus=1.0))[0].why == "1 CPU: workers of one DataLoader"
    assert [cpus_text(n) for n in (15, 15.5, 0.25, 100.0, 0.001)] == [
        "15", "15.5", "0.25", "100", "0.001",
    ]  # fmt: skip
    assert [gib(n) for n in (0, GIB, GIB // 2, GIB // 16)] == [
        "0 GiB", "1 GiB", "0.5 GiB", "0.062 GiB",
    ]  # fmt: skip


def codes(limits: Limits, **env: str) -> dict[str, str]:
    return {one.code: one.hint for one in findings(limits, env)}


def test_nothing_is_said_where_nothing_limits() -> None:
    assert findings(PLAIN, {}) == []
    assert findings(replace(PLAIN, cpus=4.0, seen_cpus=4), {}) == []  # nproc knows a cpuset


def test_a_quota_that_programs_do_not_see() -> None:
    found = codes(NOTEBOOK)
    assert found["limits.cpu-quota"] == "export OMP_NUM_THREADS=15 MAX_JOBS=14"
    assert "limits.cpu-quota" in codes(NOTEBOOK, OMP_NUM_THREADS="15")
    assert "limits.cpu-quota" not in codes(NOTEBOOK, OMP_NUM_THREADS="15", MAX_JOBS="4")


@pytest.mark.parametrize(
    ("name", "value", "code", "hint"),
    [
        ("OMP_NUM_THREADS", "128", "limits.threads-variable", "export OMP_NUM_THREADS=15"),
        ("OMP_NUM_THREADS", "16,4", "limits.threads-variable", "export OMP_NUM_THREADS=15"),
        ("MAX_JOBS", "15", "limits.jobs-variable", "export MAX_JOBS=14"),
        ("OMP_NUM_THREADS", "15", None, ""),
        ("OMP_NUM_THREADS", "many", None, ""),
        ("MAX_JOBS", "", None, ""),
    ],
)
def test_variables_that_ask_for_more(name: str, value: str, code: str | None, hint: str) -> None:
    found = {one.code: one for one in findings(NOTEBOOK, {name: value})}
    assert (code in found) == (code is not None)
    if code:
        assert (found[code].subject, found[code].hint) == (name, hint)
    else:
        assert not {"limits.threads-variable", "limits.jobs-variable"} & found.keys()


def test_memory_that_free_does_not_show() -> None:
    [found] = [one for one in findings(NOTEBOOK, {}) if one.code == "limits.memory"]
    assert "503 GiB" in found.what and "59 GiB" in found.what and found.level == "info"
    assert "limits.memory" not in codes(replace(NOTEBOOK, memory=400 * GIB))


def test_counts() -> None:
    few = replace(PLAIN, files=256, processes=100, processes_from="/g/pids.max")
    assert codes(few).keys() == {"limits.files", "limits.processes"}
    assert codes(replace(PLAIN, files=1024, processes=512)) == {}


@pytest.mark.parametrize(
    ("given", "found"), [("4", True), ("8", False), ("16", False), ("many", False), ("", False)]
)
def test_a_job_that_nothing_holds_to_its_share(given: str, found: bool) -> None:
    assert ("limits.job" in codes(PLAIN, SLURM_JOB_ID="7", SLURM_CPUS_ON_NODE=given)) == found
    assert "limits.job" not in codes(PLAIN, SLURM_CPUS_ON_NODE=given)
