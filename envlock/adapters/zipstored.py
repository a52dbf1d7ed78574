"""Zip structures for members that are stored as they are, written front to back.

``zipfile`` wants to know where its file starts and seeks back to fix its headers; a kit that is cut
into parts while it is written can do neither.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from envlock.adapters.zipmember import LOCAL

_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_END64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR64 = struct.Struct("<4sIQI")
_FOLLOWS = struct.Struct("<4s3I")
_MAX32, _MAX16 = 0xFFFFFFFF, 0xFFFF
_LARGE = _MAX32 - (_MAX32 >> 10)  # as for the compressed form, so that both say sizes alike
_FIRST_DAY = 0x21  # 1980-01-01 00:00, the first date that a zip can say
_UTF8, _LATER = 0x800, 0x8
_UNIX = 3 << 8
#: What a member has in front of its bytes, beside its name.
HEAD = LOCAL.size
#: The largest archive whose directory needs no 64-bit numbers.
SMALL = _MAX32 - 1


@dataclass(slots=True, kw_only=True)
class Entry:
    """A stored member: name, where its header is, size and CRC of its bytes.

    Attributes:
        later: size and CRC are not known yet when the header is written; they follow the bytes.
    """

    name: str
    executable: bool = False
    offset: int = 0
    size: int = 0
    crc: int = 0
    later: bool = False

    @property
    def _large(self) -> bool:
        return self.size >= _LARGE and not self.later

    def _common(self) -> tuple[int, ...]:
        flags = (0 if self.name.isascii() else _UTF8) | (_LATER if self.later else 0)
        return 45 if self._large else 20, flags, 0, 0, _FIRST_DAY

    def local(self) -> bytes:
        """Local file header (APPNOTE 4.3.7)."""
        name = self.name.encode()
        extra = struct.pack("<2H2Q", 1, 16, self.size, self.size) if self._large else b""
        shown = 0 if self.later else _MAX32 if self._large else self.size
        crc = 0 if self.later else self.crc
        head = LOCAL.pack(b"PK\3\4", *self._common(), crc, shown, shown, len(name), len(extra))
        return head + name + extra

    def follows(self) -> bytes:
        """Data descriptor (APPNOTE 4.3.9) of a member whose size came later."""
        size = min(self.size, _MAX32)
        return _FOLLOWS.pack(b"PK\7\x08", self.crc, size, size) if self.later else b""

    def central(self) -> bytes:
        """Directory entry (APPNOTE 4.3.12); only what is 0xFFFFFFFF stands in the extra field."""
        name = self.name.encode()
        wide = [self.size, self.size] if self._large else []
        wide += [self.offset] if self.offset >= _MAX32 else []
        extra = struct.pack(f"<2H{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
        version, *rest = self._common()
        shown = _MAX32 if self._large else self.size
        mode = (0o100755 if self.executable else 0o100644) << 16
        head = _CENTRAL.pack(
            b"PK\1\2", _UNIX | 20, 45 if wide else version, *rest, self.crc, shown, shown,
            len(name), len(extra), 0, 0, 0, mode, min(self.offset, _MAX32),
        )  # fmt: skip
        return head + name + extra


def directory(entries: Sequence[Entry], start: int) -> bytes:
    """The directory and the end records; 64-bit ones where a number does not fit.

    Args:
        start: where the directory is, counted as the offsets of the entries are.
    """
    listed = b"".join(entry.central() for entry in entries)
    count, size = len(entries), len(listed)
    tail = b""
    if count >= _MAX16 or start >= _MAX32 or size >= _MAX32:
        tail = _END64.pack(b"PK\6\6", 44, _UNIX | 45, 45, 0, 0, count, count, size, start)
        tail += _LOCATOR64.pack(b"PK\6\7", 0, start + size, 1)
    count, size, start = min(count, _MAX16), min(size, _MAX32), min(start, _MAX32)
    return listed + tail + _END.pack(b"PK\5\6", 0, 0, count, count, size, start, 0)
