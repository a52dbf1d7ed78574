"""A wheel with its members stored instead of deflated, as a stream of bytes.

What is deflated already does not shrink any more; what is not shrinks to a third in a kit.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from zipfile import ZipInfo

from envlock.adapters.zipmember import is_executable, open_archive, open_shared, read_member
from envlock.adapters.zipstored import Entry, directory


@dataclass(frozen=True, slots=True)
class StoredWheel:
    """A wheel, open to be read in its stored form."""

    descriptor: int
    members: tuple[tuple[ZipInfo, Entry], ...]
    end: bytes

    @property
    def size(self) -> int:
        """Bytes of the stored form."""
        sizes = sum(len(entry.local()) + entry.size for _, entry in self.members)
        return sizes + len(self.end)

    def chunks(self) -> Iterator[bytes]:
        """The stored form, front to back: the same bytes for the same members in the same order.

        Raises:
            one of :data:`envlock.adapters.zipmember.DAMAGED`: a member is not whole.
        """
        for info, entry in self.members:
            yield entry.local()
            yield from read_member(self.descriptor, info)
        yield self.end


@contextmanager
def open_stored(path: str) -> Iterator[StoredWheel]:
    """Opens a wheel to read its stored form.

    Raises:
        one of :data:`envlock.adapters.zipmember.NO_ZIP`: it cannot be read.
    """
    descriptor = open_shared(path)
    try:
        with open_archive(descriptor) as archive:
            infos = [info for info in archive.infolist() if not info.is_dir()]
        members, offset = [], 0
        for info in infos:
            entry = Entry(
                name=info.orig_filename,
                executable=is_executable(info),
                offset=offset,
                size=info.file_size,
                crc=info.CRC,
            )
            members.append((info, entry))
            offset += len(entry.local()) + entry.size
        end = directory([entry for _, entry in members], offset)
        yield StoredWheel(descriptor, tuple(members), end)
    finally:
        os.close(descriptor)
