"""A way around a vendor's own metadata. Pure.

Some images ship a torch that requires another triton than the one beside it, or a distribution
that exists nowhere. Every resolver "repairs" that by replacing the vendor's build, whatever was
asked for; under constraints it finds no solution. What was asked for is harmless all the same:
the plan without the repair can be installed, one by one. Of a tool that tells who requires what,
the plan is cut; another is asked again, about metadata without what is not met.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from packaging.utils import canonicalize_name

from envlock.adapters.installed import Installed
from envlock.adapters.installer import Change, Plan, Stated, counting, pins
from envlock.guard.advice import Build, unmet
from envlock.guard.command import Request
from envlock.model.facts import Finding
from envlock.model.health import parse_requirement, satisfies

#: With these, the change is what was asked for and no repair, or what is asked for is not known.
WANTED = (
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
    "--group",
    "--requirements-from-script",
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
    if request.given.has(*WANTED) or len(repaired) < len(lost):
        return None
    if any(change.new is None or change.requires is None for change in repaired):
        return None
    if any(one.source and one.name in held for one in request.asked):
        return None
    if not request.asked or _unread(request):
        return None
    needed = _reached(request, changes, held)
    if needed is None or changes.keys() - lost - set(needed) - _repairing(changes, held):
        return None
    return _pinned(request, [changes[name] for name in needed])


#: Options whose values are lists that a tool reads.
_LISTS = ("--requirement", "--requirements", "--constraint", "--constraints")


def _unread(request: Request) -> bool:
    """Whether a list, named anywhere, is one that only the tool reads: what it asks for or bounds
    is not part of the request."""
    named = [file for one in (request.given, request.listed) for name in _LISTS
             for file in one.value(name)]  # fmt: skip
    return any("://" in file and not file.startswith("file://") for file in named)


def _repairing(changes: Mapping[str, Change], held: Mapping[str, Build]) -> set[str]:
    """The changes that protected builds, as they are or as they would be, lead to."""
    waiting = [raw for build in held.values() for raw in build.requires]
    waiting += [raw for name in held if name in changes for raw in changes[name].requires or ()]
    found: set[str] = set()
    while waiting:
        requirement = parse_requirement(waiting.pop())
        name = canonicalize_name(requirement.name) if requirement else ""
        if name in changes and name not in found:
            found.add(name)
            waiting += changes[name].requires or ()
    return found


def pins_of(request: Request, plan: Plan) -> tuple[str, ...] | None:
    """A whole plan, to be installed without dependencies; None where it cannot be written so."""
    if request.given.has(*WANTED) or any(change.new is None for change in plan.changes):
        return None
    return _pinned(request, plan.changes)


def _pinned(request: Request, changes: Iterable[Change]) -> tuple[str, ...] | None:
    """Versions, and sources as they were typed; None for one that has no name yet, or that only a
    file names: its path may be relative to that file."""
    editable = {one: f"--editable={one}" for one in request.typed.value("--editable")}
    typed = editable | {word: word for word in request.typed.words}
    sources = {one.name: typed.get(one.raw, "") for one in request.asked if one.source}
    if "" in sources or "" in sources.values():
        return None
    found: list[str] = []
    for change in changes:
        pin = pins([(change.name, change.new or "")], arbitrary=True)
        found += [sources[change.name]] if change.name in sources else pin
    return tuple(found)


def without_unmet(
    dists: Iterable[Installed], held: Mapping[str, Build], markers: Mapping[str, str]
) -> tuple[list[Stated], list[Finding]]:
    """What distributions would state without the requirements that no resolver can meet and keep
    every build: those of protected builds, and those that others have of them, which what is
    installed has never met.

    Returns:
        the statements, and for each of them what it leaves out.
    """
    there = list(dists)
    installed = {dist.name: dist.version for dist in there}
    stated, findings = [], []
    for dist in there:
        unmet = [
            raw
            for raw in counting(dist.metadata.requires, markers)
            if _unmet(raw, installed, set(held) if dist.name not in held else None)
        ]
        if unmet:
            kept = tuple(raw for raw in dist.metadata.requires if raw not in unmet)
            extras = dist.metadata.extras
            stated.append(
                Stated(name=dist.name, version=dist.version, requires=kept, extras=extras)
            )
            findings.append(_left_out(dist, unmet))
    return stated, findings


def _unmet(raw: str, installed: Mapping[str, str], among: set[str] | None) -> bool:
    """Whether what is installed does not meet a requirement, of one ``among`` some names."""
    found = parse_requirement(raw)
    name = canonicalize_name(found.name) if found else ""
    if found is None or (among is not None and name not in among):
        return False
    return name not in installed or not satisfies(installed[name], found.specifier)


def _left_out(dist: Installed, unmet: list[str]) -> Finding:
    shown = "' and '".join(unmet)
    return Finding(
        code="guard.repair",
        subject=dist.name,
        what=f"'{dist.name} {dist.version}' requires '{shown}', and that is not met",
        why="to meet it, a resolver would replace a vendor build",
        hint="the builds stay, and what was asked for is installed beside them with --no-deps",
    )


def _reached(
    request: Request, changes: Mapping[str, Change], held: Mapping[str, Build]
) -> list[str] | None:
    """The changes that the request needs, without what is needed through a protected build.

    None when one of them, or the request itself, is not satisfied with a protected build.
    """
    waiting = [str(asked.requirement or asked.name) for asked in request.asked]
    if not all(waiting):
        return None  # a folder or a repository: only its build knows its name
    if any(one.requirement is None and one.raw.endswith("]") for one in request.asked):
        return None  # extras of a source: pip 23.0 does not tell in its report that they are asked
    found: list[str] = []
    while waiting:
        requirement = parse_requirement(waiting.pop())
        name = canonicalize_name(requirement.name) if requirement else ""
        change = changes.get(name)
        installed = name in held or change is None
        if requirement is None or (installed and requirement.extras):
            return None  # what an extra of something that is there needs, no change tells
        if name in held:
            if unmet(str(requirement), name, held[name].version):
                return None
            continue
        if change is None or name in found:
            continue
        if change.requires is None:
            return None
        found.append(name)
        waiting += change.requires
    return sorted(found)
