"""Writes a wheel: the same members give the same bytes, whatever the path and the worker count.

The zip structures are written here and not by ``zipfile``: that compresses in the caller's thread,
at 30 MB a second, and has no door for bytes that are compressed already. Large members are cut
into chunks that are deflated each by itself, with what stands before it as history, and put one
after the other, which is one valid deflate stream; so one library of 400 MB keeps every CPU busy,
and memory holds a few chunks at most.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import struct
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import BinaryIO

from isal import isal_zlib

from envlock.adapters.deflating import FAST, Compressor
from envlock.adapters.files import Hashed, workers
from envlock.adapters.zipmember import LOCAL
from envlock.model.record import HEAD_BYTES, script_head
from envlock.model.wheels import encode_hash

#: Changing it changes every wheel: a compressor's bytes depend on what one call is given.
CHUNK = 1024 * 1024
_READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_WINDOW = 32 * 1024  # what deflate can refer back to
_BATCH_FILES, _BATCH_BYTES = 64, 2 * CHUNK
_FIRST_DAY = 0x21  # 1980-01-01 00:00, the first date that a zip can say
_UTF8 = 0x800
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_END64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR64 = struct.Struct("<4sIQI")
_MAX32, _MAX16 = 0xFFFFFFFF, 0xFFFF
#: From this size on a member gets 64-bit sizes, decided before its compressed size is known;
#: deflate adds at most 5 bytes for each 16 KiB block (RFC 1951 3.2.4).
_LARGE = _MAX32 - (_MAX32 >> 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A file to put into a wheel.

    Attributes:
        name: as the wheel spells it.
        path: where its bytes are.
        executable: its exec bit.
        script: its first line becomes ``#!python`` where it names a Python.
        size: bytes, where they are known already; only chooses how it is read.
    """

    name: str
    path: str
    executable: bool = False
    script: bool = False
    size: int | None = None


@dataclass(frozen=True, slots=True)
class _Packed:
    """A whole small member, compressed: digest (hexadecimal), size and CRC of what was read."""

    hex: str
    size: int
    crc: int
    data: bytes


def write_wheel(
    path: str,
    members: Sequence[Member],
    dist_info: str,
    advance: Callable[[int], None] | None = None,
    compressor: Compressor = FAST,
) -> dict[str, Hashed]:
    """Writes a wheel with a RECORD computed from the bytes read, and makes it durable.

    Args:
        path: the file to write; replaced if it is there. After an error it may be half a file.
        members: everything but RECORD, in any order.
        dist_info: the ``.dist-info`` folder's name; its members come last, as the specification
            recommends.
        advance: called with the number of members done since the last call.
        compressor: how its members are written.

    Returns:
        Each member's sha256, size and exec bit, of the bytes that went into the wheel.

    Raises:
        OSError: a member cannot be read, or the disk is full.
    """
    inside = f"{dist_info}/"
    ordered = sorted(members, key=lambda m: (m.name.startswith(inside), m.name.encode()))
    with open(path, "wb") as file, ThreadPoolExecutor(workers()) as pool:
        archive = _Archive(file, compressor)
        _Packer(archive, pool, advance or (lambda count: None)).pack(ordered)
        record = f"{inside}RECORD"
        text = _record_text(archive.rows, record).encode()
        archive.add(record, False, _pack_bytes(text, compressor))
        archive.finish()
        file.flush()
        os.fsync(file.fileno())
    modes = {member.name: member.executable for member in members}
    return {name: Hashed(hexa, size, modes[name]) for name, hexa, size in archive.rows[:-1]}


def _record_text(rows: Sequence[tuple[str, str, int]], record: str) -> str:
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerows((name, encode_hash(hexa), size) for name, hexa, size in rows)
    lines.writerow((record, "", ""))
    return text.getvalue()


def _pack_bytes(data: bytes, compressor: Compressor) -> _Packed:
    return _Packed(
        hashlib.sha256(data).hexdigest(),
        len(data),
        isal_zlib.crc32(data),
        compressor.whole(memoryview(data)),
    )


def _pack_batch(batch: Sequence[Member], compressor: Compressor) -> list[_Packed]:
    return [_pack_bytes(_read_small(member), compressor) for member in batch]


def _read_small(member: Member) -> bytes:
    descriptor = os.open(member.path, _READ)
    try:  # an open() takes twice as long, and there are 12,000 of them
        data = os.read(descriptor, CHUNK + 1)
        while more := os.read(descriptor, CHUNK):  # some file systems read short
            data += more
    finally:
        os.close(descriptor)
    shown, length = script_head(data[:HEAD_BYTES]) if member.script else (b"", 0)
    return shown + data[length:] if length else data


def _read_chunks(member: Member, buffers: _Buffers) -> Iterator[tuple[bytearray, int]]:
    """A member's bytes in chunks of exactly CHUNK but the last, counted after the first line is
    replaced: its length says where the target is, the wheel must not."""
    with open(member.path, "rb", buffering=0) as file:
        start = b""
        if member.script:
            start, length = script_head(file.read(HEAD_BYTES))
            file.seek(length)
        while True:
            buffer = buffers.take()
            buffer[: len(start)] = start
            view, filled = memoryview(buffer), len(start)
            while filled < CHUNK and (count := file.readinto(view[filled:])):
                filled += count
            if not filled:
                return
            start = b""
            yield buffer, filled


class _Buffers:
    """Buffers used again: a fresh one for each chunk costs as many page faults as bytes / 4096."""

    def __init__(self) -> None:
        self._free: list[bytearray] = []

    def take(self) -> bytearray:
        return self._free.pop() if self._free else bytearray(CHUNK)

    def give(self, buffer: bytearray) -> None:
        self._free.append(buffer)


class _Packer:
    """Reads and compresses ahead with all workers, writes in order, holds a few chunks."""

    def __init__(
        self, archive: _Archive, pool: ThreadPoolExecutor, advance: Callable[[int], None]
    ) -> None:
        self._archive, self._pool, self._advance = archive, pool, advance
        self._ahead = 4 * workers()
        self._pending: deque[Callable[[], None]] = deque()
        self._buffers = _Buffers()

    def pack(self, members: Sequence[Member]) -> None:
        batch: list[Member] = []
        room = _BATCH_BYTES
        for member in members:
            size = os.stat(member.path).st_size if member.size is None else member.size
            if size > CHUNK:
                self._flush(batch)
                batch, room = [], _BATCH_BYTES
                self._stream(member, size)
                continue
            batch.append(member)
            room -= size
            if room < 0 or len(batch) == _BATCH_FILES:
                self._flush(batch)
                batch, room = [], _BATCH_BYTES
        self._flush(batch)
        self._write_down_to(0)

    def _later(self, write: Callable[[], None]) -> None:
        self._pending.append(write)
        self._write_down_to(self._ahead)

    def _write_down_to(self, left: int) -> None:
        while len(self._pending) > left:
            self._pending.popleft()()

    def _flush(self, batch: Sequence[Member]) -> None:
        if batch:
            future = self._pool.submit(_pack_batch, batch, self._archive.compressor)
            self._later(lambda: self._write_batch(batch, future))

    def _write_batch(self, batch: Sequence[Member], future: Future[list[_Packed]]) -> None:
        for member, packed in zip(batch, future.result(), strict=True):
            self._archive.add(member.name, member.executable, packed)
        self._advance(len(batch))

    def _stream(self, member: Member, size: int) -> None:
        archive, total, read, crc = self._archive, hashlib.sha256(), 0, 0
        self._later(lambda: archive.begin(member.name, member.executable, size >= _LARGE))
        history = b""
        for buffer, filled in _read_chunks(member, self._buffers):
            chunk = memoryview(buffer)[:filled]
            total.update(chunk)
            crc = isal_zlib.crc32(chunk, crc)
            read += filled
            future = self._pool.submit(self._deflate_chunk, buffer, filled, history)
            history = bytes(chunk[-_WINDOW:])
            self._later(lambda future=future: archive.write(future.result()))  # type: ignore[misc]
        self._later(lambda: archive.end(total.hexdigest(), read, crc))
        self._later(lambda: self._advance(1))

    def _deflate_chunk(self, buffer: bytearray, filled: int, history: bytes) -> bytes:
        chunk = memoryview(buffer)[:filled]
        packed = self._archive.compressor.chunk(chunk, history)
        self._buffers.give(buffer)
        return packed


@dataclass(slots=True)
class _Entry:
    """A member of the archive, as its headers say it."""

    name: bytes
    mode: int
    offset: int
    large: bool
    method: int
    crc: int = 0
    size: int = 0
    packed: int = 0

    def _common(self) -> tuple[int, ...]:
        flags = 0 if self.name.isascii() else _UTF8
        sizes = (_MAX32, _MAX32) if self.large else (self.packed, self.size)
        return (45 if self.large else 20, flags, self.method, 0, _FIRST_DAY, self.crc, *sizes)

    def local(self) -> bytes:
        """Local file header (APPNOTE 4.3.7)."""
        extra = struct.pack("<2H2Q", 1, 16, self.size, self.packed) if self.large else b""
        head = LOCAL.pack(b"PK\3\4", *self._common(), len(self.name), len(extra))
        return head + self.name + extra

    def central(self) -> bytes:
        """Directory entry (APPNOTE 4.3.12); only what is 0xFFFFFFFF stands in the extra field."""
        wide = [self.size, self.packed] if self.large else []
        if self.offset >= _MAX32:
            wide.append(self.offset)
        extra = struct.pack(f"<2H{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
        version, *rest = self._common()
        made_by = 3 << 8 | 20  # a Unix, so that the mode counts
        head = _CENTRAL.pack(
            b"PK\1\2", made_by, 45 if wide else version, *rest, len(self.name), len(extra),
            0, 0, 0, self.mode << 16, min(self.offset, _MAX32),
        )  # fmt: skip
        return head + self.name + extra


class _Archive:
    """A zip archive being written, member by member."""

    def __init__(self, file: BinaryIO, compressor: Compressor) -> None:
        self._file = file
        self.compressor = compressor
        self._position = 0  # asking the file for it costs a system call for each member
        self._entries: list[_Entry] = []
        self.rows: list[tuple[str, str, int]] = []  # name, digest, size: what RECORD needs

    def add(self, name: str, executable: bool, packed: _Packed) -> None:
        """A whole member."""
        entry = self._entry(name, executable, large=False)
        entry.crc, entry.size, entry.packed = packed.crc, packed.size, len(packed.data)
        self._put(entry.local() + packed.data)
        self.rows.append((name, packed.hex, packed.size))

    def begin(self, name: str, executable: bool, large: bool) -> None:
        """A member that comes in chunks; its header is written again at its end."""
        self._put(self._entry(name, executable, large).local())
        self.rows.append((name, "", 0))

    def write(self, data: bytes) -> None:
        """More of the member begun last."""
        self._put(data)
        self._entries[-1].packed += len(data)

    def end(self, hexa: str, size: int, crc: int) -> None:
        """Ends the member begun last.

        Raises:
            OSError: it grew while it was read, beyond what its header can say.
        """
        self.write(self.compressor.end)
        entry = self._entries[-1]
        entry.crc, entry.size = crc, size
        if not entry.large and max(size, entry.packed) >= _MAX32:
            raise OSError(0, "it grew while it was read", entry.name.decode())
        self._file.seek(entry.offset)
        self._file.write(entry.local())
        self._file.seek(self._position)
        self.rows[-1] = (self.rows[-1][0], hexa, size)

    def _entry(self, name: str, executable: bool, large: bool) -> _Entry:
        mode = 0o100755 if executable else 0o100644
        entry = _Entry(name.encode(), mode, self._position, large, self.compressor.method)
        self._entries.append(entry)
        return entry

    def _put(self, data: bytes) -> None:
        self._file.write(data)
        self._position += len(data)

    def finish(self) -> None:
        """The directory and the end records; 64-bit ones where a number does not fit."""
        start = self._position
        for entry in self._entries:
            self._put(entry.central())
        end = self._position
        count, size = len(self._entries), end - start
        if count >= _MAX16 or start >= _MAX32 or size >= _MAX32:
            self._file.write(
                _END64.pack(b"PK\6\6", 44, 3 << 8 | 45, 45, 0, 0, count, count, size, start)
            )
            self._file.write(_LOCATOR64.pack(b"PK\6\7", 0, end, 1))
        count, size, start = min(count, _MAX16), min(size, _MAX32), min(start, _MAX32)
        self._file.write(_END.pack(b"PK\5\6", 0, 0, count, count, size, start, 0))
