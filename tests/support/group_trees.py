"""Machines as trees of files: what a kernel says of one, below a folder that stands for ``/``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: The limits of :func:`build_tree` where nothing limits; memory in MiB.
HOST: Mapping[str, Any] = {
    "cpus": 128,
    "cpus_from": "host",
    "seen": 128,
    "host_cpus": 128,
    "memory": 503 * 1024,
    "memory_from": "host",
    "host_memory": 503 * 1024,
    "swap": 8 * 1024,
    "swap_from": "host",
    "host_swap": 8 * 1024,
    "processes": None,
    "processes_from": "",
    "files": 1048576,
}
_FILES = {
    "sys/devices/system/cpu/online": "0-127\n",
    "proc/meminfo": (
        f"MemTotal:       {503 * 1024**2} kB\nMemFree:        1 kB\n"
        f"MemAvailable:   {403 * 1024**2} kB\nSwapTotal:      {8 * 1024**2} kB\n"
    ),
    "proc/self/status": "Name:\tpython3\nCpus_allowed_list:\t0-127\nMems_allowed_list:\t0-7\n",
    "proc/self/limits": (
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max address space         unlimited            unlimited            bytes     \n"
        "Max open files            1048576              1048576              files     \n"
    ),
}


def mountinfo(mounts: list[str]) -> str:
    """Lines of ``/proc/self/mountinfo`` from ``TOP POINT TYPE OPTIONS``."""
    lines = ["21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw"]
    for number, mount in enumerate(mounts, 30):
        top, point, kind, options = mount.split(" ")
        lines.append(
            f"{number} 21 0:{number} {top} {point} rw,nosuid,noexec shared:{number} master:1 "
            f"- {kind} {kind} {options}"
        )
    return "\n".join(lines) + "\n"


def build_tree(root: Path, tree: Mapping[str, Any]) -> Path:
    """Writes a machine; returns the folder that stands for ``/``.

    Args:
        tree: ``groups``, ``mounts``, ``tree`` (below ``/sys/fs/cgroup``), ``files`` (below ``/``;
            None for one that is missing) and ``folders`` (where a file should be).
    """
    files = {**_FILES, **tree.get("files", {})}
    if tree.get("groups") is not None:
        files.setdefault("proc/self/cgroup", "\n".join(tree["groups"]) + "\n")
    files.setdefault("proc/self/mountinfo", mountinfo(tree.get("mounts", [])))
    files |= {f"sys/fs/cgroup/{path}": text for path, text in tree.get("tree", {}).items()}
    for path, text in files.items():
        if text is not None:
            put(root / path, str(text))
    for path in tree.get("folders", []):
        (root / path).mkdir(parents=True)
    return root


def put(path: Path, text: str) -> None:
    """Writes a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
