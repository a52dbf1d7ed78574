"""What follows from the limits for the numbers that people set by hand. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from envlock.model.facts import Finding
from envlock.model.limits import Limits, whole

GIB = 1024**3

#: Memory that one job of a compiler for device code takes. flash-attention's setup.py counts 9 GB
#: for a job that compiles for two architectures at once; a machine has one.
JOB_BYTES = 4 * GIB
#: Shares of the memory: vLLM warns of a swap space beyond 0.4 of it and refuses one beyond 0.7 (of
#: the host's, which is all that it sees). Offloading gets the first, caches what is left of the
#: second; the rest is for the processes themselves.
OFFLOAD_SHARE, TOGETHER_SHARE = 0.4, 0.7
_SHARES = (OFFLOAD_SHARE, TOGETHER_SHARE - OFFLOAD_SHARE)

#: Variables that hold a number of threads or processes.
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
JOBS = ("MAX_JOBS", "CMAKE_BUILD_PARALLEL_LEVEL")
#: Fewer open files stop a loader with many workers, fewer processes a pool of threads.
FILES, PROCESSES = 1024, 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """A number to set.

    Attributes:
        name: ``num_workers``, ``MAX_JOBS``, ``OMP_NUM_THREADS``, ``offload`` or ``cache``.
        value: processes, threads, or bytes for the last two.
        why: what it was taken from.
    """

    name: str
    value: int
    why: str

    @property
    def in_bytes(self) -> bool:
        return self.name in ("offload", "cache")

    @property
    def shown(self) -> str:
        return gib(self.value) if self.in_bytes else str(self.value)


def gib(count: float) -> str:
    """Bytes of memory for people: ``59 GiB``, ``0.5 GiB``."""
    value = count / GIB
    digits = 0 if value == int(value) else 1 if value >= 0.1 else 3
    return f"{value:.{digits}f} GiB"


def cpus_text(count: float) -> str:
    """Processors for people: ``15``, ``15.5``."""
    return f"{count:.{2 if count >= 0.1 else 3}f}".rstrip("0").rstrip(".")


def _counted(count: float) -> str:
    return f"{cpus_text(count)} CPU{'' if count == 1 else 's'}"


def advice(limits: Limits, devices: int = 1) -> tuple[Advice, ...]:
    """Numbers that fit in the limits.

    Args:
        devices: each has a process of its own, with its loaders and threads.
    """
    share = max(1, limits.whole_cpus // max(1, devices))
    of = _counted(limits.cpus) + (f", {devices} devices" if devices > 1 else "")
    found = [
        Advice(name="num_workers", value=share, why=f"{of}: workers of one DataLoader"),
        Advice(name="OMP_NUM_THREADS", value=share, why=f"{of}: threads of one process"),
        _jobs(limits),
    ]
    if limits.memory:
        offload = int(limits.memory * OFFLOAD_SHARE)
        cache = int(limits.memory * TOGETHER_SHARE) - offload
        kept, rest = (f"{share * 100:.0f} %" for share in _SHARES)
        kept = f"{kept} of {gib(limits.memory)}: weights and states kept on the host"
        rest = f"{rest}: data kept in memory; /dev/shm counts too"
        found.append(Advice(name="offload", value=offload, why=kept))
        found.append(Advice(name="cache", value=cache, why=rest))
    return tuple(found)


def _jobs(limits: Limits) -> Advice:
    room = limits.memory // JOB_BYTES if limits.memory else limits.whole_cpus
    if room < limits.whole_cpus:
        why = f"{gib(limits.memory)} at {gib(JOB_BYTES)} a compiler job"
        return Advice(name="MAX_JOBS", value=max(1, room), why=why)
    why = f"{_counted(limits.cpus)}: compiler jobs at once"
    return Advice(name="MAX_JOBS", value=limits.whole_cpus, why=why)


def findings(limits: Limits, env: Mapping[str, str], devices: int = 1) -> list[Finding]:
    """Where programs that count for themselves, or variables, ask for more than there is.

    Args:
        env: the person's environment.
    """
    return [
        *_quota(limits, env, devices),
        *_variables(limits, env),
        *_job(limits, env),
        *_hidden_memory(limits),
        *_counts(limits),
    ]


def _quota(limits: Limits, env: Mapping[str, str], devices: int) -> Iterator[Finding]:
    """``nproc``, torch, ninja and OpenMP look at affinity; none of them looks at a quota."""
    wanted = {a.name: a.value for a in advice(limits, devices) if a.name.isupper()}
    missing = {name: value for name, value in wanted.items() if not env.get(name)}
    if limits.seen_cpus <= limits.whole_cpus or not missing:
        return
    said = " ".join(f"{name}={value}" for name, value in missing.items())
    yield Finding(
        code="limits.cpu-quota",
        subject="CPUs",
        what=f"programs find {limits.seen_cpus}, and {cpus_text(limits.cpus)} may run at once",
        why=f"{limits.cpus_from}: nproc, torch and ninja do not look there, and start as many "
        "threads and jobs as they find",
        hint=f"export {said}",
    )


def _variables(limits: Limits, env: Mapping[str, str]) -> Iterator[Finding]:
    jobs = next(a.value for a in advice(limits) if a.name == "MAX_JOBS")
    for names, most, code in (
        (THREADS, limits.whole_cpus, "limits.threads-variable"),
        (JOBS, jobs, "limits.jobs-variable"),
    ):
        for name in names:
            asked = whole(env.get(name, "").partition(",")[0])
            if asked and asked > most:
                what = f"{asked}, and no more than {most} fit"
                why = "more of them only wait for each other, or are killed for memory"
                hint = f"export {name}={most}"
                yield Finding(code=code, subject=name, what=what, why=why, hint=hint)


def _job(limits: Limits, env: Mapping[str, str]) -> Iterator[Finding]:
    """Slurm says what it gave; whether anything holds a job to it is another matter."""
    given = whole(env.get("SLURM_CPUS_ON_NODE", ""))
    if env.get("SLURM_JOB_ID") and given and given < limits.whole_cpus:
        yield Finding(
            code="limits.job",
            subject="job",
            what=f"Slurm gave {given} CPUs, and {limits.whole_cpus} may be used",
            why="nothing holds the job to its share: what it takes more is taken from others",
            hint=f"export OMP_NUM_THREADS={given} MAX_JOBS={given}",
        )


def _hidden_memory(limits: Limits) -> Iterator[Finding]:
    """``free`` shows the host's; what is over the limit is killed, without an error of Python's."""
    if not limits.memory or limits.memory * 2 > limits.host_memory:
        return
    yield Finding(
        code="limits.memory",
        subject="memory",
        what=f"'free' shows {gib(limits.host_memory)}, and {gib(limits.memory)} may be used",
        why=f"{limits.memory_from}: a process beyond it is killed, and says only 'Killed'",
        hint="size offload, caches and memory-mapped files by the smaller figure",
        level="info",
    )


def _counts(limits: Limits) -> Iterator[Finding]:
    if limits.files is not None and limits.files < FILES:
        yield Finding(
            code="limits.files",
            subject="open files",
            what=f"no more than {limits.files}",
            why="a loader with many workers ends with 'Too many open files'",
            hint=f"ulimit -n {FILES}, or more",
        )
    if limits.processes is not None and limits.processes < PROCESSES:
        yield Finding(
            code="limits.processes",
            subject="processes",
            what=f"no more than {limits.processes}, threads counted ({limits.processes_from})",
            why="pools of threads cannot start: 'Resource temporarily unavailable'",
            hint="ask whoever runs the machine for more, or set the variables for threads lower",
        )
