"""The protected set, held: the options that hold it, and what a resolver finds under them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from envlock.adapters import files
from envlock.adapters.installer import Ask, Known, Plan
from envlock.guard.advice import UNTOLD, without_dependencies
from envlock.guard.around import WANTED, pins_of, without_unmet
from envlock.guard.case import Evidence
from envlock.guard.decide import Decision, Verdict, decide
from envlock.guard.evidence import full_evidence
from envlock.model.facts import Finding
from envlock.model.health import parse_requirement, satisfies

if TYPE_CHECKING:
    from envlock.guard.run import Scene


def held_options(scene: Scene, folder: str) -> list[str]:
    """Constraints that hold the protected builds, and what they need in the ranges that they name.

    A range that is not kept now is left out: it would make every resolution fail.

    Args:
        folder: where constraint files may be written; it outlives the command.
    """
    kept = {build.name: build.version for build in (*scene.above, *scene.intact)}
    if scene.request.subcommand not in ("install", "sync") or not kept:
        return []
    held = scene.planner.held(scene.ask, scene.target, sorted(kept.items()), folder)
    lines = sorted(set(_ranges(scene)))
    if "-c" not in held or not lines or scene.request.elsewhere or scene.request.tool == "pip-sync":
        return held
    listed = os.path.join(folder, "ranges.txt")
    files.write_whole(listed, "".join(f"{line}\n" for line in lines))
    return [*held, "-c", listed]


def _ranges(scene: Scene) -> Iterator[str]:
    protected = {build.name for build in scene.protected}
    installed = scene.ask.installed
    for build in scene.intact:
        for raw in build.requires:
            found = parse_requirement(raw)
            name = canonicalize_name(found.name) if found else ""
            # a pre-release in a range would let the resolver take others
            if not found or name in protected or not found.specifier or found.specifier.prereleases:
                continue
            if name in installed and satisfies(installed[name], found.specifier):
                yield f"{name}{found.specifier}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What the tool would do with the protected set held.

    Attributes:
        pins: what to install without dependencies, where only that does it.
        left_out: a finding for each distribution whose metadata had to be left out for that.
    """

    plan: Plan
    pins: tuple[str, ...] | None = None
    left_out: tuple[Finding, ...] = ()


def resolve_held(scene: Scene) -> Held:
    """What the tool would do with the protected set held; where it finds nothing, also without
    what the vendor's own metadata has always asked for in vain.

    Raises:
        ProgramFailed: the tool cannot be started.
    """
    ask = scene.ask
    with tempfile.TemporaryDirectory(prefix="envlock-guard-") as folder:
        ask = replace(ask, after=(*held_options(scene, folder), *ask.after))
        plan = scene.planner.plan(ask, scene.target)
        if plan.known is not Known.REJECTED:
            return Held(plan=plan)
        return _without_unmet(scene, ask) or Held(plan=plan)


def _without_unmet(scene: Scene, ask: Ask) -> Held | None:
    """A plan that does not repair what is installed; None where there is nothing to repair, or no
    such plan."""
    builds = {build.name: build for build in scene.intact}
    if scene.request.given.has(*WANTED) or not builds:
        return None
    stated, left_out = without_unmet(scene.inventory.distributions, builds, scene.target.markers)
    if not stated:
        return None
    plan = scene.planner.plan(replace(ask, stated=tuple(stated)), scene.target)
    pins = pins_of(scene.request, plan)
    if plan.known is not Known.PLANNED or pins is None:
        return None
    return Held(plan=plan, pins=pins, left_out=tuple(left_out))


def around(scene: Scene, plan: Plan, decision: Decision, first: Evidence) -> tuple[Plan, Decision]:
    """A refusal whose only cause is what the vendor's metadata has always said becomes a plan that
    leaves that out.

    Args:
        first: what was known before the tool was asked.
    """
    refused = decision.verdict is Verdict.REFUSED and plan.known is Known.PLANNED
    if not refused or scene.request.subcommand != "install" or scene.request.project:
        return plan, decision
    other = _without_unmet(scene, scene.ask)
    if other is None:
        return plan, decision
    judged = decided(scene, other, full_evidence(scene, other.plan, first))
    return (other.plan, judged) if judged.verdict is Verdict.ALLOWED else (plan, decision)


def decided(scene: Scene, held: Held, evidence: Evidence) -> Decision:
    """The judgement of a plan, with what it leaves out."""
    judged = decide(scene.request, held.plan, scene.protected, evidence)
    if judged.verdict is Verdict.REFUSED or held.pins is None:
        return judged
    return replace(judged, pins=held.pins, reasons=(*held.left_out, *judged.reasons))


def no_fit(scene: Scene, plan: Plan) -> Finding:
    """No versions keep every build, and the tool's own account of what conflicts."""
    return Finding(
        code="guard.no-fit",
        subject=", ".join(sorted(scene.request.names)) or scene.request.tool,
        what="no versions of it keep every vendor build",
        why=plan.said,
        level="error",
    )


def told(scene: Scene, plan: Plan, decision: Decision, evidence: Evidence) -> Decision:
    """A refusal with more to say, where asking the tool again can tell more.

    With the builds held it finds versions that fit, and then ``--hold`` is the nearest command;
    or it says why there are none, and then only without dependencies is left.
    """
    request = scene.request
    if decision.verdict is Verdict.ALLOWED or request.subcommand != "install":
        return decision
    untold = any(reason.why == UNTOLD for reason in decision.reasons)
    asks = plan.known is Known.PLANNED and not request.elsewhere and _may_fail(scene, decision)
    if not (untold or asks):
        return decision
    held = resolve_held(scene).plan
    evidence = full_evidence(scene, held, replace(evidence, overlaps=()))
    judged = decide(request, held, scene.protected, evidence)
    fits = held.known is Known.PLANNED and judged.verdict is Verdict.ALLOWED and bool(held.changes)
    named = [one for one in held.changes if fits and one.new and one.name in request.names]
    versions = " ".join(f"{one.name}=={one.new}" for one in named)
    reasons = tuple(_with_more(reason, held.said, versions) for reason in decision.reasons)
    words = decision.instead
    if asks and fits and "--no-deps" in words:
        words = ("--hold", *request.words)
    elif asks and held.known is Known.REJECTED and words:
        words = without_dependencies(request)
    return replace(decision, reasons=reasons, instead=words)


def _may_fail(scene: Scene, decision: Decision) -> bool:
    """Whether what is offered instead still has a tree to be resolved."""
    codes = {reason.code for reason in decision.reasons if reason.level == "error"}
    if "--upgrade-package" in decision.instead:
        return True
    if codes == {"guard.range"}:  # with what was asked for replaced by the range, it fits
        return set(scene.request.after) <= set(decision.instead)
    return "--no-deps" in decision.instead and not scene.request.given.has("--no-deps")


def _with_more(reason: Finding, why: str, versions: str) -> Finding:
    hint = f"versions that keep it exist: {versions}" if versions else reason.hint
    if reason.why == UNTOLD:
        return replace(reason, why=why or reason.why, hint=hint)
    return replace(reason, hint=reason.hint or hint)
