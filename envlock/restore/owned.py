"""Which files on the disk belong to a distribution."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from enum import Enum

from envlock.adapters.installed import Installed
from envlock.model.facts import Layout

_INTERPRETER = re.compile(r"python[0-9.]*\Z")


class Places:
    """The places of a target, each file with one path.

    ``lib64`` is a link to ``lib`` in many environments, site-packages may be a link: two spellings
    of a path are the same file then, and a swap that took them for two would move it twice.
    """

    def __init__(self, layout: Layout) -> None:
        self.prefix = layout.prefix
        lib64, lib = (os.path.join(layout.prefix, name) for name in ("lib64", "lib"))
        self._aliases = [
            (alias + os.sep, name + os.sep)
            for alias, name in (
                (os.path.realpath(layout.prefix), layout.prefix),
                (os.path.realpath(layout.purelib), layout.purelib),
                (layout.platlib, layout.purelib),
                (lib64, lib),
            )
            if alias != name and _same_folder(alias, name)
        ]
        self.sites = tuple(dict.fromkeys(map(self.spell, (layout.purelib, layout.platlib))))
        self._below_sites = tuple(site + os.sep for site in self.sites)
        self._kinds: dict[str, dict[str, _Kind]] = {}
        self.scripts = self.spell(layout.scripts)
        #: never removed, empty or not
        self.roots = (self.prefix, *self.sites, self.scripts, self.spell(layout.headers))

    def spell(self, path: str) -> str:
        """The one spelling of a path that is absolute and normalised."""
        for alias, name in self._aliases:
            if path.startswith(alias):
                path = name + path[len(alias) :]
            elif len(path) + 1 == len(alias) and alias.startswith(path):
                path = name.rstrip(os.sep)
        return path

    def in_site(self, path: str) -> bool:
        """Whether a path is below a site folder."""
        return path.startswith(self._below_sites)

    def owned(self, dist: Installed, *, trusted: bool = False) -> set[str]:
        """Files on the disk that belong to a distribution: RECORD's, and its metadata's own.

        Args:
            trusted: RECORD was just written from a wheel. Else it is not believed where it leads
                to what no wheel installs: out of the prefix, to the standard library, to the
                interpreter, to links that stand for a part of the target itself (``lib64``).
        """
        found = set()
        site = self.spell(dist.site) + os.sep
        plain = site in self._below_sites
        for row in dist.rows or ():
            if plain and is_plain(row.path):  # thousands of them
                path = site + row.path
            else:
                path = self.spell(os.path.normpath(os.path.join(dist.site, row.path)))
            if (trusted or self._may_own(path)) and self._is_file(path):
                found.add(path)
        if is_folder(dist.path):
            found.update(self.spell(path) for path in walk(dist.path))
        elif os.path.lexists(dist.path):
            found.add(self.spell(dist.path))
        return found

    def _may_own(self, path: str) -> bool:
        if self.in_site(path):
            return True
        folder, name = os.path.split(path)
        if not path.startswith(self.prefix + os.sep) or path in self.sites:
            return False
        for library in map(os.path.dirname, self.sites):  # beside site-packages lies Python's own
            if library != self.prefix and f"{folder}/".startswith(f"{library}/"):
                return False
        if folder == self.scripts and _INTERPRETER.match(name):
            return False
        return path != os.path.join(self.prefix, "pyvenv.cfg")

    def _is_file(self, path: str) -> bool:
        folder, _, name = path.rpartition(os.sep)
        kinds = self._kinds.get(folder)
        if kinds is None:
            kinds = self._kinds[folder] = _kinds_in(folder)
        kind = kinds.get(name)
        if kind is _Kind.LINK:  # outside the site folders a link to a folder is the target's own
            return self.in_site(path) or not os.path.isdir(path)
        return kind is _Kind.FILE


class _Kind(Enum):
    """What a name in a folder stands for."""

    FILE = 1
    FOLDER = 2
    LINK = 3


def _kinds_in(folder: str) -> dict[str, _Kind]:
    """Each name in a folder, read once and not file by file."""
    try:
        with os.scandir(folder or os.sep) as entries:
            return {
                entry.name: _Kind.LINK
                if entry.is_symlink()
                else _Kind.FOLDER
                if entry.is_dir(follow_symlinks=False)
                else _Kind.FILE
                for entry in entries
            }
    except (OSError, ValueError):  # not there; a NUL in it
        return {}


def is_plain(path: str) -> bool:
    """Whether a path of RECORD is spelled in the only way and leads nowhere else."""
    return not (path[:1] in ("", ".", os.sep) or "/." in path or "//" in path or path[-1] == os.sep)


def is_folder(path: str) -> bool:
    """Whether a path is a folder and no link to one."""
    return os.path.isdir(path) and not os.path.islink(path)


def _same_folder(one: str, other: str) -> bool:
    return os.path.isdir(one) and os.path.realpath(one) == os.path.realpath(other)


def walk(folder: str) -> Iterator[str]:
    """Every file below a folder, links to folders included as they are."""
    todo = [folder]
    while todo:
        root = todo.pop()
        try:
            with os.scandir(root) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
                    else:
                        yield entry.path
        except OSError:  # not there, or closed: what is in it cannot be anybody's to move
            continue
