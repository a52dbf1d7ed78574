"""The person's ``uv.toml``, edited without touching what is not ours.

uv has no configuration of a target. ``constraint-dependencies`` of the person's own file holds for
``uv pip install`` into every environment of that person
(https://docs.astral.sh/uv/reference/settings/#constraint-dependencies).
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from envlock.adapters import files
from envlock.adapters.installer import pins
from envlock.adapters.managed import Edit, Part, find_part, read, to_bytes, to_lines, with_part
from envlock.adapters.network import config_folders
from envlock.errors import Refused, UnusableInput

_KEY = "constraint-dependencies"
_HEAD = re.compile(rf"^[ \t]*[\"']?{_KEY}[\"']?[ \t]*=[ \t]*\[", re.M)
#: A string, a comment or a bracket; what is between them does not matter.
_TOKEN = re.compile(r"\"\"\".*?\"\"\"|'''.*?'''|\"(?:\\.|[^\"\\\n])*\"|'[^'\n]*'|#[^\n]*|[\[\]]",
                    re.S)  # fmt: skip


def user_config(env: Mapping[str, str]) -> str:
    """Where uv looks for the person's own settings."""
    home = {"HOME": os.path.expanduser("~"), **env}
    return os.path.join(config_folders(home)[-1], "uv", "uv.toml")


def overruled(env: Mapping[str, str]) -> str:
    """Why uv, started from here, does not look at the person's file; may be empty."""
    if env.get("UV_CONFIG_FILE"):
        return f"UV_CONFIG_FILE names '{env['UV_CONFIG_FILE']}': uv reads only that"
    if env.get("UV_NO_CONFIG", "") not in ("", "0", "false"):
        return "UV_NO_CONFIG is set: uv reads no configuration file"
    return ""


def _parse(lines: Sequence[str], path: str) -> dict[str, Any]:
    # part of Python from 3.11 on; pip carries it for older ones
    name = "tomllib" if sys.version_info[:2] >= (3, 11) else "pip._vendor.tomli"
    toml = importlib.import_module(name)
    try:
        values: dict[str, Any] = toml.loads("".join(lines))
    except ValueError as error:
        raise UnusableInput(f"{path}: uv cannot read it: {error}", "mend or remove it") from error
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class UvToml:
    """The file, as a place where builds can be held.

    Attributes:
        path: the person's ``uv.toml``.
        prefix: of the target whose builds it is to hold.
    """

    path: str
    prefix: str
    name: str = "uv"

    def put(self, builds: Sequence[tuple[str, str]]) -> Edit:
        """The edit that holds.

        Raises:
            Refused: another target's builds are held there.
            UnusableInput: uv cannot read the file, or it cannot be edited safely.
        """
        other = self.other()
        if other and os.path.isdir(other):
            raise Refused(
                f"{self.path}: holds the builds of '{other}', and uv can hold those of one target",
                f"end that first: envlock guard --disable --python '{other}'",
            )
        old = read(self.path)
        part = self._part()
        base = part.rest if part else to_lines(old)
        before = _parse(base, self.path)
        span, theirs = self._place(base, before)
        ours = pins(builds, arbitrary=False)
        wanted = {**before, _KEY: [*ours, *theirs]}
        body = [f"{_KEY} = [", *(f"    {quoted(line)}," for line in wanted[_KEY]), "]"]
        label = f"for {json.dumps(self.prefix)}"
        created = part.created if part else old is None
        new = with_part(base, body, span, label=label, created=created)
        if _parse(new, self.path) != wanted:
            raise self._unsafe(ours)
        return Edit(path=self.path, old=old, new=to_bytes(new))

    def take(self) -> Edit:
        """The edit that gives the file back; it is left alone while it holds another target's."""
        old, part, other = read(self.path), self._part(), self.other()
        if part is None or (other and os.path.isdir(other)):
            return Edit(path=self.path, old=old, new=old)
        gone = part.created and not part.rest
        return Edit(path=self.path, old=old, new=None if gone else to_bytes(part.rest))

    def present(self) -> bool:
        """Whether this target's builds are held here."""
        part = self._part()
        return part is not None and not self.other()

    def holds(self, builds: Sequence[tuple[str, str]]) -> bool:
        """Whether uv finds all of the builds here."""
        listed = _parse(to_lines(read(self.path)), self.path).get(_KEY, [])
        return set(pins(builds, arbitrary=False)) <= set(listed)

    def other(self) -> str:
        """Prefix of another target whose builds are held here; empty when there is none."""
        part = self._part()
        if part is None:
            return ""
        try:
            prefix = str(json.loads(part.label.removeprefix("for ")))
        except ValueError:
            return ""
        return "" if os.path.realpath(prefix) == os.path.realpath(self.prefix) else prefix

    def _part(self) -> Part | None:
        return find_part(to_lines(read(self.path)), self.path)

    def _place(
        self, lines: Sequence[str], values: Mapping[str, Any]
    ) -> tuple[tuple[int, int], list[str]]:
        """The lines of the person's own constraints, and what they say; the top of the file where
        there are none: a key below a table's head would be the table's."""
        theirs = values.get(_KEY)
        if theirs is None:
            return (0, 0), []
        text = "".join(lines)
        head = _HEAD.search(text)
        end = _closing(text, head.end()) if head else 0
        if head is None or not end or not all(isinstance(one, str) for one in theirs):
            raise self._unsafe([])
        return (text.count("\n", 0, head.start()), text.count("\n", 0, end) + 1), list(theirs)

    def _unsafe(self, ours: Sequence[str]) -> UnusableInput:
        return UnusableInput(
            f"{self.path}: written in a way that cannot be edited safely",
            f"add to its '{_KEY}' by hand: {', '.join(ours)}" if ours else "write it more simply",
        )


def released(env: Mapping[str, str], home: str, folder: str) -> dict[str, str]:
    """Variables with which uv does not see what envlock holds in a target: a plan is about what
    was typed, and the reasons of a refusal are guard's own.

    Args:
        home: the target's ``sys.prefix``.
        folder: stands in for the person's folder of settings while uv runs.
    """
    place = UvToml(path=user_config(env), prefix=home)
    try:
        edit = place.take() if place.present() else None
    except UnusableInput:
        return {}
    if edit is None:
        return {}
    return stand_in(place.path, edit.new or b"", folder)


def stand_in(path: str, content: bytes, folder: str) -> dict[str, str]:
    """Variables with which uv reads something else as the person's settings.

    Args:
        path: of the person's ``uv.toml``, which may be missing.
        folder: as for :func:`released`.
    """
    settings = os.path.dirname(os.path.dirname(path))
    others = set(os.listdir(settings)) - {"uv"} if os.path.isdir(settings) else set()
    for name in others:  # git's, for one
        os.symlink(os.path.join(settings, name), os.path.join(folder, name))
    os.mkdir(os.path.join(folder, "uv"))
    files.write_whole(os.path.join(folder, "uv", "uv.toml"), content)
    return {"XDG_CONFIG_HOME": folder}


def quoted(text: str) -> str:
    """A TOML basic string; JSON's rules are stricter."""
    return json.dumps(text, ensure_ascii=False)


def _closing(text: str, start: int) -> int:
    """Position of the bracket that closes an array whose content starts at ``start``; 0: none."""
    depth = 1
    for token in _TOKEN.finditer(text, start):
        depth += {"[": 1, "]": -1}.get(token[0], 0)
        if depth == 0:
            return token.start()
    return 0
