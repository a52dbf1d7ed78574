"""Wheel files: names, members, safe paths."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from packaging.tags import Tag, parse_tag
from packaging.utils import (
    InvalidWheelFilename,
    canonicalize_name,
    parse_wheel_filename,
)

from envlock.model.label import same_version
from envlock.model.record import data_place

_DRIVE = re.compile(r"[A-Za-z]:")
_FILE_NAME = re.compile(
    r"(?P<name>[^-]+)-(?P<version>[^-]+)(-(?P<build>\d[^-]*))?"
    r"-(?P<python>[^-]+)-(?P<abi>[^-]+)-(?P<platform>[^-]+)\.whl\Z"
)


@dataclass(frozen=True, slots=True)
class WheelName:
    """A wheel's file name, read leniently: the version may be one PEP 440 does not know."""

    file: str
    name: str
    version: str
    tags: frozenset[Tag]

    def fits(self, supported: Iterable[str]) -> bool:
        """Whether a target with these tags takes it."""
        return not self.tags.isdisjoint(parse for tag in supported for parse in parse_tag(tag))


def parse_wheel_name(file: str) -> WheelName:
    """Name, version and tags of a wheel's file name; ``+`` stands for itself.

    Raises:
        ValueError: it is no wheel's name; says why (``%2B``, wrong number of parts, …).
    """
    if not file.endswith(".whl"):
        raise ValueError("not a .whl file name")
    if "%" in file:
        raise ValueError("URL-encoded name; '%2B' has to be '+'")
    try:
        name, version, _, tags = parse_wheel_filename(file)
        return WheelName(file, name, str(version), tags)
    except InvalidWheelFilename:
        found = _FILE_NAME.match(file)
        if found is None:
            raise ValueError("not of the form name-version-python-abi-platform.whl") from None
    tags = parse_tag(f"{found['python']}-{found['abi']}-{found['platform']}")
    return WheelName(file, canonicalize_name(found["name"]), found["version"], tags)


def wheel_tags_part(tags: Sequence[str]) -> str:
    """Compressed tag part of a file name for the ``Tag:`` lines of a WHEEL file (PEP 425).

    Each of the three parts is the sorted set of what the tags use.
    """
    parts = [tag.split("-") for tag in tags]
    return "-".join(".".join(sorted({part[i] for part in parts})) for i in range(3))


def escape_name(name: str) -> str:
    """A distribution's name as a file name spells it (binary distribution format: ``_``)."""
    return re.sub(r"[-_.]+", "_", name)


def unsafe_path(member: str) -> str:
    """Why a member of a wheel must not be unpacked; empty when it may be."""
    if not member or "\0" in member or "\\" in member:
        return "no portable path"
    if member.startswith("/") or _DRIVE.match(member):
        return "absolute path"
    parts = member.rstrip("/").split("/")
    if ".." in parts:
        return "leads out of the wheel"
    if "." in parts or "" in parts:
        return "not a normal path"
    return ""


def dist_info_folder(members: Iterable[str], name: str, version: str) -> str:
    """The ``.dist-info`` folder of a wheel.

    Raises:
        ValueError: none, two, or one for another project.
    """
    folders = sorted(
        {m.split("/", 1)[0] for m in members if ".dist-info/" in m.split("/", 1)[0] + "/"}
    )
    if len(folders) != 1:
        raise ValueError(
            f"{len(folders)} .dist-info folders" if folders else "no .dist-info folder"
        )
    stem = folders[0].removesuffix(".dist-info")
    found_name, _, found_version = stem.rpartition("-")
    if canonicalize_name(found_name) != name or not same_version(found_version, version):
        raise ValueError(f"'{folders[0]}' does not belong to '{name} {version}'")
    return folders[0]


def wheel_place(member: str, name: str) -> str:
    """Place (``SCHEME/PATH``) where a member is installed (binary distribution format, spread).

    Raises:
        ValueError: a scheme that does not exist.
    """
    top, slash, rest = member.partition("/")
    if not (slash and top.endswith(".data")):
        return f"lib/{member}"
    scheme, _, path = rest.partition("/")
    if scheme in ("purelib", "platlib"):
        return f"lib/{path}"
    if scheme == "scripts":
        return f"bin/{path}"
    if scheme == "headers":
        return f"include/{path}"
    if scheme == "data":
        return data_place(path, name)
    raise ValueError(f"unknown scheme '{scheme}'")


def parent_folders(place: str) -> Iterable[str]:
    """Every folder above a place, nearest first."""
    folder = posixpath.dirname(place)
    while folder:
        yield folder
        folder = posixpath.dirname(folder)
