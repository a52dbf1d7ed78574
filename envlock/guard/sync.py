"""Commands that make an environment equal to a list, and those of a project. Pure.

What they do is told by the list and what is installed: everything else goes. ``pip-sync`` asks
nobody before it removes; uv is asked where it answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from envlock.adapters.installer import Change, Known, Plan
from envlock.guard import options
from envlock.guard.advice import UNTOLD
from envlock.guard.asked import Asked
from envlock.guard.command import Request, requirement_files
from envlock.guard.decide import Decision, Verdict
from envlock.model.facts import Finding
from envlock.model.health import satisfies

#: What pip-sync never removes (pip-tools, ``sync.py``).
_IGNORED = frozenset({"pip", "pip-tools", "pip-review", "pkg-resources", "markerlib"})


def is_list(request: Request) -> bool:
    """``pip-sync`` or ``uv pip sync``."""
    return request.subcommand == "sync" and not request.project


def from_arguments(
    request: Request, installed: Mapping[str, str], hashes: Mapping[str, str]
) -> Plan:
    """What becomes of an environment that is made equal to the files named.

    Args:
        installed: canonical names and raw versions.
        hashes: sha256 of the file that a distribution was installed from by its URL or path.
    """
    listed = {one.name: one for one in request.asked if one.name}
    kept = _IGNORED if request.tool == "pip-sync" else frozenset[str]()
    changes = [
        _change(name, installed[name], listed.get(name), hashes.get(name, ""), request)
        for name in sorted(installed.keys() - (kept - listed.keys()))
    ]
    new = sorted(listed.keys() - installed.keys())
    changes += [Change(name=name, new=_version(listed[name])) for name in new]
    return Plan(
        known=Known.PLANNED,
        changes=tuple(change for change in changes if change is not None),
        said="judged by the files and what is installed",
    )


def _change(
    name: str, old: str, asked: Asked | None, sha256: str, request: Request
) -> Change | None:
    if asked is None:
        return Change(name=name, old=old, new=None)
    if asked.source:
        if sha256 and f"sha256={sha256}" in asked.raw:
            return None
        return Change(name=name, old=old, new=_version(asked), url=asked.source)
    if sha256 and request.tool == "pip-sync":
        # it knows what came from a file by its URL, and takes another spelling for another thing
        return Change(name=name, old=old, new=None)
    fits = asked.requirement is None or satisfies(old, asked.requirement.specifier)
    if fits and not request.reinstalls:
        return None
    return Change(name=name, old=old, new=_version(asked))


def _version(asked: Asked) -> str:
    """The version that is asked for, as far as it is said."""
    if asked.version:
        return asked.version
    specifier = asked.requirement.specifier if asked.requirement else ()
    pinned = next((one.version for one in specifier if one.operator in ("==", "===")), "")
    return pinned or asked.raw


def stand_in(request: Request) -> Request:
    """A project's command as the rules know it: one that makes an environment equal to a list."""
    return replace(request, project=False, subcommand="sync") if request.project else request


def without_plan(request: Request, plan: Plan) -> Decision | None:
    """The refusal of a project's command, or of one with ``--exact``, of which nobody can tell
    what it removes: no constraint holds that. None for every other."""
    if request.subcommand == "install" and not request.project:
        return _inexact(request, plan)
    if not request.project or plan.known is not Known.UNKNOWN:
        return None
    shown = f"uv {request.subcommand}"
    reason = Finding(
        code="guard.no-plan",
        subject=shown,
        what="it changes the target, and nobody can tell how beforehand",
        why=plan.said,
        hint="constraints do not hold it: synchronise in a step of its own, with "
        "'envlock guard uv sync --inexact'",
        level="error",
    )
    unsynced = (*_head(request), "--no-sync", *request.after)
    return Decision(
        verdict=Verdict.REFUSED,
        reasons=(reason,),
        instead=unsynced if request.subcommand in ("add", "remove") else (),
    )


def _inexact(request: Request, plan: Plan) -> Decision | None:
    """``uv pip install --exact`` removes what it does not find in the tree that is asked for."""
    if plan.known is Known.PLANNED or not request.given.has("--exact"):
        return None
    reason = Finding(
        code="guard.no-plan",
        subject="uv pip install --exact",
        what="it removes what is not asked for, and nobody can tell beforehand what that is",
        why=plan.said,
        hint="leave '--exact' out: no constraint holds what it removes",
        level="error",
    )
    kept = tuple(word for word in request.after if word != "--exact")
    typed = kept != request.after
    return Decision(
        verdict=Verdict.REFUSED,
        reasons=(reason,),
        instead=(*_head(request), *kept) if typed else (),
    )


def told(decision: Decision, request: Request) -> Decision:
    """The decision with what is special about these commands: why, and what to type instead."""
    if decision.verdict is Verdict.ALLOWED or not (is_list(request) or request.project):
        return decision
    reasons = tuple(_told(one, request) for one in decision.reasons)
    losses = {one.code for one in reasons if one.level == "error"}
    instead = _keeping(request) if losses == {"guard.removed"} else ()
    return replace(decision, reasons=reasons, instead=instead)


def _told(reason: Finding, request: Request) -> Finding:
    if reason.code == "guard.removed":
        what = "the project does not list it" if request.project else "it is not in the files"
        return replace(reason, why=f"{what}, and everything else goes")
    if reason.why == UNTOLD:
        what = "the project's lock says so" if request.project else "the files say so"
        return replace(reason, why=what)
    return reason


def _head(request: Request) -> tuple[str, ...]:
    return request.words[: len(request.words) - len(request.after)]


def _keeping(request: Request) -> tuple[str, ...]:
    """The same without the removals."""
    if request.project and request.subcommand == "sync":
        return (*_head(request), "--inexact", *request.after)
    if request.project:
        return (*_head(request), *(word for word in request.after if word != "--exact"))
    files = requirement_files(request, request.typed)
    listed = tuple(word for file in files for word in ("-r", file))
    if request.tool == "pip-sync":
        return ("pip", "install", *listed)
    kept = options.only_options(request.after, options.UV_COMMANDS["sync"])
    return (*_head(request)[:-1], "install", *kept, *listed)
