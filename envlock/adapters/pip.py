"""pip as a backend: envlock's own pip, run by the target's Python."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from envlock.adapters import files, network, process
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
    counting,
    pins,
    unpack,
)
from envlock.adapters.isolation import blocked, isolated, unanswered
from envlock.adapters.marker import passing
from envlock.adapters.pip_conf import released
from envlock.model.facts import Target
from envlock.model.health import parse_requirement


@dataclass(frozen=True, slots=True, kw_only=True)
class PipStager:
    """Stages with ``pip --python TARGET install --prefix STAGE``; the target needs no pip."""

    env: Mapping[str, str]
    name: str = "pip"

    def stage(
        self, wheels: Sequence[Pinned], target: Target, stage: str, lock: int | None
    ) -> Mapping[str, Hashed]:
        """See :class:`envlock.adapters.installer.Stager`."""
        command = [
            sys.executable, "-m", "pip", "--python", target.executable, "install",
            "--no-index", "--no-deps", "--require-hashes", "--no-cache-dir", "--no-compile",
            "--ignore-installed", "--no-warn-script-location", "--no-warn-conflicts",
            "--break-system-packages", "--prefix", stage,
        ]  # fmt: skip
        unpack(self.name, command, wheels, stage, target, Child(self.env, lock, "uv"))
        return {}


#: First pip with ``--dry-run`` and ``--report``; first with ``--build-constraint``.
_DRY_RUN = Version("22.2")
_BUILD_CONSTRAINT = Version("25.3")
#: The first that can pass the marker of an externally managed environment.
_BREAK_SYSTEM = Version("23.0.1")
#: Waiting that ends: a network that is there answers sooner, and a plan that fails costs only
#: a better explanation.
_BOUNDED = ("--timeout", "4", "--retries", "0", "--no-input", "--disable-pip-version-check")


_LISTED = "keep.txt"
#: pip's exit code for options that it does not take.
_USAGE = 2
_NOWHERE = re.compile(r"^ERROR: No matching distribution found for (.+?)(?: \(from .*)?$", re.M)
_TYPED = re.compile(r"The user requested (?:\(constraint\) )?(.+)")
_NO_FILE = re.compile(r"^ERROR: Could not open requirements file", re.M)


def _version(text: str | None) -> Version:
    try:
        return Version(text or "0")
    except InvalidVersion:
        return Version("0")


def _listed(builds: Sequence[tuple[str, str]], folder: str) -> str:
    """Path of a constraints file that admits exactly these builds."""
    path = os.path.join(folder, _LISTED)
    files.write_whole(path, "".join(f"{line}\n" for line in pins(builds, arbitrary=True)))
    return path


def _own_pip(target: Target) -> list[str]:
    return [sys.executable, "-m", "pip", "--python", target.executable]


@dataclass(frozen=True, slots=True, kw_only=True)
class PipPlanner:
    """pip as people type it. See :class:`envlock.adapters.installer.Planner`."""

    env: Mapping[str, str]
    name: str = "pip"

    def plan(self, ask: Ask, target: Target) -> Plan:
        """Asks the target's own pip from 22.2 on, else envlock's pip on the target."""
        if ask.stated:
            return Plan(known=Known.UNKNOWN, said="pip believes what is installed")
        if not self._answers(ask):
            return Plan(known=Known.UNKNOWN, said="no index can be reached")
        asked_itself = target.pip is None or _version(target.pip) >= _DRY_RUN
        tool = [target.executable, "-m", "pip"] if target.pip and asked_itself else _own_pip(target)
        asked = _version(target.pip) if target.pip and asked_itself else _BUILD_CONSTRAINT
        with tempfile.TemporaryDirectory(prefix="envlock-") as folder:
            report = os.path.join(folder, "report.json")
            command = [*tool, *ask.before, "install", "--dry-run", *_BOUNDED]
            if asked >= _BUILD_CONSTRAINT and isolated(ask):
                command += ["--build-constraint", _listed(ask.builds, folder)]
            command += _aside(ask.after, {"--report": report, "--src": os.path.join(folder, "src")})
            env = _impatient({**self.env, **released(ask.constraints, target.home)})
            done = process.run(command, env=env, timeout=PLAN_SECONDS)
            if done.timed_out:
                return Plan(known=Known.UNKNOWN, said="pip did not answer in time")
            if done.code == 0:
                return _read_report(report, ask, target)
        rejected = not unanswered(done.output) and (
            asked_itself or _rejected_by_all(done) or self._misunderstood(done, ask, target)
        )
        return Plan(
            known=Known.REJECTED if rejected else Known.UNKNOWN,
            said=_said(done.output),
            blocked=blocked(done.output, ask.builds),
        )

    def _misunderstood(self, done: process.Finished, ask: Ask, target: Target) -> bool:
        """Whether the target's pip does not take the options either: with ``--help`` behind them,
        it looks at them and does nothing."""
        if done.code != _USAGE or "--" in ask.after:
            return False
        command = [target.executable, "-m", "pip", *ask.before, "install", *ask.after, "--help"]
        again = process.run(command, env=_impatient(self.env), timeout=PLAN_SECONDS)
        return again.code == _USAGE

    def _answers(self, ask: Ask) -> bool:
        """Whether every source is on this machine, or an index can be reached."""
        if "--proxy" in ask.flags or network.uses_proxy(self.env):
            return True
        urls = [*network.urls_in(*ask.urls)]
        if not {"--no-index", "--index-url"} & ask.flags:
            urls += network.default_index()
        return not urls or network.reachable(urls, ask.patience)

    def held(
        self, ask: Ask, target: Target, builds: Sequence[tuple[str, str]], folder: str
    ) -> list[str]:
        """``-c``; from 25.3 on ``--build-constraint`` too, which pip refuses to combine with
        ``--no-build-isolation``. It adds to the person's own constraints."""
        listed = _listed(builds, folder)
        held = ["-c", listed]
        if self._runs(ask, target) >= _BUILD_CONSTRAINT and isolated(ask):
            held += ["--build-constraint", listed]
        return held

    def variables(self, ask: Ask, target: Target, folder: str) -> Mapping[str, str]:
        """``PIP_CONSTRAINT`` reaches isolated builds up to pip 25.2, and nothing else does. It
        takes the place of the person's, which are named again."""
        if self._runs(ask, target) >= _BUILD_CONSTRAINT or not isolated(ask):
            return {}
        own = [file for file in ask.constraints if not re.search(r"\s", file)]
        return {"PIP_CONSTRAINT": " ".join([*own, os.path.join(folder, _LISTED)])}

    def _runs(self, ask: Ask, target: Target) -> Version:
        """The pip that runs what was typed."""
        return _version(target.pip) if target.pip or ask.program else _BUILD_CONSTRAINT

    def argv(self, ask: Ask, target: Target, options: Sequence[str] = ()) -> list[str]:
        """The target's pip; where it has none, envlock's own, working on the target."""
        if ask.program:
            tool = list(ask.program)
        elif target.pip is None:
            tool = _own_pip(target)
        else:
            tool = [target.executable, *ask.python_options, "-m", "pip"]
        subcommand = [ask.subcommand] if ask.subcommand else []
        knows = self._runs(ask, target) >= _BREAK_SYSTEM
        passed = passing(target, ask) if knows else []
        return [*tool, *ask.before, *subcommand, *passed, *options, *ask.after]


def _rejected_by_all(done: process.Finished) -> bool:
    """Whether every pip ends like the one that was asked.

    A file that is not there, and what no index has. Two pips see the same versions of a project,
    but for those that PEP 440 does not know: older ones read them, and they are in no range but
    ``===``. A conflict is one for all where only what the person asked for contradicts itself;
    what the metadata of files says is read otherwise by older ones.
    """
    if _NO_FILE.search(done.output):
        return True
    typed = [_TYPED.match(line) for line in _conflict(done.output)]
    found = typed or [_NOWHERE.search(done.output)]
    return all(one is not None and _same_for_all(one[1]) for one in found)


def _same_for_all(raw: str) -> bool:
    requirement = parse_requirement(raw)
    return requirement is not None and not any(
        one.operator == "===" and _version(one.version) == Version("0")
        for one in requirement.specifier
    )


def _said(output: str) -> str:
    """What is wrong, and pip's own account of which requirements conflict."""
    lines = _conflict(output)
    return ": ".join([complaint(output), *(["; ".join(lines)] if lines else [])])


def _conflict(output: str) -> list[str]:
    """The requirements that contradict each other, each as pip says where it comes from."""
    account = re.search(r"^The conflict is caused by:\n(.*?)(?=^\s*$|\Z)", output, re.M | re.S)
    return [line.strip() for line in account[1].splitlines()] if account else []


def _impatient(env: Mapping[str, str]) -> dict[str, str]:
    """With name look-ups that give up: the C library tries for ten seconds by default."""
    return {**env, "RES_OPTIONS": "timeout:1 attempts:1", "PYTHONDONTWRITEBYTECODE": "1"}


#: Where a dry run writes: its report, and the repositories of what is editable.
_WRITES = ("--report", "--src", "--source", "--source-dir", "--source-directory")


def _aside(words: Sequence[str], places: Mapping[str, str]) -> list[str]:
    """The words with places of our own for what a dry run writes; later options win."""
    kept, skip = [word for pair in places.items() for word in pair], False
    for word in words:
        if skip or (word.partition("=")[0] in _WRITES and "=" in word):
            skip = False
        elif word in _WRITES:
            skip = True
        else:
            kept.append(word)
    return kept


def _read_report(path: str, ask: Ask, target: Target) -> Plan:
    """pip's installation report (format version 1)."""
    try:
        report: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
        changes = [_change(item, ask, target) for item in report["install"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        return Plan(known=Known.UNKNOWN, said=f"pip's report cannot be read: {error}")
    return Plan(changes=tuple(sorted(changes, key=lambda change: change.name)))


def _change(item: Mapping[str, Any], ask: Ask, target: Target) -> Change:
    metadata, download = item["metadata"], item.get("download_info", {})
    archive = download.get("archive_info", {})
    name = canonicalize_name(metadata["name"])
    hashes = archive.get("hashes") or {}
    old_form = str(archive.get("hash", "")).removeprefix("sha256=")  # before pip 23.0
    return Change(
        name=name,
        old=ask.installed.get(name) if not ask.elsewhere or _takes_away(ask) else None,
        new=metadata["version"],
        url=download.get("url", ""),
        sha256=hashes.get("sha256", old_form),
        requires=counting(
            metadata.get("requires_dist") or (), target.markers, item.get("requested_extras") or ()
        ),
    )


def _takes_away(ask: Ask) -> bool:
    """Told a prefix or a root, pip writes there and uninstalls what is installed here."""
    kept = {"--target", "--user", "--ignore-installed"}
    return bool(ask.flags & {"--prefix", "--root"}) and not ask.flags & kept


def python_of(script: str) -> str:
    """The interpreter that a ``pip`` script starts, or the one beside it.

    A path that is too long for a first line hides in the second (``#!/bin/sh`` and ``exec``).
    """
    try:
        with open(script, "rb") as file:
            head = file.read(2048).decode("utf-8", "replace")
    except OSError:
        head = ""
    found = re.match(r"#!\s*(/\S*python[\d.]*)\s*$", head, re.M)
    found = found or re.search(r"^'''exec' \"?(/.*?python[\d.]*)\"? ", head, re.M)
    return found[1] if found else os.path.join(os.path.dirname(script), "python3")
