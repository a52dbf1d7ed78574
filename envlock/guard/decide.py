"""The judgement: rules over a request, a plan and the protected set. Pure.

A rule is a function that gives a finding for each protected build that would be lost, with a
stable code. To add one: write it, add it to :data:`RULES`, add a row to the tests' table.
Versions are compared for equality only: a newer public build is as much a loss as an older one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from envlock.adapters.installer import Change, Known, Plan
from envlock.guard.advice import cause, hint_for, instead
from envlock.guard.around import pins_around
from envlock.guard.command import Asked, Request
from envlock.model.facts import Finding
from envlock.model.health import satisfies
from envlock.model.label import same_version


@dataclass(frozen=True, slots=True, kw_only=True)
class Protected:
    """A build that must not be lost.

    Attributes:
        name: canonical.
        version: raw version to be kept.
        installed: raw version that is in the target now; None when none is.
        sha256: of the wheel it was installed from or is kept in; empty when not known.
        requires: its Requires-Dist that count in the target.
    """

    name: str
    version: str
    installed: str | None = None
    sha256: str = ""
    requires: tuple[str, ...] = ()

    @property
    def intact(self) -> bool:
        """Whether it is there to be lost."""
        return self.installed is not None and same_version(self.installed, self.version)


class Verdict(Enum):
    """The answer."""

    ALLOWED = "allowed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The answer.

    Attributes:
        verdict: whether the command may run.
        reasons: what would be lost; what is worth knowing about an allowed command.
        instead: the nearest command that keeps every build; empty when there is none.
        pins: what to install without dependencies in place of what was typed, since only
            metadata of what is installed stands in its way; None: run it as it was typed.
    """

    verdict: Verdict
    reasons: tuple[Finding, ...] = ()
    instead: tuple[str, ...] = ()
    pins: tuple[str, ...] | None = None


Held = Mapping[str, Protected]
Rule = Callable[[Request, Plan, Held], Iterator[Finding]]


def _loss(code: str, build: Protected, what: str, why: str, hint: str = "") -> Finding:
    return Finding(
        code=f"guard.{code}", subject=build.name, what=what, why=why, hint=hint, level="error"
    )


def _planned(plan: Plan, held: Held) -> Iterator[tuple[Change, Protected]]:
    """Changes of builds that are there to be lost."""
    for change in plan.changes:
        build = held.get(change.name)
        if build is not None and build.intact:
            yield change, build


def _unforeseen(request: Request, plan: Plan, held: Held) -> Iterator[tuple[Asked, Protected]]:
    """Protected names that the command line spells out, where nobody could be asked."""
    if plan.known is not Known.UNKNOWN or request.subcommand != "install":
        return
    for asked in request.asked:
        build = held.get(asked.name)
        if build is not None and build.intact:
            yield asked, build


def shadowed(request: Request, plan: Plan, held: Held) -> Iterator[Finding]:
    """Another copy beside the protected one: whichever comes first on ``sys.path`` is imported."""
    if not request.elsewhere:
        return
    copies = {b.name: (b, f"'{c.new}'") for c, b in _planned(plan, held) if c.new is not None}
    copies |= {b.name: (b, f"'{a.raw}'") for a, b in _unforeseen(request, plan, held)}
    for build, copy in copies.values():
        what = f"a second copy, {copy}, would stand beside '{build.version}'"
        why = f"'{request.elsewhere}' ignores what is installed"
        hint = (
            "'--no-deps' leaves what is installed alone"
            if not request.names & {build.name}
            else f"leave '{build.name}' out"
        )
        yield _loss("shadowed", build, what, why, hint)


def removed(request: Request, plan: Plan, held: Held) -> Iterator[Finding]:
    """Uninstalled, or not in the set that a tool makes exact."""
    for change, build in _planned(plan, held):
        if change.new is None and not request.elsewhere:
            what = f"'{build.installed}' would be removed"
            hint = f"leave '{build.name}' out: no index can give it back"
            yield _loss("removed", build, what, cause(change, request, plan, held), hint)


def replaced(request: Request, plan: Plan, held: Held) -> Iterator[Finding]:
    """Another version takes its place."""
    for change, build in _planned(plan, held):
        if change.new is None or request.elsewhere or same_version(change.new, build.version):
            continue
        what = f"'{build.installed}' would be replaced by '{change.new}'"
        why, hint = cause(change, request, plan, held), hint_for(build.name, request)
        yield _loss("replaced", build, what, why, hint)


def reinstalled(request: Request, plan: Plan, held: Held) -> Iterator[Finding]:
    """The same version from bytes that are not known to be the same."""
    for change, build in _planned(plan, held):
        if change.new is None or request.elsewhere or not same_version(change.new, build.version):
            continue
        if build.sha256 and change.sha256 == build.sha256:
            continue
        bytes_ = "other bytes" if build.sha256 and change.sha256 else "bytes that are not known"
        what = f"'{build.installed}' would be installed again from {bytes_}"
        hint = "'envlock restore' puts the kept bytes back" if build.sha256 else ""
        yield _loss("reinstalled", build, what, cause(change, request, plan, held), hint)


def asked_upgrade(request: Request, plan: Plan, held: Held) -> Iterator[Finding]:
    """Nobody could be asked, and the command wants the newest or a fresh copy by name."""
    for asked, build in _unforeseen(request, plan, held):
        named = request.given.value("--upgrade-package") + request.given.value(
            "--reinstall-package"
        )
        if not asked.source and (request.upgrades or request.reinstalls or build.name in named):
            what = f"'{build.installed}' would be replaced by what an index has"
            hint = hint_for(build.name, request)
            yield _loss("asked-upgrade", build, what, f"'{asked.raw}' is asked for anew", hint)


def asked_version(request: Request, plan: Plan, held: Held) -> Iterator[Finding]:
    """Nobody could be asked, and what is installed does not satisfy what is asked for."""
    for asked, build in _unforeseen(request, plan, held):
        wanted = asked.requirement
        if wanted is None or asked.source or not wanted.specifier:
            continue
        if not satisfies(build.version, wanted.specifier):
            what = f"'{build.installed}' would be replaced: it is not '{wanted.specifier}'"
            hint = hint_for(build.name, request)
            yield _loss("asked-version", build, what, f"'{asked.raw}' is asked for", hint)


def asked_source(request: Request, plan: Plan, held: Held) -> Iterator[Finding]:
    """Nobody could be asked, and a URL or a file that is not at hand is named.

    Wheels on this machine are in the plan with their hashes. pip leaves an installed version
    alone when a file of the same version is named; uv installs it again.
    """
    foreseen = {change.name for change in plan.changes}
    anew = request.tool == "uv" or request.reinstalls
    for asked, build in _unforeseen(request, plan, held):
        if not asked.source or asked.name in foreseen:
            continue
        if anew or not (asked.version and same_version(asked.version, build.version)):
            what = f"'{build.installed}' would be replaced by '{asked.source}'"
            yield _loss("asked-source", build, what, f"'{asked.raw}' is asked for")


RULES: tuple[Rule, ...] = (
    shadowed,
    removed,
    replaced,
    reinstalled,
    asked_upgrade,
    asked_version,
    asked_source,
)


def decide(request: Request, plan: Plan, protected: tuple[Protected, ...]) -> Decision:
    """Judges a request by every rule.

    A build that a rule named is not named again by a later one.

    Args:
        plan: what the tool would do; for ``uninstall``, what the arguments say.
        protected: builds to keep; those that are lost already are not there to be lost.
    """
    if request.changes_nothing:
        return Decision(verdict=Verdict.ALLOWED)
    held = {build.name: build for build in protected}
    found: dict[str, Finding] = {}
    for rule in RULES:
        for finding in rule(request, plan, held):
            found.setdefault(finding.subject, finding)
    if not found:
        return Decision(verdict=Verdict.ALLOWED)
    intact = {name: build for name, build in held.items() if build.intact}
    pins = pins_around(request, plan, intact, frozenset(found))
    if pins is not None:
        return Decision(
            verdict=Verdict.ALLOWED, reasons=tuple(map(_repair, found.values())), pins=pins
        )
    return Decision(
        verdict=Verdict.REFUSED,
        reasons=tuple(found.values()),
        instead=instead(request, plan, frozenset(found)),
    )


def _repair(loss: Finding) -> Finding:
    return Finding(
        code="guard.repair",
        subject=loss.subject,
        what=f"{loss.what}, only to satisfy what is installed already",
        why=loss.why,
        hint="the build stays, and what was asked for is installed beside it with --no-deps",
    )


def lost_already(protected: tuple[Protected, ...]) -> list[Finding]:
    """Builds that are not there any more: nothing about them can be refused."""
    return [
        Finding(
            code="guard.lost-already",
            subject=build.name,
            what=f"'{build.version}' is lost already: "
            + (f"'{build.installed}' is installed" if build.installed else "none is installed"),
            hint="put it back with 'envlock restore'",
        )
        for build in protected
        if not build.intact
    ]
