"""Noticing cheaply that installed distributions changed: only files that moved are hashed."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from packaging.utils import canonicalize_name

from envlock.adapters.files import Job, hash_files, names_in
from envlock.adapters.installed import Installed, site_folders
from envlock.model.facts import Finding, Layout
from envlock.model.record import is_bytecode

Stamp = tuple[int, int, int, int]
#: Files that are looked at in a step: about a millisecond.
_STEP = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What one name had on the disk.

    Attributes:
        infos: names of its metadata folders; another version has another name.
        stamps: size, mtime, ctime and inode of each file that was there.
        claimed: the hash of each file, as RECORD had it.
    """

    name: str
    infos: tuple[str, ...]
    stamps: dict[str, Stamp] = field(default_factory=dict)
    claimed: dict[str, str] = field(default_factory=dict)


def _stamp(path: str) -> Stamp | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


class Watching:
    """Notes the state of distributions, step by step: there is time for it while others decide.

    Args:
        dists: all that are to be watched; twins of one name are one entry.
    """

    def __init__(self, dists: Sequence[Installed], layout: Layout) -> None:
        groups: dict[str, list[Installed]] = {}
        for dist in dists:
            groups.setdefault(dist.name, []).append(dist)
        infos = _infos(groups, layout)
        self._groups = sorted(groups.items())
        self._found = {name: Watched(name=name, infos=infos[name]) for name in groups}
        self._steps = self._work()

    def steps(self) -> Iterator[None]:
        """What is left to do; see :func:`envlock.adapters.process.while_waiting`."""
        return self._steps

    def result(self) -> list[Watched]:
        """One entry for each name, sorted; does what is left."""
        for _ in self._steps:
            pass
        return [self._found[name] for name, _ in self._groups]

    def _work(self) -> Iterator[None]:
        count = 0
        for name, group in self._groups:
            stamps, claimed = self._found[name].stamps, self._found[name].claimed
            for path, claim in (pair for dist in group for pair in _files_of(dist)):
                stamp = _stamp(path)
                if stamp is not None:
                    stamps[path], claimed[path] = stamp, claim
                count += 1
                if count % _STEP == 0:
                    yield


def watch(dists: Sequence[Installed], layout: Layout) -> list[Watched]:
    """Notes the state of distributions at once; see :class:`Watching`."""
    return Watching(dists, layout).result()


def _files_of(dist: Installed) -> Iterable[tuple[str, str]]:
    """Path and hash of each line of RECORD; byte code and the notes of installers left out."""
    for row in dist.rows or ():
        note = not row.hash and row.path.startswith(dist.dist_info)
        if not note and not (row.path.endswith(".pyc") and is_bytecode(row.path)):
            # not os.path.join(): it is slower than asking for the file's state
            yield row.path if row.path[0] == "/" else f"{dist.site}/{row.path}", row.hash


def _infos(names: Iterable[str], layout: Layout) -> dict[str, tuple[str, ...]]:
    """Names of the metadata folders of each distribution."""
    found: dict[str, list[str]] = {name: [] for name in names}
    for site in site_folders(layout):
        for entry in sorted(names_in(site)):
            stem, dash, _ = entry.partition("-")
            if dash and entry.endswith((".dist-info", ".egg-info")):
                found.get(canonicalize_name(stem), []).append(entry)
    return {name: tuple(entries) for name, entries in found.items()}


def changes(before: Sequence[Watched], layout: Layout) -> list[Finding]:
    """One finding for each watched name that is not as it was."""
    now = _infos((one.name for one in before), layout)
    found = []
    for one in before:
        what = _versions(one, now[one.name]) or _files(one)
        if what:
            found.append(Finding(code="guard.changed", subject=one.name, what=what, level="error"))
    return found


def _versions(before: Watched, now: tuple[str, ...]) -> str:
    if before.infos == now:
        return ""
    if not now:
        return "is not installed any more"
    shown = ", ".join(f"'{info}'" for info in now)
    return f"is now {shown}; it was " + ", ".join(f"'{info}'" for info in before.infos)


def _files(before: Watched) -> str:
    """What happened to its files; a file that moved and has its bytes is no change."""
    moved, gone = [], []
    for path, stamp in before.stamps.items():
        now = _stamp(path)
        if now is None:
            gone.append(path)
        elif now != stamp:
            moved.append(path)
    hashed = hash_files([Job(path) for path in moved]) if moved else []
    changed = [
        path
        for path, one in zip(moved, hashed, strict=True)
        if not one.hex or _recorded(one.hex) != before.claimed[path]
    ]
    if not (gone or changed):
        return ""
    first = min(gone or changed)
    return f"{len(gone)} files are gone and {len(changed)} have other bytes, e.g. '{first}'"


def _recorded(hexadecimal: str) -> str:
    """A sha256 as RECORD writes it; a file with no hash there, or another one, has changed."""
    encoded = base64.urlsafe_b64encode(binascii.unhexlify(hexadecimal))
    return f"sha256={encoded.rstrip(b'=').decode()}"
