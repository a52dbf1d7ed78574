"""pack: a wheelhouse becomes one file to carry, with envlock inside."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import envlock
from envlock.adapters import files, zstd
from envlock.adapters.deflating import NONE
from envlock.adapters.interpreter import probes_folder
from envlock.adapters.kitfile import PIECE, KitWriter, PartsWriter
from envlock.adapters.staging import BusyError, staging
from envlock.adapters.state import read_manifest
from envlock.adapters.wheelstored import open_stored
from envlock.adapters.zipmember import NO_ZIP
from envlock.errors import Refused, UnusableInput
from envlock.model.dist import Distribution, WheelRef
from envlock.model.facts import Finding
from envlock.model.kit import CONTENTS, STARTERS, STREAM, TOOL, WHEELS, Contents, Part, twice
from envlock.model.kit import dump_contents as dump
from envlock.model.manifest import LockedTarget, Manifest, with_wheels
from envlock.wheelhouse.extras import Extra
from envlock.wheelhouse.folder import MANIFEST, wheel_files, write_papers
from envlock.wheelhouse.kit_parts import earlier, into_place, need_parts
from envlock.wheelhouse.kit_tool import Tool

#: Room that is needed beside the wheels: papers, headers, padding of the archive in the stream.
_SPARE = 16 * 1024 * 1024

Advance = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How to pack.

    Attributes:
        runner: what will run the envlock inside.
        extras: further files to carry.
        best: the smallest kit, whatever time it takes.
        split: bytes of a part; None for one file.
    """

    runner: LockedTarget
    extras: tuple[Extra, ...] = ()
    best: bool = False
    split: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """A kit that was written.

    Attributes:
        files: its file, or its parts and the file with their checksums.
        size: bytes of it, or of all parts together.
        contents: what is in it.
        before: bytes of the wheels as they were.
        findings: what is not in it.
    """

    files: tuple[str, ...]
    size: int
    contents: Contents
    before: int
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """A wheelhouse that can be packed.

    Attributes:
        folder: where it is.
        manifest: its own.
        findings: what is not carried along; never an error.
    """

    folder: str
    manifest: Manifest
    findings: tuple[Finding, ...]

    @property
    def wheels(self) -> list[tuple[Distribution, WheelRef]]:
        """Each distribution that has a wheel, and the wheel."""
        return [(dist, dist.wheel) for dist in self.manifest.distributions if dist.wheel]

    @property
    def rebuilt(self) -> list[tuple[Distribution, WheelRef]]:
        """Those that nobody published: they are carried uncompressed, in the stream."""
        return [(dist, wheel) for dist, wheel in self.wheels if wheel.origin == "rebuilt"]

    @property
    def published(self) -> list[WheelRef]:
        """Those that are carried as they are, so that their published hash stays true."""
        return [wheel for _, wheel in self.wheels if wheel.origin != "rebuilt"]

    def path(self, wheel: WheelRef) -> str:
        """Where a wheel is."""
        return os.path.join(self.folder, wheel.file)

    @property
    def size(self) -> int:
        """Bytes of all wheels."""
        return sum(os.stat(self.path(wheel)).st_size for _, wheel in self.wheels)

    @property
    def least(self) -> int:
        """Bytes that every kit of it has: those of the wheels that are carried as they are."""
        return sum(os.stat(self.path(wheel)).st_size for wheel in self.published)


def open_house(folder: str) -> House:
    """Reads a wheelhouse, and every wheel of it once: a kit is not made of what is damaged.

    Raises:
        UnusableInput: it has no manifest.
        Refused: wheels are missing or have other bytes than the manifest says; names all.
    """
    manifest = read_manifest(os.path.join(folder, MANIFEST))
    wheels = [dist.wheel for dist in manifest.distributions if dist.wheel is not None]
    hashed = files.hash_files([files.Job(os.path.join(folder, wheel.file)) for wheel in wheels])
    bad = [
        f"'{wheel.file}' {'is not there' if found.error else 'has other bytes'}"
        for wheel, found in zip(wheels, hashed, strict=True)
        if found.hex != wheel.sha256
    ]
    bare = [d for d in manifest.distributions if d.wheel is None and not d.editable]
    bad += [f"'{dist}' has no wheel" for dist in bare if dist.protected]
    if bad:
        raise Refused(
            f"wheelhouse: '{folder}' is not whole: {'; '.join(bad)}",
            f"see all of it with: envlock wheelhouse check {folder}",
        )
    unknown = sorted(set(wheel_files(folder)) - {wheel.file for wheel in wheels})
    return House(
        folder=folder,
        manifest=manifest,
        findings=(
            *(_left_out(dist.name, f"'{dist.version}' has no wheel here") for dist in bare),
            *(_left_out(name, "is not in the manifest") for name in unknown),
        ),
    )


def _left_out(subject: str, what: str) -> Finding:
    return Finding(code="kit.left-out", subject=subject, what=what, why="not in the kit")


def pack(
    house: House, kit: str, tool: Tool, wanted: Wanted, advance: Advance | None = None
) -> Packed:
    """Writes a kit: whole under its name, or not at all.

    Rebuilt wheels are carried, and come out, uncompressed; all others byte for byte.

    Args:
        kit: the file to write; with parts, the name that they begin with.
        tool: envlock's own wheels.
        advance: called with the number of bytes read since the last call.

    Raises:
        UnusableInput: there is no room, the file cannot be written, it would have too many parts,
            or files of somebody else have names of parts.
        Refused: a wheel changed, or is damaged.
    """
    target = os.path.abspath(kit)
    _need_room(target, house, tool, wanted)
    if wanted.split is not None:
        need_parts(target, wanted.split, house.least)
    try:
        with staging(target) as folder:
            out = PartsWriter(os.path.join(folder, os.path.basename(target)), wanted.split)
            work = _Work(house, KitWriter(out), advance or (lambda count: None))
            with contextlib.closing(out):
                contents = work.run(tool, wanted)
            written = into_place(target, out, earlier(target), split=wanted.split is not None)
    except BusyError as error:
        raise UnusableInput(f"kit: another run is writing '{kit}'", "wait for it") from error
    except OSError as error:
        raise UnusableInput(
            f"kit: '{kit}' cannot be written: {error.strerror or error}",
            "make room or name another place; nothing was left there",
        ) from error
    return Packed(
        files=written,
        size=out.position,
        contents=contents,
        before=house.size,
        findings=house.findings,
    )


def _need_room(target: str, house: House, tool: Tool, wanted: Wanted) -> None:
    """Raises:
    UnusableInput: the kit may not fit; wheels never become larger in it.
    """
    sizes = [os.stat(path).st_size for path in tool.wheels]
    need = house.size + sum(sizes) + sum(extra.size for extra in wanted.extras) + _SPARE
    folder = os.path.dirname(target)
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise UnusableInput(f"kit: '{folder}': {error.strerror or error}") from error
    if free < need:
        raise UnusableInput(
            f"kit: '{folder}' has {free // 10**6} MB free; up to {need // 10**6} MB are needed",
            "make room or name another place",
        )


class _Work:
    """One kit being written."""

    def __init__(self, house: House, kit: KitWriter, advance: Advance) -> None:
        self._house, self._kit, self._advance = house, kit, advance
        self._stream: list[Part] = []

    def run(self, tool: Tool, wanted: Wanted) -> Contents:
        refs = self._write_stream(wanted)
        for wheel in self._house.published:
            blob = self._kit.add(WHEELS + wheel.file, self._read(self._house.path(wheel)))
            if blob.sha256 != wheel.sha256:
                raise _changed(wheel.file)
        self._write_papers(with_wheels(self._house.manifest, refs))
        for path in tool.wheels:
            self._kit.add(TOOL + os.path.basename(path), self._read(path))
        contents = Contents(
            name=self._house.manifest.name,
            envlock=envlock.__version__,
            python=".".join(wanted.runner.python.split(".")[:2]),
            machine=wanted.runner.markers.get("platform_machine", ""),
            blobs=tuple(self._kit.blobs),
            stream=tuple(self._stream),
        )
        if doubled := twice(contents.blobs + contents.stream):
            raise Refused(f"kit: '{doubled}' would be in it twice", "no kit was written")
        self._kit.add(CONTENTS, [dump(contents).encode()])
        for name, probe in STARTERS.items():
            self._kit.add(name, [(probes_folder() / probe).read_bytes()])
        self._kit.finish()
        return contents

    def _read(self, path: str) -> Iterator[bytes]:
        with open(path, "rb", buffering=0) as file:
            while piece := file.read(PIECE):
                yield piece
                self._advance(len(piece))

    def _write_papers(self, manifest: Manifest) -> None:
        with tempfile.TemporaryDirectory(prefix="envlock-") as folder:
            write_papers(folder, manifest)
            for name in sorted(os.listdir(folder)):
                self._kit.add(WHEELS + name, [Path(folder, name).read_bytes()])

    def _write_stream(self, wanted: Wanted) -> dict[str, WheelRef]:
        """The rebuilt wheels and the extras; returns what the wheels are called and are now."""
        rebuilt = self._house.rebuilt
        refs: dict[str, WheelRef] = {}
        if not rebuilt and not wanted.extras:
            return refs
        with (
            self._kit.adding(STREAM) as write,
            zstd.compressing(_Into(write), zstd.BEST if wanted.best else zstd.USUAL) as packed,
            tarfile.open(
                fileobj=packed, mode="w|", format=tarfile.GNU_FORMAT, encoding="utf-8"
            ) as archive,
        ):
            for dist, wheel in rebuilt:
                part = self._add_stored(archive, self._house.path(wheel), WHEELS + wheel.file)
                refs[dist.name] = replace(
                    wheel, sha256=part.sha256, size=part.size, compressor=NONE.version
                )
            for extra in wanted.extras:
                info = _member(extra.name, extra.size, executable=extra.executable)
                self._add(archive, info, self._read(extra.path))
        return refs

    def _add_stored(self, archive: tarfile.TarFile, path: str, name: str) -> Part:
        try:
            with open_stored(path) as wheel:
                chunks = self._counted(wheel.chunks(), os.stat(path).st_size / wheel.size)
                return self._add(archive, _member(name, wheel.size), chunks)
        except NO_ZIP as error:
            if isinstance(error, OSError) and error.errno:
                raise
            raise Refused(
                f"wheelhouse: '{path}': {error}", "see: envlock wheelhouse check"
            ) from error

    def _counted(self, chunks: Iterable[bytes], share: float) -> Iterator[bytes]:
        """Tells the bytes of the wheel that each chunk stands for."""
        for chunk in chunks:
            yield chunk
            self._advance(round(len(chunk) * share))

    def _add(
        self, archive: tarfile.TarFile, info: tarfile.TarInfo, chunks: Iterable[bytes]
    ) -> Part:
        source = _Chunks(chunks)
        archive.addfile(info, source)  # type: ignore[arg-type]
        if source.read(1):
            raise _changed(info.name)
        self._stream.append(Part(file=info.name, sha256=source.hexdigest, size=info.size))
        return self._stream[-1]


def _member(name: str, size: int, *, executable: bool = False) -> tarfile.TarInfo:
    """A file of the stream, without a word about who made it, where and when."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o755 if executable else 0o644
    return info


def _changed(name: str) -> Refused:
    return Refused(f"kit: '{name}' was changed while it was packed", "pack again")


@dataclass(frozen=True, slots=True)
class _Into:
    """What a compressor writes into."""

    write: Callable[[bytes], int]


class _Chunks:
    """Chunks, read as a file is, and hashed."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._rest = memoryview(b"")
        self._total = hashlib.sha256()

    def read(self, size: int) -> bytes:
        pieces: list[bytes] = []
        while size > 0:
            if not self._rest:
                chunk = next(self._chunks, b"")
                if not chunk:
                    break
                self._rest = memoryview(chunk)
            pieces.append(bytes(self._rest[:size]))
            self._rest = self._rest[size:]
            size -= len(pieces[-1])
        found = b"".join(pieces)
        self._total.update(found)
        return found

    @property
    def hexdigest(self) -> str:
        return self._total.hexdigest()


def total(house: House, tool: Tool, extras: Sequence[Extra]) -> int:
    """Bytes that packing reads, for a progress bar."""
    tools = sum(os.stat(path).st_size for path in tool.wheels)
    return house.size + tools + sum(extra.size for extra in extras)
