"""env.cgroup: what this process may use of the machine: processors, memory, processes, files.

Limits nest: the smallest on the way from this process's own group to the root counts. ``max``, -1
and version 1's largest number are no limit.
"""

import os

ROOT = "/sys/fs/cgroup"
OWN = "/proc/self/cgroup"
GIB = 1024**3
#: The largest check keeps this much in the host's memory.
MEMORY = 12 * GIB
FILES, PROCESSES = 1024, 512


def text_of(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def whole(text):
    """A limit; None for ``max``, -1, and what is no number."""
    try:
        found = int(text)
    except ValueError:
        return None
    return found if 0 <= found < 2**60 else None


def own_group(own, controller):
    """Path of this process's group, for version 2 or a controller of version 1."""
    second = ""
    for line in text_of(own).splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controller in controllers.split(","):
            return path
        if number == "0":
            second = path
    return second


def groups(root, own, controller):
    """Folders from this process's group up to the root, of whichever version is mounted."""
    path = own_group(own, controller).strip("/")
    for mount in (os.path.join(root, controller), root):
        if not os.path.isdir(mount):
            continue
        parts = [part for part in path.split("/") if part and part != ".."]
        for length in range(len(parts), -1, -1):
            yield os.path.join(mount, *parts[:length])


def smallest(values):
    return min((value for value in values if value is not None), default=None)


def processors(root=ROOT, own=OWN):
    """Processors that the quota allows, a fraction; None without a quota."""
    found = []
    for folder in groups(root, own, "cpu"):
        quota, _, period = text_of(os.path.join(folder, "cpu.max")).partition(" ")
        quota = whole(quota) or whole(text_of(os.path.join(folder, "cpu.cfs_quota_us")))
        period = whole(period) or whole(text_of(os.path.join(folder, "cpu.cfs_period_us")))
        found.append(quota / period if quota and period else None)
    return smallest(found)


def memory(root=ROOT, own=OWN):
    """Bytes that the limits allow; None without one."""
    names = ("memory.max", "memory.high", "memory.limit_in_bytes")
    return smallest(
        whole(text_of(os.path.join(folder, name)))
        for folder in groups(root, own, "memory")
        for name in names
    )


def processes(root=ROOT, own=OWN):
    return smallest(
        whole(text_of(os.path.join(folder, "pids.max"))) for folder in groups(root, own, "pids")
    )


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
    said = context.given.get("variables") or {}
    yield context.case("processors", threads, processors(), said)
    yield context.case("memory", room, memory())
    yield context.case("resources", resources, processes())
