"""Members of a zip archive, read through a descriptor that many workers share.

``zipfile`` reads the directory; the bytes are read here: positioned reads need no lock and no
seeking, ISA-L inflates twice as fast as zlib, and nothing larger than a piece is held in memory.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import stat
import struct
import threading
from collections.abc import Iterator
from typing import Any, cast
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from isal import igzip_lib, isal_zlib

#: What reading a damaged archive raises.
DAMAGED: tuple[type[Exception], ...] = (
    BadZipFile,
    cast("type[Exception]", igzip_lib.IsalError),  # its stub calls it an instance
    EOFError,
    OSError,
)
#: What ``zipfile`` raises for a directory it cannot read.
NO_ZIP: tuple[type[Exception], ...] = (*DAMAGED, NotImplementedError, ValueError, struct.error)
#: The fixed part of a local file header (APPNOTE 4.3.7).
LOCAL = struct.Struct("<4s5H3I2H")
_BLOCK = 256 * 1024  # compressed bytes read at once
_PIECE = 256 * 1024  # inflated bytes held at once: what fits a core's cache is hashed from there
_USUAL_EXTRA = 64  # bytes of a local header's extra field that are read along
_UTF8 = 0x800
_ENCRYPTED = 0x1


_seeking = threading.Lock()


def open_shared(path: str) -> int:
    """A descriptor for :func:`read_at`.

    Raises:
        OSError: it cannot be read.
    """
    flags = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    return os.open(path, flags)


def read_at(descriptor: int, count: int, position: int) -> bytes:
    """Bytes from a place of an open file, for many workers at once; Windows has no ``pread``."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, count, position)
    with _seeking:  # type: ignore[unreachable,unused-ignore]
        os.lseek(descriptor, position, os.SEEK_SET)
        return os.read(descriptor, count)


class _View(io.RawIOBase):
    """An open file with a position of its own: many readers of one descriptor share none."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_CUR:
            offset += self._position
        elif whence == os.SEEK_END:
            offset += os.fstat(self._descriptor).st_size
        if offset < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self._position = offset
        return offset

    def readinto(self, buffer: Any) -> int:
        target = memoryview(buffer).cast("B")
        data = read_at(self._descriptor, len(target), self._position)
        target[: len(data)] = data
        self._position += len(data)
        return len(data)


def open_archive(descriptor: int) -> ZipFile:
    """The archive behind a shared descriptor, whose position stays where it is.

    Raises:
        one of :data:`NO_ZIP`: it is no zip archive, or is cut short.
    """
    return ZipFile(io.BufferedReader(_View(descriptor)))


def raw_name(info: ZipInfo) -> bytes:
    """A member's name as the archive spells it."""
    return info.orig_filename.encode("utf-8" if info.flag_bits & _UTF8 else "cp437")


def is_executable(info: ZipInfo) -> bool:
    """Whether installing it sets the exec bit.

    pip's rule: the mode counts only where it says that this is a regular file.
    """
    mode = info.external_attr >> 16
    return stat.S_ISREG(mode) and bool(mode & 0o111)


def kind_problem(info: ZipInfo) -> str:
    """Why a member is none that can be installed; empty when it can be."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind == stat.S_IFLNK:
        return "a symlink"
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "a special file"
    if info.flag_bits & _ENCRYPTED:
        return "encrypted"
    if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        return f"compressed in a way that not every installer reads ({info.compress_type})"
    return ""


def least_end(info: ZipInfo) -> int:
    """Where a member's bytes end at the earliest."""
    return info.header_offset + LOCAL.size + len(raw_name(info)) + info.compress_size


def _data_start(descriptor: int, info: ZipInfo) -> int:
    name = raw_name(info)
    header = read_at(descriptor, LOCAL.size + len(name), info.header_offset)
    return info.header_offset + _after_header(header, name)


def _after_header(block: bytes, name: bytes) -> int:
    """Where a member's bytes begin in a block that begins with its local header."""
    end = LOCAL.size + len(name)
    if len(block) < end or block[:4] != b"PK\3\4":
        raise BadZipFile("its header is damaged or cut off")
    *_, name_length, extra_length = LOCAL.unpack_from(block)
    if name_length != len(name) or block[LOCAL.size : end] != name:
        raise BadZipFile("its header has another name than the directory")
    return end + int(extra_length)


def _blocks(descriptor: int, info: ZipInfo) -> Iterator[bytes]:
    position, left = _data_start(descriptor, info), info.compress_size
    while left:
        block = read_at(descriptor, min(left, _BLOCK), position)
        if not block:
            raise BadZipFile("the archive is cut off")
        position += len(block)
        left -= len(block)
        yield block


def _inflate(blocks: Iterator[bytes]) -> Iterator[bytes]:
    inflater = igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_DEFLATE)
    for block in blocks:
        if inflater.eof:
            raise BadZipFile("it goes on after its end")
        piece = inflater.decompress(block, _PIECE)
        while piece:
            yield piece
            if inflater.eof or inflater.needs_input:
                break
            piece = inflater.decompress(b"", _PIECE)
    if not inflater.eof or inflater.unused_data:
        raise BadZipFile("its compressed bytes do not end where they should")


def read_member(descriptor: int, info: ZipInfo) -> Iterator[bytes]:
    """The bytes of a member, piece by piece; the first piece holds its first 8 KiB or all of it.

    Raises:
        one of :data:`DAMAGED`: at the latest after the last piece, when size or CRC are wrong.
            No more than a piece beyond the size that the directory states is inflated.
    """
    blocks = _blocks(descriptor, info)
    size = crc = 0
    for piece in blocks if info.compress_type == ZIP_STORED else _inflate(blocks):
        size += len(piece)
        if size > info.file_size:
            raise BadZipFile("it is longer than the directory says")
        crc = isal_zlib.crc32(piece, crc)
        yield piece
    _check(info, size, crc)


def read_whole(descriptor: int, info: ZipInfo) -> bytes:
    """The bytes of a small member at once: one read of the archive, as a rule.

    Raises:
        one of :data:`DAMAGED`: as :func:`read_member` does, for the same bytes.
    """
    name = raw_name(info)
    least = LOCAL.size + len(name) + info.compress_size
    block = read_at(descriptor, least + _USUAL_EXTRA, info.header_offset)
    start = _after_header(block, name)
    missing = start + info.compress_size - len(block)
    if missing > 0:
        block += read_at(descriptor, missing, info.header_offset + len(block))
    if len(block) < start + info.compress_size:
        raise BadZipFile("the archive is cut off")
    data = block[start : start + info.compress_size]
    if info.compress_type != ZIP_STORED:
        inflater = igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_DEFLATE)
        data = inflater.decompress(data, info.file_size + 1)
        if len(data) <= info.file_size and (not inflater.eof or inflater.unused_data):
            raise BadZipFile("its compressed bytes do not end where they should")
    _check(info, len(data), isal_zlib.crc32(data))
    return data


def _check(info: ZipInfo, size: int, crc: int) -> None:
    if size > info.file_size:
        raise BadZipFile("it is longer than the directory says")
    if size != info.file_size:
        raise BadZipFile("it is shorter than the directory says")
    if crc != info.CRC:
        raise BadZipFile("bad CRC")


def hash_descriptor(descriptor: int) -> str:
    """sha256 of a whole open file, hexadecimal, without moving its position.

    Raises:
        OSError: it cannot be read.
    """
    total, position = hashlib.sha256(), 0
    while block := read_at(descriptor, _PIECE, position):
        total.update(block)
        position += len(block)
    return total.hexdigest()
