"""Our part of a file that belongs to somebody else: recognised, removed, and nothing lost by it.

A part is a run of lines between two marks. What it replaced stands in it as comments, so that the
file as it was needs no copy anywhere else: it lives and dies with the file, and comes back byte for
byte whatever the person changed around it.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from envlock.adapters import files
from envlock.errors import UndoIncomplete, UnusableInput

BEGIN = "# >>> envlock guard"
END = "# <<< envlock guard"
_WAS = "# was: "
_CREATED = "the file is envlock's"
_NO_END = "the last line had no end"
#: Read by every user of a target: a constraints file that one of them cannot read breaks pip there.
_MODE = 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One file: its bytes, and the ones it gets; None is no file."""

    path: str
    old: bytes | None
    new: bytes | None

    @property
    def changes(self) -> bool:
        """Whether there is anything to write."""
        return self.old != self.new


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Our part as it stands in a file.

    Attributes:
        body: its own lines, without what it replaced.
        label: what its first line says of itself.
        rest: the lines of the file without it, with what it replaced.
        at: where in ``rest`` it stood, and after what came back there.
        created: there was no file before it.
    """

    body: list[str] = field(default_factory=list)
    label: str = ""
    rest: list[str] = field(default_factory=list)
    at: int = 0
    created: bool = False


def read(path: str) -> bytes | None:
    """A file's bytes, or None where there is none.

    Raises:
        UnusableInput: it is there and cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnusableInput(f"{path}: cannot be read: {error.strerror}") from error


def to_lines(data: bytes | None) -> list[str]:
    """Lines with their ends; bytes that are no UTF-8 survive the way back."""
    text = (data or b"").decode("utf-8", "surrogateescape")
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def to_bytes(lines: Iterable[str]) -> bytes:
    """The way back from :func:`to_lines`."""
    return "".join(lines).encode("utf-8", "surrogateescape")


def with_part(
    lines: Sequence[str], body: Sequence[str], span: tuple[int, int], *, label: str = "",
    created: bool = False,
) -> list[str]:  # fmt: skip
    """Lines with our part in place of ``lines[start:end]``.

    Args:
        body: lines without their ends; the file's own are used.
        label: a word about whom the part is for.
        created: the file is made by this.
    """
    start, stop = span
    end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    before, was, after = list(lines[:start]), list(lines[start:stop]), list(lines[stop:])
    notes = [label] if label else []
    notes += [_CREATED] if created else []
    last = was or before
    if not after and last and not last[-1].endswith("\n"):
        last[-1] += end
        notes.append(_NO_END)
    head = f"{BEGIN}: {'; '.join(notes)}" if notes else BEGIN
    part = [head + end, *(_WAS + line for line in was), *(line + end for line in body), END + end]
    return [*before, *part, *after]


def find_part(lines: Sequence[str], path: str) -> Part | None:
    """Our part in a file, or None.

    Raises:
        UnusableInput: one of its two marks is gone, or there are two: nobody can tell what is ours.
    """
    starts = [i for i, line in enumerate(lines) if line.startswith(BEGIN)]
    stops = [i for i, line in enumerate(lines) if line.startswith(END)]
    if not starts and not stops:
        return None
    if len(starts) != 1 or len(stops) != 1 or stops[0] < starts[0]:
        raise UnusableInput(
            f"{path}: envlock's part is not whole: it begins with '{BEGIN}' and ends with '{END}'",
            "put the missing line back, or remove the rest of the part by hand",
        )
    start, stop = starts[0], stops[0]
    label, notes = _notes(lines[start].rstrip("\r\n")[len(BEGIN) :].removeprefix(": "))
    inside = lines[start + 1 : stop]
    was = [line[len(_WAS) :] for line in inside if line.startswith(_WAS)]
    rest = [*lines[:start], *was, *lines[stop + 1 :]]
    if _NO_END in notes and stop == len(lines) - 1 and rest:
        rest[-1] = rest[-1].removesuffix("\r\n" if lines[start].endswith("\r\n") else "\n")
    return Part(
        body=[line for line in inside if not line.startswith(_WAS)],
        label=label,
        rest=rest,
        at=start + len(was),
        created=_CREATED in notes,
    )


def _notes(text: str) -> tuple[str, set[str]]:
    """The label of a first mark, and its notes: a label may hold anything, notes are the last."""
    notes = set()
    for note in (_NO_END, _CREATED):
        if text == note or text.endswith(f"; {note}"):
            notes.add(note)
            text = text.removesuffix(note).removesuffix("; ")
    return text, notes


def apply(edits: Sequence[Edit]) -> list[str]:
    """Writes the edits that change something, in order, each file whole.

    Returns:
        The paths written.

    Raises:
        UnusableInput: one cannot be written; those before it are as they were.
        UndoIncomplete: not all of them are.
    """
    begun: list[Edit] = []
    try:
        for edit in edits:
            if edit.changes:
                if read(edit.path) != edit.old:
                    raise UnusableInput(f"{edit.path}: somebody is changing it", "try again")
                begun.append(edit)
                _write(edit.path, edit.new)
    except OSError as error:
        _undo(begun)
        raise UnusableInput(
            f"{begun[-1].path}: cannot be written: {error.strerror}; nothing was changed",
            "do it as the user who owns the target",
        ) from error
    except BaseException:
        _undo(begun)
        raise
    return [edit.path for edit in begun]


def _undo(begun: Sequence[Edit]) -> None:
    left = []
    for edit in reversed(begun):
        try:
            if read(edit.path) != edit.old:
                _write(edit.path, edit.old)
        except (OSError, UnusableInput):
            left.append(edit.path)
    if left:
        raise UndoIncomplete(f"{', '.join(left)}: could not be put back as they were")


def _write(path: str, data: bytes | None) -> None:
    """A file whole, with the owner and the mode it had; a new one has its folder's owner."""
    path = os.path.realpath(path)  # a link into a folder of settings stays one
    folder = os.path.dirname(path)
    if data is None:
        os.unlink(path)
        files.sync_folder(folder)
        return
    os.makedirs(folder, exist_ok=True)
    there = os.path.exists(path)
    like = os.stat(path if there else folder)
    files.write_whole(path, data, mode=stat.S_IMODE(like.st_mode) if there else _MODE)
    with contextlib.suppress(PermissionError):
        os.chown(path, like.st_uid, like.st_gid)
