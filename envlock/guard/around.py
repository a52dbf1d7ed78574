"""A way around a vendor's own metadata. Pure.

Some images ship a torch that requires another triton than the one beside it, or a distribution
that exists nowhere. Every resolver "repairs" that by replacing the vendor's build, whatever was
asked for; under constraints it finds no solution. What was asked for is harmless all the same:
the plan without the repair can be installed, one by one.
"""

from __future__ import annotations

from collections.abc import Mapping

from packaging.utils import canonicalize_name

from envlock.adapters.installer import Change, Plan, pins
from envlock.guard.advice import Build, unmet
from envlock.guard.command import Request
from envlock.model.health import parse_requirement

#: With these, the change is what was asked for and no repair.
_WANTED = (
    "--upgrade",
    "--upgrade-package",
    "--force-reinstall",
    "--ignore-installed",
    "--reinstall",
    "--reinstall-package",
    "--exact",
    "--require-hashes",
    "--only-deps",
    "--target",
    "--prefix",
    "--root",
    "--user",
    "--overrides",
)


def pins_around(
    request: Request, plan: Plan, held: Mapping[str, Build], lost: frozenset[str]
) -> tuple[str, ...] | None:
    """What to install without dependencies so that everything asked for is there.

    Args:
        lost: protected builds that the plan would replace.

    Returns:
        Requirements, possibly none; or None when something else than the protected builds' own
        metadata wants the change, or the tool does not tell who requires what.
    """
    changes = {change.name: change for change in plan.changes}
    repaired = [changes[name] for name in lost if name in changes]
    if request.given.has(*_WANTED) or len(repaired) < len(lost):
        return None
    if any(change.new is None or change.requires is None for change in repaired):
        return None
    if any(asked.source and asked.name in held for asked in request.asked):
        return None
    needed = _reached(request, changes, held)
    if needed is None:
        return None
    sources = {asked.name: asked.raw for asked in request.asked if asked.source}
    found = []
    for name in needed:
        change = changes[name]
        found += [sources[name]] if name in sources else pins([(name, change.new or "")],
                                                              arbitrary=True)  # fmt: skip
    return tuple(found)


def _reached(
    request: Request, changes: Mapping[str, Change], held: Mapping[str, Build]
) -> list[str] | None:
    """The changes that the request needs, without what is needed through a protected build.

    None when one of them, or the request itself, is not satisfied with a protected build.
    """
    waiting = [str(asked.requirement or asked.name) for asked in request.asked]
    if not all(waiting):
        return None  # a folder or a repository: only its build knows its name
    found: list[str] = []
    while waiting:
        requirement = parse_requirement(waiting.pop())
        name = canonicalize_name(requirement.name) if requirement else ""
        if name in held:
            if unmet(str(requirement), name, held[name].version):
                return None
            continue
        change = changes.get(name)
        if change is None or name in found:
            continue
        if change.requires is None:
            return None
        found.append(name)
        waiting += change.requires
    return sorted(found)
