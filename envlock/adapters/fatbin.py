"""Which device architectures a shared object has code for, read from its sections alone.

HIP keeps bundles in ``.hip_fatbin`` (clang's offload bundles, plain or compressed), CUDA keeps
containers in ``.nv_fatbin``. Headers are followed from one to the next: the code itself, hundreds
of megabytes, is not read.
"""

from __future__ import annotations

import io
import mmap
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from elftools.elf.elffile import ELFFile

from envlock.adapters.elf import DAMAGE
from envlock.adapters.zstd import DamagedStream, decompressing

_HIP, _NVIDIA = ".hip_fatbin", ".nv_fatbin"
_BUNDLE = b"__CLANG_OFFLOAD_BUNDLE__"
_COMPRESSED = b"CCOB"
_ZLIB, _ZSTD = 0, 1  # llvm::compression::Format
_HEAD = 64 * 1024  # bytes of a compressed bundle that hold its table
_ENTRIES = 4096  # more code objects than any bundle has: what claims more is no bundle
_TARGET = re.compile(rb"gfx[0-9a-f]{3,4}\b")
_CONTAINER = 0xBA55ED50
_CONTAINER_HEAD = struct.Struct("<IHHQ")  # magic, version, bytes of the header, bytes behind it
_ENTRY_HEAD = struct.Struct("<HHIQ")  # kind, unknown, bytes of the header, bytes of the code
_ARCH_AT = 28  # offset of the architecture in an entry: 90 for sm_90
_PTX, _BINARY = 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """Code for devices.

    Attributes:
        targets: ``gfx936``, ``sm_90``; of PTX, which newer devices compile, ``compute_80``.
        sections: whether there is a section for code at all.
    """

    targets: frozenset[str] = frozenset()
    sections: bool = False


def read_code(path: str) -> Code:
    """What an object has. Never raises: what cannot be read has nothing."""
    try:
        with open(path, "rb") as file:
            spans = list(_spans(ELFFile(file)))
            if not spans:
                return Code()
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
                found = {
                    target
                    for name, start, end in spans
                    for target in (_hip if name == _HIP else _nvidia)(view, start, end)
                }
    except (OSError, *DAMAGE):
        return Code()
    return Code(targets=frozenset(found), sections=True)


def _spans(whole: ELFFile) -> Iterator[tuple[str, int, int]]:
    for name in (_HIP, _NVIDIA):
        section = whole.get_section_by_name(name)
        if section is not None and section["sh_type"] != "SHT_NOBITS":
            yield name, section["sh_offset"], section["sh_offset"] + section["sh_size"]


def _hip(view: mmap.mmap, start: int, end: int) -> Iterator[str]:
    """Targets of every bundle; where there is none, every name of a target in the section."""
    at, seen = start, False
    while (place := _next(view, at, end)) >= 0:
        seen = True
        if view[place : place + len(_COMPRESSED)] == _COMPRESSED:
            names, at = _unpacked(view, place, end)
        else:
            names, at = _table(view[place : min(end, place + _HEAD)], place)
        yield from names
    if not seen:
        yield from {found.decode() for found in _TARGET.findall(view[start:end])}


def _next(view: mmap.mmap, at: int, end: int) -> int:
    """Where the next bundle begins, -1 without one. It mostly follows at once."""
    for stop in (min(end, at + _HEAD), end):
        found = [
            place for kind in (_BUNDLE, _COMPRESSED) if (place := view.find(kind, at, stop)) >= 0
        ]
        if found:
            return min(found)
    return -1


def _table(head: bytes, at: int) -> tuple[list[str], int]:
    """Targets of a plain bundle, and where the next one can begin."""
    names, last = [], len(_BUNDLE)
    (count,) = struct.unpack_from("<Q", head, len(_BUNDLE))
    place = len(_BUNDLE) + 8
    for _ in range(min(count, _ENTRIES)):
        if place + 24 > len(head):
            break  # damaged
        offset, size, length = struct.unpack_from("<QQQ", head, place)
        triple = head[place + 24 : place + 24 + length]
        names += [found.decode() for found in _TARGET.findall(triple)]
        place += 24 + length
        last = max(last, offset + size)
    return names, at + max(last, place)


def _unpacked(view: mmap.mmap, at: int, end: int) -> tuple[list[str], int]:
    """The same of a compressed bundle (versions 1 to 3 of the header)."""
    version, method = struct.unpack_from("<HH", view, at + 4)
    # after magic, version and method: (file size) unpacked size, hash of 8 bytes
    head = {1: 20, 2: 24}.get(version, 32)
    size = 0  # version 1 does not say how long it is
    if version >= 2:
        (size,) = struct.unpack_from("<I" if version == 2 else "<Q", view, at + 8)
    # 256 KiB hold at least one block of either compressor, and that the table
    packed = view[at + head : min(end, at + (size or end - at), at + head + 4 * _HEAD)]
    try:
        table = _inflated(method, packed)
        names, _ = _table(table, 0) if table.startswith(_BUNDLE) else ([], 0)
    except (zlib.error, DamagedStream, struct.error):
        names = []
    return names, at + max(size, head)


def _inflated(method: int, packed: bytes) -> bytes:
    if method == _ZSTD:
        return decompressing(io.BytesIO(packed)).read(_HEAD)
    return zlib.decompressobj().decompress(packed, _HEAD) if method == _ZLIB else b""


def _nvidia(view: mmap.mmap, start: int, end: int) -> Iterator[str]:
    at = start
    while at + _CONTAINER_HEAD.size <= end:
        magic, _version, head, size = _CONTAINER_HEAD.unpack_from(view, at)
        if magic != _CONTAINER:
            at += 8  # padding between containers
            continue
        yield from _entries(view, at + head, min(end, at + head + size))
        at += head + size + (-size % 8)


def _entries(view: mmap.mmap, at: int, end: int) -> Iterator[str]:
    while at + _ARCH_AT + 4 <= end:
        kind, _unknown, head, size = _ENTRY_HEAD.unpack_from(view, at)
        (architecture,) = struct.unpack_from("<I", view, at + _ARCH_AT)
        if not head:
            return
        if kind in (_PTX, _BINARY):
            yield f"{'compute' if kind == _PTX else 'sm'}_{architecture}"
        at += head + size
