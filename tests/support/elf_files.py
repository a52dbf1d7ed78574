"""Shared objects without a compiler: as much of one as says which libraries it needs."""

from __future__ import annotations

import struct
from collections.abc import Sequence

_HEAD, _PROGRAM, _TAG = "<16sHHIQQQIHHHHHH", "<IIQQQQQQ", "<qQ"
_LOAD, _DYNAMIC = 1, 2
_NEEDED, _STRTAB, _STRSZ, _END = 1, 5, 10, 0


def shared_object(needed: Sequence[str], *, base: int = 0) -> bytes:
    """A 64-bit object; ``base`` is how far its addresses are from its places in the file."""
    names, offsets = b"\0", []
    for name in needed:
        offsets.append(len(names))
        names += name.encode() + b"\0"
    place = struct.calcsize(_HEAD) + 2 * struct.calcsize(_PROGRAM)
    tags = [(_NEEDED, offset) for offset in offsets]
    count = len(tags) + 3
    strings = place + count * struct.calcsize(_TAG)
    tags += [(_STRTAB, strings + base), (_STRSZ, len(names)), (_END, 0)]
    dynamic = b"".join(struct.pack(_TAG, *tag) for tag in tags)
    size = strings + len(names)
    head = struct.pack(
        _HEAD, b"\x7fELF\x02\x01\x01" + bytes(9), 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 64, 0, 0
    )
    load = struct.pack(_PROGRAM, _LOAD, 5, 0, base, base, size, size, 4096)
    size = len(dynamic)
    table = struct.pack(_PROGRAM, _DYNAMIC, 6, place, place + base, place + base, size, size, 8)
    return head + load + table + dynamic + names
