"""A command line as typed becomes a request. Pure: files are read by whoever calls."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from envlock.guard import doors, options
from envlock.guard.asked import (
    Asked,
    Listed,
    Read,
    expanded,
    parse_asked,
    read_files,
    requirement_lines,
)
from envlock.guard.options import Parsed
from envlock.guard.settings import (
    Surroundings,
    merge,
    pip_settings,
    pip_tools_settings,
    uv_settings,
)

__all__ = ["Asked", "Request", "configured", "parse", "parse_asked", "requirement_lines"]

_NO_ENV: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A command line, read.

    Attributes:
        words: as typed.
        tool: ``pip``, ``uv`` or ``pip-sync``.
        program: the tool, or the Python that runs it, as typed.
        variables: what ``env`` before it sets; None for what it takes away.
        python_options: the interpreter's own options, before ``-m pip``.
        module: spelled ``python -m pip``.
        project: ``uv add/remove/sync/run``: the environment is the project's.
        outside: the environment that would be changed is known not to be the target.
        before: options before the subcommand.
        subcommand: ``install``, ``uninstall``, ``sync``, another one, or empty.
        after: the words after the subcommand.
        typed: options of the command line alone.
        given: with those of requirements files, variables and configuration files.
        listed: options of requirements files alone.
        bounds: the lines of constraints files, wherever they are named.
        origins: where an option of ``given`` that nobody typed comes from.
        asked: what is to be installed or removed, requirements files included.
    """

    words: tuple[str, ...]
    tool: str
    program: str
    variables: Mapping[str, str | None] = field(default_factory=dict)
    python_options: tuple[str, ...] = ()
    module: bool = False
    project: bool = False
    outside: bool = False
    before: tuple[str, ...] = ()
    subcommand: str = ""
    after: tuple[str, ...] = ()
    typed: Parsed = field(default_factory=Parsed)
    given: Parsed = field(default_factory=Parsed)
    listed: Parsed = field(default_factory=Parsed)
    bounds: tuple[str, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
    asked: tuple[Asked, ...] = ()

    @property
    def by_path(self) -> bool:
        """The program was named by its path: it is what it is, whatever the target."""
        return os.sep in self.program

    @property
    def judged(self) -> bool:
        """Whether the subcommand is one that changes an environment."""
        return self.subcommand in _table_group(self)

    @property
    def changes_nothing(self) -> bool:
        """Whatever else it says: a dry run, a question, a subcommand that only looks, a project
        that is not to be synchronised, another environment than the target."""
        if self.outside or not self.judged:
            return True
        if self.given.has("--dry-run", "--check", "--help") or self._tells_version:
            return True
        if self.subcommand == "run" and self.given.has("--python"):
            return False  # another Python makes the environment anew before anything is skipped
        return self.project and self.given.has(*_NO_SYNC.get(self.subcommand, ()))

    @property
    def _tells_version(self) -> bool:
        """Behind its subcommand, an older pip takes ``-V`` and does as if it were not
        there; 26.3 rejects it."""
        if self.tool == "pip":
            return options.parse(self.before, options.PIP).has("--version")
        return self.given.has("--version")

    @property
    def names(self) -> frozenset[str]:
        """Canonical names that the request spells out."""
        return frozenset(one.name for one in self.asked if one.name)

    @property
    def interpreters(self) -> tuple[str, ...]:
        """Values of ``--python``, and of what ``pip-sync`` calls so."""
        named = () if self.project else self.given.value("--python")
        return named + self.given.value("--python-executable")

    @property
    def elsewhere(self) -> str:
        """The option that installs beside the target's own folders; empty without one."""
        places = ("--target", "--prefix", "--root", "--user")
        if self.tool == "pip-sync" or self.project:  # "--user" narrows what pip-sync looks at
            return ""
        return next((name for name in places if self.given.has(name)), "")

    @property
    def takes_away(self) -> bool:
        """pip installs beside the target's folders, and uninstalls what is in them first."""
        beside = ("--prefix", "--root")
        kept = ("--target", "--user", "--ignore-installed")
        return self.tool == "pip" and self.given.has(*beside) and not self.given.has(*kept)

    @property
    def upgrades(self) -> bool:
        """``-U``, of everything named."""
        return self.given.has("--upgrade")

    @property
    def reinstalls(self) -> bool:
        """What is there is not to be kept."""
        return self.given.has("--force-reinstall", "--ignore-installed", "--reinstall")

    @property
    def version_named(self) -> str:
        """``3.10`` of ``pip3.10`` and ``python3.10``; empty for other spellings."""
        found = re.search(r"3\.\d+\Z", self.program)
        return found[0] if found and not self.by_path else ""

    @property
    def unsaid(self) -> tuple[str, ...]:
        """Options that are not on the command line, and that have to be said where it is asked or
        run in another form: indexes of requirements files, and what pip-sync hands on to pip."""
        handed = self.given.value("--pip-args")[-1:] if "--pip-args" in self.origins else ()
        names = ("--index-url", "--extra-index-url", "--find-links")
        pairs = [(name, value) for name in names for value in self.listed.value(name)]
        pairs += [("--pip-args", value) for value in handed]
        flags = ("--no-index",) if self.listed.has("--no-index") else ()
        return (*flags, *(word for pair in pairs for word in pair))

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """A person's environment, as the command gets it."""
        changed = {**env, **self.variables}
        return {name: value for name, value in changed.items() if value is not None}

    def with_names(self, name_of: Callable[[str], str]) -> Request:
        """The request with the names of sources, where they say them themselves.

        Args:
            name_of: canonical name by URL or path; empty when it is not known.
        """
        named = (
            replace(one, name=name_of(one.source)) if one.source and not one.name else one
            for one in self.asked
        )
        return replace(self, asked=tuple(named))

    def within(self, markers: Mapping[str, str]) -> Request:
        """The request without requirements whose markers are false in an environment; what is to
        be removed goes whatever its marker says."""
        if self.subcommand == "uninstall":
            return self
        return replace(self, asked=tuple(one for one in self.asked if one.counts(markers)))


#: With these, uv leaves the project's environment alone.
_NO_SYNC = {
    "add": ("--no-sync", "--frozen", "--script"),
    "remove": ("--no-sync", "--frozen", "--script"),
    "run": ("--no-sync", "--isolated", "--no-project", "--script", "--gui-script"),
    "sync": ("--script",),
}


def _table_group(request: Request) -> Mapping[str, options.Table]:
    if request.project:
        return options.UV_PROJECT_COMMANDS
    if request.tool == "uv":
        return options.UV_COMMANDS
    judged = ("sync",) if request.tool == "pip-sync" else ("install", "uninstall")
    return {name: options.PIP_COMMANDS[name] for name in judged}


def parse(words: Sequence[str], read: Read | None = None) -> Request:
    """Reads a command line.

    Args:
        read: text of a requirements file, or None when it cannot be read; without it, files are
            not looked into.

    Raises:
        UsageProblem: it is no command that guard understands; the hint lists those it does.
    """
    variables, rest = doors.split_variables(words)
    if not rest:
        raise doors.not_understood(words)
    name = os.path.basename(rest[0])
    request = Request(words=tuple(words), tool="pip", program=rest[0], variables=variables)
    if doors.PIP_NAME.match(name):
        return _pip(request, rest[1:], read)
    if doors.PYTHON_NAME.match(name):
        return _python(request, rest, read)
    if name == "pip-sync":
        return _pip_sync(request, rest[1:], read)
    if name == "uv":
        return _uv(request, rest[1:], read)
    raise doors.not_understood(rest)


def _python(request: Request, words: Sequence[str], read: Read | None) -> Request:
    """``python [-I -W ignore …] -m pip …``, also ``-mpip`` and ``-um pip``."""
    before, module, rest = doors.split_module(words[1:])
    if module not in doors.MODULES:
        what = f"'{words[0]}' without '-m pip' is not understood"
        raise doors.not_understood(words, what)
    tool = doors.MODULES[module]
    request = replace(request, tool=tool, module=True, python_options=tuple(before))
    if module == "uv":
        return _uv(request, rest, read)
    if module == "pip":
        return _pip(request, rest, read)
    if rest[:1] != ["sync"]:
        what = f"'{' '.join(words[: len(words) - len(rest)])}' without 'sync' is not understood"
        raise doors.not_understood(words, what)
    return _pip_sync(request, rest[1:], read)


def _split(words: Sequence[str], table: options.Table) -> tuple[tuple[str, ...], list[str]]:
    """Options, and the rest that begins with the first word."""
    given = options.parse(words, table, interspersed=False)
    count = len(words) - len(given.words)
    return tuple(words[:count]), list(given.words)


def _pip(request: Request, words: Sequence[str], read: Read | None) -> Request:
    before, rest = _split(words, options.PIP)
    if rest and rest[0] not in doors.PIP:
        raise doors.not_understood(request.words, f"'pip {rest[0]}' is not understood")
    return _complete(request, before, rest, read)


def _pip_sync(request: Request, words: Sequence[str], read: Read | None) -> Request:
    return _complete(replace(request, tool="pip-sync"), (), ["sync", *words], read)


def _uv(request: Request, words: Sequence[str], read: Read | None) -> Request:
    """``uv [options] pip [options] install …`` and ``uv [options] sync …``."""
    request = replace(request, tool="uv")
    before, rest = _split(words, options.UV)
    word = rest[0] if rest else ""
    if not word or word in doors.UV_PROJECT or word in doors.UV_HARMLESS:
        request = replace(request, project=True)
        if word == "run":
            _refuse_inner(request.words, rest)
        return _complete(request, before, rest, read)
    if word != "pip":
        shown = " ".join(["uv", *rest[:1]])
        raise doors.not_understood(["uv", *rest], f"'{shown}' is not understood")
    more, rest = _split(rest[1:], options.UV)
    subcommand = rest[0] if rest else ""
    known = subcommand in options.UV_COMMANDS or subcommand in doors.UV_PIP_HARMLESS
    if subcommand and not known:
        raise doors.not_understood(request.words, f"'uv pip {subcommand}' is not understood")
    return _complete(request, (*before, *more), rest, read)


def _refuse_inner(words: Sequence[str], rest: Sequence[str]) -> None:
    """``uv run pip install …``: what runs inside is what has to be guarded.

    Raises:
        UsageProblem: an installer is what would be run.
    """
    given = options.parse(rest[1:], options.UV_PROJECT_COMMANDS["run"], interspersed=False)
    inner = list(given.words)
    if given.has("--module"):
        inner = ["python", "-m", *inner]
    name = doors.installer(inner)
    if name:
        what = f"'uv run' would run '{name}'"
        raise doors.not_understood(words, f"{what}: guard that: envlock guard {' '.join(inner)}")


def _complete(
    request: Request, before: tuple[str, ...], rest: Sequence[str], read: Read | None
) -> Request:
    subcommand, after = (rest[0], tuple(rest[1:])) if rest else ("", ())
    request = replace(request, before=before, subcommand=subcommand, after=after)
    table = _table_group(request).get(subcommand)
    general_table = options.UV if request.tool == "uv" else table or options.PIP
    typed = options.parse(before, general_table)
    if table is not None:
        interspersed = not (request.project and subcommand == "run")
        local = options.parse(after, table, interspersed=interspersed)
        typed = replace(options.join(typed, local), words=local.words)
    return _read(replace(request, typed=typed), typed, read)


def configured(
    request: Request,
    around: Surroundings,
    read: Read | None,
    tables: Sequence[tuple[str, Mapping[str, Any]]] = (),
) -> Request:
    """The request with what variables and configuration files say.

    Args:
        around: what steers the tool from outside.
        read: as for :func:`parse`.
        tables: content of uv's or pip-tools' configuration files, strongest last.
    """
    table = _table_group(request).get(request.subcommand)
    if table is None:
        return request
    if request.tool == "uv":
        settings = uv_settings(around, table, tables, project=request.project)
    elif request.tool == "pip":
        settings = pip_settings(around, table, request.subcommand)
    else:
        settings = pip_tools_settings(table, tables)  # pip under it reads its own
    given, origins = merge(request.typed, settings, adds=request.tool == "pip")
    return _read(replace(request, origins=origins), given, read, around.env)


def _read(
    request: Request, given: Parsed, read: Read | None, env: Mapping[str, str] = _NO_ENV
) -> Request:
    """With what the files named in ``given`` list and set."""
    if not request.judged:
        return replace(request, given=given)
    files = requirement_files(request, given)
    bounds = given.value("--constraint") + given.value("--constraints")
    equal = "===" if request.tool == "uv" else "=="
    removes = request.tool == "pip" and request.subcommand == "uninstall"  # uv reads no "-c" there
    listed = (
        read_files(files, bounds, read, env, equal=equal, bounds_count=removes)
        if read
        else Listed()
    )
    typed = (*_spelled(request, given), *given.value("--editable"))
    asked = [*map(parse_asked, typed), *(parse_asked(line, env) for line in listed.spelled)]
    given = _with_listed(given, listed.options, _table_group(request)[request.subcommand])
    bounds = tuple(expanded(line, env) for line in listed.bounds)
    return replace(request, given=given, listed=listed.options, bounds=bounds, asked=tuple(asked))


def _spelled(request: Request, given: Parsed) -> tuple[str, ...]:
    """Words that are requirements."""
    named = request.subcommand in ("install", "uninstall", "add", "remove")
    return given.words if named else ()


def requirement_files(request: Request, given: Parsed) -> tuple[str, ...]:
    """Files that list requirements, of either tool; ``sync`` names them as words."""
    listed = given.value("--requirement") + given.value("--requirements")
    if request.subcommand != "sync" or request.project:
        return listed
    if request.tool == "pip-sync":
        return given.words or ("requirements.txt",)
    return listed + given.words


def _with_listed(given: Parsed, found: Parsed, table: options.Table) -> Parsed:
    """``given`` with the options of requirements files that steer the choice of packages.

    Includes and editables are requirements, read already.
    """
    apart = ("--requirement", "--constraint", "--editable")
    names = {name: table.names.get(name, "") for name in {*found.flags, *found.values}}
    flags = {names[name] for name in found.flags if names[name]}
    values = dict(given.values)
    for name, value in found.values.items():
        if names[name] and name not in apart:
            values[names[name]] = values.get(names[name], ()) + value
    return replace(given, flags=given.flags | flags, values=values)
