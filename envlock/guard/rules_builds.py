"""Rules about the protected builds themselves: replaced, removed, installed again, shadowed. Pure.

Versions are compared for equality only: a newer public build is as much a loss as an older one.
"""

from __future__ import annotations

from collections.abc import Iterator

from envlock.adapters.installer import Known
from envlock.guard.advice import cause, hint_for
from envlock.guard.asked import parse_asked
from envlock.guard.case import Case, loss
from envlock.model.facts import Finding
from envlock.model.health import satisfies
from envlock.model.label import same_version

#: The version that a plan gives what has to be built first.
_UNBUILT = "?"


def shadowed(case: Case) -> Iterator[Finding]:
    """Another copy beside the protected one: whichever comes first on ``sys.path`` is imported."""
    if not case.request.elsewhere:
        return
    copies = {b.name: (b, f"'{c.new}'") for c, b in case.planned() if c.new is not None}
    copies |= {b.name: (b, f"'{a.raw}'") for a, b in case.unforeseen()}
    for build, copy in copies.values():
        what = f"a second copy, {copy}, would stand beside '{build.version}'"
        why = f"'{case.request.elsewhere}' ignores what is installed"
        hint = (
            "'--no-deps' leaves what is installed alone"
            if not case.request.names & {build.name}
            else f"leave '{build.name}' out"
        )
        yield loss(build, what, why, hint)


def removed(case: Case) -> Iterator[Finding]:
    """Uninstalled, or not in the set that a tool makes exact."""
    for change, build in case.planned():
        if change.new is None and not case.request.elsewhere:
            what = f"'{build.installed}' would be removed"
            hint = f"leave '{build.name}' out: no index can give it back"
            yield loss(build, what, cause(change, case.request, case.plan, case.held), hint)


def replaced(case: Case) -> Iterator[Finding]:
    """Another version takes its place."""
    for change, build in case.planned():
        if change.new is None or case.request.elsewhere or same_version(change.new, build.version):
            continue
        new = f"'{change.new}'" if change.new != _UNBUILT else "what is built from its source"
        what = f"'{build.installed}' would be replaced by {new}"
        why = cause(change, case.request, case.plan, case.held)
        yield loss(build, what, why, hint_for(build.name, case.request))


def reinstalled(case: Case) -> Iterator[Finding]:
    """The same version from bytes that are not known to be the same."""
    for change, build in case.planned():
        if (
            change.new is None
            or case.request.elsewhere
            or not same_version(change.new, build.version)
        ):
            continue
        if build.sha256 and change.sha256 == build.sha256:
            continue
        bytes_ = "other bytes" if build.sha256 and change.sha256 else "bytes that are not known"
        what = f"'{build.installed}' would be installed again from {bytes_}"
        hint = "'envlock restore' puts the kept bytes back" if build.sha256 else ""
        yield loss(build, what, cause(change, case.request, case.plan, case.held), hint)


def asked_upgrade(case: Case) -> Iterator[Finding]:
    """Nobody could be asked, and the command wants the newest or a fresh copy by name."""
    request = case.request
    listed = request.given.value("--upgrade-package") + request.given.value("--reinstall-package")
    named = sorted({parse_asked(one).name for one in listed})
    anew = {
        build.name: asked.raw
        for asked, build in case.unforeseen()
        if not asked.source and (request.upgrades or request.reinstalls or build.name in named)
    }
    in_tree = request.subcommand == "install" and not request.given.has("--no-deps")
    if case.plan.known is Known.UNKNOWN and in_tree:
        anew = {name: name for name in named if name in case.held} | anew
    for name, raw in anew.items():
        build = case.held[name]
        what = f"'{build.installed}' would be replaced by what an index has"
        yield loss(build, what, f"'{raw}' is asked for anew", hint_for(name, request))


def asked_version(case: Case) -> Iterator[Finding]:
    """Nobody could be asked, and what is installed does not satisfy what is asked for."""
    for asked, build in case.unforeseen():
        wanted = asked.requirement
        if wanted is None or asked.source or not wanted.specifier:
            continue
        if not satisfies(build.version, wanted.specifier):
            what = f"'{build.installed}' would be replaced: it is not '{wanted.specifier}'"
            hint = hint_for(build.name, case.request)
            yield loss(build, what, f"'{asked.raw}' is asked for", hint)


def asked_source(case: Case) -> Iterator[Finding]:
    """Nobody could be asked, and a URL or a file that is not at hand is named.

    Wheels on this machine are in the plan with their hashes. pip leaves an installed version
    alone when a file of the same version is named; uv installs it again.
    """
    foreseen = {change.name for change in case.plan.changes}
    anew = case.request.tool == "uv" or case.request.reinstalls
    for asked, build in case.unforeseen():
        if not asked.source or asked.name in foreseen:
            continue
        if anew or not (asked.version and same_version(asked.version, build.version)):
            what = f"'{build.installed}' would be replaced by '{asked.source}'"
            yield loss(
                build, what, f"'{asked.raw}' is asked for", hint_for(build.name, case.request)
            )
