"""What the shared objects of a distribution are linked to: the sign of a vendor's build that has no
label.

Only the dynamic segment is read, a few kilobytes of each object, whatever its size.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Collection, Iterator
from typing import BinaryIO

from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile

from envlock.adapters.elf import DAMAGE
from envlock.adapters.installed import Installed

_HEAD = struct.Struct("<4sBB10xHHIQQQIHHH")  # Elf64_Ehdr up to the number of program headers
_PROGRAM = struct.Struct("<IIQQQQQQ")  # Elf64_Phdr: type, flags, offset, address, …, sizes
_TAG = struct.Struct("<qQ")  # Elf64_Dyn
_MAGIC = b"\x7fELF"
_PLAIN = (2, 1)  # 64 bits, little endian
_LOAD, _DYNAMIC = 1, 2
_NEEDED, _STRINGS, _STRINGS_SIZE = 1, 5, 10
_MOST = 1 << 20  # bytes of a table; what claims more is damaged
_OBJECT = re.compile(r"\.so(\.\d+)*\Z")
_VERSION = re.compile(r"(\.so)[.\d]*\Z")


def stem(library: str) -> str:
    """``libamdhip64.so`` of ``libamdhip64.so.5``."""
    return _VERSION.sub(r"\1", library)


def runtime_library(dist: Installed, stems: Collection[str]) -> str:
    """The first of the vendor's libraries that an object of a distribution needs and that the
    distribution does not bring itself; empty when there is none.

    Args:
        stems: names without version, as in a profile.
    """
    objects = [row.path for row in dist.rows or () if _OBJECT.search(row.path)] if stems else []
    wanted = set(stems) - {stem(os.path.basename(path)) for path in objects}
    if not wanted:
        return ""
    for path in objects:
        for library in needed(os.path.join(dist.site, path)):
            if stem(library) in wanted:
                return library
    return ""


def needed(path: str) -> tuple[str, ...]:
    """Names of the libraries that an object needs, in order. Never raises: what is broken, or no
    object at all, needs nothing."""
    try:
        with open(path, "rb", buffering=0) as file:
            found = _plain(file)
            return tuple(_other(file) if found is None else found)
    except (OSError, *DAMAGE):
        return ()


def _plain(file: BinaryIO) -> list[str] | None:
    """None for an object of another kind than ours are all of."""
    head = file.read(_HEAD.size)
    if head[:4] != _MAGIC:
        return []
    _, width, order, _, _, _, _, table, _, _, _, size, count = _HEAD.unpack(head)
    if (width, order) != _PLAIN or size != _PROGRAM.size:
        return None
    programs = list(_PROGRAM.iter_unpack(_piece(file, table, size * count)))
    loads = [(p[3], p[2], p[5]) for p in programs if p[0] == _LOAD]
    dynamic = next(((p[2], p[5]) for p in programs if p[0] == _DYNAMIC), None)
    if dynamic is None:
        return []
    data = _piece(file, *dynamic)
    tags = list(_TAG.iter_unpack(data[: len(data) // _TAG.size * _TAG.size]))
    said = dict(tags)
    strings, length = said.get(_STRINGS), said.get(_STRINGS_SIZE, 0)
    place = next((off + strings - at for at, off, n in loads if strings and at <= strings < at + n),
                 None)  # fmt: skip
    if place is None:
        return []
    return [_name(file, place + value, length - value) for tag, value in tags if tag == _NEEDED]


def _piece(file: BinaryIO, start: int, size: int) -> bytes:
    if not 0 <= size <= _MOST:
        raise ValueError(f"a table of {size} bytes")
    file.seek(start)
    return file.read(size)


def _name(file: BinaryIO, start: int, most: int) -> str:
    return _piece(file, start, max(0, min(most, 256))).split(b"\0")[0].decode("utf-8", "replace")


def _other(file: BinaryIO) -> Iterator[str]:
    file.seek(0)
    for segment in ELFFile(file).iter_segments():
        if isinstance(segment, DynamicSegment):
            for tag in segment.iter_tags():
                if tag.entry.d_tag == "DT_NEEDED":
                    yield str(getattr(tag, "needed", ""))
