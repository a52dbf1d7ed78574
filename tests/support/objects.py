"""Shared objects made for a test, whole and broken, and a site folder to put them in."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import pytest

#: Reason and condition for tests that need a C compiler.
NO_COMPILER = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
SUFFIX = str(sysconfig.get_config_var("EXT_SUFFIX") or ".so")


def compiled(path: Path, code: str, *options: str, needs: Sequence[Path] = ()) -> Path:
    """A shared object from C; ``needs`` are linked, each under its own name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    source = path.with_suffix(".c")
    source.write_text(code)
    links = [item for lib in needs for item in (f"-L{lib.parent}", f"-l:{lib.name}")]
    command = [
        "gcc",
        "-shared",
        "-fPIC",
        "-nostartfiles",
        "-Wl,--no-as-needed",
        "-o",
        str(path),
        str(source),
    ]
    subprocess.run([*command, *options, *links], check=True, capture_output=True)
    source.unlink()
    return path


def library(path: Path, defines: str, *options: str, needs: Sequence[Path] = ()) -> Path:
    """A library that defines one function; its soname is its file name unless told otherwise."""
    named = [] if any("soname" in option for option in options) else [f"-Wl,-soname,{path.name}"]
    return compiled(path, f"int {defines}(void) {{ return 1; }}\n", *named, *options, needs=needs)


def extension(
    folder: Path, name: str, *options: str, calls: str = "", needs: Sequence[Path] = ()
) -> Path:
    """An extension module as far as the loader is concerned, that may call one function."""
    # bound when it is loaded, never called
    used = f"int {calls}(void);\nint never(void) {{ return {calls}(); }}\n" if calls else ""
    code = f"{used}void *PyInit_{name}(void) {{ return 0; }}\n"
    return compiled(folder / f"{name}{SUFFIX}", code, *options, needs=needs)


def with_section(path: Path, name: str, data: bytes) -> Path:
    """The same object with a section of its own, as compilers for devices leave one."""
    content = path.with_suffix(".bin")
    content.write_bytes(data)
    command = ["objcopy", f"--add-section={name}={content}", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    content.unlink()
    return path


def hip_bundle(*architectures: str) -> bytes:
    """A bundle as clang writes it, with a few bytes of code for each architecture."""
    triples = [
        "host-x86_64-unknown-linux-gnu-",
        *(f"hipv4-amdgcn-amd-amdhsa--{a}" for a in architectures),
    ]
    head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(triples))
    place = len(head) + sum(24 + len(triple) for triple in triples)
    for triple in triples:
        size = 0 if triple.startswith("host") else 16
        head += struct.pack("<QQQ", place, size, len(triple)) + triple.encode()
        place += size
    return head + b"\x00" * 16 * len(architectures)


def packed_bundle(version: int, method: int, packed: bytes, unpacked: int) -> bytes:
    """The header of a compressed bundle before its content."""
    head = b"CCOB" + struct.pack("<HH", version, method)
    width = {1: "", 2: "<I", 3: "<Q"}[version]
    sizes = struct.pack("<Q" if version == 3 else "<I", unpacked) + b"\x00" * 8
    if not width:
        return head + sizes + packed
    total = len(head) + struct.calcsize(width) + len(sizes) + len(packed)
    return head + struct.pack(width, total) + sizes + packed


def cuda_container(*codes: tuple[int, int]) -> bytes:
    """A container as nvcc writes it; each code is ``(kind, architecture)``, 1 for PTX."""
    entries = b""
    for kind, architecture in codes:
        head = struct.pack("<HHIQ", kind, 0x101, 64, 16) + b"\x00" * 12
        entries += (head + struct.pack("<I", architecture)).ljust(64, b"\x00") + b"\x00" * 16
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries
