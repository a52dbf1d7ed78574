"""The dynamic loader's own search, without loading anything.

The order is that of ld.so(8): what is loaded already under that name; DT_RPATH of the object and of
those that wanted it, up to the program, each unless it has a DT_RUNPATH; ``LD_LIBRARY_PATH``;
DT_RUNPATH of the object; ``/etc/ld.so.cache``; the default folders. A file of another class or
machine is passed over, as the loader does.
"""

from __future__ import annotations

import os
import struct
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from envlock.adapters.elf import Elf, is_elf, read_elf

_CACHE = "/etc/ld.so.cache"
_CACHE_MAGIC = b"glibc-ld.so.cache1.1"
_HEADER = 48  # bytes before the entries: magic, counts, extension, three words of padding
_ENTRY = struct.Struct("<iIIIQ")  # flags, name, path, OS version, hardware capabilities
_MULTIARCH = {"EM_X86_64": "x86_64-linux-gnu", "EM_AARCH64": "aarch64-linux-gnu"}
_PLATFORM = {"EM_X86_64": "x86_64", "EM_AARCH64": "aarch64"}


@dataclass(frozen=True, slots=True)
class Loaded:
    """An object, and the path by which the loader got to it (``$ORIGIN`` is its folder)."""

    path: str
    elf: Elf


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A library that nothing provides."""

    name: str
    needed_by: str


@dataclass(slots=True)
class Scope:
    """Objects that are loaded together, in the order in which the loader looks for a name.

    Attributes:
        objects: by path.
        names: every name under which one is known: its soname, and what it was asked for as.
        missing: what nothing provides.
    """

    objects: dict[str, Loaded] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    missing: list[Missing] = field(default_factory=list)

    def add(self, name: str, one: Loaded) -> None:
        self.objects.setdefault(one.path, one)
        self.names.setdefault(name, one.path)
        if one.elf.soname:
            self.names.setdefault(one.elf.soname, one.path)

    def defines(self, name: bytes) -> bool:
        return any(name in one.elf.defined for one in self.objects.values())


class Loader:
    """Finds what a program started from ``executable`` would load. Every file is read once.

    Args:
        executable: the program; the link is followed, as the kernel does.
        env: its environment, with the vendor's variables.
        cache: path of ld.so's cache.
    """

    def __init__(self, executable: str, env: Mapping[str, str], cache: str = _CACHE) -> None:
        self._read: dict[tuple[int, int], Elf] = {}
        self._cache_path = cache
        self._paths = _parts(env.get("LD_LIBRARY_PATH", ""), ":;")
        self._preload = _parts(env.get("LD_PRELOAD", ""), ": ")
        self.program = self.object(os.path.realpath(executable))

    def object(self, path: str) -> Loaded:
        """The object at a path, read once for each file however many names it has."""
        try:
            status = os.stat(path)
        except OSError as error:
            return Loaded(path, Elf(reason=error.strerror or str(error)))
        key = (status.st_dev, status.st_ino)
        if key not in self._read:
            self._read[key] = read_elf(path)
        return Loaded(path, self._read[key])

    def fits(self, elf: Elf) -> bool:
        """Whether it is of the program's class and machine."""
        return not elf.machine or elf.machine == self.program.elf.machine

    @cached_property
    def start(self) -> Scope:
        """What is loaded before the program's first line: itself, its libraries, the loader, and
        what LD_PRELOAD names. Everything in it is global."""
        scope = self.closure(self.program)
        loader = self.program.elf.interpreter
        if loader and os.path.exists(loader):
            scope.add(loader, self.object(loader))
        for name in self._preload:
            path = name if "/" in name else self._search(name, (self.program,))
            if path and is_elf(path):
                self._follow(self.object(path), scope, None)
        return scope

    def closure(self, one: Loaded, known: Scope | None = None) -> Scope:
        """An object and all that it needs, breadth first.

        Args:
            one: where to start.
            known: what is loaded already; its names are not searched again.
        """
        scope = Scope()
        self._follow(one, scope, known)
        return scope

    def _follow(self, one: Loaded, scope: Scope, known: Scope | None) -> None:
        scope.add(os.path.basename(one.path), one)
        queue: deque[tuple[Loaded, tuple[Loaded, ...]]] = deque([(one, (one,))])
        while queue:
            current, chain = queue.popleft()
            for name in current.elf.needed:
                if name in scope.names:
                    continue
                path = _known(name, known) or self._find(name, chain)
                if path is None:
                    scope.missing.append(Missing(name=name, needed_by=current.path))
                    scope.names[name] = ""  # told once
                    continue
                found = self.object(path)
                fresh = path not in scope.objects
                scope.add(name, found)
                if fresh:
                    queue.append((found, (found, *chain)))

    def _find(self, name: str, chain: tuple[Loaded, ...]) -> str | None:
        if "/" in name:
            return name if os.path.exists(name) else None
        return self._search(name, chain)

    def _search(self, name: str, chain: tuple[Loaded, ...]) -> str | None:
        """The first candidate that is there and fits.

        Args:
            name: of the library.
            chain: the object that needs it, who needed that one, and so on.
        """
        for path in self._candidates(name, chain):
            # a file of another machine is passed over; a damaged one is taken, and said
            if is_elf(path) and self.fits(self.object(path).elf):
                return path
        return None

    def _candidates(self, name: str, chain: tuple[Loaded, ...]) -> Iterator[str]:
        asking = chain[0]
        if asking.elf.runpath is None:
            for one in (*chain, self.program) if hasattr(self, "program") else chain:
                if one.elf.runpath is None:
                    yield from self._in(self._expanded(one.elf.rpath, one), name)
        yield from self._in(self._expanded(self._paths, self._program_or(asking)), name)
        yield from self._in(self._expanded(asking.elf.runpath or (), asking), name)
        yield from self._cached.get(name, ())
        yield from self._in(self._defaults, name)

    def _program_or(self, one: Loaded) -> Loaded:
        return getattr(self, "program", one)

    @staticmethod
    def _in(folders: Iterable[str], name: str) -> Iterator[str]:
        return (os.path.join(folder, name) for folder in folders)

    def _expanded(self, folders: Iterable[str], one: Loaded) -> Iterator[str]:
        machine = one.elf.machine.partition(" ")[2]
        values = {
            "ORIGIN": os.path.dirname(one.path),
            "LIB": os.path.join("lib", _MULTIARCH.get(machine, "")),
            "PLATFORM": _PLATFORM.get(machine, ""),
        }
        for folder in folders:
            for name, value in values.items():
                folder = folder.replace("${" + name + "}", value).replace("$" + name, value)
            yield os.path.normpath(folder)

    @cached_property
    def _defaults(self) -> tuple[str, ...]:
        multiarch = _MULTIARCH.get(self.program.elf.machine.partition(" ")[2], "")
        own = (f"/lib/{multiarch}", f"/usr/lib/{multiarch}") if multiarch else ()
        return (*own, "/lib64", "/usr/lib64", "/lib", "/usr/lib")

    @cached_property
    def _cached(self) -> dict[str, list[str]]:
        try:
            return read_cache(Path(self._cache_path).read_bytes())
        except OSError:
            return {}


def _known(name: str, known: Scope | None) -> str:
    return known.names.get(name, "") if known is not None else ""


def _parts(value: str, separators: str) -> tuple[str, ...]:
    for separator in separators[1:]:
        value = value.replace(separator, separators[0])
    return tuple(part for part in value.split(separators[0]) if part)


def read_cache(data: bytes) -> dict[str, list[str]]:
    """Paths by name from ld.so's cache, in its order; what is not one gives nothing.

    The format is that of glibc 2.2 and newer, alone or behind the one before it.
    """
    start = data.find(_CACHE_MAGIC)
    if start < 0 or len(data) < start + _HEADER:
        return {}
    (count,) = struct.unpack_from("<I", data, start + len(_CACHE_MAGIC))
    entries = data[start + _HEADER : start + _HEADER + count * _ENTRY.size]
    found: dict[str, list[str]] = {}
    for _flags, name, path, _version, _hardware in _ENTRY.iter_unpack(
        entries[: len(entries) // _ENTRY.size * _ENTRY.size]
    ):
        found.setdefault(_text(data, start + name), []).append(_text(data, start + path))
    return found


def _text(data: bytes, start: int) -> str:
    end = data.find(b"\0", start)
    return data[start : end if end >= 0 else len(data)].decode("utf-8", "surrogateescape")
