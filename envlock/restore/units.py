"""Which paths are swapped: a folder whole where it belongs to nobody else, files elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from envlock.adapters import files
from envlock.adapters.installed import Installed
from envlock.adapters.moving import can_rename_folder
from envlock.errors import RestoreFailed
from envlock.model.facts import Finding, Layout
from envlock.restore.owned import Places, is_folder, walk
from envlock.restore.transaction import Changes, Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """The changes of a restore, and files of nobody that were found among what is replaced."""

    changes: Changes
    findings: tuple[Finding, ...] = ()


@dataclass(slots=True)
class _Side:
    """Files and the folders above them, absolute."""

    files: set[str] = field(default_factory=set)
    folders: dict[str, set[str]] = field(default_factory=dict)

    def add(self, path: str) -> None:
        self.files.add(path)
        folder, _, name = path.rpartition(os.sep)
        children = self.folders.get(folder)
        if children is not None:  # nearly always: thousands of files are in a few folders
            children.add(name)
            return
        self.folders[folder or os.sep] = {name}
        child = folder
        while child:
            parent, _, name = child.rpartition(os.sep)
            known = (parent or os.sep) in self.folders
            self.folders.setdefault(parent or os.sep, set()).add(name)
            if known:
                return
            child = parent

    def below(self, folder: str) -> set[str]:
        """Names of the children of a folder."""
        return self.folders.get(folder, set())

    def at_and_below(self, folder: str) -> Iterator[str]:
        """The folder and every folder of this side below it."""
        todo = [folder]
        while todo:
            root = todo.pop()
            yield root
            children = (f"{root}{os.sep}{name}" for name in self.folders[root])
            todo += [path for path in children if path in self.folders]


class Planner:
    """Works out the swap of one restore.

    Args:
        layout: the target's.
        going: metadata of the distributions whose files go.
        staying: metadata of the distributions whose files stay.
        beside: an existing folder in the transaction that is not empty, to ask for EXDEV.
    """

    def __init__(
        self,
        layout: Layout,
        going: Iterable[Installed],
        staying: Iterable[Installed],
        beside: str,
    ) -> None:
        self._layout = layout
        self._beside = beside
        self._places = Places(layout)
        self._old, self._kept, self._new = _Side(), _Side(), _Side()
        for side, dists in ((self._old, going), (self._kept, staying)):
            for dist in dists:
                for path in self._places.owned(dist):
                    side.add(path)
        self._staged: dict[str, str] = {}
        self._origins: dict[str, set[str]] = {}
        self._entries: list[Entry] = []
        self._emptied: list[str] = []
        self._strays: set[str] = set()
        self._obstacles: list[str] = []

    def plan(self, stage: str, staged: Iterable[Installed], leftovers: Iterable[str] = ()) -> Swap:
        """The changes that put what is staged in place of what goes.

        Args:
            stage: the staged prefix; its layout is the target's.
            staged: the distributions in it. Only what they own is taken: backends leave files of
                their own there.
            leftovers: absolute paths that simply go.

        Raises:
            RestoreFailed: something that belongs to others stands where a file has to come.
        """
        self._read_stage(stage, staged)
        for path in leftovers:
            self._leftover(path)
        for site in self._places.sites:
            self._split_below(site)
        self._split_loose()
        if self._obstacles:
            raise RestoreFailed(
                f"restore: {'; '.join(self._obstacles)}; the target is as it was",
                "move what stands in the way, and run it again",
            )
        return Swap(
            changes=Changes(
                entries=tuple(self._entries),
                made=self._folders_to_make(),
                emptied=(*self._emptied, *self._folders_to_remove()),
            ),
            findings=tuple(_stray(path) for path in sorted(self._strays)),
        )

    def _read_stage(self, stage: str, staged: Iterable[Installed]) -> None:
        places = Places(self._layout.moved(stage))
        known: dict[str, str] = {}  # places of folders: files have the same names
        for dist in staged:
            for path in places.owned(dist, trusted=True):
                folder, _, name = path.rpartition(os.sep)
                target = known.get(folder)
                if target is None:
                    target = known[folder] = self._place_of(folder, stage)
                    self._origins.setdefault(target, set()).add(folder)
                target = f"{target}{os.sep}{name}"
                self._new.add(target)
                self._staged[target] = path

    def _place_of(self, folder: str, stage: str) -> str:
        inside = os.path.relpath(folder, stage)
        return self._places.spell(os.path.normpath(os.path.join(self._layout.prefix, inside)))

    def _leftover(self, path: str) -> None:
        if not is_folder(path) or self._renameable(path):
            self._add(path)
            return
        for file in walk(path):
            self._add(file)
        self._emptied += [root for root, _, _ in os.walk(path, topdown=False)]

    def _split_loose(self) -> None:
        """What is outside the site folders: its folders are shared, each file is moved."""
        done: set[str] = set()
        either = self._new.files | self._old.files
        for path in sorted(path for path in either if not self._places.in_site(path)):
            if done.isdisjoint(_above(path)):
                top = next(filter(_is_no_folder, reversed([*_above(path)])), path)
                self._split(top)
                done.add(top)

    def _split(self, path: str) -> None:
        """Adds the entries for everything at and below one path."""
        if path in self._new.files:
            self._file_comes(path)
        elif path in self._new.folders:
            self._folder_comes(path)
        elif path in self._old.files:
            if path not in self._kept.files and path not in self._kept.folders:
                self._add(path)
        elif self._goes_whole(path):
            self._add(path)
        else:
            self._split_below(path)

    def _split_below(self, folder: str) -> None:
        for name in sorted(self._new.below(folder) | self._old.below(folder)):
            self._split(os.path.join(folder, name))

    def _file_comes(self, path: str) -> None:
        staged = self._staged[path]
        if path in self._kept.folders or (is_folder(path) and not self._movable(path)):
            self._obstacles.append(f"'{path}' has to become a file, and holds files of others")
        elif not is_folder(path) or self._renameable(path):
            self._add(path, staged)
        else:
            self._split_below(path)
            self._entries.append(Entry(target=path, staged=staged))

    def _folder_comes(self, path: str) -> None:
        staged = self._staged_folder(path) if self._same_file_system(path) else ""
        if os.path.isdir(path):
            if staged and self._goes_whole(path):
                self._add(path, staged)
                return
        elif not self._may_become_folder(path):
            self._obstacles.append(f"'{path}' has to become a folder, and is a file of others")
            return
        else:
            self._add(path, staged)
            if staged:
                return
        self._split_below(path)

    def _same_file_system(self, path: str) -> bool:
        """Whether a folder can be moved in: a link above it may lead to another file system."""
        there = next(folder for folder in _above(path) if os.path.isdir(folder))
        return os.stat(there).st_dev == os.stat(self._beside).st_dev

    def _may_become_folder(self, path: str) -> bool:
        """Whether what is there is no file of others; a link to nowhere was a folder once."""
        if path in self._kept.files:
            return False
        return path in self._old.files or os.path.islink(path) or not os.path.lexists(path)

    def _add(self, path: str, staged: str = "") -> None:
        there = os.path.lexists(path)
        if staged or there:
            self._entries.append(Entry(target=path, staged=staged, old=there))
        self._bytecode_of(path)

    def _staged_folder(self, path: str) -> str:
        """The one folder of the stage that holds everything that comes below ``path``, or empty:
        with a lib64 of its own a stage may have two halves of it."""
        found = {
            origin.removesuffix(folder.removeprefix(path))
            for folder in self._new.at_and_below(path)
            for origin in self._origins.get(folder, ())
        }
        return found.pop() if len(found) == 1 else ""

    def _goes_whole(self, folder: str) -> bool:
        """Whether a folder can be renamed: nobody else's files, no stranger's, no other layer.

        The cache of a folder that stays is no unit: others' byte code is in it.
        """
        return (
            os.path.basename(folder) != "__pycache__"
            and self._movable(folder)
            and self._renameable(folder)
        )

    def _renameable(self, folder: str) -> bool:
        return can_rename_folder(folder, self._beside)

    def _movable(self, folder: str) -> bool:
        if folder in self._kept.folders or folder in self._kept.files:
            return False
        strays = self._strays_in(folder)
        self._strays.update(strays)
        return not strays

    def _strays_in(self, folder: str) -> list[str]:
        return [
            path
            for path in walk(folder)
            if path not in self._old.files
            and not _is_bytecode(path)
            # a link to a folder that the distribution was unpacked through
            and not (path in self._old.folders and not self._strays_in(path))
        ]

    def _bytecode_of(self, path: str) -> None:
        """Byte code of a source file that is replaced goes with it."""
        folder, name = os.path.split(path)
        if not name.endswith(".py"):
            return
        cache = os.path.join(folder, "__pycache__")
        stem = name.removesuffix("py")
        for found in sorted(files.names_in(cache)):
            compiled = os.path.join(cache, found)
            known = any(compiled in side.files for side in (self._old, self._new, self._kept))
            if found.startswith(stem) and not known:
                self._entries.append(Entry(target=compiled, old=True))

    def _folders_to_make(self) -> tuple[str, ...]:
        needed = {os.path.dirname(entry.target) for entry in self._entries if entry.staged}
        missing: set[str] = set()
        for folder in needed:
            while folder and not os.path.isdir(folder) and folder not in missing:
                missing.add(folder)
                folder = os.path.dirname(folder)
        return tuple(sorted(missing))

    def _folders_to_remove(self) -> list[str]:
        """Folders that only what goes was in, innermost first."""
        gone = self._old.folders.keys() - self._new.folders.keys() - self._kept.folders.keys()
        above = {folder for root in self._places.roots for folder in (root, *_above(root))}
        return sorted(gone - above, reverse=True)


def _above(path: str) -> Iterator[str]:
    """Every folder above a path, nearest first."""
    while path != (folder := os.path.dirname(path)):
        yield folder
        path = folder


def _is_no_folder(path: str) -> bool:
    return os.path.lexists(path) and not os.path.isdir(path)


def _is_bytecode(path: str) -> bool:
    return os.path.basename(os.path.dirname(path)) == "__pycache__" and path.endswith(".pyc")


def _stray(path: str) -> Finding:
    return Finding(
        code="restore.stray",
        subject=path,
        what="belongs to no distribution; it stays where it is",
        level="info",
    )
