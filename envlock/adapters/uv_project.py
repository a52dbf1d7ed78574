"""``uv sync`` and ``uv run``, whose environment is the project's, as a planner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from envlock.adapters.installer import Ask, Known, Plan
from envlock.adapters.uv import DRY_RUN, answers, dry_run, without
from envlock.model.facts import Target

#: Options of ``uv run`` that ``uv sync`` does not have, and how many values each takes.
_RUN_ONLY = {
    "-m": 0, "--module": 0, "--env-file": 1, "--no-env-file": 0, "-w": 1, "--with": 1,
    "--with-editable": 1, "--with-requirements": 1, "-s": 0, "--exact": 0, "--isolated": 0,
    "--gui-script": 0, "--no-project": 0,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class UvProjectPlanner:
    """See :class:`envlock.adapters.installer.Planner`.

    ``uv add`` and ``uv remove`` have no dry run (0.13), and no constraint holds ``uv sync``:
    where uv says nothing, nothing is known.

    Attributes:
        program: the uv that runs what was typed.
        asked: the uv that is asked for the plan.
    """

    program: str
    asked: str
    env: Mapping[str, str]
    name: str = "uv"

    def plan(self, ask: Ask, target: Target) -> Plan:
        """Asks ``uv sync --dry-run``, which ``uv run`` does first, keeping what is not listed.

        Without a network, uv is asked about what it has: a lock that is there may be enough.
        """
        if ask.subcommand not in ("sync", "run"):
            return Plan(known=Known.UNKNOWN, said=f"'uv {ask.subcommand}' has no dry run")
        reached = answers(ask, self.env)
        words = _sync_options(ask) + ([] if reached else ["--offline"])
        command = [self.asked, *without(ask.before), "sync", *DRY_RUN, *words]
        plan = dry_run(command, self.env, installed=ask.installed)
        if plan.known is Known.REJECTED and not reached:
            return Plan(known=Known.UNKNOWN, said="no index can be reached")
        if plan.known is Known.REJECTED and ask.subcommand == "run":
            return Plan(known=Known.UNKNOWN, said=plan.said)  # another command was asked about
        return plan

    def held(
        self, ask: Ask, target: Target, builds: Sequence[tuple[str, str]], folder: str
    ) -> list[str]:
        """Nothing: a project's constraints are in its ``pyproject.toml``."""
        return []

    def variables(self, ask: Ask, target: Target, folder: str) -> Mapping[str, str]:
        """Nothing, for the same reason."""
        return {}

    def argv(self, ask: Ask, target: Target, options: Sequence[str] = ()) -> list[str]:
        """As it was typed."""
        tool = list(ask.program) or [self.program]
        subcommand = [ask.subcommand] if ask.subcommand else []
        return [*tool, *ask.before, *subcommand, *options, *ask.after]


def _sync_options(ask: Ask) -> list[str]:
    """The options for ``uv sync``; of ``uv run``, those before the command that it runs."""
    if ask.subcommand == "sync":
        return without(ask.after)
    options = ask.after[: len(ask.after) - len(ask.words)]
    kept = without([word for word in options if word != "--"])
    return without(kept, _RUN_ONLY) + ([] if "--exact" in ask.flags else ["--inexact"])
