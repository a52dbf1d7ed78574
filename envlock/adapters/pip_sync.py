"""``pip-sync`` of pip-tools, as a planner."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from envlock.adapters import files
from envlock.adapters.installer import Ask, Known, Plan, pins
from envlock.errors import ProgramFailed
from envlock.model.facts import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class PipSyncPlanner:
    """See :class:`envlock.adapters.installer.Planner`.

    What it does follows from its files and what is installed; it asks no index before.
    """

    env: Mapping[str, str]
    name: str = "pip-sync"

    def plan(self, ask: Ask, target: Target) -> Plan:
        """Nothing is asked: see :mod:`envlock.guard.sync`."""
        return Plan(known=Known.UNKNOWN, said="pip-sync is judged by its files")

    def held(
        self, ask: Ask, target: Target, builds: Sequence[tuple[str, str]], folder: str
    ) -> list[str]:
        """``--pip-args "-c FILE"``, beside the person's."""
        listed = os.path.join(folder, "keep.txt")
        files.write_whole(listed, "".join(f"{line}\n" for line in pins(builds, arbitrary=True)))
        return ["--pip-args", shlex.join(["-c", listed])]

    def variables(self, ask: Ask, target: Target, folder: str) -> Mapping[str, str]:
        """Its installations are of what its files pin: their builds are pip's own affair."""
        return {}

    def argv(self, ask: Ask, target: Target, options: Sequence[str] = ()) -> list[str]:
        """envlock's own pip-sync on the target, unless another one was typed by its path.

        Raises:
            ProgramFailed: the target has no pip, which pip-sync needs there.
        """
        if target.pip is None:
            raise ProgramFailed(
                "pip-sync: the target has no pip, and pip-sync needs it there",
                "type 'uv pip sync FILE', which does the same",
            )
        tool = list(ask.program) or [sys.executable, "-m", "piptools", "sync"]
        named = ask.program or "--python-executable" in ask.typed
        place = [] if named else ["--python-executable", target.executable]
        return [*tool, *place, *_joined([*options, *_configured(ask), *ask.after])]


def _configured(ask: Ask) -> tuple[str, ...]:
    """What a configuration file hands on to pip: an option of ours would take its place."""
    return () if "--pip-args" in ask.typed else ask.unsaid


def _joined(words: Sequence[str]) -> list[str]:
    """One ``--pip-args``: a later one takes the place of an earlier."""
    kept: list[str] = []
    found: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "--pip-args" and left:
            found.append(left.pop(0))
        elif word.startswith("--pip-args="):
            found.append(word.partition("=")[2])
        else:
            kept.append(word)
    return [*(["--pip-args", " ".join(found)] if found else []), *kept]
