"""The files that a kit is in: their names, and what an earlier kit of that name left there."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from envlock.adapters import files
from envlock.adapters.kitfile import MOST_PARTS, PartsWriter
from envlock.errors import UnusableInput
from envlock.model.kit import FIRST_LINE
from envlock.wheelhouse.folder import parse_sums

#: Of the file with the sums of the parts: no name that ``cat KIT.*`` takes along.
SUMS_SUFFIX = "-SHA256SUMS"
_NUMBER = re.compile(r"[0-9]{3,}")


def need_parts(target: str, limit: int, least: int) -> None:
    """Before anything is packed: whether the parts will be all that ``cat KIT.[0-9]*`` joins.

    Args:
        limit: bytes of a part.
        least: bytes that the kit has at least.

    Raises:
        UnusableInput: there would be more than 999 parts, whose names sort in another order; or
            files with such names are no parts of an earlier kit.
    """
    if least > MOST_PARTS * limit:
        raise UnusableInput(
            f"kit: parts of {limit} bytes would be more than {MOST_PARTS}", "name a larger --split"
        )
    folder, name = os.path.split(target)
    of_before = earlier(target)
    joined = re.compile(rf"{re.escape(name)}(\.[0-9].*)?", re.DOTALL)
    others = [other for other in _names(folder) if joined.fullmatch(other)]
    in_the_way = [o for o in sorted(others) if os.path.join(folder, o) not in of_before]
    if in_the_way:
        raise UnusableInput(
            f"kit: '{in_the_way[0]}' is no part of a kit, and would be taken for one of '{name}'",
            "move it away, or name another kit",
        )


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError as error:
        raise UnusableInput(f"kit: '{folder}': {error.strerror or error}") from error


def earlier(target: str) -> frozenset[str]:
    """Paths of an earlier kit of that name: its file, or the parts that the file with their sums
    names, or that follow each other without a gap. Never what only has such a name."""
    found = {target} if _begins_a_kit(target) else set()
    if _begins_a_kit(f"{target}.001"):
        found |= set(_run(target))
    folder = os.path.dirname(target)
    found |= {os.path.join(folder, name) for name in _summed(target)}
    return frozenset(path for path in found if os.path.isfile(path))


def _begins_a_kit(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(FIRST_LINE)) == FIRST_LINE
    except OSError:
        return False


def _run(target: str) -> Iterator[str]:
    number = 1
    while os.path.isfile(path := f"{target}.{number:03}"):
        yield path
        number += 1


def _summed(target: str) -> list[str]:
    """The parts that the file with the sums names; none where it is about anything else, too."""
    try:
        sums, odd = parse_sums(Path(target + SUMS_SUFFIX).read_text(encoding="utf-8"))
    except (OSError, UnicodeError):
        return []
    head = f"{os.path.basename(target)}."
    ours = [
        name
        for name in sums
        if name.startswith(head) and _NUMBER.fullmatch(name.removeprefix(head))
    ]
    return ours if len(ours) == len(sums) and not odd else []


def into_place(
    target: str, out: PartsWriter, of_before: Collection[str], *, split: bool
) -> tuple[str, ...]:
    """Gives the files their names. What an earlier kit of that name was in goes: its file would be
    taken for the kit, its parts would be joined with these.

    Args:
        of_before: paths of the earlier kit.

    Raises:
        OSError: the folder cannot be written.
    """
    folder = os.path.dirname(target)
    places = [os.path.join(folder, os.path.basename(path)) for path, _ in out.parts]
    sums = target + SUMS_SUFFIX
    if split or _summed(target):
        Path(sums).unlink(missing_ok=True)
    for (path, _), place in zip(out.parts, places, strict=True):
        os.replace(path, place)
    for old in of_before:
        if old not in places:
            os.unlink(old)
    if split:
        lines = (f"{hexa}  {os.path.basename(path)}\n" for path, hexa in out.parts)
        files.write_whole(sums, "".join(lines))
        places.append(sums)
    files.sync_folder(folder)
    return tuple(places)
