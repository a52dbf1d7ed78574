"""Resolving with uv for a target that is somewhere else."""

from __future__ import annotations

import re
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from envlock.adapters import process
from envlock.adapters.index_settings import IndexSettings
from envlock.adapters.installer import complaint, without_settings
from envlock.adapters.resolving import Pin, Question
from envlock.errors import ProgramFailed, Refused, UnusableInput
from envlock.model.dist import Distribution
from envlock.model.manifest import LockedTarget
from envlock.model.wheels import wheel_file_name

_SECONDS = 600.0
#: glibc versions that uv 0.13 has a ``--python-platform`` for.
_GLIBC_MINORS = (17, 28, *range(31, 41))
_PLATFORM = re.compile(r"manylinux_2_(\d+)_(x86_64|aarch64)\Z")
_PIN = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)(\[[^\]]*\])?={2,3}(?P<version>[^\s;\\]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True, slots=True, kw_only=True)
class UvResolver:
    """``uv pip compile``. See :class:`envlock.adapters.resolving.Resolver`.

    Held distributions take part as stub wheels, made from their metadata: neither their files nor
    an index that knows them is needed. uv prefers the versions that its output file names before
    the run, so held ones stay where nothing speaks against it.
    """

    program: str
    env: Mapping[str, str]
    settings: IndexSettings

    def resolve(self, question: Question) -> tuple[Pin, ...]:
        """See :class:`envlock.adapters.resolving.Resolver`."""
        with tempfile.TemporaryDirectory(prefix="envlock-") as folder:
            asked = Path(folder, "asked.in")
            limits = Path(folder, "limits.txt")
            answer = Path(folder, "answer.txt")
            asked.write_text(_lines(question.requirements))
            limits.write_text(_lines(question.constraints))
            held = [dist for dist in question.held if _is_valid(dist)]
            answer.write_text(_lines(f"{dist.name}=={dist.version}" for dist in held))
            stubs = Path(folder, "stubs")
            stubs.mkdir()
            for dist in held:
                write_stub(stubs, dist)
            self._run(question, [asked, *map(Path, question.files)], limits, answer)
            return parse_pins(answer.read_text(encoding="utf-8"))

    def _run(self, question: Question, asked: list[Path], limits: Path, answer: Path) -> None:
        target = question.target
        command = [
            self.program, "pip", "compile", *map(str, asked), "--output-file", str(answer),
            "--constraints", str(limits), "--python-version", target.python,
            "--python-platform", uv_platform(target), "--python", sys.executable,
            "--no-build", "--generate-hashes", "--no-header", "--no-annotate", "--no-config",
            "--no-python-downloads", "--quiet", "--color", "never",
            # pip asks all indexes alike; uv would stop at the first that knows the name
            "--index-strategy", "unsafe-best-match", "--find-links", str(answer.parent / "stubs"),
            *self.settings.options(),
        ]  # fmt: skip
        for host in self.settings.trusted:
            command += ["--allow-insecure-host", host]
        for file in self.settings.constraints:
            command += ["--constraints", file]
        done = process.run(command, env=self._environment(), timeout=_SECONDS)
        if done.code == 0:
            return
        said = " ".join(line.strip(" ╰─▶×│|") for line in done.output.splitlines()).strip()
        if "No solution found" in said:
            raise Refused(
                f"uv: no solution: {said.partition('cause: ')[2] or said}",
                "ask for other versions, or for fewer distributions",
            )
        why = "no answer in time" if done.timed_out else complaint(done.output)
        raise ProgramFailed(f"uv: {why}", "check the requirement and that the index can be reached")

    def _environment(self) -> dict[str, str]:
        env = without_settings(self.env)
        if self.settings.cert:
            env["SSL_CERT_FILE"] = self.settings.cert
        if self.settings.proxy:
            env |= {"HTTP_PROXY": self.settings.proxy, "HTTPS_PROXY": self.settings.proxy}
        return env


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _is_valid(dist: Distribution) -> bool:
    """uv refuses everything where one version is none that PEP 440 knows."""
    try:
        Version(dist.version)
    except InvalidVersion:
        return False
    return True


def uv_platform(target: LockedTarget) -> str:
    """The target's platform as ``--python-platform`` names it.

    Raises:
        UnusableInput: uv has no name for it.
    """
    for tag in target.tags:
        found = _PLATFORM.match(tag.rsplit("-", 1)[-1])
        if found:
            known = [minor for minor in _GLIBC_MINORS if minor <= int(found[1])]
            if known:
                return f"{found[2]}-manylinux_2_{known[-1]}"
            break
    raise UnusableInput(
        f"target: no way to resolve for '{target.tags[0]}'",
        "only Linux on x86_64 and aarch64 with glibc 2.17 or newer is supported",
    )


def write_stub(folder: Path, dist: Distribution) -> None:
    """A wheel with the metadata of a distribution and nothing else."""
    file = wheel_file_name(dist.name, dist.version, "", "py3-none-any")
    info = f"{'-'.join(file.split('-')[:2])}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {dist.name}\nVersion: {dist.version}\n"
    metadata += _lines(f"Requires-Dist: {line}" for line in dist.requires)
    with zipfile.ZipFile(folder / file, "w") as stub:
        stub.writestr(f"{info}/METADATA", metadata)
        stub.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        stub.writestr(f"{info}/RECORD", "")


def parse_pins(text: str) -> tuple[Pin, ...]:
    """The pins of a compiled requirements file.

    Raises:
        Refused: one of them is no version on an index.
    """
    found = []
    for line in text.replace("\\\n", " ").splitlines():
        if not line.strip() or line.lstrip().startswith(("#", "-")):
            continue
        pin = _PIN.match(line)
        if pin is None:
            raise Refused(
                f"uv: '{line.split()[0]}' is not resolved to a version on an index",
                "ask for it by name and version",
            )
        hashes = tuple(sorted(_HASH.findall(line)))
        found.append(Pin(canonicalize_name(pin["name"]), pin["version"], hashes))
    return tuple(found)
