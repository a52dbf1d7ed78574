"""Compressors of wheels: fast, best, none. Each gives the same bytes for the same chunks."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias
from zipfile import ZIP_DEFLATED, ZIP_STORED

from isal import ISAL_VERSION, isal_zlib

Bytes: TypeAlias = "bytes | memoryview"

#: ISA-L's bytes depend on the level and on what one call is given: changing either changes every
#: wheel. Above level 2 they depend on the processor, too.
LEVEL = 2
_BEST = 9
_STORED_BYTE = b"\x00\x01\x00\xfe\xff"  # a block of one stored byte, not the last (RFC 1951 3.2.4)
_END_OF_STREAM = b"\x03\x00"  # an empty last block (RFC 1951 3.2.6)


@dataclass(frozen=True, slots=True)
class Compressor:
    """How the members of a wheel are written.

    Attributes:
        name: what people type.
        version: program, version and level: with the same three, the same bytes.
        method: of the zip archive (APPNOTE 4.4.5).
        chunk: compresses a chunk of a member, given what stands before it (up to 32 KiB; empty
            for the first one); the results, one after the other, and then ``end``, are a stream.
        whole: compresses a member at once.
        end: the end of a stream.
    """

    name: str
    version: str
    method: int
    chunk: Callable[[Bytes, Bytes], bytes]
    whole: Callable[[Bytes], bytes]
    end: bytes


def _isal(data: Bytes, history: Bytes, flush: int) -> bytes:
    """Compresses one chunk.

    Without any history ISA-L (2.31) reads a register that holds the address of its own state where
    it means the second byte (``.write_first_byte`` in igzip_icf_body_h1_gr_bt.asm), and once in
    some thousand chunks the output depends on that address. So there always is history: a member's
    first byte, in a stored block, is that of the rest.
    """
    start = b""
    if not history:
        first = bytes(data[:1])
        if not first:
            return b""
        start, history, data = _STORED_BYTE + first, first, data[1:]
    compressor = isal_zlib.compressobj(
        LEVEL, isal_zlib.DEFLATED, -isal_zlib.MAX_WBITS, zdict=history
    )
    packed: bytes = start + compressor.compress(data) + compressor.flush(flush)
    return packed


def _isal_chunk(data: Bytes, history: Bytes) -> bytes:
    return _isal(data, history, isal_zlib.Z_SYNC_FLUSH)


def _isal_whole(data: Bytes) -> bytes:
    return _isal(data, b"", isal_zlib.Z_FINISH) or _END_OF_STREAM


def _zlib(data: Bytes, history: Bytes, flush: int) -> bytes:
    words = (_BEST, zlib.DEFLATED, -zlib.MAX_WBITS, 9, zlib.Z_DEFAULT_STRATEGY)
    compressor = zlib.compressobj(*words, history) if history else zlib.compressobj(*words)
    return compressor.compress(data) + compressor.flush(flush)


def _zlib_chunk(data: Bytes, history: Bytes) -> bytes:
    return _zlib(data, history, zlib.Z_SYNC_FLUSH)


def _zlib_whole(data: Bytes) -> bytes:
    return _zlib(data, b"", zlib.Z_FINISH)


FAST = Compressor(
    "fast",
    f"isa-l {ISAL_VERSION} level {LEVEL}",
    ZIP_DEFLATED,
    _isal_chunk,
    _isal_whole,
    _END_OF_STREAM,
)
BEST = Compressor(
    "best",
    f"zlib {zlib.ZLIB_RUNTIME_VERSION} level {_BEST}",
    ZIP_DEFLATED,
    _zlib_chunk,
    _zlib_whole,
    _END_OF_STREAM,
)
#: The same bytes on every machine.
NONE = Compressor(
    "none", "none", ZIP_STORED, lambda data, history: bytes(data), lambda data: bytes(data), b""
)
#: By name; the first is the default.
COMPRESSORS: Mapping[str, Compressor] = {one.name: one for one in (FAST, BEST, NONE)}
