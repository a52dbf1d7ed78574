"""What this machine is: facts that do not move while it is idle."""

from __future__ import annotations

import glob
import os
import platform
from collections.abc import Mapping
from pathlib import Path

from envlock.model.facts import Machine
from envlock.model.profile import Profile


def under(below: str, path: str) -> str:
    """A path of the machine, below the folder that stands for its ``/``."""
    return path if below == "/" else os.path.join(below, path.lstrip("/"))


def shown(below: str, path: str) -> str:
    """The reverse of :func:`under`: a path as the machine itself says it."""
    inside = below != "/" and path.startswith(f"{below}/")
    return path[len(below) :] if inside else path


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


def read_machine(below: str = "/") -> Machine:
    """Operating system, kernel and processor; a fact that cannot be read is empty.

    Args:
        below: the folder that stands for ``/``.
    """
    kernel = _lines(under(below, "/proc/sys/kernel/osrelease"))
    return Machine(
        os=_field(_lines(under(below, "/etc/os-release")), "PRETTY_NAME", "=") or platform.system(),
        kernel=kernel[0].strip() if kernel else platform.release(),
        cpu=_field(_lines(under(below, "/proc/cpuinfo")), "model name", ":") or platform.machine(),
    )


def find_root(profile: Profile, env: Mapping[str, str], below: str = "/") -> str:
    """Root of the vendor's stack; empty when it is not on this machine.

    The path is kept as it is linked: compilers look at the folder's own name. What a variable names
    has to look like the profile's stack: two vendors read one variable.
    """
    named = [env[variable] for variable in profile.root_variables if env.get(variable)]
    own = [root for root in named if _looks_own(profile, under(below, root))]
    places = (root for root in (*own, *profile.roots) if os.path.isdir(under(below, root)))
    return next(places, "")


def _looks_own(profile: Profile, folder: str) -> bool:
    signs = profile.root_signs
    called = (os.path.basename(path.rstrip("/")) for path in (folder, os.path.realpath(folder)))
    return (
        not signs
        or any(name.startswith(profile.name) for name in called)
        or any(glob.glob(os.path.join(glob.escape(folder), sign)) for sign in signs)
    )


def read_releases(profile: Profile, root: str, below: str = "/") -> dict[str, str]:
    """What each of the profile's version files says, first lines, in order; the link's real name
    last, as ``""``, where the root is a link."""
    found = {}
    for name in profile.release_files if root else ():
        lines = _lines(under(below, os.path.join(root, name)))
        if lines and lines[0].strip():
            found[name] = lines[0].strip()
    real = os.path.basename(os.path.realpath(under(below, root))) if root else ""
    return {**found, "": real} if real != os.path.basename(root) else found


def read_release(profile: Profile, root: str, below: str = "/") -> str:
    """Release of the stack: first line of the first version file, else the link's real name."""
    return next(iter(read_releases(profile, root, below).values()), "")
