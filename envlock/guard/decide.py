"""The judgement: rules over a request, a plan and the protected set. Pure.

A rule is a function that gives a finding for each protected build that would be lost; its code
is its name. To add one: write it in the module it belongs to by meaning, add it to :data:`RULES`,
a row to the tests' table, a row to ``docs/guard-rules.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from envlock.adapters.installer import Plan
from envlock.guard.advice import instead, unmet
from envlock.guard.around import pins_around
from envlock.guard.case import Case, Evidence, Protected, Rule, code_of
from envlock.guard.command import Request
from envlock.guard.rules_builds import (
    asked_source,
    asked_upgrade,
    asked_version,
    reinstalled,
    removed,
    replaced,
    shadowed,
)
from envlock.guard.rules_surroundings import (
    isolated_build,
    overlap,
    range_,
    shadowed_above,
    shadowed_source,
)
from envlock.model.facts import Finding

__all__ = ["RULES", "Decision", "Evidence", "Protected", "Verdict", "decide", "lost_already"]


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


RULES: tuple[Rule, ...] = (
    shadowed,
    shadowed_above,
    shadowed_source,
    removed,
    replaced,
    reinstalled,
    asked_upgrade,
    asked_version,
    asked_source,
    overlap,
    range_,
    isolated_build,
)

_NOTHING = Evidence()


def decide(
    request: Request,
    plan: Plan,
    protected: tuple[Protected, ...],
    evidence: Evidence = _NOTHING,
) -> Decision:
    """Judges a request by every rule.

    A build that a rule named is not named again by a later one.

    Args:
        plan: what the tool would do; for ``uninstall``, what the arguments say.
        protected: builds to keep; those that are lost already are not there to be lost.
        evidence: what else could be found out.
    """
    if request.changes_nothing:
        return Decision(verdict=Verdict.ALLOWED)
    held = {build.name: build for build in protected if build.intact}
    case = Case(request=request, plan=plan, held=held, evidence=evidence)
    found: dict[str, Finding] = {}
    for finding in _findings(case):
        first = found.setdefault(finding.subject, finding)
        if first.level != "error" and finding.level == "error":
            found[finding.subject] = finding
    reasons = tuple(found.values())
    losses = frozenset(name for name, finding in found.items() if finding.level == "error")
    if not losses:
        return Decision(verdict=Verdict.ALLOWED, reasons=reasons)
    codes = {finding.code for finding in reasons if finding.level == "error"}
    repair = codes == {"guard.replaced"} and not _constrained(case)
    pins = pins_around(request, plan, held, losses) if repair else None
    if pins is not None:
        repairs = (_repair(one) if one.level == "error" else one for one in reasons)
        return Decision(verdict=Verdict.ALLOWED, reasons=tuple(repairs), pins=pins)
    return Decision(verdict=Verdict.REFUSED, reasons=reasons, instead=instead(case, reasons))


def _constrained(case: Case) -> bool:
    """Whether the person's own constraints want another version of a protected build."""
    builds = case.held.values()
    lines = case.evidence.constraints
    return any(unmet(raw, build.name, build.version) for raw in lines for build in builds)


def _findings(case: Case) -> Iterator[Finding]:
    for rule in RULES:
        for finding in rule(case):
            yield replace(finding, code=code_of(rule))


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
