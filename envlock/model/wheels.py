"""Wheel files: names, members, safe paths."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from email.parser import HeaderParser
from email.policy import compat32

from packaging.tags import Tag, parse_tag
from packaging.utils import (
    InvalidWheelFilename,
    canonicalize_name,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from envlock.model.label import same_version
from envlock.model.record import Row, data_place

_DRIVE = re.compile(r"[A-Za-z]:")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
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


def rank(file: str, supported: Sequence[str]) -> int | None:
    """How early a target's tags name one of a wheel's, 0 for the best; None where it does not
    fit, or the name is none of a wheel.

    Args:
        supported: the target's tags, best first.
    """
    try:
        tags = {str(tag) for tag in parse_wheel_name(file).tags}
    except ValueError:
        return None
    return next((place for place, tag in enumerate(supported) if tag in tags), None)


def wheel_tags_part(tags: Sequence[str]) -> str:
    """Compressed tag part of a file name for the ``Tag:`` lines of a WHEEL file (PEP 425).

    Each of the three parts is the sorted set of what the tags use.
    """
    parts = [tag.split("-") for tag in tags]
    return "-".join(".".join(sorted({part[i] for part in parts})) for i in range(3))


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelInfo:
    """What a WHEEL file says: format version, ``Tag:`` lines, build number, root scheme."""

    version: str = ""
    tags: tuple[str, ...] = ()
    build: str = ""
    purelib: bool = True

    @property
    def tag_set(self) -> frozenset[Tag]:
        """The tags as a file name's tags are compared; lines that are no tag are left out."""
        sound = (tag for tag in self.tags if tag.count("-") == 2)
        return frozenset(one for tag in sound for one in parse_tag(tag))


def parse_wheel_info(text: str) -> WheelInfo:
    """Reads a WHEEL file. Never raises; missing values are empty."""
    # vendors' files with a blank line before 'Tag:' exist: a header parser would stop there
    lines = "\n".join(line for line in text.splitlines() if line.strip())
    message = HeaderParser(policy=compat32).parsestr(lines)
    return WheelInfo(
        version=str(message.get("Wheel-Version", "")).strip(),
        tags=tuple(str(tag).strip() for tag in message.get_all("Tag", ()) if str(tag).strip()),
        build=str(message.get("Build", "")).strip(),
        purelib=str(message.get("Root-Is-Purelib", "true")).strip().lower() != "false",
    )


#: What RECORD may use (binary distribution format: sha256 or better).
RECORD_ALGORITHMS = ("sha256", "sha384", "sha512")
_SIGNATURES = ("RECORD.jws", "RECORD.p7s")


def decode_hash(written: str) -> tuple[str, str]:
    """Algorithm and hexadecimal digest of ``sha256=…`` as RECORD writes it; empty for none.

    Raises:
        ValueError: an algorithm that is not allowed, or no base64.
    """
    if not written:
        return "", ""
    algorithm, _, value = written.partition("=")
    if algorithm not in RECORD_ALGORITHMS:
        raise ValueError(f"'{algorithm}' is not {', '.join(RECORD_ALGORITHMS)}")
    try:
        return algorithm, base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)).hex()
    except (binascii.Error, ValueError):
        raise ValueError(f"'{value}' is no digest") from None


def encode_hash(hexa: str) -> str:
    """``sha256=…`` as RECORD writes it, for a hexadecimal digest."""
    return f"sha256={base64.urlsafe_b64encode(bytes.fromhex(hexa)).rstrip(b'=').decode()}"


@dataclass(frozen=True, slots=True)
class MemberFacts:
    """Digests (hexadecimal, by algorithm; none where it was not read) and size in bytes of a
    wheel's member."""

    digests: Mapping[str, str]
    size: int


def record_problems(
    rows: Sequence[Row], members: Mapping[str, MemberFacts], dist_info: str
) -> list[tuple[str, str]]:
    """Where RECORD and the members of a wheel disagree.

    Args:
        rows: RECORD.
        members: every file in the wheel that could be read, or is to be judged by its size alone.
        dist_info: the ``.dist-info`` folder's name.

    Returns:
        Level (``error`` or ``warning``) and text, in RECORD's order.
    """
    unlisted = {f"{dist_info}/RECORD", *(f"{dist_info}/{name}" for name in _SIGNATURES)}
    found: list[tuple[str, str]] = []
    seen: set[str] = set()
    for row in rows:
        if row.path in seen:
            found.append(("error", f"RECORD lists '{row.path}' twice"))
        elif row.path not in unlisted:
            found += _row_problems(row, members.get(row.path))
        seen.add(row.path)
    extra = sorted(set(members) - seen - unlisted)
    return found + [("error", f"'{member}' is not in RECORD") for member in extra]


def _row_problems(row: Row, member: MemberFacts | None) -> list[tuple[str, str]]:
    if bad := unsafe_path(row.path):
        return [("error", f"RECORD lists '{row.path}': {bad}")]
    if member is None:
        return [("error", f"RECORD lists '{row.path}', the wheel does not have it")]
    try:
        algorithm, claimed = decode_hash(row.hash)
    except ValueError as error:
        return [("error", f"RECORD: '{row.path}': {error}")]
    if not algorithm:
        return [("warning", f"RECORD has no digest for '{row.path}'")]
    if member.digests and member.digests.get(algorithm) != claimed:
        return [("error", f"'{row.path}' has other bytes than RECORD says")]
    if row.size is not None and row.size != member.size:
        return [("error", f"'{row.path}' has {member.size} bytes, RECORD says {row.size}")]
    return []


def escape_name(name: str) -> str:
    """A distribution's name as a file name spells it (binary distribution format: ``_``)."""
    return re.sub(r"[-_.]+", "_", name)


def unsafe_path(member: str) -> str:
    """Why a member of a wheel must not be unpacked; empty when it may be."""
    # a line end of any kind would break RECORD, which every tool reads line by line
    if member.splitlines() != [member] or _CONTROL.search(member):
        return "control character or line end in the name" if member else "no name"
    if "\\" in member:
        return "a backslash, which parts folders on Windows"
    if member.startswith("/"):
        return "absolute path"
    if _DRIVE.match(member):
        return "a drive letter, an absolute path on Windows"
    parts = member.rstrip("/").split("/")
    if ".." in parts:
        return "leads out of the wheel"
    if "." in parts or "" in parts:
        return "not a normal path"
    return ""


def is_file_name(text: str) -> bool:
    """Whether a text is one name on every system, never a path; so is what it is a part of."""
    return not unsafe_path(text) and "/" not in text


def printable(text: str) -> str:
    """The text with everything escaped that a terminal would act on, or that is no character."""
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text
    )


def foreign_data(members: Iterable[str], name: str, version: str) -> list[str]:
    """``.data`` folders of another project: pip spreads them all, uv only a wheel's own."""
    tops = {member.partition("/")[0] for member in members if ".data/" in member}
    folders = sorted(top for top in tops if top.endswith(".data"))
    return [folder for folder in folders if not _belongs(folder, ".data", name, version)]


def _belongs(folder: str, suffix: str, name: str, version: str) -> bool:
    found_name, _, found_version = folder.removesuffix(suffix).rpartition("-")
    return canonicalize_name(found_name) == name and same_version(found_version, version)


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
    if not _belongs(folders[0], ".dist-info", name, version):
        raise ValueError(f"'{folders[0]}' does not belong to '{name} {version}'")
    return folders[0]


def wheel_place(member: str, name: str) -> str:
    """Place (``SCHEME/PATH``) where a member is installed (binary distribution format, spread).

    Raises:
        ValueError: a scheme that does not exist; pip takes a file ``x.data`` in the root for one.
    """
    top, _, rest = member.partition("/")
    if not top.endswith(".data"):
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


def member_name(place: str, stem: str, *, script: bool, purelib: bool = True) -> str:
    """How a wheel spells a place: the inverse of :func:`wheel_place`.

    Args:
        place: ``SCHEME/PATH``.
        stem: of the ``.dist-info`` folder; the ``.data`` folder has the same.
        script: for a place directly in ``bin``: whether installers shall treat it as a script
            (first line, exec bit). What is not comes back through the ``data`` scheme.
        purelib: where the wheel's root goes; only needed for what looks like a ``.data`` folder.
    """
    scheme, _, rest = place.partition("/")
    if scheme == "lib":
        if rest.partition("/")[0].endswith(".data"):
            return f"{stem}.data/{'purelib' if purelib else 'platlib'}/{rest}"
        return rest
    if scheme == "bin":
        return f"{stem}.data/{'scripts' if script and '/' not in rest else 'data/bin'}/{rest}"
    return f"{stem}.data/{'headers' if scheme == 'include' else 'data'}/{rest}"


def wheel_file_name(name: str, version: str, build: str, tags: str) -> str:
    """A wheel's file name; ``+`` stands for itself.

    Args:
        name: canonical name.
        version: raw, as METADATA says it; made fit for a file name only where it is not.
        build: build number of WHEEL; left out where it is none.
        tags: compressed, ``py3-none-any``.
    """
    if "-" in version:  # '1.0-1' is a valid spelling of '1.0.post1'; a file name has no room for it
        try:
            version = str(Version(version))
        except InvalidVersion:
            version = version.replace("-", "_")
    number = f"-{build}" if re.fullmatch(r"\d[^-/]*", build) else ""
    return f"{escape_name(name)}-{version}{number}-{tags}.whl"
