"""uv as a backend."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from packaging.utils import canonicalize_name

from envlock.adapters import files, network, process
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

    def stage(self, wheels: Sequence[Pinned], target: Target, stage: str, lock: int | None) -> None:
        """See :class:`envlock.adapters.installer.Stager`.

        ``--no-cache``: a file that somebody edited in an environment hard-linked to the cache is
        wrong in the cache too, and uv does not look at it again.
        """
        command = [
            self.program, "pip", "install", "--python", target.executable, "--prefix", stage,
            "--offline", "--no-index", "--no-deps", "--require-hashes", "--no-cache", "--no-config",
            "--link-mode", "copy", "--no-progress", "--break-system-packages",
        ]  # fmt: skip
        unpack(self.name, command, wheels, stage, Child(self.env, lock, "pip"))


#: clap refuses to see these twice, and a quiet uv writes no JSON: the plan sets its own.
_SET_BY_PLAN = {"--dry-run": 0, "--check": 0, "--output-format": 1, "-q": 0, "-qq": 0, "--quiet": 0}


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
        """Asks ``uv pip install --dry-run``; what it would do is on its standard output."""
        if not self._answers(ask, target):
            return Plan(known=Known.UNKNOWN, said="no index can be reached")
        command = [self.asked, *_without(ask.before, _SET_BY_PLAN), "pip", "install", "--dry-run"]
        command += ["--output-format", "json", "--no-progress", *_in(target, ask)]
        command += _without(ask.after, _SET_BY_PLAN)
        done = process.run(command, env=_impatient(self.env), timeout=PLAN_SECONDS)
        if done.timed_out:
            return Plan(known=Known.UNKNOWN, said="uv did not answer in time")
        if done.code != 0:
            return Plan(known=Known.REJECTED, said=_said(done.output))
        return _read_answer(done.output, ask)

    def _settings(self, ask: Ask) -> str:
        """The configuration files that uv reads, as text."""
        if "--no-config" in ask.flags or self.env.get("UV_NO_CONFIG", "") not in ("", "0"):
            return ""
        paths = [os.path.join(f, "uv", "uv.toml") for f in network.config_folders(self.env)]
        paths += ["/etc/uv/uv.toml", "uv.toml", self.env.get("UV_CONFIG_FILE", "")]
        return network.read_texts(path for path in paths if path)

    def _answers(self, ask: Ask, target: Target) -> bool:
        """Whether every source is on this machine, or an index can be reached."""
        settings = self._settings(ask)
        variables = {k: v for k, v in self.env.items() if k.startswith("UV_") and v}
        if "--offline" in ask.flags or "UV_OFFLINE" in variables or network.uses_proxy(self.env):
            return True
        urls = network.urls_in(" ".join(ask.after), settings, *variables.values())
        local = "--no-index" in ask.flags
        local = local or bool(re.search(r"^\s*no-index\s*=\s*true", settings, re.M))
        main = bool({"--default-index", "--index-url"} & ask.flags)
        main = main or "UV_DEFAULT_INDEX" in variables or "UV_INDEX_URL" in variables
        main = main or bool(re.search(r"^\s*(index-url|default)\s*=", settings, re.M))
        if not (local or main):
            urls += network.default_index()
        return not urls or network.reachable(urls)

    def held(
        self, ask: Ask, target: Target, builds: Sequence[tuple[str, str]], folder: str
    ) -> list[str]:
        """``-c`` and ``-b``.

        An option replaces the variable of the same meaning, so that the person's ``UV_CONSTRAINT``
        and ``UV_BUILD_CONSTRAINT`` are named again. uv rejects a constraint whose version PEP 440
        does not know; such a build stops every resolution of uv by itself.
        """
        listed = os.path.join(folder, "keep.txt")
        lines = pins(builds, arbitrary=False)
        files.write_whole(listed, "".join(f"{line}\n" for line in lines))
        held: list[str] = []
        for short, option, variable in (
            ("-c", "--constraints", "UV_CONSTRAINT"),
            ("-b", "--build-constraints", "UV_BUILD_CONSTRAINT"),
        ):
            own = [] if option in ask.flags else self.env.get(variable, "").split()
            for file in [*own, *([listed] if lines else [])]:
                held += [short, file]
        return held

    def argv(self, ask: Ask, target: Target, options: Sequence[str] = ()) -> list[str]:
        """The uv that was typed, told which Python is the target."""
        tool = list(ask.program) or [self.program]
        subcommand = [ask.subcommand, *_in(target, ask)] if ask.subcommand else []
        return [*tool, *ask.before, "pip", *subcommand, *options, *ask.after]


def _in(target: Target, ask: Ask) -> list[str]:
    named = "--python" in ask.flags or ask.subcommand == "help"
    return [] if named else ["--python", target.executable]


def _impatient(env: Mapping[str, str]) -> dict[str, str]:
    return {
        **env,
        "UV_HTTP_TIMEOUT": "4",
        "UV_HTTP_CONNECT_TIMEOUT": "2",
        "UV_HTTP_RETRIES": "0",
        "RES_OPTIONS": "timeout:1 attempts:1",
    }


def _without(words: Sequence[str], dropped: Mapping[str, int]) -> list[str]:
    """The words without some options; the number is how many values each takes."""
    kept, skip = [], 0
    for word in words:
        name, equals, _ = word.partition("=")
        if skip:
            skip -= 1
        elif name in dropped:
            skip = 0 if equals else dropped[name]
        else:
            kept.append(word)
    return kept


def _read_answer(output: str, ask: Ask) -> Plan:
    """uv's JSON (schema "preview"): one entry for each thing installed or uninstalled.

    Notes on standard error are mixed in before and after it.
    """
    start = re.search(r"^\{", output, re.M)
    try:
        answer: dict[str, Any] = json.JSONDecoder().raw_decode(output[start.start() :])[0]  # type: ignore[union-attr]
        entries = [(canonicalize_name(e["name"]), e["version"], e["action"])
                   for e in answer["changes"]]  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return Plan(known=Known.UNKNOWN, said=f"uv's answer cannot be read: {error}")
    old = {name: version for name, version, action in entries if action == "uninstalled"}
    new = {name: version for name, version, action in entries if action == "installed"}
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
