"""The swap: whole or not at all, at whatever instant it is cut.

One journal holds the whole list of changes. It is written once, after everything staged is on the
disk; there is no record for each step, because how far an entry came can be read off the disk:

======================  ==================  =====================================
entry                   on the disk         it was
======================  ==================  =====================================
replaces or removes     no stash            not begun
replaces or removes     stash               moved away, perhaps moved in
adds                    staged              not begun
adds                    no staged           moved in
======================  ==================  =====================================

No commit line: undo. A commit line: finish, which only deletes. Both can be cut and begun again.
Paths in the journal are relative to the folder it lies in: an environment that was copied or
mounted elsewhere after a kill is mended where it is now, not where it was.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from envlock.adapters import files, moving
from envlock.adapters.state import TXN
from envlock.errors import UndoIncomplete, UnusableInput

_JOURNAL = "journal.jsonl"
_SCHEMA = 1
_COMMIT = "commit"
_UNDONE = "undone"
#: Folders of restores that have ended, with files in them that could not be deleted.
_LEFT = ".envlock-left-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One path that changes.

    Attributes:
        target: absolute path in the target.
        staged: absolute path of what comes; empty when nothing does.
        old: whether something is there that goes.
    """

    target: str
    staged: str = ""
    old: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Everything a swap does.

    Attributes:
        entries: in order.
        made: folders that the swap makes, outermost first; an undo takes them away again.
        emptied: folders that hold nothing any more after the commit, innermost first.
    """

    entries: tuple[Entry, ...] = ()
    made: tuple[str, ...] = ()
    emptied: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """What a journal says: the changes, and ``commit`` or ``undone``."""

    changes: Changes
    state: str

    @property
    def committed(self) -> bool:
        return self.state == _COMMIT


@dataclass(frozen=True, slots=True)
class Transaction:
    """The folder of one restore inside the target's real purelib."""

    folder: str

    @property
    def site(self) -> str:
        """The purelib it is in."""
        return os.path.dirname(self.folder)

    @property
    def stage(self) -> str:
        """Where wheels are unpacked."""
        return os.path.join(self.folder, "stage")

    @property
    def stash(self) -> str:
        """Where what is replaced waits for the commit."""
        return os.path.join(self.folder, "stash")

    @property
    def journal(self) -> str:
        return os.path.join(self.folder, _JOURNAL)

    def stashed(self, index: int) -> str:
        """Where the old state of an entry goes."""
        return os.path.join(self.stash, str(index))

    def begin(self) -> None:
        """Makes the folder.

        Raises:
            OSError: purelib cannot be written, or there is one already.
        """
        self.sweep()
        os.mkdir(self.folder, 0o700)
        os.mkdir(self.stage)
        os.mkdir(self.stash)

    def drop(self) -> list[str]:
        """Removes the folder, the journal last; what could not be removed is returned.

        Fresh inodes are cheaper than recently deleted ones: nothing is deleted before the end.
        """
        left = []
        for name in sorted(os.listdir(self.folder)) if os.path.isdir(self.folder) else ():
            if name != _JOURNAL:
                left += files.remove_tree(os.path.join(self.folder, name))
        if not left:
            return files.remove_tree(self.folder)
        return self._set_aside(_innermost(left))

    def _set_aside(self, left: Sequence[str]) -> list[str]:
        """Gives the folder of a restore that has ended another name, so that files which cannot be
        deleted yet (open ones on NFS, busy ones) do not look like one that has not."""
        aside = next(
            path
            for number in count()
            if not os.path.lexists(path := os.path.join(self.site, f"{_LEFT}{number}"))
        )
        try:
            os.rename(self.folder, aside)
        except OSError:
            return list(left)
        return [path.replace(self.folder, aside, 1) for path in left]

    def sweep(self) -> list[str]:
        """Tries again to delete what earlier restores could not; what is still there."""
        names = files.names_in(self.site)
        found = sorted(os.path.join(self.site, name) for name in names if name.startswith(_LEFT))
        return [path for folder in found for path in _innermost(files.remove_tree(folder))]

    def write_journal(self, changes: Changes) -> None:
        """Writes the whole list of changes, after everything staged is on the disk."""
        files.sync_filesystem(self.folder)
        header = {
            "schema": _SCHEMA,
            "entries": [
                [self._inside(entry.target), self._inside(entry.staged), entry.old]
                for entry in changes.entries
            ],
            "made": [self._inside(folder) for folder in changes.made],
            "emptied": [self._inside(folder) for folder in changes.emptied],
        }
        files.write_whole(self.journal, json.dumps(header) + "\n")

    def _inside(self, path: str) -> str:
        return os.path.relpath(path, self.folder) if path else ""

    def _outside(self, path: str) -> str:
        return os.path.normpath(os.path.join(self.folder, path)) if path else ""

    def swap(self, changes: Changes) -> None:
        """Moves everything; may stop anywhere.

        What goes is on the disk in the stash before anything takes its place. A file system that
        is cut off keeps some of the moves after the last sync and loses others, in whatever order:
        a new file over an old one whose own move was lost would be the end of the old one.

        Raises:
            OSError: a move failed; :meth:`undo` puts everything back.
        """
        for index, entry in enumerate(changes.entries):
            if entry.old:
                moving.move(entry.target, self.stashed(index))
        self._sync(changes)
        for entry in changes.entries:
            if entry.staged:
                moving.make_folder(os.path.dirname(entry.target), self.site)
                if _is_folder(entry.target) and not _is_folder(entry.staged):
                    # emptied by the entries before this one
                    moving.remove_empty_folders(entry.target)
                moving.move(entry.staged, entry.target)

    def commit(self) -> None:
        """From here on the new state is the state.

        Raises:
            OSError: the line could not be written; it is not there then.
        """
        journal = self.read()
        self._sync(journal.changes if journal else Changes())
        before = os.path.getsize(self.journal)
        try:
            files.append_line(self.journal, _COMMIT)
        except OSError:
            os.truncate(self.journal, before)
            raise

    def _sync(self, changes: Changes) -> None:
        for folder in self._file_systems(changes):
            files.sync_filesystem(folder)

    def _file_systems(self, changes: Changes) -> Iterable[str]:
        """A folder on each file system that the swap wrote to."""
        folders = {os.path.dirname(entry.target) for entry in changes.entries}
        found = {os.stat(self.folder).st_dev: self.folder}
        for folder in sorted(folders):
            if os.path.isdir(folder):
                found.setdefault(os.stat(folder).st_dev, folder)
        return found.values()

    def undo(self) -> list[str]:
        """Puts everything back as it was; may be cut and begun again.

        Returns:
            Paths of the transaction that could not be deleted.

        Raises:
            UndoIncomplete: something could not be put back; nothing of the stash is deleted.
        """
        journal = self.read()
        if journal is not None and journal.state != _UNDONE:
            self._put_back(journal.changes)
            with suppress(OSError):  # everything is back: a full disk must not undo that
                self._sync(journal.changes)
                files.append_line(self.journal, _UNDONE)
        return self.drop()

    def _put_back(self, changes: Changes) -> None:
        failed = [
            f"'{entry.target}': {problem}"
            for index, entry in reversed(list(enumerate(changes.entries)))
            if (problem := self._undo_one(index, entry, changes.made))
        ]
        if failed:
            raise UndoIncomplete(
                f"restore: the undo is incomplete: {'; '.join(failed[:5])}",
                f"what was there is kept in '{self.stash}'; mend the cause and run "
                "'envlock restore --recover'",
            )
        for folder in reversed(changes.made):
            _remove_empty(folder)

    def _undo_one(self, index: int, entry: Entry, made: Iterable[str]) -> str:
        """Puts one entry back; returns what went wrong."""
        stashed = self.stashed(index)
        begun = os.path.lexists(stashed) if entry.old else _moved_in(entry)
        try:
            files.remove_tree(moving.part_of(entry.target))  # a copy that was cut
            if begun and os.path.lexists(entry.target) and entry.staged:
                moving.make_folder(os.path.dirname(entry.staged), self.site)
                moving.move(entry.target, entry.staged)
            if begun and entry.old:
                if _is_folder(entry.target):  # what was a file had become a folder
                    _remove_made(entry.target, made)
                moving.make_folder(os.path.dirname(entry.target), self.site)
                moving.move(stashed, entry.target)
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def finish(self) -> list[str]:
        """After the commit: empty folders of what went are removed, then the transaction's own.

        Returns:
            Paths that could not be deleted (busy files): a finding, not a failure.
        """
        journal = self.read()
        for folder in journal.changes.emptied if journal else ():
            _remove_empty(folder)
        return self.drop()

    def read(self) -> Journal | None:
        """The journal, or None when the swap had not been written down yet.

        Raises:
            UnusableInput: it is there and cannot be understood; nothing is touched then.
        """
        if not os.path.exists(self.journal):
            return None
        try:
            lines = Path(self.journal).read_text(encoding="utf-8").splitlines()
            changes = self._changes(json.loads(lines[0]))
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            raise UnusableInput(
                f"{self.journal}: cannot be understood: {error}",
                "use the envlock that began this restore, or ask for help; nothing was touched",
            ) from error
        states = [line for line in lines[1:] if line in (_COMMIT, _UNDONE)]
        return Journal(changes=changes, state=states[-1] if states else "")

    def _changes(self, header: Mapping[str, Any]) -> Changes:
        if header["schema"] != _SCHEMA:
            raise ValueError(f"schema {header['schema']}")
        return Changes(
            entries=tuple(
                Entry(target=self._outside(target), staged=self._outside(staged), old=bool(old))
                for target, staged, old in header["entries"]
            ),
            made=tuple(map(self._outside, header["made"])),
            emptied=tuple(map(self._outside, header["emptied"])),
        )


def open_transaction(purelib: str) -> Transaction:
    """The transaction of a target; its folder need not exist."""
    return Transaction(os.path.join(os.path.realpath(purelib), TXN))


def _moved_in(entry: Entry) -> bool:
    """Whether an added path came from the stage; between file systems it is in both places for a
    moment, and what is there already may be a folder that entries before this one had to empty."""
    if not os.path.lexists(entry.staged):
        return True
    if not os.path.lexists(entry.target) or _is_folder(entry.target):
        return False
    return os.lstat(entry.target).st_dev != os.lstat(entry.staged).st_dev


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _remove_made(folder: str, made: Iterable[str]) -> None:
    for below in reversed(list(made)):
        if below == folder or below.startswith(folder + os.sep):
            _remove_empty(below)


def _remove_empty(folder: str) -> None:
    """Removes a folder that is empty: byte code of files that are gone does not count."""
    with suppress(OSError):
        if os.listdir(folder) == ["__pycache__"]:
            files.remove_tree(os.path.join(folder, "__pycache__"))
        os.rmdir(folder)


def _innermost(paths: Sequence[str]) -> list[str]:
    """Without the folders that only could not be deleted because of what is in them."""
    return [path for path in paths if not any(other.startswith(path + os.sep) for other in paths)]
