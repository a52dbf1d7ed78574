"""srun's command line and environment, and what Slurm's variables say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from envlock.adapters.launching import AnyLauncher, interrupt, into_file, own_address
from envlock.adapters.process import run
from envlock.adapters.slurm import Srun, allocated, sbcast
from envlock.errors import ProgramFailed

#: Of a batch script that asked for steps of its own shape.
BATCH = {
    "SLURM_JOB_ID": "17", "SLURM_JOB_NODELIST": "n[1-3]", "SLURM_NTASKS": "48",
    "SLURM_NTASKS_PER_NODE": "16", "SLURM_CPUS_PER_TASK": "2", "HOME": "/home/u",
}  # fmt: skip


@pytest.fixture
def tools(tmp_path: Path) -> str:
    """A folder with programs of these names."""
    for name in ("srun", "sbcast", "mpirun"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    return str(tmp_path)


def test_one_task_a_node_whatever_the_script_asked_for(tools: str) -> None:
    srun = Srun(options=("-p", "gpu"), caller={**BATCH, "PATH": tools})
    assert srun.env == {
        "PATH": tools, "HOME": "/home/u", "SLURM_JOB_ID": "17", "SLURM_JOB_NODELIST": "n[1-3]",
    }  # fmt: skip
    command = srun.command(["x", "y z"])
    assert command[0] == f"{tools}/srun"
    assert {"--ntasks-per-node=1", "--kill-on-bad-exit=0", "--wait=0", "--no-kill"} < set(command)
    assert command[-4:] == ["-p", "gpu", "x", "y z"]


@pytest.mark.parametrize(
    ("options", "env", "expected"),
    [
        ((), BATCH, ("n1", "n2", "n3")),
        (("-p", "gpu"), BATCH, ("n1", "n2", "n3")),
        (("-N2",), BATCH, ()),
        (("--nodes=2",), BATCH, ()),
        (("-w", "n[1-2]"), BATCH, ()),
        (("--exclude=n1",), BATCH, ()),
        (("-N4",), {}, ()),
        ((), {"SLURM_JOB_ID": "17", "SLURM_JOB_NODELIST": "n[1-"}, ()),
        ((), {"SLURM_JOBID": "17", "SLURM_NODELIST": "n7"}, ("n7",)),
    ],
)
def test_who_should_answer(
    options: tuple[str, ...], env: dict[str, str], expected: tuple[str, ...]
) -> None:
    assert Srun(options=options, caller=env).expected == expected


def test_no_allocation() -> None:
    assert allocated({"SLURM_JOB_NODELIST": "n[1-3]"}) == ()


def test_a_kit_goes_to_a_step(tools: str) -> None:
    env = {**BATCH, "PATH": tools}
    assert sbcast("a.kit", "/tmp/a", env, step=3) == [
        f"{tools}/sbcast", "--jobid=17.3", "--force", "a.kit", "/tmp/a",
    ]  # fmt: skip


def test_missing_programs(tmp_path: Path) -> None:
    env = {"PATH": str(tmp_path)}
    with pytest.raises(ProgramFailed, match="srun: not found"):
        Srun(options=(), caller=env).command(["x"])
    with pytest.raises(ProgramFailed, match="mpirun: not found"):
        AnyLauncher(words=("mpirun", "-N1"), env=env).command(["x"])


def test_any_launcher(tools: str) -> None:
    found = AnyLauncher(words=("mpirun", "--npernode", "1"), env={"PATH": tools})
    assert found.command(["x", "y"]) == ["mpirun", "--npernode", "1", "x", "y"]


def test_output_into_a_file(tmp_path: Path) -> None:
    """What is said to people does not get into it."""
    path = str(tmp_path / "said")
    done = run(into_file(["sh", "-c", "echo out; echo err >&2"], path), env=dict(os.environ))
    assert Path(path).read_text() == "out\n"
    assert done.output == "err\n"
    assert not interrupt(str(tmp_path / "none"))


def test_own_address() -> None:
    """Seen from the loopback, this host is on the loopback."""
    assert own_address("127.0.0.1") == "127.0.0.1"
    assert own_address("no address") == ""
