"""Requirements, and the files that list them, as pip and uv read them. Pure."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import unquote

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name, parse_sdist_filename

from envlock.adapters.configuration import is_lock, parse_toml
from envlock.guard import options
from envlock.guard.options import Parsed
from envlock.model.health import evaluates
from envlock.model.wheels import parse_wheel_name

#: Text of a file, or None when it cannot be read.
Read = Callable[[str], str | None]

_SOURCE = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:|^[./~]|[/\\]|\.(whl|zip|tar\.gz|tgz|tar\.bz2)$")
#: As pip and uv read it: nothing but upper case, and unknown ones stay.
_VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)\}")
_NO_ENV: Mapping[str, str] = {}
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

    def counts(self, markers: Mapping[str, str]) -> bool:
        """Whether its marker, if it has one, is true in an environment."""
        return self.requirement is None or evaluates(self.requirement.marker, markers)


def parse_asked(word: str, env: Mapping[str, str] = _NO_ENV) -> Asked:
    """Reads one requirement: a name with a range, a URL, a path, a wheel.

    Args:
        env: variables that a line of a file may name; the raw text keeps their names, since what
            they hold may be secret.
    """
    text = expanded(word.strip(), env)
    if not _SOURCE.search(text.split("@")[0].split(";")[0].strip()):
        try:
            found = Requirement(text)
        except InvalidRequirement:
            return Asked(raw=word)
        source = found.url or ""
        return Asked(
            raw=word,
            name=canonicalize_name(found.name),
            requirement=found,
            source=source,
            version=_wheel(source)[1] if source else "",
        )
    egg = _EGG.search(text)
    bare = re.split(r"\s+;", text)[0].split("#")[0]
    path = re.sub(r"\.whl\[[^]]*\]$", ".whl", bare)
    name, version = _wheel(path)
    return Asked(
        raw=word,
        name=name or (canonicalize_name(egg[1]) if egg else _archive(path)),
        source=path,
        version=version,
    )


def _wheel(source: str) -> tuple[str, str]:
    """Name and version that a wheel's file name carries; empty for anything else."""
    try:
        wheel = parse_wheel_name(_file_name(source))
    except ValueError:
        return "", ""
    return wheel.name, wheel.version


def _archive(source: str) -> str:
    """The name that a source archive's file name carries (PEP 625); empty for anything else."""
    try:
        return parse_sdist_filename(_file_name(source))[0]
    except ValueError:
        return ""


def _file_name(source: str) -> str:
    """The last part of a path or URL; what a URL has behind ``?`` is for its server."""
    path = source.split("#")[0]
    if "://" in path:
        path = path.split("?")[0]
    return unquote(os.path.basename(path))


def expanded(text: str, env: Mapping[str, str]) -> str:
    """A line of a file with what its ``${VARIABLES}`` hold."""
    return _VARIABLE.sub(lambda found: env.get(found[1]) or found[0], text)


@dataclass(frozen=True, slots=True)
class Listed:
    """What requirements files say: requirements as spelled, the options between them, and the
    lines of constraints files."""

    spelled: tuple[str, ...] = ()
    bounds: tuple[str, ...] = ()
    options: Parsed = field(default_factory=Parsed)


def read_files(
    files: Iterable[str],
    bounds: Iterable[str],
    read: Read,
    env: Mapping[str, str] = _NO_ENV,
    *,
    equal: str = "==",
    bounds_count: bool = False,
) -> Listed:
    """Requirements files, locks and constraints files with all that they include.

    Relative names are relative to the file that says them, as pip reads them. A file that
    cannot be read or was read already adds nothing. What a constraints file lists is not asked
    for; the options in it count all the same.

    Args:
        env: variables that lines may name.
        equal: how a tool compares what a lock names with what is installed: ``===`` takes another
            label for another thing.
        bounds_count: what a constraints file lists is asked for like everything else.
    """
    spelled: list[str] = []
    bound: list[str] = []
    found = Parsed()
    waiting = [(file, True) for file in files] + [(file, bounds_count) for file in bounds]
    seen: set[tuple[str, bool]] = set()
    while waiting:
        path, wanted = waiting.pop(0)
        text = read(path) if (path, wanted) not in seen else None
        seen.add((path, wanted))
        if is_lock(path):
            spelled += _locked(text or "", os.path.dirname(path), equal) if wanted else []
            continue
        for line in _logical_lines(text or ""):
            if not line.startswith("-"):
                (spelled if wanted else bound).append(re.split(r"\s--\w", line)[0].strip())
                continue
            given = _placed(options.parse(_split(expanded(line, env)), options.FILE), path)
            found = options.join(found, given)
            spelled += given.value("--editable") if wanted else ()
            waiting += [(_beside(path, file), wanted) for file in given.value("--requirement")]
            listed = given.value("--constraint")
            waiting += [(_beside(path, file), bounds_count) for file in listed]
    return Listed(tuple(spelled), tuple(bound), found)


def _placed(given: Parsed, file: str) -> Parsed:
    """Options of a file, with folders as they are called from here."""
    links = tuple(_beside(file, link) for link in given.value("--find-links"))
    return replace(given, values={**given.values, "--find-links": links}) if links else given


def _locked(text: str, folder: str, equal: str) -> list[str]:
    """The packages of a lock (PEP 751) as requirements."""
    found = []
    packages = parse_toml(text).get("packages", ())
    for one in packages if isinstance(packages, list) else ():
        places = (one.get(kind, {}) for kind in ("archive", "directory", "vcs"))
        urls = [str(place.get("url") or place.get("path")) for place in places if place]
        what = f"{equal}{one['version']}" if "version" in one and not urls else ""
        if urls:
            local = Path(os.path.abspath(os.path.join(folder, urls[0])))
            what = f" @ {urls[0] if '://' in urls[0] else local.as_uri()}"
        marker = one.get("marker")
        found.append(f"{one.get('name', '')}{what}" + (f" ; {marker}" if marker else ""))
    return found


def requirement_lines(file: str, read: Read) -> list[str]:
    """The requirements of a requirements file and of those it includes."""
    return list(read_files([file], (), read).spelled)


def _beside(path: str, name: str) -> str:
    return name if "://" in name else os.path.join(os.path.dirname(path), name)


def _split(line: str) -> list[str]:
    """The words of a line; ``-e . ; marker`` keeps what belongs to the value together."""
    option = re.match(r"(-e|--editable)[ =]?\s*(.+)", line)
    if option:
        return [option[1], option[2].strip()]
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def _logical_lines(text: str) -> list[str]:
    """Lines with continuations joined and comments gone."""
    joined = re.sub(r"\\\r?\n", " ", text)
    lines = (re.sub(r"(^|\s+)#.*$", "", line).strip() for line in joined.splitlines())
    return [line for line in lines if line]
