"""Shared objects as the loader sees them: what they need, what they define, which code they carry.

pyelftools reads the headers. Symbol tables are unpacked here: one of torch's libraries has more
than a hundred thousand symbols, and an object for each takes longer than everything else together.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerDefSection, GNUVerNeedSection
from elftools.elf.segments import InterpSegment

MAGIC = b"\x7fELF"
#: What a damaged object raises: its header leads pyelftools anywhere.
DAMAGE = (
    ELFError, ValueError, TypeError, LookupError, AttributeError, OverflowError, struct.error,
)  # fmt: skip
_SYMBOL = struct.Struct("<IBBHQQ")  # Elf64_Sym: name, info, other, section, value, size
_HEAD = struct.Struct("<40sQ10xHH2x")  # Elf64_Ehdr: section table, size and number of its entries
_PLAIN = b"\x02\x01"  # 64 bits, little endian
_LOCAL, _WEAK = 0, 2
_WEAK_NEED = 2  # VER_FLG_WEAK: the loader does not insist
_INIT = b"PyInit_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Elf:
    """One shared object or program.

    Attributes:
        machine: class and machine, ``64 EM_X86_64``: what does not match is no candidate.
        soname: its own name; empty when it has none.
        needed: names of the libraries it needs, in order.
        rpath: DT_RPATH, entries as written; the loader ignores it where there is a ``runpath``.
        runpath: DT_RUNPATH; None without one.
        interpreter: path of the loader, of a program.
        defined: names that others may bind to.
        undefined: names that have to be found elsewhere; weak ones are left out.
        version_needs: ``(library, version)`` that have to be there: ``libc.so.6``, ``GLIBC_2.34``.
        versions: versions it defines.
        reason: why it cannot be loaded whatever is around it; empty when nothing speaks against it.
    """

    machine: str = ""
    soname: str = ""
    needed: tuple[str, ...] = ()
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] | None = None
    interpreter: str = ""
    defined: frozenset[bytes] = frozenset()
    undefined: frozenset[bytes] = frozenset()
    version_needs: tuple[tuple[str, str], ...] = ()
    versions: frozenset[str] = frozenset()
    reason: str = ""

    @property
    def is_extension(self) -> bool:
        """Whether Python can import it."""
        return any(name.startswith(_INIT) for name in self.defined)


def is_elf(path: str) -> bool:
    """Whether a file starts like one; linker scripts are called ``libc.so`` too."""
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def read_elf(path: str) -> Elf:
    """Reads one object. Never raises: what is broken comes back with its reason."""
    try:
        with open(path, "rb") as file:
            return _read(file)
    except OSError as error:
        return Elf(reason=error.strerror or str(error))
    except DAMAGE as error:
        return Elf(reason=f"damaged: {str(error) or type(error).__name__}")


def _read(file: BinaryIO) -> Elf:
    size = os.fstat(file.fileno()).st_size
    if (end := _end_of_sections(file)) > size:
        return Elf(reason=f"file too short: {size} bytes of {end}")
    whole = ELFFile(file)
    segments = list(whole.iter_segments())
    ends = [s["p_offset"] + s["p_filesz"] for s in segments if s["p_type"] == "PT_LOAD"]
    if max(ends, default=0) > size:
        return Elf(reason=f"file too short: {size} bytes of {max(ends)}")
    dynamic = next((s for s in segments if isinstance(s, DynamicSegment)), None)
    loaders = (s for s in segments if isinstance(s, InterpSegment))
    machine = f"{whole.elfclass} {whole['e_machine']}"
    if dynamic is None:
        return Elf(machine=machine, reason="not a shared object")
    tags = _tags(dynamic)
    defined, undefined = _symbols(whole, dynamic)
    runpath = tags.get("DT_RUNPATH")
    return Elf(
        machine=machine,
        soname=next(iter(tags.get("DT_SONAME", ())), ""),
        needed=tags.get("DT_NEEDED", ()),
        rpath=_folders(tags.get("DT_RPATH", ())),
        runpath=None if runpath is None else _folders(runpath),
        interpreter=next((s.get_interp_name() for s in loaders), ""),
        defined=defined,
        undefined=undefined,
        version_needs=tuple(_version_needs(whole)),
        versions=frozenset(_versions(whole)),
    )


def _end_of_sections(file: BinaryIO) -> int:
    """Where the section table ends, which linkers write last; 0 where the header is another one."""
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size or head[4:6] != _PLAIN:
        return 0
    _, table, width, count = _HEAD.unpack(head)
    return int(table + width * count)


def _tags(dynamic: DynamicSegment) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    names = {"DT_SONAME": "soname", "DT_NEEDED": "needed", "DT_RPATH": "rpath"}
    for tag in dynamic.iter_tags():
        kind = tag.entry.d_tag
        attribute = {**names, "DT_RUNPATH": "runpath"}.get(kind)
        if attribute:
            found[kind] = (*found.get(kind, ()), getattr(tag, attribute))
    return found


def _folders(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part for value in values for part in value.split(":") if part)


def _symbols(whole: ELFFile, dynamic: DynamicSegment) -> tuple[frozenset[bytes], frozenset[bytes]]:
    """Names that are defined, and names that are wanted."""
    table = whole.get_section_by_name(".dynsym")
    if table is None or whole.elfclass != 64 or not whole.little_endian:
        return _symbols_one_by_one(dynamic)
    texts = whole.get_section(table["sh_link"]).data()
    defined, undefined = set(), set()
    for name, info, _other, section, _value, _size in _SYMBOL.iter_unpack(table.data()):
        bind = info >> 4
        if bind == _LOCAL or not name:
            continue
        text = texts[name : texts.index(0, name)]
        if section:
            defined.add(text)
        elif bind != _WEAK:
            undefined.add(text)
    return frozenset(defined), frozenset(undefined)


def _symbols_one_by_one(dynamic: DynamicSegment) -> tuple[frozenset[bytes], frozenset[bytes]]:
    """Without a section table: what the loader itself uses."""
    defined, undefined = set(), set()
    for symbol in dynamic.iter_symbols():
        bind = symbol["st_info"]["bind"]
        if bind == "STB_LOCAL" or not symbol.name:
            continue
        if symbol["st_shndx"] != "SHN_UNDEF":
            defined.add(symbol.name.encode())
        elif bind != "STB_WEAK":
            undefined.add(symbol.name.encode())
    return frozenset(defined), frozenset(undefined)


def _version_needs(whole: ELFFile) -> Iterator[tuple[str, str]]:
    for section in whole.iter_sections():
        if isinstance(section, GNUVerNeedSection):
            for library, versions in section.iter_versions():
                for version in versions:
                    if not version["vna_flags"] & _WEAK_NEED:
                        yield str(library.name), str(version.name)


def _versions(whole: ELFFile) -> Iterator[str]:
    for section in whole.iter_sections():
        if isinstance(section, GNUVerDefSection):
            for _, names in section.iter_versions():
                for name in names:  # the first is the version, the rest are its parents
                    yield str(name.name)
                    break
