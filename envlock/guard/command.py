"""A command line as typed becomes a request. Pure: files are read by whoever calls."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from envlock.errors import UsageProblem
from envlock.guard import options
from envlock.guard.options import Parsed
from envlock.model.wheels import parse_wheel_name

#: What guard understands, as messages list it.
UNDERSTOOD = (
    "pip install",
    "pip uninstall",
    "pip3 …",
    "pip3.N …",
    "python -m pip …",
    "python3.N -m pip …",
    "/path/to/pip …",
    "/path/to/python -m pip …",
    "uv pip install",
    "uv pip uninstall",
    "and what changes nothing, such as pip list",
)
#: Subcommands of ``uv pip`` that change no environment.
_UV_HARMLESS = frozenset({"list", "freeze", "show", "check", "tree", "compile", "debug", "help"})

_PIP = re.compile(r"pip(3(\.\d+)?)?\Z")
_PYTHON = re.compile(r"python(3(\.\d+)?)?\Z")
_SOURCE = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:|^[./~]|[/\\]|\.(whl|zip|tar\.gz|tgz|tar\.bz2)$")
_EGG = re.compile(r"[#&]egg=([A-Za-z0-9._-]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One requirement of a command line or a requirements file.

    Attributes:
        raw: as written.
        name: canonical; empty when only the source itself knows (a folder, a repository).
        requirement: the parsed requirement; None for a bare path or URL.
        source: URL or path it comes from; empty when an index is asked.
        version: the version a wheel's file name carries.
    """

    raw: str
    name: str = ""
    requirement: Requirement | None = None
    source: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A command line, read.

    Attributes:
        words: as typed.
        tool: ``pip`` or ``uv``.
        program: the tool, or the Python that runs it, as typed.
        python_options: the interpreter's own options, before ``-m pip``.
        module: spelled ``python -m pip``.
        before: options before the subcommand.
        subcommand: ``install``, ``uninstall``, another one, or empty.
        after: the words after the subcommand.
        given: options of the command line.
        asked: what is to be installed or removed, requirements files included.
    """

    words: tuple[str, ...]
    tool: str
    program: str
    python_options: tuple[str, ...] = ()
    module: bool = False
    before: tuple[str, ...] = ()
    subcommand: str = ""
    after: tuple[str, ...] = ()
    given: Parsed = field(default_factory=Parsed)
    asked: tuple[Asked, ...] = ()

    @property
    def by_path(self) -> bool:
        """The program was named by its path: it is what it is, whatever the target."""
        return os.sep in self.program

    @property
    def changes_nothing(self) -> bool:
        """Whatever else it says: a dry run, a question, a subcommand that only looks."""
        if self.subcommand not in ("install", "uninstall"):
            return True
        return self.given.has("--dry-run", "--check", "--help", "--version")

    @property
    def names(self) -> frozenset[str]:
        """Canonical names that the request spells out."""
        return frozenset(one.name for one in self.asked if one.name)

    @property
    def interpreters(self) -> tuple[str, ...]:
        """Values of ``--python``."""
        return self.given.value("--python")

    @property
    def elsewhere(self) -> str:
        """The option that installs beside the target's own folders; empty without one."""
        places = ("--target", "--prefix", "--root", "--user")
        return next((name for name in places if self.given.has(name)), "")

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


def parse(words: Sequence[str], read: Callable[[str], str | None] | None = None) -> Request:
    """Reads a command line.

    Args:
        read: text of a requirements file, or None when it cannot be read; without it, files are
            not looked into.

    Raises:
        UsageProblem: it is no command that guard understands; the hint lists those it does.
    """
    if not words:
        raise UsageProblem("guard: no command given", _hint())
    program = words[0]
    name = os.path.basename(program)
    if _PIP.match(name):
        return _pip(Request(words=tuple(words), tool="pip", program=program), words[1:], read)
    if _PYTHON.match(name):
        return _python(words, read)
    if name == "uv":
        return _uv(words, read)
    raise UsageProblem(f"guard: '{program}' is not understood", _hint())


def _hint() -> str:
    return "understood are: " + ", ".join(UNDERSTOOD)


def _python(words: Sequence[str], read: Callable[[str], str | None] | None) -> Request:
    """``python [-I -W ignore …] -m pip …``."""
    index = 1
    while index < len(words) and words[index].startswith("-") and words[index] != "-m":
        index += 2 if words[index] in ("-W", "-X") else 1
    if list(words[index : index + 2]) != ["-m", "pip"]:
        raise UsageProblem(f"guard: '{words[0]}' without '-m pip' is not understood", _hint())
    request = Request(
        words=tuple(words),
        tool="pip",
        program=words[0],
        python_options=tuple(words[1:index]),
        module=True,
    )
    return _pip(request, words[index + 2 :], read)


def _split(words: Sequence[str], table: options.Table) -> tuple[tuple[str, ...], list[str], Parsed]:
    """Options, the rest that begins with the first word, and the options read."""
    given = options.parse(words, table, interspersed=False)
    count = len(words) - len(given.words)
    return tuple(words[:count]), list(given.words), given


def _pip(
    request: Request, words: Sequence[str], read: Callable[[str], str | None] | None
) -> Request:
    before, rest, general = _split(words, options.PIP)
    table = options.PIP_COMMANDS.get(rest[0] if rest else "", options.PIP)
    return _complete(request, before, rest, (general, table), read)


def _uv(words: Sequence[str], read: Callable[[str], str | None] | None) -> Request:
    """``uv [options] pip [options] install …``."""
    before, rest, _ = _split(words[1:], options.UV)
    if rest[:1] != ["pip"]:
        shown = " ".join(["uv", *rest[:1]])
        raise UsageProblem(f"guard: '{shown}' is not understood", _hint())
    more, rest, _ = _split(rest[1:], options.UV)
    subcommand = rest[0] if rest else ""
    if subcommand and subcommand not in options.UV_COMMANDS and subcommand not in _UV_HARMLESS:
        raise UsageProblem(f"guard: 'uv pip {subcommand}' is not understood", _hint())
    table = options.UV_COMMANDS.get(subcommand, options.UV)
    request = Request(words=tuple(words), tool="uv", program=words[0])
    general = options.parse([*before, *more], options.UV)
    return _complete(request, (*before, *more), rest, (general, table), read)


def _complete(
    request: Request,
    before: tuple[str, ...],
    rest: Sequence[str],
    tables: tuple[Parsed, options.Table],
    read: Callable[[str], str | None] | None,
) -> Request:
    general, table = tables
    subcommand, after = (rest[0], tuple(rest[1:])) if rest else ("", ())
    judged = subcommand in ("install", "uninstall")
    local = options.parse(after, table) if judged else Parsed()
    values = {key: value + local.value(key) for key, value in general.values.items()}
    given = Parsed(
        flags=general.flags | local.flags,
        values={**local.values, **values},
        words=local.words,
        unknown=general.unknown + local.unknown,
    )
    return Request(
        words=request.words,
        tool=request.tool,
        program=request.program,
        python_options=request.python_options,
        module=request.module,
        before=before,
        subcommand=subcommand,
        after=after,
        given=given,
        asked=_asked(given, read) if judged else (),
    )


def requirement_files(given: Parsed) -> tuple[str, ...]:
    """``-r`` files of either tool."""
    return given.value("--requirement") + given.value("--requirements")


def _asked(given: Parsed, read: Callable[[str], str | None] | None) -> tuple[Asked, ...]:
    spelled = [*given.words, *given.value("--editable")]
    for file in requirement_files(given) if read else ():
        assert read is not None
        spelled += requirement_lines(file, read)
    return tuple(parse_asked(word) for word in spelled)


def requirement_lines(file: str, read: Callable[[str], str | None]) -> list[str]:
    """The requirements of a requirements file and of those it includes; options are left out.

    Relative names are relative to the file that says them, as pip reads them. A file that
    cannot be read or was read already adds nothing.
    """
    found: list[str] = []
    waiting, seen = [file], set()
    while waiting:
        path = waiting.pop()
        text = read(path) if path not in seen else None
        seen.add(path)
        for line in _logical_lines(text or ""):
            option = re.match(r"(-r|-e|--requirement|--editable)[ =]?\s*(.+)", line)
            if option is None:
                found += [] if line.startswith("-") else [re.split(r"\s--\w", line)[0].strip()]
            elif option[1] in ("-e", "--editable"):
                found.append(option[2].strip())
            else:
                waiting.append(os.path.join(os.path.dirname(path), option[2].strip()))
    return found


def _logical_lines(text: str) -> list[str]:
    """Lines with continuations joined and comments gone."""
    joined = re.sub(r"\\\r?\n", " ", text)
    lines = (re.sub(r"(^|\s+)#.*$", "", line).strip() for line in joined.splitlines())
    return [line for line in lines if line]


def parse_asked(word: str) -> Asked:
    """Reads one requirement: a name with a range, a URL, a path, a wheel."""
    text = word.strip()
    if not _SOURCE.search(text.split("@")[0].split(";")[0].strip()):
        try:
            found = Requirement(text)
        except InvalidRequirement:
            return Asked(raw=word)
        name, source = canonicalize_name(found.name), found.url or ""
        version = _wheel_version(source) if source else ""
        return Asked(raw=word, name=name, requirement=found, source=source, version=version)
    egg = _EGG.search(text)
    path = re.sub(r"\.whl\[[^]]*\]$", ".whl", text.split("#")[0])
    try:
        wheel = parse_wheel_name(os.path.basename(path).replace("%2B", "+"))
    except ValueError:
        return Asked(raw=word, source=path, name=canonicalize_name(egg[1]) if egg else "")
    return Asked(raw=word, name=wheel.name, source=path, version=wheel.version)


def _wheel_version(source: str) -> str:
    try:
        base = os.path.basename(source.split("#")[0])
        return parse_wheel_name(base.replace("%2B", "+").replace("%2b", "+")).version
    except ValueError:
        return ""
