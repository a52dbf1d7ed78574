"""The vendor's environment: whether this shell has it, and what the vendor's script makes of it.

The one place that judges this. A search path that leads into the stack proves little: an image may
set one library folder of several for everybody. So the script is sourced, and what it adds to the
search path has to be there already.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from envlock.adapters import process
from envlock.adapters.machine import find_root, under
from envlock.errors import ProgramFailed
from envlock.model.profile import Profile

#: Seconds for a script whose variables are needed, and for one that is only asked about.
_SECONDS = 60.0
_MOMENT = 2.0
_GRACE = 1.0
# the scripts read unset variables, so never `set -u`; what they print is of no use
_SOURCE = 'source "$1" >/dev/null 2>&1; command env -0 > "$2"'
# bash's own, or true for that one shell only
_PRIVATE = frozenset({"_", "SHLVL", "PWD", "OLDPWD", "BASH_ENV", "BASHOPTS", "SHELLOPTS"})
_LIBRARIES = "LD_LIBRARY_PATH"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A vendor's stack on this machine, and the shell that envlock was started from.

    Attributes:
        root: the stack's folder as linked, not resolved.
        script: path of the script that activates it, whether it is there or not.
        variables: the caller's environment once the script was sourced; None when that gave none.
        active: whether the caller's shell has it already.
    """

    root: str
    script: str
    variables: Mapping[str, str] | None
    active: bool


def read_stack(
    profile: Profile, env: Mapping[str, str], seconds: float = _SECONDS, below: str = "/"
) -> Stack | None:
    """Sources the profile's script once, in bash.

    Args:
        profile: names the script and where the stack may be.
        env: the caller's environment.
        seconds: the script's time.
        below: the folder that stands for ``/``.

    Returns:
        None where the profile has no script, or its stack is not on this machine.
    """
    # never a path out of a manifest: what is found here is sourced
    root = find_root(profile, env, below) if profile.env_script else ""
    if not root:
        return None
    script = os.path.join(root, profile.env_script)
    place = under(below, script)
    variables = _sourced(place, env, seconds) if os.path.isfile(place) else None
    active = variables is not None and _libraries(variables) <= _libraries(env)
    return Stack(root=root, script=script, variables=variables, active=active)


def sleeping_script(profile: Profile, env: Mapping[str, str]) -> str:
    """The script that activates the vendor's stack, where the stack is there, sourcing the script
    works and this shell has not done it; else empty."""
    stack = read_stack(profile, env, _MOMENT)
    return "" if stack is None or stack.variables is None or stack.active else stack.script


def _sourced(script: str, env: Mapping[str, str], seconds: float) -> dict[str, str] | None:
    clean = {key: value for key, value in env.items() if key not in _PRIVATE}
    with tempfile.TemporaryDirectory(prefix="envlock-") as folder:
        answer = os.path.join(folder, "env")
        argv = ["bash", "--noprofile", "--norc", "-c", _SOURCE, "bash", script, answer]
        try:
            done = process.run(
                argv, env=clean, cwd=folder, timeout=seconds, grace=min(_GRACE, seconds / 4)
            )
            raw = Path(answer).read_bytes()
        except (OSError, ProgramFailed):  # no bash on this shell's PATH, for one
            return None
    if done.code != 0 or not raw.endswith(b"\0"):
        return None
    pairs = (item.partition(b"=") for item in raw.split(b"\0") if item)
    found = {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
    kept = {name: env[name] for name in _PRIVATE if name in env and name != "BASH_ENV"}
    return {**{k: v for k, v in found.items() if k not in _PRIVATE}, **kept}


def _libraries(env: Mapping[str, str]) -> frozenset[str]:
    return frozenset(part for part in env.get(_LIBRARIES, "").split(os.pathsep) if part)
