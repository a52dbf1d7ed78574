"""Slurm: one task on each node of an allocation, or of one that srun makes.

srun's own options are as old as Slurm 17.11, so that sites that are years behind can use this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from envlock.adapters.launching import need
from envlock.errors import UsageProblem
from envlock.model.hostlist import expand

#: One task a node that may use all of its processors; a node that fails or dies takes no other
#: with it, and those that are done do not end those that work. Ctrl-C goes to the tasks, which can
#: put their work right: what TERM makes srun send is KILL.
ONE_EACH = ("--ntasks-per-node=1", "--cpu-bind=none", "--kill-on-bad-exit=0", "--wait=0",
            "--no-kill", "--disable-status")  # fmt: skip
# what a batch script asked for its own steps: srun reads these as options
_STEPS = ("SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE",
          "SLURM_NTASKS_PER_CORE", "SLURM_NTASKS_PER_SOCKET", "SLURM_NTASKS_PER_GPU",
          "SLURM_CPUS_PER_TASK", "SLURM_CPU_BIND", "SLURM_DISTRIBUTION",
          "SLURM_KILL_BAD_EXIT", "SLURM_WAIT", "SLURM_LABELIO", "SLURM_UNBUFFEREDIO")  # fmt: skip
_CHOOSING = ("-N", "--nodes", "-w", "--nodelist", "-x", "--exclude", "-F", "--nodefile", "-r",
             "--relative", "-C", "--constraint")  # fmt: skip
_NO_SLURM = "run it where Slurm is, or name what starts one process on each host with --launcher"


@dataclass(frozen=True, slots=True, kw_only=True)
class Srun:
    """Starts one task on each node.

    Attributes:
        options: srun's, as the person gave them.
        caller: the environment; says whether there is an allocation.
    """

    options: tuple[str, ...]
    caller: Mapping[str, str]

    @property
    def env(self) -> Mapping[str, str]:
        """Without what shapes the steps of the batch script around it."""
        return {name: value for name, value in self.caller.items() if name not in _STEPS}

    @property
    def expected(self) -> tuple[str, ...]:
        """The allocation's nodes; none where srun makes one, or takes a part of them."""
        if any(option.startswith(_CHOOSING) for option in self.options):
            return ()
        return allocated(self.caller)

    def command(self, words: Sequence[str]) -> list[str]:
        """As the protocol has it."""
        return [need("srun", self.caller, _NO_SLURM), *ONE_EACH, *self.options, *words]


def allocated(env: Mapping[str, str]) -> tuple[str, ...]:
    """Nodes of the allocation that this process is in; none outside of one."""
    if not in_allocation(env):
        return ()
    try:
        return expand(env.get("SLURM_JOB_NODELIST") or env.get("SLURM_NODELIST", ""))
    except UsageProblem:  # a name that only Slurm understands
        return ()


def in_allocation(env: Mapping[str, str]) -> bool:
    """Whether there is an allocation around this process."""
    return bool(env.get("SLURM_JOB_ID") or env.get("SLURM_JOBID"))


def node_name(env: Mapping[str, str]) -> str:
    """What Slurm calls the node that this task is on; empty outside of a task."""
    return env.get("SLURMD_NODENAME", "")


def step_nodes(env: Mapping[str, str]) -> str:
    """Nodes of the step that this process is a task of, as Slurm writes a list; empty without."""
    return env.get("SLURM_STEP_NODELIST", "")


def launched_from(env: Mapping[str, str]) -> str:
    """Address of the host that started the step that this process is a task of; empty without."""
    return env.get("SLURM_LAUNCH_NODE_IPADDR", "")


def sbcast(source: str, target: str, env: Mapping[str, str], step: int) -> list[str]:
    """The command that copies a file to the same path on every node of a step of this job.

    Raises:
        ProgramFailed: there is no Slurm here.
    """
    job = env.get("SLURM_JOB_ID") or env.get("SLURM_JOBID", "")
    return [need("sbcast", env, _NO_SLURM), f"--jobid={job}.{step}", "--force", source, target]
