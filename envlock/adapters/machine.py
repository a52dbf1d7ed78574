"""What this machine is: facts that do not move while it is idle."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path

from envlock.model.facts import Machine
from envlock.model.profile import Profile


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _field(lines: list[str], key: str, separator: str) -> str:
    for line in lines:
        name, _, value = line.partition(separator)
        if name.strip() == key:
            return value.strip().strip("\"'")
    return ""


def read_machine() -> Machine:
    """Operating system, kernel and processor; a fact that cannot be read is empty."""
    return Machine(
        os=_field(_lines("/etc/os-release"), "PRETTY_NAME", "=") or platform.system(),
        kernel=platform.release(),
        cpu=_field(_lines("/proc/cpuinfo"), "model name", ":") or platform.machine(),
    )


def find_root(profile: Profile, env: Mapping[str, str]) -> str:
    """Root of the vendor's stack; empty when it is not on this machine.

    The path is kept as it is linked: compilers look at the folder's own name.
    """
    named = [env[variable] for variable in profile.root_variables if env.get(variable)]
    return next((root for root in (*named, *profile.roots) if os.path.isdir(root)), "")


def read_release(profile: Profile, root: str) -> str:
    """Release of the stack: first line of the first version file, else the link's real name."""
    if not root:
        return ""
    for name in profile.release_files:
        lines = _lines(os.path.join(root, name))
        if lines and lines[0].strip():
            return lines[0].strip()
    real = os.path.basename(os.path.realpath(root))
    return real if real != os.path.basename(root) else ""
