"""The directory of a wheel's zip archive, judged before anything is inflated.

pip, uv and ``unzip`` read an archive in different ways. What only one of them would see, or what
they would unpack to different files, is a problem here.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Sequence
from itertools import pairwise
from zipfile import ZIP_STORED, ZipInfo

from envlock.adapters.zipmember import kind_problem, least_end, open_archive, read_at
from envlock.model.wheels import unsafe_path

#: Called with the code of a problem, its text, and its level.
Add = Callable[..., None]
_END = b"PK\5\6"  # end of central directory record (APPNOTE 4.3.16): 22 bytes and a comment
_END_BYTES = 22
_MOST_COMMENT = 0xFFFF
#: One byte of deflate stands for at most 258 bytes in a quarter of a byte's codes; zlib's own
#: documentation gives 1032:1 as the limit. The slack is for members of a few bytes.
_MOST_RATIO, _SLACK = 1032, 4096
#: What Python imports and what installers read: there another case is another program.
_MATTERS = re.compile(r"(\.(py|pyc|pyi|pth|so|pyd|dll)|\.dist-info/[^/]*)\Z", re.IGNORECASE)


def read_directory(descriptor: int, add: Add) -> list[ZipInfo]:
    """The entries of an open archive, with what is wrong around them.

    Raises:
        one of :data:`envlock.adapters.zipmember.NO_ZIP`: it is no zip archive, or is cut short.
    """
    with open_archive(descriptor) as archive:
        infos = archive.infolist()
    before = min((info.header_offset for info in infos), default=0)
    if before:
        add("zip", f"{before} bytes stand before the archive")
    size = os.fstat(descriptor).st_size
    tail = read_at(descriptor, _END_BYTES + _MOST_COMMENT, max(0, size - 22 - _MOST_COMMENT))
    after, comment = _after_end(tail)
    if after:
        add("zip", f"{after} bytes stand after the archive")
    if _END[:2] in comment:
        add("zip", "the archive's comment looks like another archive")
    return infos


def _after_end(tail: bytes) -> tuple[int, bytes]:
    """How many bytes follow the end record, and its comment.

    Args:
        tail: the end of a file in which ``zipfile`` found the record.
    """
    at = len(tail) - _END_BYTES
    if tail[at : at + 4] != _END or tail[-2:] != b"\0\0":  # zipfile's own order
        at = tail.rfind(_END)
    end = at + _END_BYTES
    length = int.from_bytes(tail[end - 2 : end], "little")
    return len(tail) - end - length, tail[end : end + length]


def regular_members(infos: Sequence[ZipInfo], add: Add) -> dict[str, ZipInfo]:
    """The regular files that may be read, by name; everything else is a problem."""
    found: dict[str, ZipInfo] = {}
    for info in infos:
        name = info.orig_filename
        if bad := unsafe_path(name):
            add("path", f"'{name}': {bad}")
        elif bad := kind_problem(info):
            add("kind", f"'{name}' is {bad}")
        elif info.filename in found:
            add("duplicate", f"'{name}' is in the archive twice")
        elif not info.is_dir():
            found[info.filename] = info
            if bad := _size_problem(info):
                add("size", f"'{name}' {bad}")
    _judge_bytes(infos, add)
    _judge_names(found, add)
    return found


def _size_problem(info: ZipInfo) -> str:
    if info.compress_type == ZIP_STORED:
        if info.file_size != info.compress_size:
            return f"is stored, and has two sizes: {info.compress_size} and {info.file_size} bytes"
    elif info.file_size > info.compress_size * _MOST_RATIO + _SLACK:
        return f"claims {info.file_size} bytes out of {info.compress_size}: no deflate can do that"
    return ""


def _judge_bytes(infos: Sequence[ZipInfo], add: Add) -> None:
    """Two members that share compressed bytes are how a small archive becomes a huge one."""
    ordered = sorted(infos, key=lambda info: info.header_offset)
    for info, after in pairwise(ordered):
        if least_end(info) > after.header_offset:
            add("zip", f"'{info.filename}' and '{after.filename}' share bytes of the archive")


def _judge_names(members: Sequence[str] | dict[str, ZipInfo], add: Add) -> None:
    """Names that are one where case, or the composition of letters, does not count; and names
    that are a file and a folder."""
    folded: dict[str, str] = {}
    folders: set[str] = set()
    for name in members:
        other = folded.setdefault(
            name if name.isascii() and name.islower() else _folded(name), name
        )
        if other != name:
            level = "error" if _MATTERS.search(name) else "warning"
            add("case", f"'{other}' and '{name}' are one file where case does not count", level)
        end = name.rfind("/")
        while end > 0 and name[:end] not in folders:
            folders.add(name[:end])
            end = name.rfind("/", 0, end)
    for name in sorted(folders.intersection(members)):
        add("duplicate", f"'{name}' is a file and a folder")


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
