"""uv as a backend."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from packaging.utils import canonicalize_name

from envlock.adapters import files, network, process
from envlock.adapters.configuration import is_lock
from envlock.adapters.files import Hashed
from envlock.adapters.installer import (
    PLAN_SECONDS,
    Ask,
    Change,
    Child,
    Known,
    Pinned,
    Plan,
    complaint,
    pins,
    unpack,
)
from envlock.adapters.isolation import blocked, isolated, unanswered
from envlock.adapters.marker import passing
from envlock.adapters.uv_sources import with_sources
from envlock.adapters.uv_stated import CHOOSING, believing
from envlock.adapters.uv_toml import released
from envlock.model.facts import Target


def find_uv(env: Mapping[str, str]) -> str | None:
    """Path of envlock's own uv, else of the one on PATH, or None.

    The one beside envlock's Python comes first: it is the version that was tested.
    """
    own = os.path.join(os.path.dirname(sys.executable), "uv")
    return own if os.access(own, os.X_OK) else shutil.which("uv", path=env.get("PATH"))


@dataclass(frozen=True, slots=True, kw_only=True)
class UvStager:
    """Stages with ``uv pip install --prefix STAGE --python TARGET``."""

    program: str
    env: Mapping[str, str]
    name: str = "uv"

    def stage(
        self, wheels: Sequence[Pinned], target: Target, stage: str, lock: int | None
    ) -> Mapping[str, Hashed]:
        """See :class:`envlock.adapters.installer.Stager`.

        ``--no-cache``: a file that somebody edited in an environment hard-linked to the cache is
        wrong in the cache too, and uv does not look at it again.
        """
        command = [
            self.program, "pip", "install", "--python", target.executable, "--prefix", stage,
            "--offline", "--no-index", "--no-deps", "--require-hashes", "--no-cache", "--no-config",
            "--link-mode", "copy", "--no-progress", "--break-system-packages",
        ]  # fmt: skip
        unpack(self.name, command, wheels, stage, target, Child(self.env, lock, "pip"))
        return {}


#: clap refuses to see these twice, and a quiet uv writes no JSON: the plan sets its own.
_SET_BY_PLAN = {"--dry-run": 0, "--check": 0, "--output-format": 1, "-q": 0, "-qq": 0, "--quiet": 0}
#: How a list of versions is given: the option, short and long, and the variable that it replaces.
_CONSTRAINT = ("-c", "--constraints", "UV_CONSTRAINT")
_BUILD = ("-b", "--build-constraints", "UV_BUILD_CONSTRAINT")
#: Short options in one word: those without a value, and what follows them.
_CLUSTER = re.compile(r"-(?=[^-])([hnqsvUV]*q[hnqsvUV]*)(.*)\Z", re.S)
_NOTHING: Mapping[str, str] = {}
DRY_RUN = ("--dry-run", "--output-format", "json", "--no-progress")


@dataclass(frozen=True, slots=True, kw_only=True)
class UvPlanner:
    """``uv pip`` as people type it. See :class:`envlock.adapters.installer.Planner`.

    Attributes:
        program: the uv that runs what was typed.
        asked: the uv that is asked for the plan: JSON came with 0.12.24.
    """

    program: str
    asked: str
    env: Mapping[str, str]
    name: str = "uv"

    def plan(self, ask: Ask, target: Target) -> Plan:
        """Asks ``uv pip install --dry-run``, or ``sync``."""
        if not answers(ask, self.env):
            return Plan(known=Known.UNKNOWN, said="no index can be reached")
        dropped = _SET_BY_PLAN | (CHOOSING if ask.stated else {})
        command = [self.asked, *without(ask.before, dropped), "pip", ask.subcommand]
        with tempfile.TemporaryDirectory(prefix="envlock-") as folder:
            bounds = self._bounds(ask, ask.builds, folder, [_BUILD]) if isolated(ask) else []
            command += [*DRY_RUN, *bounds, *_in(target, ask), *without(ask.after, dropped)]
            env = self._env(ask, target, folder)
            plan = dry_run(command, env, ask.builds)
            return with_sources(plan, self.asked, ask, target, _impatient(env))

    def _env(self, ask: Ask, target: Target, folder: str) -> dict[str, str]:
        """What uv is asked under: without what envlock itself holds, and with what is stated."""
        freed, other = os.path.join(folder, "freed"), os.path.join(folder, "stated")
        os.mkdir(freed)
        env = {**self.env, **released(self.env, target.home, freed)}
        if not ask.stated:
            return env
        os.mkdir(other)
        return believing(ask.stated, [*ask.before, *ask.after], env, other)

    def held(
        self, ask: Ask, target: Target, builds: Sequence[tuple[str, str]], folder: str
    ) -> list[str]:
        """``-c`` and ``-b``.

        An option replaces the variable of the same meaning, so that the person's ``UV_CONSTRAINT``
        and ``UV_BUILD_CONSTRAINT`` are named again. uv rejects a constraint whose version PEP 440
        does not know; such a build stops every resolution of uv by itself. Beside a lock it takes
        no constraint, and installs what is locked and nothing else.
        """
        locked = any(map(is_lock, (*ask.urls, *ask.words)))
        ways = [_BUILD] if locked else [_CONSTRAINT, _BUILD]
        return self._bounds(ask, builds, folder, ways)

    def _bounds(
        self,
        ask: Ask,
        builds: Sequence[tuple[str, str]],
        folder: str,
        ways: Sequence[tuple[str, str, str]],
    ) -> list[str]:
        """Options that list builds in these ways, and what the person's variables list."""
        listed = os.path.join(folder, "keep.txt")
        lines = pins(builds, arbitrary=False)
        files.write_whole(listed, "".join(f"{line}\n" for line in lines))
        held: list[str] = []
        for short, option, variable in ways:
            own = [] if option in ask.typed else self.env.get(variable, "").split()
            for file in [*own, *([listed] if lines else [])]:
                held += [short, file]
        return held

    def variables(self, ask: Ask, target: Target, folder: str) -> Mapping[str, str]:
        """None: its options reach every build."""
        return {}

    def argv(self, ask: Ask, target: Target, options: Sequence[str] = ()) -> list[str]:
        """The uv that was typed, told which Python is the target."""
        tool = list(ask.program) or [self.program]
        subcommand = [ask.subcommand, *_in(target, ask)] if ask.subcommand else []
        return [*tool, *ask.before, "pip", *subcommand, *options, *ask.after]


def _in(target: Target, ask: Ask) -> list[str]:
    named = "--python" in ask.typed or ask.subcommand == "help"
    return [*([] if named else ["--python", target.executable]), *passing(target, ask)]


def _impatient(env: Mapping[str, str]) -> dict[str, str]:
    return {
        **env,
        "UV_HTTP_TIMEOUT": "4",
        "UV_HTTP_CONNECT_TIMEOUT": "2",
        "UV_HTTP_RETRIES": "0",
        "RES_OPTIONS": "timeout:1 attempts:1",
    }


def answers(ask: Ask, env: Mapping[str, str]) -> bool:
    """Whether every source is on this machine, or an index can be reached."""
    if "--offline" in ask.flags or network.uses_proxy(env):
        return True
    urls = [*network.urls_in(*ask.urls)]
    if not {"--no-index", "--default-index", "--index-url"} & ask.flags:
        urls += network.default_index()
    return not urls or network.reachable(urls, ask.patience)


def dry_run(
    command: Sequence[str],
    env: Mapping[str, str],
    builds: Sequence[tuple[str, str]] = (),
    installed: Mapping[str, str] = _NOTHING,
) -> Plan:
    """What uv says that it would do; it is on its standard output.

    Args:
        builds: those that are its build constraints.
        installed: canonical names and raw versions; they go where uv makes an environment anew.
    """
    done = process.run(command, env=_impatient(env), timeout=PLAN_SECONDS)
    if done.timed_out:
        return Plan(known=Known.UNKNOWN, said="uv did not answer in time")
    if done.code != 0:
        said, hindered = _said(done.output), blocked(done.output, builds)
        known = Known.UNKNOWN if unanswered(done.output) else Known.REJECTED
        return Plan(known=known, said=said, blocked=hindered)
    return _read_answer(done.output, installed)


def without(words: Sequence[str], dropped: Mapping[str, int] = _SET_BY_PLAN) -> list[str]:
    """The words without some options; the number is how many values each takes."""
    kept, skip = [], 0
    for word in words:
        name, equals, _ = word.partition("=")
        if skip:
            skip -= 1
        elif name in dropped:
            skip = 0 if equals else dropped[name]
        elif "-q" in dropped and (cluster := _CLUSTER.match(word)):
            loud = f"-{cluster[1].replace('q', '')}{cluster[2]}"
            kept += [loud] if loud != "-" else []
        else:
            kept.append(word)
    return kept


def _read_answer(output: str, installed: Mapping[str, str] = _NOTHING) -> Plan:
    """uv's JSON (schema "preview"): one entry for each thing installed or uninstalled; those of a
    project lie under ``sync``, whose action "replace" says that the environment is deleted before.
    What is built first has no version yet.

    Notes on standard error are mixed in before and after it.
    """
    start = re.search(r"^\{", output, re.M)
    try:
        answer: dict[str, Any] = json.JSONDecoder().raw_decode(output[start.start() :])[0]  # type: ignore[union-attr]
        said: dict[str, Any] = answer.get("sync", answer)
        entries = [(canonicalize_name(e["name"]), e.get("version", "?"), e["action"])
                   for e in said["changes"]]  # fmt: skip
        anew = said.get("action") == "replace"
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return Plan(known=Known.UNKNOWN, said=f"uv's answer cannot be read: {error}")
    gone = [*(installed.items() if anew else ())]
    gone += [(name, version) for name, version, action in entries if action == "uninstalled"]
    old: dict[str, str] = dict(gone)
    new: dict[str, str] = {name: version for name, version, action in entries
                           if action == "installed"}  # fmt: skip
    return Plan(
        changes=tuple(
            Change(name=name, old=old.get(name), new=new.get(name))
            for name in sorted(old.keys() | new.keys())
        )
    )


def _said(output: str) -> str:
    """What is wrong, and uv's own account of which requirements conflict."""
    account = re.search(r"\bBecause .*?(?=\n\s*\n|\n\s*hint:|\Z)", output, re.S)
    what = complaint(output)
    return f"{what}: {' '.join(account[0].split())}" if account else what
