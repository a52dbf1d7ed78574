"""A folder beside the place where something will stand whole: of one run, and gone with it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager

from envlock.adapters import files


class BusyError(Exception):
    """Another run works on the same thing; the text names its folder."""


@contextmanager
def staging(place: str) -> Iterator[str]:
    """An empty folder on the file system of ``place``; what a killed run left in it is removed.

    Args:
        place: what will be made; its folder has to exist.

    Raises:
        BusyError: another run is making it.
        OSError: there is no writing here.
    """
    folder, name = os.path.split(os.path.abspath(place))
    path = os.path.join(folder, f".{name}.part")
    os.makedirs(path, exist_ok=True)
    with _locked(path):
        for left in os.listdir(path):
            files.remove_tree(os.path.join(path, left))
        try:
            yield path
        finally:
            files.remove_tree(path)


@contextmanager
def _locked(path: str) -> Iterator[None]:
    """Holds a folder, where the system and the file system can: a killed run holds it no more."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a network file system without locks
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BusyError(path) from None
        yield
    finally:
        os.close(descriptor)
