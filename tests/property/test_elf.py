"""A damaged object is a value with a reason, never an exception and never a hang."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envlock.adapters.elf import Elf, read_elf
from envlock.adapters.fatbin import Code, read_code
from envlock.adapters.loader import read_cache
from tests.support.objects import (
    NO_COMPILER,
    cuda_container,
    hip_bundle,
    library,
    with_section,
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = library(tmp_path_factory.mktemp("elf") / "libx.so", "x")
    with_section(path, ".hip_fatbin", hip_bundle("gfx936"))
    return with_section(path, ".nv_fatbin", cuda_container((2, 90))).read_bytes()


def _damaged(data: bytes, changes: list[tuple[int, int]], cut: float) -> bytes:
    changed = bytearray(data[: int(len(data) * cut)])
    for place, value in changes:
        if changed:
            changed[place % len(changed)] = value
    return bytes(changed)


# the headers decide: half of the changes go there
_PLACES = st.one_of(st.integers(0, 640), st.integers(0, 2**20))


@NO_COMPILER
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    changes=st.lists(st.tuples(_PLACES, st.integers(0, 255)), max_size=8),
    cut=st.sampled_from([1.0, 1.0, 1.0, 0.9, 0.5, 0.01]),
)
def test_damaged_objects(
    whole: bytes, tmp_path: Path, changes: list[tuple[int, int]], cut: float
) -> None:
    path = tmp_path / "libx.so"
    path.write_bytes(_damaged(whole, changes, cut))
    assert isinstance(read_elf(str(path)), Elf)
    assert isinstance(read_code(str(path)), Code)


@given(st.binary(max_size=400))
def test_any_bytes_as_a_cache(data: bytes) -> None:
    assert isinstance(read_cache(b"glibc-ld.so.cache1.1" + data), dict)
    assert read_cache(data.replace(b"glibc", b"")) == {}


def test_a_cache_as_glibc_writes_it() -> None:
    """Behind the older format, as many machines still have it."""
    texts = b"libc.so.6\0/lib/libc.so.6\0"
    start = 48 + 24
    entry = struct.pack("<iIIIQ", 0x303, start, start + 10, 0, 0)
    new = b"glibc-ld.so.cache1.1" + struct.pack("<II", 1, len(texts)) + b"\0" * 20 + entry + texts
    assert read_cache(new) == {"libc.so.6": ["/lib/libc.so.6"]}
    assert read_cache(b"ld.so-1.7.0\0" + b"\0" * 20 + new) == {"libc.so.6": ["/lib/libc.so.6"]}
