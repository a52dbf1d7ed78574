"""The protocol of a program that installs wheels, and what its runs have in common."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from packaging.version import InvalidVersion, Version

from envlock.adapters import files, process
from envlock.adapters.files import Hashed
from envlock.adapters.network import PROBE_SECONDS
from envlock.errors import ProgramFailed
from envlock.model.facts import Target
from envlock.model.health import applies, parse_requirement

#: Variables without which no index is trusted; they carry no choice of packages.
_KEPT = ("PIP_CERT", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")


@dataclass(frozen=True, slots=True)
class Pinned:
    """A wheel to install.

    Attributes:
        name: canonical.
        version: raw.
        sha256: of the file, hexadecimal.
        path: of the file.
        seal: what :func:`envlock.adapters.files.seal_of` said of the file before its sha256 was
            computed; empty when nobody asked. As long as it says the same the file is the same.
    """

    name: str
    version: str
    sha256: str
    path: str
    seal: tuple[int, ...] = ()


class Stager(Protocol):
    """Unpacks wheels into a folder as the target's Python would have them.

    No configuration, no cache, no network, no pip needed in the target; files judged afterwards
    by their content digest, so a stager is not trusted to be right.
    """

    @property
    def name(self) -> str:
        """As ``--backend`` says it."""

    def stage(
        self, wheels: Sequence[Pinned], target: Target, stage: str, lock: int | None
    ) -> Mapping[str, Hashed]:
        """Installs into ``stage`` as a prefix.

        Args:
            stage: an existing empty folder.
            lock: a descriptor that the program inherits, so that an orphan still holds the lock.

        Returns:
            By absolute path, sizes and digests that were computed over the very bytes that were
            handed to the disk; what is not there has to be read to be known. A program that was
            only run answers nothing.

        Raises:
            ProgramFailed: the program is missing or failed, or a wheel is not what it should be.
            OSError: the stage cannot be written.
        """


def without_settings(env: Mapping[str, str]) -> dict[str, str]:
    """The environment without anything that steers pip, uv or Python."""
    kept = {
        key: value
        for key, value in env.items()
        if key in _KEPT or not key.startswith(("PIP_", "UV_", "PYTHON", "VIRTUAL_ENV"))
    }
    return kept | {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "UV_NO_CONFIG": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
    }


def hashed_requirements(wheels: Sequence[Pinned]) -> str:
    """A requirements file that admits exactly these wheels, by name, version and sha256.

    By name and not by path: a path would be written into ``direct_url.json``, and a restored
    build would then look like one that somebody installed by hand.
    """
    lines = (pins([(w.name, w.version)], arbitrary=True)[0] for w in wheels)
    return "".join(f"{p} --hash=sha256:{w.sha256}\n" for p, w in zip(lines, wheels, strict=True))


@dataclass(frozen=True, slots=True)
class Child:
    """What a stager's program is given: the caller's environment, and a lock to inherit.

    ``other`` is the backend to try when this one fails.
    """

    env: Mapping[str, str]
    lock: int | None
    other: str


#: A stager's program that needs longer hangs: the slowest one measured (pip, on two cores and a
#: cold disk) takes 10 s for an environment of 1.9 GB.
_STAGE_SECONDS, _STAGE_BYTES_A_SECOND = 900.0, 1e6


def unpack(
    name: str,
    command: Sequence[str],
    wheels: Sequence[Pinned],
    stage: str,
    target: Target,
    child: Child,
) -> None:
    """Runs a stager's program on exactly these wheels, without any setting.

    Raises:
        ProgramFailed: it cannot be started, failed, or came to no end.
    """
    listed = f"{stage}.txt"
    files.write_whole(listed, hashed_requirements(wheels))
    folders = sorted({os.path.dirname(wheel.path) for wheel in wheels})
    links = [word for folder in folders for word in ("--find-links", folder)]
    size = sum(os.stat(wheel.path).st_size for wheel in wheels)
    limit = _STAGE_SECONDS + size / _STAGE_BYTES_A_SECOND
    done = process.run(
        [*command, "-r", listed, *links],
        env=without_settings(child.env),
        timeout=limit,
        pass_fds=() if child.lock is None else (child.lock,),
    )
    hint = f"try again with --backend {child.other}"
    if done.timed_out:
        raise ProgramFailed(f"{name}: no end after {limit:.0f} s; it was ended", hint)
    if done.code != 0:
        raise ProgramFailed(f"{name}: exit {done.code}: {process.last_lines(done.output)}", hint)
    _into_place(target.layout.moved(stage).purelib)


def _into_place(purelib: str) -> None:
    """Debian's system Python has what is installed in ``dist-packages``; told a prefix, pip and uv
    write ``site-packages`` all the same."""
    written = os.path.join(os.path.dirname(purelib), "site-packages")
    if not os.path.lexists(purelib) and os.path.isdir(written):
        os.rename(written, purelib)


#: A dry run that takes longer is given up: what it asks about is then judged by its arguments.
PLAN_SECONDS = 120.0


class Known(Enum):
    """What is known of the outcome of a command."""

    PLANNED = "planned"  # the tool said what it would do
    REJECTED = "rejected"  # the same tool, asked in the same way, says that it cannot
    UNKNOWN = "unknown"  # nobody could be asked: no network, no answer in time


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One distribution that a command would install, replace or remove.

    Attributes:
        name: canonical.
        old: raw version that is there now; None when none is.
        new: version that would be there afterwards; None for a removal.
        url: where the new one comes from, as far as the tool says.
        sha256: of that file; empty when the tool does not say.
        requires: the Requires-Dist of the new one that count in the target; None when the tool
            does not say.
    """

    name: str
    old: str | None = None
    new: str | None = None
    url: str = ""
    sha256: str = ""
    requires: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """Something that is built in isolation first, against other builds of held names.

    Attributes:
        raw: as the tool names it.
        requires: canonical names that its build asks for, itself or through others.
    """

    raw: str
    requires: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a command would do, sorted by name.

    Attributes:
        said: why nothing is known.
        blocked: the builds for which the tool got no further.
    """

    known: Known = Known.PLANNED
    changes: tuple[Change, ...] = ()
    said: str = ""
    blocked: tuple[Blocked, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """Metadata that a tool is to believe in place of that of an installed distribution.

    Attributes:
        name: canonical.
        version: raw version that is installed.
        requires: raw Requires-Dist.
        extras: names of the extras that these speak of.
    """

    name: str
    version: str
    requires: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """An install or uninstall command, as a tool is to be asked about it or to run it.

    Attributes:
        program: how it was typed, when by path; empty for a bare name, which means the target.
        python_options: the interpreter's own options before ``-m pip``.
        before: options before the subcommand.
        subcommand: ``install``, ``uninstall`` or another one.
        after: the words after it.
        words: those of them that are no options.
        installed: canonical names and raw versions of what is there.
        elsewhere: it installs beside the target's own folders, where nothing is replaced.
        flags: canonical names of the options given, with or without a value, wherever they are
            given: typed, in a requirements file, a variable, a configuration file.
        typed: those of the command line alone.
        constraints: the person's own constraint files.
        urls: indexes and sources that it names, wherever it names them.
        unsaid: options that are not on the command line, and that have to be said where it is
            asked or run in another form.
        patience: seconds to wait for a sign of life from an index.
        stated: what a plan is to believe of some installed distributions.
        builds: name and raw version of those that no build of a plan may take from elsewhere.
    """

    program: tuple[str, ...] = ()
    python_options: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    subcommand: str = "install"
    after: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    installed: Mapping[str, str] = field(default_factory=dict)
    elsewhere: bool = False
    flags: frozenset[str] = frozenset()
    typed: frozenset[str] = frozenset()
    constraints: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    unsaid: tuple[str, ...] = ()
    patience: float = PROBE_SECONDS
    stated: tuple[Stated, ...] = ()
    builds: tuple[tuple[str, str], ...] = ()


class Planner(Protocol):
    """A tool that people install with: asked what it would do, and run as they typed it.

    Everything is asked and run under the person's own settings and environment: what those would
    do is the question.
    """

    @property
    def name(self) -> str:
        """As people type it: ``pip``, ``uv``, ``pip-sync``."""

    def plan(self, ask: Ask, target: Target) -> Plan:
        """What ``ask`` would install, by a dry run that waits for no dead network.

        A tool that only believes what is installed knows nothing where ``ask`` states otherwise.

        Raises:
            ProgramFailed: the tool cannot be started.
        """

    def held(
        self, ask: Ask, target: Target, builds: Sequence[tuple[str, str]], folder: str
    ) -> list[str]:
        """Options that keep the resolver from replacing builds.

        Args:
            builds: name and raw version of each.
            folder: where constraint files may be written; it outlives the command.
        """

    def variables(self, ask: Ask, target: Target, folder: str) -> Mapping[str, str]:
        """What keeps builds in isolation from using another build, where no option does.

        Args:
            folder: the one that ``held`` wrote to, before.
        """

    def argv(self, ask: Ask, target: Target, options: Sequence[str] = ()) -> list[str]:
        """The command line that does what was typed, in the target, with more options."""


def pins(builds: Sequence[tuple[str, str]], *, arbitrary: bool) -> list[str]:
    """Constraints that admit exactly these builds.

    ``==`` admits every label when it names none, so that a version without one takes ``===``
    (PEP 440, arbitrary equality). A version that PEP 440 does not know can only be written with
    ``===``, and only for a tool that reads such versions (``arbitrary``); else it is left out.
    """
    lines = []
    for name, version in builds:
        try:
            known = Version(version)
        except InvalidVersion:
            lines += [f"{name}==={version}"] if arbitrary else []
        else:
            lines.append(f"{name}=={version}" if known.local else f"{name}==={known}")
    return lines


def complaint(output: str) -> str:
    """The line of a tool's output that says what is wrong: the first error, else the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error:")]
    said = (errors or lines[-1:] or ["it said nothing"])[0]
    return said[len("error:") :].strip() if errors else said


def counting(
    requires: Iterable[str], markers: Mapping[str, str], extras: Sequence[str] = ()
) -> tuple[str, ...]:
    """The raw requirements that count in an environment with some extras asked for."""
    found = []
    for raw in requires:
        requirement = parse_requirement(raw)
        if requirement and any(applies(requirement, markers, extra) for extra in ("", *extras)):
            found.append(raw)
    return tuple(found)
