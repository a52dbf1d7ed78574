"""env.cgroup: what this process may use of the machine: processors, memory, processes, files.

How much that is envlock tells: the children of a run are in the same control groups.
"""

import os

GIB = 1024**3
#: The largest check keeps this much in the host's memory.
MEMORY = 12 * GIB
FILES, PROCESSES = 1024, 512


def whole(text):
    """A limit; None for ``max``, -1, and what is no number."""
    try:
        found = int(text)
    except ValueError:
        return None
    return found if 0 <= found < 2**60 else None


def affinity():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads(allowed, said):
    """Nobody asked for more threads than may run: they would only wait for each other."""
    usable = min(affinity(), max(1, int(allowed))) if allowed else affinity()
    metrics = {"processors": usable, "quota": allowed, "seen": os.cpu_count()}
    asked = {}
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "MAX_JOBS"):
        wanted = whole(said.get(name, "").partition(",")[0])
        if wanted and wanted > usable:
            asked[name] = wanted
    if asked:
        names = ", ".join("{}={}".format(*pair) for pair in sorted(asked.items()))
        metrics["warning"] = "{}, and {} processors may be used".format(names, usable)
    return metrics


def room(limit):
    """Enough memory for the largest check."""
    metrics = {"limit": limit}
    if limit is not None and limit < MEMORY:
        metrics["warning"] = "{:.1f} GiB may be used; large checks need {:.0f}".format(
            limit / GIB, MEMORY / GIB
        )
    return metrics


def resources(pids):
    """Files, locked memory, processes."""
    import resource

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    locked, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    metrics = {"files": files, "locked": locked, "processes": pids}
    few = []
    if 0 <= files < FILES:
        few.append("{} open files (ulimit -n)".format(files))
    if pids is not None and pids < PROCESSES:
        few.append("{} processes (pids.max)".format(pids))
    if few:
        metrics["warning"] = "no more than " + ", ".join(few)
    return metrics


def check(context):
    said, limits = context.given.get("variables") or {}, context.given.get("limits") or {}
    memory = limits.get("memory")
    limited = memory is not None and memory < limits.get("host_memory", memory + 1)
    yield context.case("processors", threads, limits.get("cpus"), said)
    yield context.case("memory", room, memory if limited else None)
    yield context.case("resources", resources, limits.get("processes"))
