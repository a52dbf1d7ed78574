"""The protected set, held: the options that hold it, and what a resolver finds under them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from envlock.adapters import files
from envlock.adapters.installer import Known, Plan
from envlock.guard.advice import UNTOLD, without_dependencies
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


def resolve_held(scene: Scene) -> Plan:
    """What the tool would do with the protected set held.

    Raises:
        ProgramFailed: the tool cannot be started.
    """
    ask = scene.ask
    with tempfile.TemporaryDirectory(prefix="envlock-guard-") as folder:
        held = held_options(scene, folder)
        return scene.planner.plan(replace(ask, after=(*held, *ask.after)), scene.target)


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
    held = resolve_held(scene)
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
