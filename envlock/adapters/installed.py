"""Installed distributions: what the metadata says, and what the files really are."""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from packaging.utils import canonicalize_name

from envlock.adapters.files import Hashed, Job, hash_files, names_in
from envlock.model.dist import Metadata, parse_metadata
from envlock.model.facts import Finding, Layout
from envlock.model.record import (
    Row,
    content_digest,
    entry_point_names,
    installed_place,
    is_content,
    parse_record,
)

_PYTHON_PART = re.compile(r"-py\d(\.\d+)?(-.*)?\Z")  # of an egg's name: "six-1.16-py3.10"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A ``.dist-info`` (or egg) as found on the disk.

    Attributes:
        path: absolute path of the metadata folder or file.
        dist_info: its own name.
        site: the folder it is in; RECORD paths are relative to it.
        metadata: name, version and requirements; the folder's name fills in what is missing.
        rows: RECORD; None when there is none or it cannot be read.
        scripts: names that entry_points.txt declares.
        direct_url: direct_url.json, or None.
        reason: why this distribution cannot be kept; empty when nothing speaks against it.
    """

    path: str
    dist_info: str
    site: str
    metadata: Metadata
    rows: tuple[Row, ...] | None = None
    scripts: frozenset[str] = frozenset()
    direct_url: Mapping[str, Any] | None = None
    reason: str = ""

    @property
    def name(self) -> str:
        """Canonical name."""
        return self.metadata.canonical

    @property
    def version(self) -> str:
        """Raw version."""
        return self.metadata.version

    @property
    def editable(self) -> bool:
        """Installed in development mode."""
        info = (self.direct_url or {}).get("dir_info")
        return isinstance(info, Mapping) and info.get("editable") is True


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a distribution has on the disk.

    Attributes:
        digest: content digest; empty when there is none, and then ``reason`` says why.
        files: each file of the content by place.
        paths: absolute path of each place.
        missing: places that RECORD names and the disk does not have.
        reason: why there is no digest.
        claimed: what RECORD says of each place; asked only where somebody wants to know.
    """

    digest: str = ""
    files: Mapping[str, Hashed] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    reason: str = ""
    claimed: Callable[[], Mapping[str, str]] = field(default=dict, compare=False, repr=False)

    @property
    def mismatched(self) -> tuple[str, ...]:
        """Places whose bytes are not what RECORD claims. Scripts are left out: their first line is
        the installer's, and content sees it as ``#!python``."""
        claimed = self.claimed()
        return tuple(
            sorted(
                place
                for place, found in self.files.items()
                if not found.error
                and not place.startswith("bin/")
                and claimed.get(place, found.hex) != found.hex
            )
        )

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(found.size for found in self.files.values())

    @property
    def executable(self) -> tuple[str, ...]:
        """Places with an exec bit, sorted."""
        return tuple(sorted(place for place, file in self.files.items() if file.executable))


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """Everything in a target's site folders: distributions, and leftovers of broken installers."""

    distributions: tuple[Installed, ...]
    findings: tuple[Finding, ...]

    def named(self, name: str) -> tuple[Installed, ...]:
        """Every distribution of that canonical name; more than one is a broken state."""
        return tuple(dist for dist in self.distributions if dist.name == name)


def site_folders(layout: Layout) -> list[str]:
    """The folders that installers of this target write to, each once."""
    found: dict[str, str] = {}
    for folder in (layout.purelib, layout.platlib):
        found.setdefault(os.path.realpath(folder), folder)
    return list(found.values())


def read_inventory(layout: Layout) -> Inventory:
    """Reads the metadata of everything installed in a target; broken things are values."""
    found: list[Installed] = []
    findings: list[Finding] = []
    for site in site_folders(layout):
        for name in sorted(names_in(site)):
            if name.startswith("~"):
                findings.append(_leftover(site, name))
            elif name.endswith(".dist-info"):
                found.append(_read_dist_info(site, name))
            elif name.endswith((".egg-info", ".egg")):
                found.append(_read_egg(site, name))
    return Inventory(distributions=_mark_twins(found), findings=tuple(findings))


def read_installed(layout: Layout) -> list[Installed]:
    """The distributions of :func:`read_inventory`, sorted by name and version."""
    return list(read_inventory(layout).distributions)


def names_of(folder: str) -> list[str]:
    """Canonical names of the distributions of a folder, whoever's it is, by its entries alone."""
    stems = (e.removesuffix(".dist-info") for e in names_in(folder) if e.endswith(".dist-info"))
    return [canonicalize_name(stem.partition("-")[0]) for stem in sorted(stems)]


def _leftover(site: str, name: str) -> Finding:
    return Finding(
        code="dist.leftover",
        subject=name,
        what="left over from an interrupted install or uninstall",
        why="some tools list it under its real name",
        hint=f"'envlock restore' clears it; so does removing '{os.path.join(site, name)}'",
    )


def _text(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None


def _named_by_folder(metadata: Metadata, stem: str) -> Metadata:
    """Fills in name and version from ``name-version``, as pip and uv do for empty metadata."""
    name, _, version = stem.partition("-")
    return replace(metadata, name=metadata.name or name, version=metadata.version or version)


def _read_dist_info(site: str, dist_info: str) -> Installed:
    path = os.path.join(site, dist_info)
    text = _text(os.path.join(path, "METADATA"))
    stem = dist_info.removesuffix(".dist-info")
    dist = Installed(
        path=path,
        dist_info=dist_info,
        site=site,
        metadata=_named_by_folder(parse_metadata(text or ""), stem),
        scripts=entry_point_names(_text(os.path.join(path, "entry_points.txt")) or ""),
        direct_url=_direct_url(_text(os.path.join(path, "direct_url.json"))),
    )
    if not text:
        return replace(dist, reason="no METADATA")
    record = _text(os.path.join(path, "RECORD"))
    if record is None:
        return replace(dist, reason="no RECORD: its files are not known")
    try:
        dist = replace(dist, rows=parse_record(record))
    except ValueError as error:
        return replace(dist, reason=f"RECORD cannot be read: {error}")
    if not dist.rows:
        return replace(dist, reason="RECORD is empty: its files are not known")
    return replace(dist, reason="editable install") if dist.editable else dist


def _read_egg(site: str, name: str) -> Installed:
    path = os.path.join(site, name)
    inside = os.path.join(path, "EGG-INFO") if name.endswith(".egg") else path
    text = _text(os.path.join(inside, "PKG-INFO") if os.path.isdir(inside) else path) or ""
    stem = _PYTHON_PART.sub("", name.removesuffix(".egg").removesuffix(".egg-info"))
    return Installed(
        path=path,
        dist_info=name,
        site=site,
        metadata=_named_by_folder(parse_metadata(text), stem),
        reason="no .dist-info (an egg): its files are not known",
    )


def _direct_url(text: str | None) -> Mapping[str, Any] | None:
    try:
        found = json.loads(text or "")
    except ValueError:
        return None
    return found if isinstance(found, Mapping) else None


def _mark_twins(found: list[Installed]) -> tuple[Installed, ...]:
    """Sorts; two ``.dist-info`` for one name make both unusable: nobody knows which files count."""
    groups: dict[str, list[Installed]] = {}
    for dist in found:
        groups.setdefault(canonicalize_name(dist.metadata.name), []).append(dist)
    marked = []
    for group in groups.values():
        together = ", ".join(sorted(dist.dist_info for dist in group))
        reason = f"two .dist-info for one name: {together}" if len(group) > 1 else ""
        marked += [replace(dist, reason=reason or dist.reason) for dist in group]
    return tuple(sorted(marked, key=lambda dist: (dist.name, dist.version, dist.dist_info)))


class _Located(NamedTuple):
    """A file of RECORD: where it is, and what RECORD says of it."""

    path: str
    row: Row


def _locate(dist: Installed, layout: Layout) -> tuple[dict[str, _Located], str]:
    """Each file of the content by place, and a reason when RECORD leads outside the target."""
    found: dict[str, _Located] = {}
    name = dist.name  # canonical: worth doing once, not 12,000 times
    for row in dist.rows or ():
        path = os.path.normpath(os.path.join(dist.site, row.path))
        place = installed_place(path, layout, name)
        if place is None:
            return found, f"RECORD leads outside the target: '{row.path}'"
        if is_content(place, dist.dist_info, name, dist.scripts):
            found[place] = _Located(path, row)
    return found, ""


def content_paths(dist: Installed, layout: Layout) -> tuple[dict[str, str], str]:
    """Place and absolute path of each file of a distribution's content, as RECORD lists them.

    Returns:
        The mapping, and a reason when RECORD leads outside the target.
    """
    found, reason = _locate(dist, layout)
    return {place: one.path for place, one in found.items()}, reason


def recorded_digests(dist: Installed, layout: Layout) -> dict[str, str]:
    """Hexadecimal sha256 that RECORD claims, by place of the content; others are left out."""
    return _claims(_locate(dist, layout)[0])


def _claims(files: Mapping[str, _Located]) -> dict[str, str]:
    found = {}
    for place, (_, row) in files.items():
        kind, _, value = row.hash.partition("=")
        if kind != "sha256":
            continue
        try:
            found[place] = base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)).hex()
        except (binascii.Error, ValueError):
            continue
    return found


def read_contents(
    dists: Sequence[Installed],
    layout: Layout,
    *,
    trust_record: bool = False,
    known: Mapping[str, Hashed] | None = None,
    advance: Callable[[int], None] | None = None,
) -> list[Content]:
    """Content of each distribution, every file read unless RECORD is to be trusted.

    Args:
        dists: as :func:`read_installed` gives them.
        layout: the target's.
        trust_record: take digests from RECORD where it has them; only scripts are read.
        known: files, by absolute path, that need not be read: who wrote them hashed them. One that
            is not there, is no file or has another size is read all the same.
        advance: called with the number of files done since the last call.

    Returns:
        One Content for each distribution, in order. A file that is missing, an unusable RECORD or
        a ``reason`` on the distribution itself: no digest, the reason instead.
    """
    mapped = [_locate(d, layout) if not d.reason else ({}, d.reason) for d in dists]
    hashed = [
        _trusted(located) if trust_record else _still_known(located, known or {})
        for located, _ in mapped
    ]
    jobs, owners = [], []
    for index, (located, _) in enumerate(mapped):
        for place in sorted(located.keys() - hashed[index].keys()):
            path, row = located[place]
            jobs.append(Job(path, place.startswith("bin/"), row.size or 0))
            owners.append((index, place))
    for (index, place), result in zip(owners, hash_files(jobs, advance), strict=True):
        hashed[index][place] = result
    return [_content(*found, known) for found, known in zip(mapped, hashed, strict=True)]


def _content(located: Mapping[str, _Located], reason: str, hashed: Mapping[str, Hashed]) -> Content:
    unreadable = sorted(place for place, found in hashed.items() if found.error)
    if unreadable and not reason:
        error = hashed[unreadable[0]].error
        more = f" and {len(unreadable) - 1} more" if len(unreadable) > 1 else ""
        reason = f"'{unreadable[0]}'{more}: {error}"
    files = {place: hashed[place] for place in located if place in hashed}
    return Content(
        digest="" if reason else content_digest((p, f.hex) for p, f in files.items()),
        files=files,
        paths={place: one.path for place, one in located.items()},
        missing=tuple(unreadable),
        reason=reason,
        claimed=partial(_claims, located),
    )


def _still_known(located: Mapping[str, _Located], known: Mapping[str, Hashed]) -> dict[str, Hashed]:
    """Of the files that somebody hashed while writing them, those that are there."""
    found = {}
    for place, one in located.items() if known else ():
        written = known.get(one.path)
        if written is None or place.startswith("bin/"):
            continue  # content sees scripts in its own way: they are always read
        try:
            status = os.lstat(one.path)
        except OSError:
            continue  # reading it says why
        if stat.S_ISREG(status.st_mode) and status.st_size == written.size:
            runs = bool(status.st_mode & stat.S_IXUSR)
            found[place] = (
                written if written.executable == runs else replace(written, executable=runs)
            )
    return found


def _trusted(located: Mapping[str, _Located]) -> dict[str, Hashed]:
    """What RECORD claims, with size and mode from the disk; scripts are always read."""
    found = {}
    for place, hexa in _claims(located).items():
        if place.startswith("bin/"):
            continue
        try:
            status = os.stat(located[place].path)
        except OSError as error:
            found[place] = Hashed(error=error.strerror or str(error))
        except ValueError as error:
            found[place] = Hashed(error=str(error))  # a NUL in a path
        else:
            found[place] = Hashed(hexa, status.st_size, bool(status.st_mode & 0o100))
    return found
