"""Rules about what a protected build stands on: its files, its needs, its place on ``sys.path``,
and what is built against it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from packaging.utils import canonicalize_name

from envlock.adapters.installer import Change, Known
from envlock.guard.advice import in_place
from envlock.guard.case import Case, Protected, Source, loss
from envlock.guard.command import Asked
from envlock.model.facts import Finding
from envlock.model.health import parse_requirement, satisfies
from envlock.model.label import same_version


def shadowed_above(case: Case) -> Iterator[Finding]:
    """A copy in an environment that shows another one through, with the protected build in it."""
    above = {build.name: build for build in case.evidence.above}
    copies: dict[str, str] = {}
    for change in case.plan.changes:
        if change.name in above and change.new is not None:
            copies[change.name] = change.new
    if case.plan.known is Known.UNKNOWN and case.request.subcommand == "install":
        for asked in case.request.asked:
            if asked.name in above and _wants_a_copy(case, asked, above[asked.name]):
                copies[asked.name] = asked.raw
    for name, copy in copies.items():
        if name in case.held:
            continue  # it is in the target as well: other rules see to that one
        what = f"'{copy}' would hide '{above[name].version}' of the environment above"
        hint = "install it without dependencies: what is above is found without a copy"
        yield loss(above[name], what, "what is in this environment is imported first", hint)


def _wants_a_copy(case: Case, asked: Asked, build: Protected) -> bool:
    if asked.source or case.request.upgrades or case.request.reinstalls or case.request.elsewhere:
        return True
    wanted = asked.requirement
    return wanted is None or not satisfies(build.version, wanted.specifier)


def shadowed_source(case: Case) -> Iterator[Finding]:
    """A source tree with an import package of the same name as one of the protected build's."""
    for source in case.evidence.sources:
        for build in case.held.values():
            names = sorted(source.packages & case.evidence.imports.get(build.name, frozenset()))
            if names:
                what = f"'{source.raw}' has an import package '{names[0]}' of its own"
                why = f"'{names[0]}' is '{build.version}' now, and only one of them is imported"
                yield loss(build, what, why)


def overlap(case: Case) -> Iterator[Finding]:
    """Another distribution, whatever its name, writes or deletes files of a protected build.

    No tool looks at this: pip 26.3 and uv 0.13 overwrite silently, and removing the one
    distribution later deletes the files of the other (pypa/pip#4625).
    """
    for found in case.evidence.overlaps:
        build = case.held.get(found.build)
        change = next((one for one in case.plan.changes if one.name == found.by), None)
        if build is None or change is None:
            continue
        gone = change.new is None or case.request.takes_away
        verb = "deletes" if gone else "writes"
        more = f" and {len(found.places) - 1} more" if len(found.places) > 1 else ""
        shown = f"{change.name} {change.new or change.old}"
        what = f"'{shown}' {verb} '{found.places[0].partition('/')[2]}'{more}"
        hint = f"leave '{change.name}' out"
        yield loss(build, what, f"these are files of '{build.name} {build.version}'", hint)
    for name in case.evidence.unlisted:
        yield Finding(
            code="",
            subject=name,
            what="its file list could not be had",
            why="a wheel may write over files of a protected build",
            hint="what it has written is looked at afterwards",
            level="info",
        )


def range_(case: Case) -> Iterator[Finding]:
    """What a protected build needs is moved out of the range that its metadata names.

    Only where that was satisfied: what a vendor's own metadata has always said and the image has
    never kept is no reason to refuse anything.
    """
    if case.request.elsewhere and not case.request.takes_away:
        return
    for change in _moves(case):
        for build in case.held.values():
            for raw in build.requires:
                if change.name not in case.held and _leaves(raw, change, case):
                    moved = f"be '{change.new}'" if change.new else "be removed"
                    what = f"'{change.name} {change.old or ''}".rstrip() + f"' would {moved}"
                    why = f"'{build.name} {build.version}' requires '{raw}'"
                    yield loss(build, what, why, _stay(raw, change, case))


def _moves(case: Case) -> Iterator[Change]:
    """What changes version; where nobody could be asked, what is pinned on the command line."""
    if case.request.takes_away:
        moved = (*case.plan.changes, *_pinned(case))
        yield from (replace(change, new=None) for change in moved if change.old)
        return
    yield from case.plan.changes
    yield from _pinned(case)


def _pinned(case: Case) -> Iterator[Change]:
    if case.plan.known is not Known.UNKNOWN or case.request.subcommand != "install":
        return
    planned = {change.name for change in case.plan.changes}
    for asked in case.request.asked:
        pins = [one for one in (asked.requirement.specifier if asked.requirement else ())
                if one.operator in ("==", "===") and not one.version.endswith(".*")]  # fmt: skip
        if pins and asked.name not in planned:
            old = case.evidence.installed.get(asked.name)
            yield Change(name=asked.name, old=old, new=pins[0].version)


def _leaves(raw: str, change: Change, case: Case) -> bool:
    """Whether a requirement is satisfied now, or was in the healthy state, and would not be."""
    requirement = parse_requirement(raw)
    if requirement is None or canonicalize_name(requirement.name) != change.name:
        return False
    if change.new is not None and satisfies(change.new, requirement.specifier):
        return False
    before = change.old or case.evidence.healthy.get(change.name)
    if before is None or not satisfies(before, requirement.specifier):
        return False
    return change.new is None or not (change.old and same_version(change.new, change.old))


def _stay(raw: str, change: Change, case: Case) -> str:
    if change.name in case.request.names and change.new is not None:
        return f"ask for '{raw}' instead"
    return "" if change.new else f"leave '{change.name}' out"


def isolated_build(case: Case) -> Iterator[Finding]:
    """It would be built in an environment of its own, against the public build of that name.

    The result is loaded with the vendor's build, whose ABI is another (Dao-AILab/flash-attention
    #958, vllm-project/vllm#21745). ``--no-build-isolation`` builds against what is installed.
    """
    hint = f"'{' '.join(in_place(case.request.tool))}' builds against what is installed"
    for source in case.evidence.sources:
        if not (case.evidence.isolated and source.isolated):
            yield from _built_before(case, source)
            continue
        if source.requires is None:
            yield _perhaps(source, hint)
            continue
        for build in (case.held[name] for name in sorted(source.requires & case.held.keys())):
            what = f"'{source.raw}' would be built against a public '{build.name}'"
            why = f"its build requires '{build.name}', and builds happen in isolation"
            yield loss(build, what, why, hint)
        yield from _imported(case, source, hint)


def _built_before(case: Case, source: Source) -> Iterator[Finding]:
    if case.request.tool != "uv" or case.request.given.has("--no-cache", "--no-cache-dir", "-n"):
        return
    for name in sorted((source.requires or frozenset()) & case.held.keys()):
        yield Finding(
            code="",
            subject=name,
            what=f"'{source.raw}' may come from uv's cache, built against another '{name}'",
            why="uv does not tell a wheel that it built in isolation from one that it did not",
            hint="'--no-cache' builds it anew",
        )


def _imported(case: Case, source: Source, hint: str) -> Iterator[Finding]:
    """A ``setup.py`` that imports a build which its isolated environment will not have."""
    for build in case.held.values():
        names = sorted(source.imports & case.evidence.imports.get(build.name, frozenset()))
        if names and not (source.requires or frozenset()) & {build.name}:
            yield Finding(
                code="",
                subject=build.name,
                what=f"the setup.py of '{source.raw}' imports '{names[0]}'",
                why="a build in isolation does not have it",
                hint=hint,
            )


def _perhaps(source: Source, hint: str) -> Finding:
    return Finding(
        code="",
        subject=source.raw,
        what="it is built first, and what its build requires is not known",
        why="a build in isolation that asks for a protected build gets the public one",
        hint=hint,
        level="info",
    )
