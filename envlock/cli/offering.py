"""What a refusal offers: a command that has been judged like the one that was typed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from envlock.cli import wiring

if TYPE_CHECKING:
    from collections.abc import Sequence

    from envlock.cli.options import Common
    from envlock.guard.run import Judgement, Scene

#: What is offered in place of an offer may have to be judged too: it comes nearer to nothing.
_MOST = 3


def offering(common: Common, scene: Scene, judgement: Judgement) -> Judgement:
    """The refusal with an offer that is allowed itself; with none where there is no such command.

    Where the tool was not asked what the command would do, it is not asked about the offer.
    """
    from envlock.adapters.installer import Known

    plan, words = judgement.plan, judgement.decision.instead
    if plan.known is not Known.PLANNED or plan.said or not plan.changes:
        return judgement
    for _ in range(_MOST):
        if not words or words[0] == "--hold":  # that one has been resolved
            break
        refused = _refused(common, scene, words)
        if refused is None:
            break
        words = refused
    else:
        words = ()
    return replace(judgement, decision=replace(judgement.decision, instead=words))


def _refused(common: Common, scene: Scene, words: Sequence[str]) -> tuple[str, ...] | None:
    """None when the command is allowed; else what its own refusal offers."""
    from envlock.adapters.installer import Known
    from envlock.guard.advice import names_something
    from envlock.guard.command import parse
    from envlock.guard.run import allowed, judge

    request = parse(words, wiring.read_text)
    if not (request.project or request.tool == "pip-sync" or names_something(request.typed)):
        return ()
    common = replace(common, env=request.environment(common.env))
    again = wiring.scene(common, request, scene.target)
    judgement = judge(again)
    if allowed(judgement):
        return () if judgement.plan.known is Known.REJECTED else None
    return judgement.decision.instead
