"""unpack: a kit becomes a wheelhouse again."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tarfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from envlock.adapters import files, zstd
from envlock.adapters.kitfile import PIECE, KitFile, Slice, open_kit, read_contents
from envlock.adapters.staging import BusyError, staging
from envlock.adapters.state import read_manifest
from envlock.errors import UnusableInput
from envlock.model.kit import DAMAGED_HINT, EXTRAS, WHEELS, Contents, Part
from envlock.model.manifest import Manifest
from envlock.wheelhouse.folder import MANIFEST

_SPARE = 1024 * 1024

Advance = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacked:
    """What came out of a kit.

    Attributes:
        contents: what the kit holds.
        manifest: of the wheelhouse.
        size: bytes of all files.
        already: the folder had all of it before.
    """

    contents: Contents
    manifest: Manifest
    size: int
    already: bool


def total(kit: str) -> int:
    """Bytes that unpacking writes, for a progress bar.

    Raises:
        UnusableInput: it is no kit, or a damaged one.
    """
    with open_kit(kit) as file:
        return sum(part.size for part in read_contents(file, kit).given)


def unpack(kit: str, folder: str, advance: Advance | None = None) -> Unpacked:
    """Unpacks a kit into a folder that is whole afterwards, or not there.

    Args:
        kit: its file; of a split one its name, or the first part.
        folder: may exist if it is empty, or has all of the kit already.
        advance: called with the number of bytes written since the last call.

    Raises:
        UnusableInput: the kit is damaged, the folder has something else in it, or there is no room.
    """
    with open_kit(kit) as file:
        contents = read_contents(file, kit)
        places = {_place(part.file, kit): part for part in contents.given}
        size = sum(part.size for part in contents.given)
        target = os.path.abspath(folder)
        already = _is_there(target, places)
        if not already:
            _need_room(target, size)
            _write(kit, file, contents, target, advance or (lambda count: None))
    manifest = read_manifest(os.path.join(target, MANIFEST))
    return Unpacked(contents=contents, manifest=manifest, size=size, already=already)


def _place(name: str, kit: str) -> str:
    """Where a file of a kit goes, below the folder.

    Raises:
        UnusableInput: a kit has no such files.
    """
    rest = name.removeprefix(WHEELS)
    if name.startswith(EXTRAS) or (rest != name and "/" not in rest):
        return rest
    raise UnusableInput(f"kit: '{kit}' has '{name}', which belongs nowhere", DAMAGED_HINT)


def _is_there(target: str, places: dict[str, Part]) -> bool:
    """Whether a folder has all of a kit.

    Raises:
        UnusableInput: it has something, and not that.
    """
    if not os.path.lexists(target) or (os.path.isdir(target) and not os.listdir(target)):
        return False
    jobs = [files.Job(os.path.join(target, name)) for name in places]
    found = files.hash_files(jobs) if os.path.isdir(target) else []
    wrong = [
        name
        for (name, part), one in zip(places.items(), found, strict=False)
        if one.hex != part.sha256
    ]
    if wrong or not found:
        more = f": '{wrong[0]}' is not the kit's" if found and len(wrong) < len(places) else ""
        raise UnusableInput(
            f"kit: '{target}' is there already, and is not this kit unpacked{more}",
            "name another folder",
        )
    return True


def _need_room(target: str, size: int) -> None:
    folder = os.path.dirname(target)
    try:
        os.makedirs(folder, exist_ok=True)
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise UnusableInput(
            f"kit: '{folder}' cannot be written: {error.strerror or error}", "name another folder"
        ) from error
    if free < size + _SPARE:
        raise UnusableInput(
            f"kit: '{folder}' has {free // 10**6} MB free; {size // 10**6 + 1} MB are needed",
            "make room or name another folder",
        )


def _write(kit: str, file: KitFile, contents: Contents, target: str, advance: Advance) -> None:
    try:
        with staging(target) as beside:
            whole = os.path.join(beside, "whole")
            os.mkdir(whole)
            _Work(kit, whole, advance).run(file, contents)
            read_manifest(os.path.join(whole, MANIFEST))
            files.sync_filesystem(whole)
            if os.path.isdir(target):
                os.rmdir(target)
            os.rename(whole, target)
    except BusyError as error:
        raise UnusableInput(f"kit: another run is unpacking into '{target}'") from error
    except OSError as error:
        raise UnusableInput(
            f"kit: '{target}' cannot be written: {error.strerror or error}",
            "make room or name another folder; nothing was left there",
        ) from error
    files.sync_folder(os.path.dirname(target))


class _Work:
    """One kit being unpacked into an empty folder."""

    def __init__(self, kit: str, folder: str, advance: Advance) -> None:
        self._kit, self._folder, self._advance = kit, folder, advance

    def run(self, file: KitFile, contents: Contents) -> None:
        in_stream = {part.file for part in contents.stream}
        for part in contents.given:
            if part.file not in in_stream:
                blob = next(blob for blob in contents.blobs if blob.file == part.file)
                self._copy(Slice(file, blob).read, part, executable=False)
        if contents.stream:
            self._read_stream(file, contents)

    def _read_stream(self, file: KitFile, contents: Contents) -> None:
        blob = contents.compressed
        if blob is None:
            raise self._damaged("its compressed part is not there")
        source = Slice(file, blob)
        try:
            with (
                zstd.decompressing(io.BufferedReader(source, PIECE)) as plain,
                tarfile.open(fileobj=plain, mode="r|", encoding="utf-8") as archive,
            ):
                self._read_archive(archive, contents.stream)
            while source.read(PIECE):
                pass
        except (zstd.DamagedStream, tarfile.TarError, EOFError) as error:
            raise self._damaged(f"its compressed part cannot be read: {error}") from error
        if not source.whole:
            raise self._damaged("its compressed part has other bytes")

    def _read_archive(self, archive: tarfile.TarFile, parts: Iterable[Part]) -> None:
        for part in parts:
            info = archive.next()
            if info is None or info.name != part.file or not info.isreg():
                raise self._damaged(f"'{part.file}' is not in its compressed part")
            source = archive.extractfile(info)
            assert source is not None
            self._copy(source.read, part, executable=bool(info.mode & 0o100))

    def _copy(self, read: Callable[[int], bytes], part: Part, *, executable: bool) -> None:
        """One file, to its last byte, and no byte more than the kit says it has."""
        path = os.path.join(self._folder, *_place(part.file, self._kit).split("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        total, left = hashlib.sha256(), part.size
        with open(path, "xb") as file:
            while left and (piece := read(min(PIECE, left))):
                file.write(piece)
                total.update(piece)
                left -= len(piece)
                self._advance(len(piece))
        if left or total.hexdigest() != part.sha256:
            raise self._damaged(f"'{part.file}' {'is cut short' if left else 'has other bytes'}")
        if executable:
            mode = os.stat(path).st_mode
            os.chmod(path, mode | (mode & 0o444) >> 2)

    def _damaged(self, what: str) -> UnusableInput:
        return UnusableInput(
            f"kit: '{self._kit}' is damaged: {what}; nothing was unpacked", DAMAGED_HINT
        )
