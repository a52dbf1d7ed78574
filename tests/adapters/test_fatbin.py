"""The architectures that an object has code for, from headers as compilers write them."""

from __future__ import annotations

import shutil
import subprocess
import zlib
from pathlib import Path

import pytest
import zstandard

from envlock.adapters.fatbin import Code, read_code
from tests.support.objects import (
    NO_COMPILER,
    cuda_container,
    hip_bundle,
    library,
    packed_bundle,
    with_section,
)

pytestmark = NO_COMPILER

PLAIN = hip_bundle("gfx928:sramecc+:xnack-", "gfx936:sramecc+:xnack-")
_SMALL = hip_bundle("gfx90a")
ZSTD, ZLIB = zstandard.ZstdCompressor().compress(PLAIN), zlib.compress(PLAIN)

# section, its bytes, targets
SECTIONS = [
    (".hip_fatbin", PLAIN, {"gfx928", "gfx936"}),
    (".hip_fatbin", PLAIN.ljust(4096, b"\0") + _SMALL, {"gfx928", "gfx936", "gfx90a"}),
    (".hip_fatbin", packed_bundle(1, 0, ZLIB, len(PLAIN)), {"gfx928", "gfx936"}),
    (".hip_fatbin", packed_bundle(2, 1, ZSTD, len(PLAIN)), {"gfx928", "gfx936"}),
    (".hip_fatbin", packed_bundle(3, 1, ZSTD, len(PLAIN)) + _SMALL, {"gfx928", "gfx936", "gfx90a"}),
    (".hip_fatbin", packed_bundle(2, 1, b"not zstd", 99) + _SMALL, {"gfx90a"}),
    (".hip_fatbin", b"\x7fELF of another kind, for gfx936 it says", {"gfx936"}),
    (".hip_fatbin", b"__CLANG_OFFLOAD_BUNDLE__\xff\xff\xff\xff\xff\xff\xff\xff", set()),
    (".nv_fatbin", cuda_container((2, 80), (2, 90), (1, 90)), {"sm_80", "sm_90", "compute_90"}),
    (".nv_fatbin", cuda_container((2, 80)) + b"\0" * 24 + cuda_container((2, 86)),
     {"sm_80", "sm_86"}),
    (".nv_fatbin", b"\0" * 100, set()),
]  # fmt: skip


@pytest.mark.parametrize(("name", "data", "targets"), SECTIONS)
def test_targets(tmp_path: Path, name: str, data: bytes, targets: set[str]) -> None:
    path = with_section(library(tmp_path / "libx.so", "x"), name, data)
    assert read_code(str(path)) == Code(targets=frozenset(targets), sections=True)


def test_what_has_no_code(tmp_path: Path) -> None:
    path = library(tmp_path / "libx.so", "x")
    assert read_code(str(path)) == Code()
    path.write_bytes(path.read_bytes()[:100])
    assert read_code(str(path)) == Code()
    assert read_code(str(tmp_path / "none")) == Code()


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
def test_what_nvcc_writes(tmp_path: Path) -> None:
    source, path = tmp_path / "x.cu", tmp_path / "libx.so"
    source.write_text("__global__ void add(float *x) { x[threadIdx.x] += 1; }\n")
    codes = [
        "-gencode",
        "arch=compute_90,code=sm_90",
        "-gencode",
        "arch=compute_80,code=compute_80",
    ]
    command = ["nvcc", *codes, "-shared", "-Xcompiler", "-fPIC", "-o", str(path), str(source)]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    assert read_code(str(path)).targets == {"sm_90", "compute_80"}
