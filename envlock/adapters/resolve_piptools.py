"""Resolving with pip-tools, through pip, for a target that is somewhere else."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.markers import default_environment
from packaging.version import Version

from envlock.adapters import process
from envlock.adapters.index_settings import IndexSettings
from envlock.adapters.installer import complaint, without_settings
from envlock.adapters.pylock import fitting
from envlock.adapters.resolving import OnlySource, Pin, Question, RemoteFile
from envlock.adapters.stubs import lay_out
from envlock.errors import ProgramFailed, Refused
from envlock.model.manifest import LockedTarget
from envlock.model.masking import mask

_SECONDS = 1800.0
_CHILD = Path(__file__).with_name("piptools_child.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class PipToolsResolver:
    """pip-tools' resolver. See :class:`envlock.adapters.resolving.Resolver`.

    It takes every target, since it goes by the manifest's own tags and markers; it is slower than
    uv, and asks an index in pip's own ways.
    """

    env: Mapping[str, str]
    settings: IndexSettings

    def resolve(self, question: Question) -> tuple[Pin, ...]:
        """See :class:`envlock.adapters.resolving.Resolver`."""
        with tempfile.TemporaryDirectory(prefix="envlock-") as private:
            folder = Path(private)
            held = lay_out(folder, question)
            asked, limits, stubs = (folder / name for name in ("asked.in", "limits.txt", "stubs"))
            document = {
                "markers": _whole(question.target),
                "tags": list(question.target.tags),
                "version": Version(question.target.python).release,
                "files": [str(asked), *question.files],
                "constraints": [str(limits), *self.settings.constraints],
                "held": {dist.name: str(Version(dist.version)) for dist in held},
                "stubs": str(stubs),
                "options": [*self._options(question), "--find-links", str(stubs)],
                "cache": str(folder / "cache"),
            }
            answer = self._ask(document, folder)
        if "pins" in answer:
            return tuple(_pin(one, question.target.tags) for one in answer["pins"])
        raise _failure(answer)

    def _options(self, question: Question) -> list[str]:
        settings = self.settings
        options = ["--no-input", "--disable-pip-version-check", *settings.options(),
                   *settings.access()]  # fmt: skip
        for place in question.links:
            options += ["--find-links", place]
        if not question.sources:
            return [*options, "--only-binary", ":all:"]
        for name in question.unbuilt:
            options += ["--only-binary", name]
        return [*options, "--prefer-binary"]

    def _ask(self, document: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        question, answer = folder / "question.json", folder / "answer.json"
        question.write_text(json.dumps(document), encoding="utf-8")
        command = [sys.executable, "-I", str(_CHILD), str(question), str(answer)]
        env = without_settings(self.env)
        if self.settings.cert:  # pip lets the variable win over its own --cert
            env["REQUESTS_CA_BUNDLE"] = self.settings.cert
        done = process.run(command, env=env, timeout=_SECONDS)
        if done.code == 0 and answer.exists():
            found: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
            return found
        why = "no answer in time" if done.timed_out else complaint(done.output)
        raise ProgramFailed(
            f"pip-tools: {why}", "check the requirement and that the index can be reached"
        )


def _whole(target: LockedTarget) -> dict[str, str]:
    """Every marker of PEP 508: what the manifest does not say is empty, never the host's."""
    known = dict.fromkeys(default_environment(), "")
    return {**known, "python_full_version": target.python, **target.markers}


def _failure(answer: Mapping[str, Any]) -> Exception:
    said = " ".join(str(answer["refused"]).split())
    if answer["unreachable"]:
        return ProgramFailed(
            f"pip-tools: an index cannot be asked: {mask(answer['unreachable'][0])}",
            "check that it can be reached, and that pip trusts it",
        )
    if answer["program"]:
        return ProgramFailed(f"pip-tools: {said}", "check the requirement")
    kind = OnlySource if answer["only_source"] else Refused
    return kind(
        f"pip-tools: no solution: {said}", "ask for other versions, or for fewer distributions"
    )


def _pin(answer: Mapping[str, Any], tags: tuple[str, ...]) -> Pin:
    """
    Raises:
        Refused: it is neither a wheel nor a source file.
    """
    name, version, kind = answer["name"], answer["version"], answer["kind"]
    files = [
        RemoteFile(file=one["file"], urls=(one["url"],), sha256=one["sha256"])
        for one in answer["files"]
    ]
    wheels: tuple[RemoteFile, ...] = tuple(one for one in files if one.file.endswith(".whl"))
    sdist = next((one for one in files if one.file.endswith((".tar.gz", ".zip"))), None)
    if kind not in ("http", "https", "file") or not (wheels or sdist):
        raise Refused(
            f"'{name}' is not resolved to a version on an index",
            "make a wheel of it, and name the wheel",
        )
    origin = "index" if not answer["direct"] else "file" if kind == "file" else "url"
    wheels = wheels if answer["direct"] else fitting(wheels, tags)
    hashes = tuple(sorted({wheel.sha256 for wheel in wheels if wheel.sha256}))
    return Pin(name, version, hashes=hashes, wheels=wheels, sdist=sdist, origin=origin)
