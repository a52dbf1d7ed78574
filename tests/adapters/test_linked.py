"""Builds of a vendor without any label, told by the libraries their objects need."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.adapters.elf import read_elf
from envlock.adapters.fatbin import Code, read_code
from envlock.adapters.linked import needed, runtime_library, stem
from envlock.adapters.profiles import load_profile
from envlock.snapshot import signals
from tests.adapters.site import Site
from tests.support.elf_files import shared_object
from tests.support.objects import NO_COMPILER, library

DTK, ROCM, CUDA, CPU = (load_profile(name) for name in ("dtk", "rocm", "cuda", "cpu"))
STEMS = DTK.runtime.linked


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.mark.parametrize(
    ("name", "version", "needs"),
    [
        ("triton", "3.4.0+git1ef59765", ["libgalaxyhip.so.5", "libstdc++.so.6"]),
        ("triton", "3.6.0+gitc73250c4.staging", ["libc.so.6", "libgalaxyhip.so.5"]),
        ("flash_mla", "1.0.0", ["libgalaxyhip.so.5"]),
        ("cupy", "12.3.0", ["libamdhip64.so.5"]),
        ("aiter", "0.1.dev1+g9daa788.d20260401", ["libamdhip64.so.5"]),
    ],
)
def test_a_build_without_a_label(site: Site, name: str, version: str, needs: list[str]) -> None:
    site.add(name, version, {f"{name}/_C/core.so": shared_object(needs)})
    assert signals(site.one(), DTK) == ("runtime-library",)
    assert signals(site.one(), CUDA) == signals(site.one(), CPU) == ()


@pytest.mark.parametrize(
    ("version", "needs"),
    [
        ("1.1+ubuntu0.2", ["libc.so.6"]),  # of a Linux distribution
        ("25.1.0+8dc45db", ["libc.so.6"]),  # of a commit
        ("2.3.0a0+ebedce2", ["libcudart.so.12"]),
        ("24.5.3+02cbffb.dirty", []),
        ("1.0", ["libgalaxyhipster.so.1"]),
        ("1.0", ["mylibgalaxyhip.so"]),
    ],
)
def test_what_is_no_vendors(site: Site, version: str, needs: list[str]) -> None:
    site.add("some", version, {"some/core.so": shared_object(needs)})
    assert [signals(site.one(), profile) for profile in (DTK, ROCM, CUDA, CPU)] == [()] * 4


def test_signals_stand_beside_each_other(site: Site) -> None:
    site.add("torch", "2.9.0+das.dtk2604", {"torch/a.so": shared_object(["libgalaxyhip.so.5"])})
    assert signals(site.one(), DTK) == ("label", "runtime-library")


def test_who_brings_the_runtime_along_is_whole_without_a_vendor(site: Site) -> None:
    """A wheel from an index that has AMD's runtime inside can be had from there again."""
    objects = {"x/a.so": shared_object(["libamdhip64.so.6"])}
    site.add("x", "1.0", {**objects, "x/lib/libamdhip64.so": shared_object([])})
    assert runtime_library(site.one(), STEMS) == ""
    assert runtime_library(site.one(), ()) == ""


def test_any_object_of_many(site: Site) -> None:
    plain = {f"x/{n}.so": shared_object(["libc.so.6"]) for n in range(5)}
    site.add("x", "1.0", {**plain, "x/z.so.5": shared_object(["libc.so.6", "libamdhip64.so.5"])})
    assert runtime_library(site.one(), STEMS) == "libamdhip64.so.5"


def test_what_is_missing_or_broken_needs_nothing(site: Site, tmp_path: Path) -> None:
    site.add("x", "1.0", {"x/a.so": b"\x7fELF", "x/b.so": "INPUT ( libc.so )", "x/c.so": b""})
    (site.site / "x/a.so").unlink()
    assert runtime_library(site.one(), STEMS) == ""
    (site.add("y", "1.0") / "RECORD").unlink()
    assert [runtime_library(dist, STEMS) for dist in site.dists()] == ["", ""]


@pytest.mark.parametrize(
    ("library", "without"),
    [("libamdhip64.so.5", "libamdhip64.so"), ("libx.so", "libx.so"), ("libx.so.6.4.1", "libx.so"),
     ("libc++.so.1", "libc++.so"), ("a.sox", "a.sox")],
)  # fmt: skip
def test_names_without_version(library: str, without: str) -> None:
    assert stem(library) == without


@pytest.mark.parametrize("base", [0, 0x1000, 0x400000])
def test_addresses_and_places_differ(base: int, tmp_path: Path) -> None:
    path = tmp_path / "a.so"
    path.write_bytes(shared_object(["liba.so.1", "libb.so"], base=base))
    assert needed(str(path)) == ("liba.so.1", "libb.so")


@NO_COMPILER
def test_the_same_as_the_reader_of_whole_objects(tmp_path: Path) -> None:
    one = library(tmp_path / "libgalaxyhip.so.5", "one")
    other = library(tmp_path / "libother.so", "other", needs=[one])
    for path in (one, other):
        assert needed(str(path)) == read_elf(str(path)).needed
    assert "libgalaxyhip.so.5" in needed(str(other))


def test_an_object_of_another_width(tmp_path: Path) -> None:
    """Read by pyelftools, as whatever is not as all objects here are."""
    names = b"\0liba.so\0"
    tags = struct.pack("<6I", 1, 1, 5, 0x74 + 32, 0, 0) + bytes(8)
    head = struct.pack(
        "<16sHHIIIIIHHHHHH", b"\x7fELF\x01\x01\x01" + bytes(9), 3, 3, 1, 0, 52, 0, 0, 52, 32, 2,
        40, 0, 0,
    )  # fmt: skip
    size = 0x74 + len(tags) + len(names)
    load = struct.pack("<8I", 1, 0, 0, 0, size, size, 5, 4096)
    dynamic = struct.pack("<8I", 2, 0x74, 0x74, 0x74, len(tags), len(tags), 6, 4)
    path = tmp_path / "a.so"
    path.write_bytes(head + load + dynamic + tags + names)
    assert needed(str(path)) == ("liba.so",)


def test_a_place_beyond_every_file(tmp_path: Path) -> None:
    """The table of segments at 2**63 and more: no file can be read from there."""
    whole = bytearray(shared_object(["libamdhip64.so.5"]))
    whole[32:48] = b"\xff" * 16
    path = tmp_path / "a.so"
    path.write_bytes(whole)
    assert needed(str(path)) == ()
    assert read_elf(str(path)).reason
    assert read_code(str(path)) == Code()


@given(st.binary(max_size=200), st.integers(0, 400))
def test_damage_is_no_error(noise: bytes, place: int) -> None:
    whole = bytearray(shared_object(["libamdhip64.so.5"]))
    whole[place : place + len(noise)] = noise
    with tempfile.NamedTemporaryFile() as file:
        file.write(whole)
        file.flush()
        assert all(isinstance(name, str) for name in needed(file.name))
