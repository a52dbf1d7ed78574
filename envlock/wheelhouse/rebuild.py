"""One installed distribution becomes a wheel again.

The vendor's own file cannot come back (its order, dates and compressor are gone), its content can:
the same content digest as installed, and the same bytes from every target that holds it.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from envlock.adapters.deflating import FAST, Compressor
from envlock.adapters.files import Hashed
from envlock.adapters.installed import Installed, content_paths, recorded_digests
from envlock.adapters.wheelfile import inspect_wheel
from envlock.adapters.wheelwriter import Member, write_wheel
from envlock.model.dist import WheelRef
from envlock.model.facts import Target
from envlock.model.record import HEAD_BYTES, content_digest, script_head
from envlock.model.wheels import (
    WheelInfo,
    member_name,
    parse_wheel_info,
    wheel_file_name,
    wheel_place,
    wheel_tags_part,
)

_LIBRARY = re.compile(r"\.(so(\.\d+)*|pyd|dylib)\Z")
_FOLDER_FAULTS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """How wheels are made.

    Attributes:
        target: whose files are packed.
        staging: an existing folder; a wheel has its final name there.
        compressor: how members are written.
        advance: called with the number of files done since the last call.
    """

    target: Target
    staging: str
    compressor: Compressor = FAST
    advance: Callable[[int], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """A wheel in the staging folder, or the reason why there is none.

    Attributes:
        path: the wheel; empty when there is none.
        wheel: its name, hash and size.
        content: content digest of what was packed.
        tracked: the same of what RECORD lists; differs where more was packed.
        files: what was packed, by place.
        mismatched: places whose bytes are not what RECORD says.
        reason: why there is no wheel.
    """

    path: str = ""
    wheel: WheelRef | None = None
    content: str = ""
    tracked: str = ""
    files: Mapping[str, Hashed] = field(default_factory=dict)
    mismatched: tuple[str, ...] = ()
    reason: str = ""


def rebuild(
    dist: Installed, packing: Packing, more: Mapping[str, str] | None = None
) -> Callable[[], Rebuilt]:
    """Packs the installed files of a distribution into a wheel, each read once.

    Args:
        more: absolute paths of further files, by place, that RECORD does not list.

    Returns:
        What reads the wheel back and judges it: something to do while the next one is packed.

    Raises:
        OSError: the staging folder cannot be written (disk full).
    """
    target = packing.target
    tracked, reason = content_paths(dist, target.layout)
    places = {**(more or {}), **tracked}
    info_text = _read(os.path.join(dist.path, "WHEEL"))
    if dist.reason or reason or info_text is None:
        return _none(dist.reason or reason or "no WHEEL file")
    info = parse_wheel_info(info_text)
    members, reason = _members(dist, places, info)
    if reason:
        return _none(reason)
    tags = wheel_tags_part(info.tags) if info.tag_set else _derived_tags(target, places)
    file = wheel_file_name(dist.name, dist.version, info.build, tags)
    path = os.path.join(packing.staging, file)
    try:
        written = write_wheel(
            path, list(members.values()), dist.dist_info, packing.advance, packing.compressor
        )
    except OSError as error:
        if error.errno in _FOLDER_FAULTS:
            raise
        return _none(f"'{error.filename}': {error.strerror or error}")
    packed = {place: written[member.name] for place, member in members.items()}
    return partial(_judged, dist, packing, path, (packed, tracked))


def _none(reason: str) -> Callable[[], Rebuilt]:
    return lambda: Rebuilt(reason=reason)


def _judged(
    dist: Installed,
    packing: Packing,
    path: str,
    content: tuple[Mapping[str, Hashed], Mapping[str, str]],
) -> Rebuilt:
    """The wheel read back: sound, whole, and with the content that was packed."""
    packed, tracked = content
    wheel = inspect_wheel(path, members=False, inflate=True)
    if wheel.errors:
        wrong = "; ".join(problem.what for problem in wheel.errors)
        return Rebuilt(reason=f"it makes no sound wheel: {wrong}")
    claimed = recorded_digests(dist, packing.target.layout)
    return Rebuilt(
        path=path,
        wheel=WheelRef(
            file=wheel.file,
            sha256=wheel.sha256,
            size=wheel.size,
            origin="rebuilt",
            compressor=packing.compressor.version,
        ),
        content=content_digest((place, found.hex) for place, found in packed.items()),
        tracked=content_digest((place, packed[place].hex) for place in tracked),
        files=packed,
        mismatched=tuple(
            sorted(
                place
                for place, found in packed.items()
                if not place.startswith("bin/") and claimed.get(place, found.hex) != found.hex
            )
        ),
    )


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _members(
    dist: Installed, places: Mapping[str, str], info: WheelInfo
) -> tuple[dict[str, Member], str]:
    """What to pack, by place; or the reason why it cannot be packed."""
    stem = dist.dist_info.removesuffix(".dist-info")
    members: dict[str, Member] = {}
    for place, path in places.items():
        try:
            status = os.stat(path)
            place.encode()
        except OSError as error:
            return {}, f"'{place}': {error.strerror or error}"
        except UnicodeEncodeError:
            return {}, f"{place!r}: the name is not UTF-8"
        if not stat.S_ISREG(status.st_mode):
            return {}, f"'{place}': not a file"
        executable = bool(status.st_mode & stat.S_IXUSR)
        script = place.startswith("bin/") and (executable or _names_python(path))
        name = member_name(place, stem, script=script, purelib=info.purelib)
        script = ".data/scripts/" in name
        if wheel_place(name, dist.name) != place:
            return {}, f"'{place}': no wheel can put it there"
        members[place] = Member(
            name=name,
            path=path,
            # whether it had one depends on who installed it: uv gives every script an exec bit
            executable=executable or script,
            script=script,
            size=status.st_size,
        )
    return members, ""


def _names_python(path: str) -> bool:
    """Whether installers rewrote the first line: then it is a script, exec bit or not."""
    try:
        with open(path, "rb") as file:
            return script_head(file.read(HEAD_BYTES))[1] > 0
    except OSError:
        return False


def _derived_tags(target: Target, places: Mapping[str, str]) -> str:
    """Tags for a WHEEL file without any: this interpreter and machine where there is compiled
    code (never manylinux: nobody checked that), else any."""
    if not any(_LIBRARY.search(place) or _is_elf(path) for place, path in places.items()):
        return "py3-none-any"
    own = (tag for tag in target.tags if not re.search("-(many|musl)linux", tag))
    return next(own, target.tags[0])


def _is_elf(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False
