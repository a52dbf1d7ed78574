"""Wheels that lie about under any name: recognised by what is in them, given their right name."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from packaging.utils import InvalidName, canonicalize_name

from envlock.adapters.zipmember import NO_ZIP
from envlock.model.dist import parse_metadata
from envlock.model.label import same_version
from envlock.model.wheels import (
    is_file_name,
    parse_wheel_info,
    parse_wheel_name,
    wheel_file_name,
    wheel_tags_part,
)

_MOST_TEXT = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundWheel:
    """A file that is a wheel by its name or by its content.

    Attributes:
        path: where it is.
        file: its right name; empty where ``problem`` says why it has none.
        name: canonical, as METADATA says it.
        version: raw, as METADATA says it.
        problem: why it cannot be used.
    """

    path: str
    file: str = ""
    name: str = ""
    version: str = ""
    problem: str = ""

    @property
    def misnamed(self) -> bool:
        """Whether no tool would take it under the name that it has."""
        return bool(self.file) and os.path.basename(self.path) != self.file


def find_wheels(places: Iterable[str]) -> tuple[FoundWheel, ...]:
    """Every wheel in some folders, not below them, and every named file, once.

    Args:
        places: folders, files, ``file:`` URLs; other URLs are passed over.
    """
    paths = dict.fromkeys(path for place in places for path in _paths(place))
    return tuple(identify(path) for path in paths)


def _paths(place: str) -> Iterator[str]:
    local = local_path(place)
    if os.path.isfile(local):
        yield os.path.abspath(local)
    elif os.path.isdir(local):
        for name in sorted(os.listdir(local)):
            path = os.path.join(os.path.abspath(local), name)
            if name.lower().endswith(".whl") and os.path.isfile(path):
                yield path


def local_path(place: str) -> str:
    """A path of this machine; empty for a URL that leads elsewhere."""
    parts = urlsplit(place)
    if parts.scheme == "file":
        return url2pathname(parts.path)
    return "" if "://" in place else os.path.expanduser(place)


def identify(path: str) -> FoundWheel:
    """What a file is, by METADATA and WHEEL. Never raises for what is in it."""
    try:
        with zipfile.ZipFile(path) as archive:
            folder = _dist_info(archive)
            metadata = parse_metadata(_text(archive, f"{folder}/METADATA"))
            info = parse_wheel_info(_text(archive, f"{folder}/WHEEL"))
    except NO_ZIP as error:
        return FoundWheel(path=path, problem=f"cannot be read as a wheel: {error}")
    if not metadata.name or not metadata.version:
        return FoundWheel(path=path, problem="its METADATA has no name and version")
    try:
        name, version = canonicalize_name(metadata.name, validate=True), metadata.version
    except InvalidName:
        return FoundWheel(path=path, problem=f"'{metadata.name}' in its METADATA is no name")
    if not is_file_name(version):
        return FoundWheel(path=path, problem=f"'{version}' in its METADATA is no version")
    known = FoundWheel(path=path, name=name, version=version)
    spelled = unquote(os.path.basename(path))
    try:
        claimed = parse_wheel_name(spelled)
    except ValueError:
        try:
            tags = sorted(str(tag) for tag in info.tag_set)
        except ValueError:
            tags = []
        if not tags:
            return _with(known, problem="its file name is none of a wheel, and WHEEL has no tags")
        return _with(known, file=wheel_file_name(name, version, info.build, wheel_tags_part(tags)))
    if claimed.name != name or not same_version(claimed.version, version):
        what = f"its file name says '{claimed.name} {claimed.version}', its METADATA"
        return _with(known, problem=f"{what} '{name} {version}'")
    return _with(known, file=spelled)


def _with(known: FoundWheel, *, file: str = "", problem: str = "") -> FoundWheel:
    if file and not is_file_name(file):  # tags and a build number say what they like
        file, problem = "", f"'{file}' would be its file name, and is none"
    return FoundWheel(
        path=known.path, name=known.name, version=known.version, file=file, problem=problem
    )


def _dist_info(archive: zipfile.ZipFile) -> str:
    tops = {name.partition("/")[0] for name in archive.namelist() if "/" in name}
    found = sorted(top for top in tops if top.endswith(".dist-info"))
    if len(found) != 1:
        raise zipfile.BadZipFile(f"{len(found) or 'no'} .dist-info folders in it")
    return found[0]


def _text(archive: zipfile.ZipFile, member: str) -> str:
    try:
        info = archive.getinfo(member)
    except KeyError:
        return ""
    if info.file_size > _MOST_TEXT:
        raise zipfile.BadZipFile(f"'{member}' has {info.file_size} bytes")
    return archive.read(info).decode("utf-8", "surrogateescape")


def place(found: FoundWheel, folder: str) -> str:
    """Puts a wheel into a folder under its right name, without a second copy where that works.

    Returns:
        Its path there.

    Raises:
        OSError: the folder cannot be written.
    """
    final = os.path.join(folder, found.file)
    if os.path.exists(final) and os.path.samefile(final, found.path):
        return final
    part = f"{final}.part-{os.getpid()}"
    try:
        _link_or_copy(found.path, part)
        os.replace(part, final)
    except OSError:
        with suppress(OSError):
            os.unlink(part)
        raise
    return final


def _link_or_copy(path: str, part: str) -> None:
    link = getattr(os, "link", None)  # not every host has it, nor every file system
    if link is not None:
        with suppress(OSError):
            link(os.path.realpath(path), part)
            return
    shutil.copyfile(path, part)


def as_requirement(typed: str, found: Iterable[tuple[FoundWheel, FoundWheel]]) -> str:
    """A typed requirement; a path of a wheel becomes ``name @ file:…`` under its right name.

    Args:
        found: wheels as they were found and under their right names.
    """
    path = local_path(typed)
    here = os.path.abspath(path) if path and os.path.isfile(path) else ""
    named = next((named for original, named in found if original.path == here), None)
    return typed if named is None else f"{named.name} @ {Path(named.path).as_uri()}"
