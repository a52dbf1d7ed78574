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
from envlock.model.facts import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class PipStager:
    """Stages with ``pip --python TARGET install --prefix STAGE``; the target needs no pip."""

    env: Mapping[str, str]
    name: str = "pip"

    def stage(self, wheels: Sequence[Pinned], target: Target, stage: str, lock: int | None) -> None:
        """See :class:`envlock.adapters.installer.Stager`."""
        command = [
            sys.executable, "-m", "pip", "--python", target.executable, "install",
            "--no-index", "--no-deps", "--require-hashes", "--no-cache-dir", "--no-compile",
            "--ignore-installed", "--no-warn-script-location", "--no-warn-conflicts",
            "--break-system-packages", "--prefix", stage,
        ]  # fmt: skip
        unpack(self.name, command, wheels, stage, Child(self.env, lock, "uv"))


#: First pip with ``--dry-run`` and ``--report``; first with ``--build-constraint``.
_DRY_RUN = Version("22.2")
_BUILD_CONSTRAINT = Version("25.3")
#: Waiting that ends: a network that is there answers sooner, and a plan that fails costs only
#: a better explanation.
_BOUNDED = ("--timeout", "4", "--retries", "0", "--no-input", "--disable-pip-version-check", "-q")


def _version(text: str | None) -> Version:
    try:
        return Version(text or "0")
    except InvalidVersion:
        return Version("0")


def _own_pip(target: Target) -> list[str]:
    return [sys.executable, "-m", "pip", "--python", target.executable]


@dataclass(frozen=True, slots=True, kw_only=True)
class PipPlanner:
    """pip as people type it. See :class:`envlock.adapters.installer.Planner`."""

    env: Mapping[str, str]
    name: str = "pip"

    def plan(self, ask: Ask, target: Target) -> Plan:
        """Asks the target's own pip from 22.2 on, else envlock's pip on the target."""
        if not self._answers(ask, target):
            return Plan(known=Known.UNKNOWN, said="no index can be reached")
        asked_itself = _version(target.pip) >= _DRY_RUN
        tool = [target.executable, "-m", "pip"] if asked_itself else _own_pip(target)
        with tempfile.TemporaryDirectory(prefix="envlock-") as folder:
            report = os.path.join(folder, "report.json")
            command = [*tool, *ask.before, "install", "--dry-run", *_BOUNDED]
            command += [*_without_report(ask.after, report)]
            done = process.run(command, env=_impatient(self.env), timeout=PLAN_SECONDS)
            if done.timed_out:
                return Plan(known=Known.UNKNOWN, said="pip did not answer in time")
            if done.code == 0:
                return _read_report(report, ask, target)
        rejected = asked_itself or target.pip is None
        return Plan(
            known=Known.REJECTED if rejected else Known.UNKNOWN,
            said=complaint(done.output),
        )

    def _settings(self, ask: Ask, target: Target) -> str:
        """The configuration files that pip reads, as text."""
        if "--isolated" in ask.flags:
            return ""
        named = self.env.get("PIP_CONFIG_FILE", "")
        if named == os.devnull:
            return ""
        home = self.env.get("HOME", "")
        paths = [os.path.join(f, "pip", "pip.conf") for f in network.config_folders(self.env)]
        paths += ["/etc/pip.conf", os.path.join(home, ".pip", "pip.conf")]
        paths += [os.path.join(target.layout.prefix, "pip.conf"), *([named] if named else [])]
        return network.read_texts(paths)

    def _answers(self, ask: Ask, target: Target) -> bool:
        """Whether every source is on this machine, or an index can be reached."""
        settings = self._settings(ask, target)
        variables = {k: v for k, v in self.env.items() if k.startswith("PIP_")}
        if "--proxy" in ask.flags or "proxy" in settings or "PIP_PROXY" in variables:
            return True
        if network.uses_proxy(self.env):
            return True
        urls = network.urls_in(" ".join(ask.after), settings, *variables.values())
        local = "--no-index" in ask.flags or variables.get("PIP_NO_INDEX", "") not in ("", "0")
        local = local or bool(re.search(r"^\s*no[-_]index\s*[=:]", settings, re.M))
        main = "--index-url" in ask.flags or "PIP_INDEX_URL" in variables
        main = main or bool(re.search(r"^\s*index[-_]url\s*[=:]", settings, re.M))
        if not (local or main):
            urls += network.default_index()
        return not urls or network.reachable(urls)

    def held(
        self, ask: Ask, target: Target, builds: Sequence[tuple[str, str]], folder: str
    ) -> list[str]:
        """``-c``; from 25.3 on ``--build-constraint`` too, which pip refuses to combine with
        ``--no-build-isolation``. It adds to the person's own constraints."""
        listed = os.path.join(folder, "keep.txt")
        files.write_whole(listed, "".join(f"{line}\n" for line in pins(builds, arbitrary=True)))
        held = ["-c", listed]
        own = _version(target.pip) if target.pip or ask.program else _BUILD_CONSTRAINT
        settings = self._settings(ask, target)
        isolated = "--no-build-isolation" not in ask.flags
        isolated = isolated and "PIP_NO_BUILD_ISOLATION" not in self.env
        isolated = isolated and not re.search(r"no[-_]build[-_]isolation", settings)
        if own >= _BUILD_CONSTRAINT and isolated:
            held += ["--build-constraint", listed]
        return held

    def argv(self, ask: Ask, target: Target, options: Sequence[str] = ()) -> list[str]:
        """The target's pip; where it has none, envlock's own, working on the target."""
        if ask.program:
            tool = list(ask.program)
        elif target.pip is None:
            tool = _own_pip(target)
        else:
            tool = [target.executable, *ask.python_options, "-m", "pip"]
        subcommand = [ask.subcommand] if ask.subcommand else []
        return [*tool, *ask.before, *subcommand, *options, *ask.after]


def _impatient(env: Mapping[str, str]) -> dict[str, str]:
    """With name look-ups that give up: the C library tries for ten seconds by default."""
    return {**env, "RES_OPTIONS": "timeout:1 attempts:1", "PYTHONDONTWRITEBYTECODE": "1"}


def _without_report(words: Sequence[str], report: str) -> list[str]:
    """The words with a report of our own in place of the person's; later options win."""
    kept, skip = ["--report", report], False
    for word in words:
        if skip or word.startswith("--report="):
            skip = False
        elif word == "--report":
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
        old=None if ask.elsewhere else ask.installed.get(name),
        new=metadata["version"],
        url=download.get("url", ""),
        sha256=hashes.get("sha256", old_form),
        requires=counting(
            metadata.get("requires_dist") or (), target.markers, item.get("requested_extras") or ()
        ),
    )


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
