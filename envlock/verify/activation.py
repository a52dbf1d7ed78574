"""The vendor's environment: its script sourced once, its variables for every child."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from envlock.adapters import process
from envlock.adapters.machine import find_root
from envlock.model.facts import Finding
from envlock.model.profile import Profile

_SECONDS = 60.0
# the scripts read unset variables, so never `set -u`; what they print is of no use
_SOURCE = 'source "$1" >/dev/null 2>&1; command env -0 > "$2"'
# bash's own, or true for that one shell only
_PRIVATE = frozenset({"_", "SHLVL", "PWD", "OLDPWD", "BASH_ENV", "BASHOPTS", "SHELLOPTS"})
_LIBRARIES = "LD_LIBRARY_PATH"


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """The environment for children.

    Attributes:
        env: the caller's environment with what the vendor's script adds.
        root: the stack's folder as linked, not resolved; empty when there is none.
        active: whether the caller's shell already had it.
        findings: what to tell.
    """

    env: Mapping[str, str]
    root: str = ""
    active: bool = True
    findings: tuple[Finding, ...] = ()


def activate(profile: Profile, env: Mapping[str, str]) -> Activation:
    """Sources the profile's script once, in bash.

    Args:
        profile: names the script and where the stack may be; without a script nothing happens.
        env: the caller's environment.
    """
    if not profile.env_script:
        return Activation(env=env)
    # never a path out of a manifest: what is found here is sourced
    root = find_root(profile, env)
    if not root:
        return Activation(env=env, findings=(_no_stack(profile),))
    script = os.path.join(root, profile.env_script)
    sourced = _sourced(script, env) if os.path.isfile(script) else None
    if sourced is None:
        return Activation(env=env, root=root, findings=(_broken(script),))
    active = _libraries(sourced) <= _libraries(env)
    if active:  # what the shell has now is what the user works with
        return Activation(env=env, root=root)
    return Activation(env=sourced, root=root, active=False, findings=(_not_active(script),))


def _sourced(script: str, env: Mapping[str, str]) -> dict[str, str] | None:
    clean = {key: value for key, value in env.items() if key not in _PRIVATE}
    with tempfile.TemporaryDirectory(prefix="envlock-") as folder:
        answer = os.path.join(folder, "env")
        argv = ["bash", "--noprofile", "--norc", "-c", _SOURCE, "bash", script, answer]
        done = process.run(argv, env=clean, cwd=folder, timeout=_SECONDS)
        try:
            raw = Path(answer).read_bytes()
        except OSError:
            return None
    if done.code != 0 or not raw.endswith(b"\0"):
        return None
    pairs = (item.partition(b"=") for item in raw.split(b"\0") if item)
    found = {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
    kept = {name: env[name] for name in _PRIVATE if name in env and name != "BASH_ENV"}
    return {**{k: v for k, v in found.items() if k not in _PRIVATE}, **kept}


def _libraries(env: Mapping[str, str]) -> frozenset[str]:
    return frozenset(part for part in env.get(_LIBRARIES, "").split(os.pathsep) if part)


def _not_active(script: str) -> Finding:
    return Finding(
        code="stack.not-activated",
        subject=script,
        what="this shell has not sourced it; the checks ran with its variables",
        why="what you start from this shell does not find the stack's libraries",
        hint=f"source {script}",
    )


def _broken(script: str) -> Finding:
    return Finding(
        code="stack.env-script",
        subject=script,
        what="sourcing it in bash gave no environment; the checks ran without it",
        hint=f"try: bash -c 'source {script}; env'",
    )


def _no_stack(profile: Profile) -> Finding:
    return Finding(
        code="stack.not-found",
        subject=profile.name,
        what=f"the stack is in none of {', '.join(profile.roots)}",
        why="its libraries may not be found",
        hint=f"set {profile.root_variables[0]}" if profile.root_variables else "",
    )
