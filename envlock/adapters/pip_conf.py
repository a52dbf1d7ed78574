"""pip's configuration of one target, ``PREFIX/pip.conf``, edited without touching what is not ours.

Which files pip reads, and which one wins: https://pip.pypa.io/en/stable/topics/configuration/. The
files are ini files as :class:`configparser.RawConfigParser` has them; pip writes option names in
lower case, with ``-`` for ``_``.
"""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from envlock.adapters.installer import pins
from envlock.adapters.managed import Edit, find_part, read, to_bytes, to_lines, with_part
from envlock.adapters.network import config_folders
from envlock.errors import UnusableInput

_Values = dict[str, dict[str, str]]
_SECTION, _OPTION = "install", "constraint"
_HEAD = "# Written by 'envlock guard --enable'; 'envlock guard --disable' removes it.\n"


class _Parser(configparser.RawConfigParser):
    def optionxform(self, optionstr: str) -> str:
        return optionstr.lower().replace("_", "-").removeprefix("--")


def parse(lines: Sequence[str], path: str) -> _Values:
    """Sections and options as pip reads them.

    Raises:
        UnusableInput: pip cannot read them either.
    """
    parser = _Parser()
    try:
        parser.read_string("".join(lines).replace("\r\n", "\n"), path)
    except configparser.Error as error:
        said = " ".join(str(error).split())
        raise UnusableInput(f"{path}: pip cannot read it: {said}", "mend or remove it") from error
    return {name: dict(parser.items(name)) for name in parser.sections()}


def _constraint(values: _Values, section: str) -> list[str]:
    return values.get(section, {}).get(_OPTION, "").split()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintsFile:
    """What ``pip.conf`` names: it stands beside it, since a missing one breaks every install."""

    path: str
    name: str = "constraints"

    def put(self, builds: Sequence[tuple[str, str]]) -> Edit:
        """The edit that lists the builds.

        Raises:
            UnusableInput: there is a file of that name that is not envlock's.
        """
        old = read(self.path)
        if old is not None and not self.present():
            raise UnusableInput(f"{self.path}: is not envlock's", "move it away")
        lines = [_HEAD, *(f"{line}\n" for line in pins(builds, arbitrary=True))]
        return Edit(path=self.path, old=old, new=to_bytes(lines))

    def take(self) -> Edit:
        """The edit that removes it, if it is envlock's."""
        old = read(self.path)
        return Edit(path=self.path, old=old, new=None if self.present() else old)

    def present(self) -> bool:
        """Whether it is there and envlock's."""
        return to_lines(read(self.path))[:1] == [_HEAD]

    def holds(self, builds: Sequence[tuple[str, str]]) -> bool:
        """Whether all of the builds are listed."""
        listed = {line.strip() for line in to_lines(read(self.path))}
        return self.present() and listed.issuperset(pins(builds, arbitrary=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class PipConf:
    """The file, as a place where builds can be held.

    Attributes:
        path: ``PREFIX/pip.conf``.
        constraints: the file that the builds are listed in.
        env: where settings of the machine and of the person are found.
    """

    path: str
    constraints: str
    env: Mapping[str, str]
    name: str = "pip"

    @property
    def item(self) -> str:
        """The constraints file as pip takes it."""
        return _uri(self.constraints)

    def put(self, _builds: Sequence[tuple[str, str]]) -> Edit:
        """The edit that holds.

        ``[install] constraint`` hides the same option of the machine's and the person's files, and
        ``[global] constraint`` of all of them: those are named again.

        Raises:
            UnusableInput: pip cannot read the file, or it cannot be edited safely.
        """
        if os.path.islink(self.path):
            raise UnusableInput(
                f"{self.path}: a link to '{os.path.realpath(self.path)}', "
                "which may be other targets' too",
                "put a copy in its place",
            )
        old = read(self.path)
        base, created = self._base(to_lines(old))
        before = parse(base, self.path)
        value = " ".join(dict.fromkeys([self.item, *self._hidden(before)]))
        span, indent, header = _place(base)
        body = [*([f"[{_SECTION}]"] if header else []), f"{indent}{_OPTION} = {value}"]
        new = with_part(base, body, span, created=created)
        wanted = {**before, _SECTION: {**before.get(_SECTION, {}), _OPTION: value}}
        if parse(new, self.path) != wanted:
            raise UnusableInput(
                f"{self.path}: written in a way that cannot be edited safely",
                f"add 'constraint = {value}' to its section [{_SECTION}] by hand",
            )
        return Edit(path=self.path, old=old, new=to_bytes(new))

    def take(self) -> Edit:
        """The edit that gives the file back."""
        old = read(self.path)
        rest, created = self._base(to_lines(old))
        return Edit(
            path=self.path, old=old, new=None if created and not rest else to_bytes(rest)
        )  # fmt: skip

    def holds(self, _builds: Sequence[tuple[str, str]]) -> bool:
        """Whether pip finds the constraints file here."""
        return self.item in _constraint(parse(to_lines(read(self.path)), self.path), _SECTION)

    def present(self) -> bool:
        """Whether anything here is ours: it may name a folder that has moved since."""
        lines = to_lines(read(self.path))
        return find_part(lines, self.path) is not None or self.holds(())

    def _base(self, lines: list[str]) -> tuple[list[str], bool]:
        """The lines without our part, and whether the file is made by it."""
        part = find_part(lines, self.path)
        if part is None:
            return self._without_item(lines), not lines and not os.path.exists(self.path)
        rest = part.rest
        if any(line.strip() == f"[{_SECTION}]" for line in part.body):
            follows = next((i for i in range(part.at, len(rest)) if _content(rest[i])), None)
            if follows is not None and not rest[follows].lstrip().startswith("["):
                # the person has added options below ours: they stay in the section they are in
                rest = [*rest[: part.at], f"[{_SECTION}]\n", *rest[part.at :]]
        return rest, part.created

    def _without_item(self, lines: list[str]) -> list[str]:
        """``pip config set`` writes a file anew, without comments: what it left of our part."""
        values = _constraint(parse(lines, self.path), _SECTION)
        if self.item not in values:
            return lines
        (start, stop), indent, _ = _place(lines)
        left = " ".join(value for value in values if value != self.item)
        return [*lines[:start], *([f"{indent}{_OPTION} = {left}\n"] if left else []),
                *lines[stop:]]  # fmt: skip

    def _hidden(self, own: _Values) -> list[str]:
        """What would be in force without ours."""
        named = self.env.get("PIP_CONFIG_FILE", "")
        home = self.env.get("HOME", "")
        folders = config_folders(self.env)
        paths = [os.path.join(folder, "pip", "pip.conf") for folder in folders]
        paths[-1:-1] = ["/etc/pip.conf", os.path.join(home, ".pip", "pip.conf")]
        read_here = [*(_values(path) for path in paths), own]
        variable = _values(named) if named else {}
        for section, found in ((_SECTION, read_here), ("global", [*read_here, variable])):
            named_last = next(filter(None, (_constraint(v, section) for v in found[::-1])), None)
            if named_last:
                return named_last
        return []


def _values(path: str) -> _Values:
    """A file of somebody else's; one that pip cannot read says nothing."""
    try:
        return parse(to_lines(read(path)), path)
    except UnusableInput:
        return {}


def overruled(env: Mapping[str, str]) -> str:
    """Why pip, started from here, does not look at what ``PREFIX/pip.conf`` says; may be empty."""
    if env.get("PIP_CONSTRAINT"):
        return "PIP_CONSTRAINT is set, and replaces every constraint of a file"
    named = env.get("PIP_CONFIG_FILE", "")
    if named == os.devnull:
        return f"PIP_CONFIG_FILE is {os.devnull}: pip reads no configuration file"
    if named and _constraint(_values(named), _SECTION):
        return f"PIP_CONFIG_FILE names '{named}', whose constraint replaces it"
    return ""


def released(constraints: Sequence[str], home: str) -> dict[str, str]:
    """Variables with which pip does not see what envlock holds in a target: a plan is about what
    was typed, and the reasons of a refusal are guard's own.

    ``PIP_CONSTRAINT`` takes the place of every file's; the others are named again.

    Args:
        constraints: the files that are in force.
        home: the target's ``sys.prefix``.
    """
    ours = _uri(listed_in(home))
    if ours not in constraints:
        return {}
    others = [one for one in constraints if one != ours and not re.search(r"\s", one)]
    return {"PIP_CONSTRAINT": " ".join(others) or os.devnull}


def listed_in(home: str) -> str:
    """Where the builds of a target are listed."""
    return os.path.join(home, "envlock-constraints.txt")


def _uri(path: str) -> str:
    """A file as pip takes it: its values are split at white space."""
    return Path(path).as_uri()


def _content(line: str) -> bool:
    return bool(line.strip()) and line.strip()[0] not in "#;"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """A section's head (no key) or an option, with the lines that continue it."""

    section: str
    key: str
    start: int
    stop: int
    indent: str


def _entries(lines: Sequence[str]) -> list[_Entry]:
    """As configparser reads them: a line indented further than an option continues it."""
    found: list[_Entry] = []
    for number, line in enumerate(lines):
        if not _content(line):
            continue
        indent = line[: len(line) - len(line.lstrip())]
        last = found[-1] if found else None
        if last and last.key and len(indent) > len(last.indent):
            found[-1] = replace(last, stop=number + 1)
            continue
        head = re.match(r"\[(.+)\]", line.strip())
        key = "" if head else _Parser().optionxform(re.split(r"[=:]", line, maxsplit=1)[0].strip())
        section = head[1] if head else last.section if last else ""
        found.append(_Entry(section=section, key=key, start=number, stop=number + 1, indent=indent))
    return found


def _place(lines: Sequence[str]) -> tuple[tuple[int, int], str, bool]:
    """Where the constraint is, or belongs: its lines, the indentation it needs, and whether the
    section has to be written too.

    Our line takes the indentation of its neighbour, so that nothing after it changes its meaning.
    """
    here = [entry for entry in _entries(lines) if entry.section == _SECTION]
    option = next((entry for entry in here if entry.key == _OPTION), None)
    if option:
        return (option.start, option.stop), option.indent, False
    if here:
        return (here[-1].stop, here[-1].stop), here[-1].indent, False
    return (len(lines), len(lines)), "", True
