"""The file of a kit: written front to back, whole or in parts, and read by place."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import BinaryIO

from envlock.adapters.zipmember import NO_ZIP
from envlock.adapters.zipstored import SMALL, Entry, directory
from envlock.errors import UnusableInput
from envlock.model.kit import (
    CONTENTS,
    DAMAGED_HINT,
    FIRST_LINE,
    Blob,
    Contents,
    load_contents,
    twice,
)

PIECE = 1024 * 1024
#: Names of more parts, ``.1000``, would not sort as they follow each other.
MOST_PARTS = 999
#: What reading the document of a kit may raise.
_NOT_READ: tuple[type[Exception], ...] = (*NO_ZIP, KeyError)
_MOST_CONTENTS = 64 * 1024 * 1024


class PartsWriter:
    """One stream of bytes in one file, or in files of a given size.

    Attributes:
        position: bytes written so far.
        parts: path and sha256 (hexadecimal) of each file that is done.
    """

    def __init__(self, path: str, limit: int | None = None) -> None:
        self._path, self._limit = path, limit
        self.position = 0
        self.parts: list[tuple[str, str]] = []
        self._left = 0
        self._total = hashlib.sha256()
        self._file: BinaryIO | None = None

    def write(self, data: bytes) -> int:
        """Writes all of it.

        Raises:
            OSError: the disk is full.
            UnusableInput: there are too many parts.
        """
        view = memoryview(data)
        while view:
            file = self._open()
            piece = view if self._limit is None else view[: self._left]
            file.write(piece)
            if self._limit is not None:  # the sums of parts are for people; one file needs none
                self._total.update(piece)
            self._left -= len(piece)
            view = view[len(piece) :]
        self.position += len(data)
        return len(data)

    def _open(self) -> BinaryIO:
        if self._file is not None and (self._limit is None or self._left):
            return self._file
        self.close()
        if len(self.parts) == MOST_PARTS:
            raise UnusableInput(
                f"kit: it needs more than {MOST_PARTS} parts of {self._limit} bytes",
                "name a larger --split",
            )
        number = f".{len(self.parts) + 1:03}" if self._limit is not None else ""
        self._file = open(self._path + number, "wb")  # noqa: SIM115
        self._left, self._total = self._limit or 0, hashlib.sha256()
        return self._file

    def close(self) -> None:
        """Makes the file written last durable."""
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self.parts.append((self._file.name, self._total.hexdigest()))
            self._file = None


class KitWriter:
    """Puts files into a kit, one after the other.

    Attributes:
        blobs: what was put in.
    """

    def __init__(self, out: PartsWriter) -> None:
        self._out = out
        self._entries: list[Entry] = []
        self._total = hashlib.sha256()
        self.blobs: list[Blob] = []
        out.write(FIRST_LINE)

    def add(self, name: str, chunks: Iterable[bytes]) -> Blob:
        """A file, from its bytes; what is larger than memory comes in chunks."""
        with self.adding(name) as write:
            for chunk in chunks:
                write(chunk)
        return self.blobs[-1]

    @contextmanager
    def adding(self, name: str) -> Iterator[Callable[[bytes], int]]:
        """A file, from what is given to the function that this yields."""
        entry = Entry(name=name, offset=self._out.position, later=True)
        self._out.write(entry.local())
        at, total = self._out.position, hashlib.sha256()

        def write(data: bytes) -> int:
            total.update(data)
            entry.crc = zlib.crc32(data, entry.crc)
            return self._out.write(data)

        yield write
        entry.size = self._out.position - at
        self._out.write(entry.follows())
        self._entries.append(entry)
        self.blobs.append(Blob(file=name, sha256=total.hexdigest(), size=entry.size, at=at))

    def finish(self) -> None:
        """Writes the directory: of everything, or of the end where all is too large for one that
        every Python reads. Offsets then count from the first file that is listed."""
        start = self._out.position
        listed = [entry for entry in self._entries if start - entry.offset <= SMALL]
        base = listed[0].offset if len(listed) < len(self._entries) else 0
        for entry in listed:
            entry.offset -= base
        self._out.write(directory(listed, start - base))
        self._out.close()


class KitFile(io.RawIOBase):
    """A kit, opened; its parts read as one file where it is split."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._files = [open(path, "rb", buffering=0) for path in paths]  # noqa: SIM115
        self._ends = list(accumulate(os.fstat(file.fileno()).st_size for file in self._files))
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._ends[-1]}[whence]
        if base + offset < 0:
            raise OSError("before the beginning")
        self._position = base + offset
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """All that there is room for, up to the end: also across the border of two parts."""
        view, filled = memoryview(buffer), 0
        while filled < len(view):
            number = bisect_right(self._ends, self._position)
            if number == len(self._files):
                break
            file, start = self._files[number], self._ends[number - 1] if number else 0
            file.seek(self._position - start)
            count = file.readinto(view[filled:]) or 0
            if not count:
                break
            filled += count
            self._position += count
        return filled

    def close(self) -> None:
        for file in self._files:
            file.close()
        super().close()


class Slice(io.RawIOBase):
    """A file inside a kit, read from its start to its end."""

    def __init__(self, kit: KitFile, blob: Blob) -> None:
        self._kit, self._blob, self._done = kit, blob, 0
        self._total = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        self._kit.seek(self._blob.at + self._done)
        view = memoryview(buffer)[: self._blob.size - self._done]
        count = self._kit.readinto(view) if view else 0
        self._total.update(view[:count])
        self._done += count
        return count

    @property
    def whole(self) -> bool:
        """Whether all of it was read, and is what the kit says of it."""
        return self._done == self._blob.size and self._total.hexdigest() == self._blob.sha256


def kit_paths(path: str) -> list[str]:
    """The file of a kit, or its parts in order, found by the kit's name or by that of a part.

    Raises:
        UnusableInput: there is nothing, or a part is missing.
    """
    if path.endswith(".001"):
        path = path.removesuffix(".001")
    elif os.path.isfile(path):
        return [path]
    found: list[str] = []
    while os.path.isfile(part := f"{path}.{len(found) + 1:03}"):
        found.append(part)
    if not found:
        raise UnusableInput(f"kit: '{path}' does not exist", "name the file, or its first part")
    return found


def open_kit(path: str) -> KitFile:
    """Opens a kit or its parts.

    Raises:
        UnusableInput: it is not there or cannot be read.
    """
    try:
        return KitFile(kit_paths(path))
    except OSError as error:
        raise UnusableInput(f"kit: '{path}' cannot be read: {error.strerror or error}") from error


def read_contents(kit: KitFile, name: str) -> Contents:
    """The document of a kit.

    Args:
        name: of the file, for messages.

    Raises:
        UnusableInput: it is no kit, or a damaged one.
    """
    try:
        with zipfile.ZipFile(kit) as archive:
            info = archive.getinfo(CONTENTS)
            if info.file_size > _MOST_CONTENTS:
                raise zipfile.BadZipFile("a list that is too long")
            text = archive.read(info).decode("utf-8")
    except _NOT_READ as error:
        kit.seek(0)
        cut = kit.read(len(FIRST_LINE)) == FIRST_LINE
        what = "is cut short or damaged" if cut else "is no kit"
        raise UnusableInput(f"kit: '{name}' {what}: {error}", DAMAGED_HINT) from error
    contents = load_contents(text, name)
    if doubled := twice(contents.blobs + contents.stream):
        raise UnusableInput(f"kit: '{name}' has '{doubled}' twice", DAMAGED_HINT)
    return contents
