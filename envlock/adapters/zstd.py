"""One compressed stream with a window that sees a whole GPU library.

The kernels of a GPU library repeat each other at distances that deflate's 32 KiB never spans: the
flash-attn of the benchmarks is 62 MB as a deflated wheel, and a third of that here.
"""

from __future__ import annotations

from typing import BinaryIO, Protocol

import zstandard

from envlock.adapters.files import workers

#: Levels, measured on two CPUs with that flash-attn (214 MB of files): 21 MB in 4 s and 18 MB in
#: 150 s. Levels between them take their time and give little.
USUAL, BEST = 10, 19
#: 128 MiB: the largest window that every zstd opens without being told to.
_WINDOW_LOG = 27
#: What one worker compresses by itself. Without it each takes 512 MiB, and holds it in memory.
_JOB = 64 * 1024 * 1024
#: More workers than these would hold more memory than a small instance has: 130 MB for each.
_MOST_WORKERS = 8

#: What a damaged stream raises.
DamagedStream = zstandard.ZstdError


class Sink(Protocol):
    """Where bytes go."""

    def write(self, data: bytes, /) -> int: ...


def compressing(sink: Sink, level: int = USUAL) -> zstandard.ZstdCompressionWriter:
    """A writer whose bytes arrive compressed in ``sink``; the same bytes with any number of CPUs.

    Args:
        sink: left open.
        level: :data:`USUAL` or :data:`BEST`.
    """
    parameters = zstandard.ZstdCompressionParameters.from_level(
        level,
        window_log=_WINDOW_LOG,
        job_size=_JOB,
        threads=min(workers(), _MOST_WORKERS),  # at least one: without any, jobs are none
        write_checksum=True,
    )
    compressor = zstandard.ZstdCompressor(compression_params=parameters)
    return compressor.stream_writer(sink, closefd=False)  # type: ignore[arg-type]


def decompressing(source: BinaryIO) -> zstandard.ZstdDecompressionReader:
    """A reader of a compressed stream; holds one window in memory.

    Raises (while it is read):
        DamagedStream: it is damaged, or wants a larger window.
    """
    decompressor = zstandard.ZstdDecompressor(max_window_size=1 << _WINDOW_LOG)
    return decompressor.stream_reader(source, closefd=False)
