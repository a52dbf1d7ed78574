"""The vendor's environment: its script sourced once, its variables for every child."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from envlock.adapters.activation import read_stack
from envlock.model.facts import Finding
from envlock.model.profile import Profile


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
    stack = read_stack(profile, env)
    if stack is None:
        return Activation(env=env, findings=(_no_stack(profile),))
    if stack.variables is None:
        return Activation(env=env, root=stack.root, findings=(_broken(stack.script),))
    if stack.active:  # what the shell has now is what the user works with
        return Activation(env=env, root=stack.root)
    found = (_not_active(stack.script),)
    return Activation(env=stack.variables, root=stack.root, active=False, findings=found)


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
