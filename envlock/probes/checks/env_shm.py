"""env.shm: shared memory for data loaders and collectives; folders that compilers write to."""

import os
import stat
import tempfile

SHARED = "/dev/shm"
MIB = 1024**2
#: Collectives and data loaders of several processes fail below this.
LEAST = 512 * MIB
#: Compilers keep this much and more.
CACHE = 1024 * MIB
_FAR = {"nfs", "nfs4", "lustre", "gpfs", "cifs", "smb3", "beegfs", "fuse.sshfs", "ceph", "9p"}
_CACHES = ("TMPDIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "XDG_CACHE_HOME")


def space(path):
    found = os.statvfs(path)
    return found.f_frsize * found.f_blocks, found.f_frsize * found.f_bavail


def shared(path=SHARED, least=LEAST):
    if not os.path.isdir(path):
        return {"warning": "there is no {}".format(path)}
    size, free = space(path)
    metrics = {"bytes": size, "free": free}
    if size < least:
        metrics["warning"] = "{} has {} MiB, {} are needed".format(path, size // MIB, least // MIB)
    elif free < least:
        metrics["warning"] = "{} has {} MiB left".format(path, free // MIB)
    return metrics


def existing(path):
    """The folder itself or the nearest one above that is there."""
    path = os.path.abspath(path)
    while not os.path.isdir(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def mount_of(path, mounts="/proc/self/mounts"):
    """File system and options of the mount that holds a path."""
    best = ("", "", "")
    try:
        with open(mounts, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return "", ""
    for line in lines:
        parts = line.split()
        if len(parts) < 4:
            continue
        point = parts[1].replace("\\040", " ")
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best[0]):
            best = (point, parts[2], parts[3])
    return best[1], best[2]


def cache(path, mounts="/proc/self/mounts", least=CACHE):
    """A folder that compilers can write to, run from, and that is near."""
    folder = existing(path)
    kind, options = mount_of(os.path.realpath(folder), mounts)
    problems = []
    try:
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        problems.append("cannot be written: {}".format(error.strerror))
    if kind in _FAR:
        problems.append("is on {}: others may write the same files".format(kind))
    if "noexec" in options.split(","):
        problems.append("is mounted noexec: what is compiled there does not run")
    free = space(folder)[1]
    if free < least:
        problems.append("has {} MiB left".format(free // MIB))
    metrics = {"kind": kind, "free": free, "mode": oct(stat.S_IMODE(os.stat(folder).st_mode))}
    if problems:
        metrics["warning"] = "'{}' {}".format(path, ", ".join(problems))
    return metrics


def check(context):
    said, home = context.given.get("variables") or {}, context.given.get("home") or ""
    yield context.case("shared memory", shared)
    for name in _CACHES:
        if said.get(name):
            yield context.case(name, cache, said[name])
    if home and not said.get("TRITON_CACHE_DIR"):
        yield context.case("home", cache, os.path.join(home, ".triton"))
    if not said.get("TMPDIR"):
        yield context.case("/tmp", cache, "/tmp")
