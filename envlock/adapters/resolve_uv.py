"""Resolving with uv for a target that is somewhere else."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import tomli_w

from envlock.adapters import process
from envlock.adapters.index_settings import IndexSettings, is_page
from envlock.adapters.installer import complaint, without_settings
from envlock.adapters.pylock import preferences, read_pins
from envlock.adapters.resolving import OnlySource, Pin, Question
from envlock.adapters.stubs import lay_out, stubbed
from envlock.errors import ProgramFailed, Refused, UnusableInput
from envlock.model.health import parse_requirement
from envlock.model.manifest import LockedTarget

_SECONDS = 600.0
#: glibc versions that uv 0.13 has a ``--python-platform`` for.
_GLIBC_MINORS = (17, 28, *range(31, 41))
#: The musl version of uv's ``-musl`` platforms.
_MUSL_MINOR = 2
_GLIBC = re.compile(r"manylinux_2_(\d+)_(x86_64|aarch64)\Z")
_MUSL = re.compile(r"musllinux_1_(\d+)_(x86_64|aarch64)\Z")
_MAC = re.compile(r"macosx_(\d+)_(\d+)_(arm64|x86_64)\Z")
_WINDOWS = {
    "win_amd64": "x86_64-pc-windows-msvc",
    "win_arm64": "aarch64-pc-windows-msvc",
    "win32": "i686-pc-windows-msvc",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UvPlatform:
    """A platform as ``--python-platform`` names it, and the oldest macOS (``11.0``) it has."""

    name: str
    macos: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UvResolver:
    """``uv pip compile``. See :class:`envlock.adapters.resolving.Resolver`.

    Held distributions take part as stub wheels, made from their metadata: neither their files nor
    an index that knows them is needed. An index that has the same version is not asked what it
    needs: the target's own metadata is declared. uv prefers the versions that its output file
    names before the run, so held ones stay where nothing speaks against it.
    """

    program: str
    env: Mapping[str, str]
    settings: IndexSettings

    def resolve(self, question: Question) -> tuple[Pin, ...]:
        """See :class:`envlock.adapters.resolving.Resolver`.

        Raises:
            UnusableInput: uv has no name for the target.
        """
        with tempfile.TemporaryDirectory(prefix="envlock-") as private:
            folder = Path(private)
            held = lay_out(folder, question)
            (folder / "uv.toml").write_text(self._declared(question), encoding="utf-8")
            answer = folder / "pylock.toml"
            answer.write_text(preferences(held), encoding="utf-8")
            self._run(question, folder)
            return read_pins(answer, question.target)

    def _run(self, question: Question, folder: Path) -> None:
        platform = uv_platform(question.target)
        command = [
            self.program, "pip", "compile", str(folder / "asked.in"), *question.files,
            "--format", "pylock.toml", "--output-file", str(folder / "pylock.toml"),
            "--constraints", str(folder / "limits.txt"), "--config-file", str(folder / "uv.toml"),
            "--python-version", question.target.python, "--python-platform", platform.name,
            "--python", sys.executable, *_sources(question),
            "--no-header", "--no-annotate", "--no-python-downloads", "--quiet", "--color", "never",
            # pip asks all indexes alike; uv would stop at the first that knows the name
            "--index-strategy", "unsafe-best-match", "--find-links", str(folder / "stubs"),
        ]  # fmt: skip
        if self.settings.no_index:  # nothing is fetched: its cache may lie where nobody may write
            command += ["--no-index", "--no-cache"]
        for host in self.settings.trusted:
            command += ["--allow-insecure-host", host]
        for file in self.settings.constraints:
            command += ["--constraints", file]
        done = process.run(command, env=self._environment(platform), timeout=_SECONDS)
        if done.code != 0:
            raise _failure(done)

    def _declared(self, question: Question) -> str:
        """What uv's configuration file declares: what the held distributions need, and where links
        are. A command line would show the password of a page, and uv parts it at commas."""
        entries = [
            {
                "name": dist.name,
                "version": dist.version,
                "requires-dist": [line for line in dist.requires if parse_requirement(line)],
            }
            for dist in stubbed(question.held)
        ]
        found: dict[str, object] = {"dependency-metadata": entries} if entries else {}
        places = (*self.settings.links, *question.links)
        links = [place if is_page(place) else os.path.abspath(place) for place in places]
        return tomli_w.dumps(found | ({"find-links": links} if links else {}))

    def _environment(self, platform: UvPlatform) -> dict[str, str]:
        env = without_settings(self.env)
        env |= self.settings.variables("UV_INDEX_URL", "UV_EXTRA_INDEX_URL")
        if self.settings.cert:
            env["SSL_CERT_FILE"] = self.settings.cert
        if self.settings.client_cert:
            env["SSL_CLIENT_CERT"] = self.settings.client_cert
        if self.settings.proxy:
            env |= {"HTTP_PROXY": self.settings.proxy, "HTTPS_PROXY": self.settings.proxy}
        if self.settings.timeout:
            env["UV_HTTP_TIMEOUT"] = str(max(1, int(self.settings.timeout)))
        if platform.macos:
            env["MACOSX_DEPLOYMENT_TARGET"] = platform.macos
        return env


def _sources(question: Question) -> list[str]:
    if not question.sources:
        return ["--no-build"]
    return [word for name in question.unbuilt for word in ("--only-binary", name)]


def _failure(done: process.Finished) -> Exception:
    said = " ".join(line.strip(" ╰─▶×│|") for line in done.output.splitlines()).strip()
    if "No solution found" in said:
        kind = OnlySource if "Wheels are required for" in said else Refused
        why = (said.partition("cause: ")[2] or said).partition(" hint: ")[0]
        return kind(f"uv: no solution: {why}", "ask for other versions, or for fewer distributions")
    why = "no answer in time" if done.timed_out else complaint(done.output)
    lined = (line.partition("cause: ")[2].strip() for line in done.output.splitlines())
    causes = [cause for cause in lined if cause]
    # the first says of what, the last why
    told = dict.fromkeys([why, *causes[:1], *causes[-1:]])
    return ProgramFailed(
        f"uv: {': '.join(told)}", "check the requirement and that the index can be reached"
    )


def uv_platform(target: LockedTarget) -> UvPlatform:
    """The target's platform as ``--python-platform`` names it: the newest one that is not newer.

    Raises:
        UnusableInput: uv has no name for it, or for the target's kind of Python.
    """
    python, abi, _ = target.tags[0].split("-", 2)
    platforms = [tag.rsplit("-", 1)[-1] for tag in target.tags]
    found = next((one for name in platforms if (one := _platform(name))), None)
    if found is None or not python.startswith("cp") or abi != python:
        raise UnusableInput(
            f"target: uv has no name for '{target.tags[0]}'", "resolve with: --resolver pip-tools"
        )
    return found


def knows(target: LockedTarget) -> bool:
    """Whether uv has a name for a target."""
    try:
        uv_platform(target)
    except UnusableInput:
        return False
    return True


def _platform(tag: str) -> UvPlatform | None:
    if glibc := _GLIBC.match(tag):
        known = [minor for minor in _GLIBC_MINORS if minor <= int(glibc[1])]
        return UvPlatform(name=f"{glibc[2]}-manylinux_2_{known[-1]}") if known else None
    if (musl := _MUSL.match(tag)) and int(musl[1]) >= _MUSL_MINOR:
        return UvPlatform(name=f"{musl[2]}-unknown-linux-musl")
    if mac := _MAC.match(tag):
        machine = "aarch64" if mac[3] == "arm64" else "x86_64"
        return UvPlatform(name=f"{machine}-apple-darwin", macos=f"{mac[1]}.{mac[2]}")
    return UvPlatform(name=_WINDOWS[tag]) if tag in _WINDOWS else None
