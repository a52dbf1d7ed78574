"""Hundreds of nodes and one wheelhouse: each reads what it needs once, in an order of its own.

What all nodes read in the same order is read from one server, one disk, one file at a time. What is
read twice (checked, then unpacked) is read from local scratch.
"""

from __future__ import annotations

import errno
import hashlib
import os
import random
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from envlock.adapters import space
from envlock.errors import UnusableInput

_CHUNK = 1024 * 1024
_TIMES = 2  # a network file system gives other bytes now and then
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_ELSEWHERE = "name another folder of the node with --scratch, or make room there"
#: What a folder holds beside wheels and is needed with them.
PAPERS = ("envlock.yaml", "SHA256SUMS")

Advance = Callable[[int], None]


@contextmanager
def scratch_folder(parent: str) -> Iterator[str]:
    """A new folder on a node's own disk, gone with all that is in it at the end.

    Raises:
        UnusableInput: it cannot be made there.
    """
    try:
        made = tempfile.TemporaryDirectory(
            prefix="envlock-", dir=parent, ignore_cleanup_errors=True
        )
    except OSError as error:
        raise _no_scratch(parent, error) from error
    with made as folder:
        yield folder


def copy(
    house: str,
    folder: str,
    sums: Mapping[str, str],
    wanted: Collection[str],
    advance: Advance | None = None,
) -> int:
    """Copies wheels and papers of a wheelhouse, each checked against its digest on the way.

    Args:
        house: the shared wheelhouse.
        folder: on this node, empty.
        sums: sha256 (hexadecimal) of each wheel, and of papers where it is known.
        wanted: names of the wheels.
        advance: called with bytes.

    Returns:
        Bytes that were copied.

    Raises:
        UnusableInput: there is no room, a file is missing, or has other bytes than its digest says.
    """
    names = [*wanted, *(name for name in PAPERS if os.path.exists(os.path.join(house, name)))]
    size = sum(_size(house, name) for name in names)
    if why := _no_room(folder, size):
        raise UnusableInput(
            f"scratch: no room for {_amount(size)} in '{folder}': {why}", _ELSEWHERE
        )
    random.SystemRandom().shuffle(names)
    for name in names:
        digest = sums[name] if name not in PAPERS else sums.get(name)
        _checked(os.path.join(house, name), os.path.join(folder, name), digest, advance)
    return size


def _size(house: str, name: str) -> int:
    try:
        return os.stat(os.path.join(house, name)).st_size
    except OSError as error:
        raise UnusableInput(
            f"{house}: '{name}' cannot be read: {error.strerror}", _check(house)
        ) from error


def _check(house: str) -> str:
    return f"try: envlock wheelhouse check {house}"


def _no_room(folder: str, size: int) -> str:
    """Why a disk does not take so much; empty when it does, or does not say."""
    free, _ = space.free(folder)
    if free is not None and free < size:
        return f"{_amount(free)} free"
    return space.why_no_room(folder, size)


def _checked(source: str, target: str, digest: str | None, advance: Advance | None) -> None:
    for _ in range(_TIMES):
        found = _copied(source, target, advance)
        if digest is None or found == digest:
            return
    house, name = os.path.split(source)
    raise UnusableInput(f"{house}: '{name}' has other bytes than its digest says", _check(house))


def _copied(source: str, target: str, advance: Advance | None) -> str:
    """Digest of what was copied.

    Raises:
        UnusableInput: it cannot be read, or written.
    """
    total = hashlib.sha256()
    try:
        with open(source, "rb", buffering=0) as file, _written(target) as out:
            while chunk := file.read(_CHUNK):
                total.update(chunk)
                out(chunk)
                if advance is not None:
                    advance(len(chunk))
    except OSError as error:
        raise UnusableInput(f"{source}: cannot be read: {error.strerror}", "") from error
    return total.hexdigest()


@contextmanager
def _written(target: str) -> Iterator[Callable[[bytes], None]]:
    folder = os.path.dirname(target)
    try:
        file = open(target, "wb", buffering=0)  # noqa: SIM115 - its errors are the disk's
    except OSError as error:
        raise _no_scratch(folder, error) from error

    def write(chunk: bytes) -> None:
        try:
            left = memoryview(chunk)
            while left:
                left = left[file.write(left) :]
        except OSError as error:
            raise _no_scratch(folder, error) from error

    with file:
        yield write


def _no_scratch(folder: str, error: OSError) -> UnusableInput:
    what = "is full" if error.errno in _FULL else "cannot be written"
    return UnusableInput(f"scratch: '{folder}' {what}: {error.strerror}", _ELSEWHERE)


def _amount(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def read_sums(house: str) -> str:
    """The text of SHA256SUMS; empty where a wheelhouse has none: its manifest knows the wheels.

    Raises:
        UnusableInput: there is one, and it cannot be read.
    """
    path = Path(house) / "SHA256SUMS"
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise UnusableInput(f"{path}: cannot be read: {error.strerror}", _check(house)) from error
