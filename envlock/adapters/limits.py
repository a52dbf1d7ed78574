"""The limits of this process, read from the kernel's files.

The one place that counts processors and memory. Whatever is missing, or may not be read, is no
limit: a machine that does not tell is taken at its word.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from envlock.model.limits import CPU_FILES, FILES, Group, Host, Limits, cpu_list, judge, whole

_MOUNTS = "/sys/fs/cgroup"
_UNIFIED = "unified"
#: Groups that are looked into for one whose name is not told.
_MOST = 2000
_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mount:
    """A hierarchy of control groups where it is mounted.

    Attributes:
        controllers: of version 1; empty for version 2.
        top: the group that the mount shows, as this process's own path names it.
        point: where it is mounted.
    """

    controllers: frozenset[str]
    top: str
    point: str


class _Tree:
    """Files below a root; what cannot be read is empty."""

    def __init__(self, root: str) -> None:
        self._root = root

    def text(self, path: str) -> str:
        try:
            with open(self.path(path), encoding="utf-8", errors="replace") as file:
                return file.read()
        except (OSError, ValueError):  # a NUL in a path
            return ""

    def names(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(self.path(path)))
        except (OSError, ValueError):
            return []

    def folders(self, path: str) -> list[str]:
        """Names of the folders in one."""
        return [name for name in self.names(path) if self.has_folder(f"{path}/{name}")]

    def lists(self, path: str, line: str) -> bool:
        """Whether a file has a line."""
        return line in self.text(path).split()

    def has_folder(self, path: str) -> bool:
        return os.path.isdir(self.path(path))

    def path(self, path: str) -> str:
        return path if self._root == os.sep else os.path.join(self._root, path.lstrip("/"))


def read_limits(root: str = os.sep) -> Limits:
    """What this process may use.

    Args:
        root: holds ``proc`` and ``sys``; another one is a description of some machine.
    """
    tree = _Tree(root)
    return judge(_host(tree, root == os.sep), list(_chains(tree, FILES)))


def usable_cpus(root: str = os.sep) -> int:
    """As many workers as may run at once, at least one; of the same files no more than it needs."""
    tree = _Tree(root)
    host = Host(cpus=_online(tree, root == os.sep), affinity=_affinity(tree, root == os.sep))
    return judge(host, list(_chains(tree, CPU_FILES))).whole_cpus


def read_sockets(root: str = os.sep) -> int:
    """Processors that one can hold in the hand; 0 where nobody says."""
    text = _Tree(root).text("/proc/cpuinfo")
    return len(set(re.findall(r"^physical id\s*:\s*(\d+)", text, re.M)))


# --- the host -------------------------------------------------------------------------------


def _host(tree: _Tree, own: bool) -> Host:
    memory = tree.text("/proc/meminfo")
    rlimits = tree.text("/proc/self/limits")
    return Host(
        cpus=_online(tree, own),
        affinity=_affinity(tree, own),
        memory=(_kib(memory, "MemTotal") or 0) or (_pages() if own else 0),
        swap=_kib(memory, "SwapTotal") or 0,
        free=_kib(memory, "MemAvailable"),
        address_space=_soft(rlimits, "Max address space"),
        files=_soft(rlimits, "Max open files"),
    )


def _online(tree: _Tree, own: bool) -> frozenset[int]:
    found = cpu_list(tree.text("/sys/devices/system/cpu/online"))
    if not found:
        listed = re.findall(r"^processor\s*:\s*(\d+)", tree.text("/proc/cpuinfo"), re.M)
        found = frozenset(map(int, listed))
    return found or frozenset(range((os.cpu_count() or 1) if own else 0))


def _affinity(tree: _Tree, own: bool) -> frozenset[int]:
    found = re.search(r"^Cpus_allowed_list:\s*(\S+)", tree.text("/proc/self/status"), re.M)
    if found or not own:
        return cpu_list(found[1]) if found else frozenset()
    return frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else frozenset()


def _kib(text: str, name: str) -> int | None:
    found = re.search(rf"^{name}:\s*(\d+) kB", text, re.M)
    return int(found[1]) * 1024 if found else None


def _pages() -> int:
    """Bytes of memory on a host without ``/proc``; 0 where it does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 0


def _soft(text: str, name: str) -> int | None:
    found = re.search(rf"^{name}\s+(\S+)", text, re.M)
    return whole(found[1]) if found else None


# --- control groups -------------------------------------------------------------------------


def _chains(tree: _Tree, wanted: Mapping[str, Sequence[str]]) -> Iterator[list[Group]]:
    """For each hierarchy, this process's group and those above it, as far as they are mounted."""
    own = list(_own_groups(tree.text("/proc/self/cgroup")))
    by_hierarchy: dict[frozenset[str], list[_Mount]] = {}
    for mount in _mounts(tree):
        if not mount.controllers or mount.controllers & wanted.keys():
            by_hierarchy.setdefault(mount.controllers, []).append(mount)
    for controllers, mounts in by_hierarchy.items():
        names = [n for c, files in wanted.items() if not controllers or c in controllers
                 for n in files]  # fmt: skip
        for folders in _folders(tree, mounts, _path_of(own, controllers)):
            yield [_group(tree, folder, names) for folder in folders]


def _group(tree: _Tree, folder: str, names: Sequence[str]) -> Group:
    files = {name: text for name in names if (text := tree.text(f"{folder}/{name}"))}
    return Group(path=folder, files=files)


def _own_groups(text: str) -> Iterator[tuple[frozenset[str], str]]:
    """Controllers and path of each line of ``/proc/self/cgroup``; version 2 has no controllers."""
    for line in text.splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if path.startswith("/"):
            yield frozenset(filter(None, controllers.split(","))), path


def _path_of(own: Sequence[tuple[frozenset[str], str]], controllers: frozenset[str]) -> str:
    """This process's group in a hierarchy; the top where nobody says."""
    for named, path in own:
        if named & controllers or (not named and not controllers):
            return path
    return "/"


def _mounts(tree: _Tree) -> list[_Mount]:
    found: dict[str, _Mount] = {}
    for line in tree.text("/proc/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        top, point = map(unescaped, fields[3:5])
        found.pop(point, None)  # what is mounted last hides the others
        if kind[0] in ("cgroup", "cgroup2"):
            options = kind[2].split(",") if kind[0] == "cgroup" else ()
            named = frozenset(FILES.keys() & set(options))
            if named or kind[0] == "cgroup2":
                found[point] = _Mount(controllers=named, top=top, point=point)
    return list(found.values()) or _usual_mounts(tree)


def unescaped(field: str) -> str:
    """A path of ``mountinfo``, whose spaces are written as octal numbers."""
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), field)


def _usual_mounts(tree: _Tree) -> list[_Mount]:
    """Where hierarchies are mounted on every system, should ``mountinfo`` not be readable."""
    if tree.text(f"{_MOUNTS}/cgroup.controllers"):
        return [_Mount(controllers=frozenset(), top="/", point=_MOUNTS)]
    found: dict[frozenset[str], _Mount] = {}
    for name in tree.names(_MOUNTS):
        named = frozenset(FILES.keys() & set(name.split(",")))
        if named or name == _UNIFIED:  # of "cpu", "cpu,cpuacct" and "cpuacct,cpu" one is enough
            found.setdefault(named, _Mount(controllers=named, top="/", point=f"{_MOUNTS}/{name}"))
    return list(found.values())


def _folders(tree: _Tree, mounts: Sequence[_Mount], path: str) -> list[list[str]]:
    """Folders from this process's group up to the mount, for each mount that shows the group.

    Where none does, the mount that everybody looks at stands for it: inside a container it shows
    the container's own group, whatever its path is called outside.
    """
    found = []
    for mount in mounts:
        inside = _below(path, mount.top)
        if inside is None:
            inside = _searched(tree, mount, path)
        if inside is not None and tree.has_folder(mount.point + inside):
            parts = [part for part in inside.split("/") if part]
            lengths = range(len(parts), -1, -1)
            found.append(["/".join([mount.point, *parts[:length]]) for length in lengths])
    if found:
        return found
    usual = next((m for m in mounts if m.point.startswith(_MOUNTS)), mounts[0])
    return [[usual.point]]


def _below(path: str, top: str) -> str | None:
    """A group's path below the one that a mount shows, ``/…`` or empty; None when it is not.

    ``/..`` leads out of the namespace: nothing that is mounted shows that group.
    """
    top, path = top.rstrip("/"), path.rstrip("/")
    if path != top and not path.startswith(f"{top}/"):
        return None
    inside = path[len(top) :]
    return None if ".." in inside.split("/") else inside


def _searched(tree: _Tree, mount: _Mount, path: str) -> str | None:
    """The same where the mount is older than the namespace: it shows groups above, and their
    names on the way down are not told (``unshare -C``, sandboxes that keep the host's ``/sys``).

    The group is the one that lists this process.
    """
    (above, rest), (levels, named) = _climbed(path), _climbed(mount.top)
    found = re.search(r"^Pid:\s*(\d+)", tree.text("/proc/self/status"), re.M)
    if named or levels <= above or found is None:
        return None
    folders = [""]
    for _ in range(levels - above):
        folders = [f"{one}/{name}" for one in folders for name in tree.folders(mount.point + one)]
        if len(folders) > _MOST:
            return None
    inside = (folder + rest for folder in folders)
    return next((i for i in inside if tree.lists(f"{mount.point}{i}/cgroup.procs", found[1])), None)


def _climbed(path: str) -> tuple[int, str]:
    """How many steps a path leads up, and where it leads from there."""
    parts = [part for part in path.split("/") if part]
    steps = next((i for i, part in enumerate(parts) if part != ".."), len(parts))
    return steps, "".join(f"/{part}" for part in parts[steps:])
