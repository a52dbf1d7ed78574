"""Processes: whether one is still there, and what this one has taken."""

from __future__ import annotations

import time
from pathlib import Path


def is_alive(pid: int) -> bool:
    """Whether it still runs; a zombie nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + 5
    while is_alive(pid):
        assert time.monotonic() < deadline, "it outlived its group"
        time.sleep(0.02)


def peak_kib() -> int:
    """The most memory that this process has had, in KiB.

    Not ``ru_maxrss``: that one is inherited from whoever started the process.
    """
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
