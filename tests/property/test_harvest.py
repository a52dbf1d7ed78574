"""Random distributions: install → harvest → install gives the same content digest.

"A rebuilt wheel has the same content digest everywhere": as the wheel it was installed from, as
what it installs, and again when that is harvested, from another prefix, with another compressor.
"""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from envlock.adapters.deflating import COMPRESSORS
from envlock.adapters.wheelfile import WheelFile, inspect_wheel
from envlock.wheelhouse.check import check
from envlock.wheelhouse.harvest import How, harvest
from tests.support.wheels import make_wheel
from tests.wheelhouse.conftest import Place, place

pytestmark = pytest.mark.integration

TOOLS = ["pip", "uv"]
# letters that every installer takes: uv refuses names with unassigned ones
NAMES = st.text("ab_-+ ,'é漢😀", min_size=1, max_size=6) | st.sampled_from(
    [
        "lib.so.1.2",
        "x.pyc",
        "x.data",
        "größe",
        "e\u0301",
        "-",
        "a;b",
        "#",
        "%2B",
        "RECORD",
        ".hidden",
    ]
)
FOLDERS = [
    "pkg/", "pkg/deep/er/", "space/part/", ".data/scripts/", ".data/data/share/",
    ".data/data/bin/", ".data/data/etc/", ".data/headers/", ".data/purelib/", ".data/platlib/",
    ".data/purelib/x.data/",
]  # fmt: skip
CONTENTS = st.one_of(
    st.binary(max_size=50),
    st.just(b""),
    st.sampled_from(
        [
            b"#!python\nprint()\n",
            b"#!pythonw\r\nx",
            b"#!/bin/sh\n'''exec' python\n' '''\n",
            b"\x7fELF tool " * 20,
            b"#!/usr/bin/env bash\n",
            b"text " * 30_000,
        ]
    ),
)
VERSIONS = ["1.0", "2.10.0+das.opt1.dtk2604.20260325.g6b060a", "1!2.0rc1", "0.1.post3.dev2"]


@dataclass(frozen=True)
class Drawn:
    """A distribution: its files, what runs, how it is named."""

    files: dict[str, bytes]
    executable: tuple[str, ...]
    version: str
    purelib: bool
    scripts: str

    def wheel(self, folder: Path) -> Path:
        return make_wheel(
            folder,
            "Some.Pkg",
            self.version,
            self.files,
            executable=self.executable,
            entry_points=self.scripts,
            purelib=self.purelib,
            stored=[name for name in self.files if len(name) % 3 == 0],
        )


def one_place_each(files: dict[str, bytes]) -> dict[str, bytes]:
    """No two names at one place, no name that is a file and a folder."""
    found: dict[str, bytes] = {}
    taken: set[str] = set()
    for name, data in sorted(files.items()):
        scheme, _, rest = name.removeprefix(".data/").partition("/")
        own = rest if name.startswith((".data/purelib/", ".data/platlib/")) else f"{scheme}/{rest}"
        if name.startswith(".data/data/bin/"):
            own = f"scripts/{rest.removeprefix('bin/')}"
        parts = own.split("/")
        above = {"/".join(parts[:end]) for end in range(1, len(parts))}
        if own in taken or above & taken or any(one.startswith(f"{own}/") for one in taken):
            continue
        taken.add(own)
        found[name] = data
    return found


@st.composite
def distributions(draw: st.DrawFn, most: int) -> Drawn:
    names = st.builds("{}{}".format, st.sampled_from(FOLDERS), NAMES)
    files = one_place_each(draw(st.dictionaries(names, CONTENTS, min_size=1, max_size=most)))
    many = draw(st.sampled_from([0, 0, 0, 400]))
    files |= {f"pkg/many/{number}.h": b"" for number in range(many)}
    return Drawn(
        files=files,
        executable=tuple(sorted(draw(st.sets(st.sampled_from(sorted(files)))))),
        version=draw(st.sampled_from(VERSIONS)),
        purelib=draw(st.booleans()),
        scripts=draw(st.sampled_from(["", "[console_scripts]\ngen = pkg:main\n"])),
    )


def outside_bin(places: Sequence[str]) -> list[str]:
    """pip leaves a script without an exec bit that its wheel has none for: bin is as found."""
    return [one for one in places if not one.startswith("bin/")]


def harvested(here: Place, folder: Path, compress: str) -> tuple[Path, WheelFile]:
    done = harvest(here.target, here.manifest, str(folder), How(compress=compress))
    assert done.findings == ()
    assert check(str(folder)).findings == ()
    (wheel,) = done.packed
    assert wheel.origin == "rebuilt"
    return folder / wheel.file, inspect_wheel(str(folder / wheel.file))


def round_trip(drawn: Drawn, tools: Sequence[str], compress: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = drawn.wheel(folder / "in")
        original = inspect_wheel(str(wheel))
        assert [p.what for p in original.problems if p.code != "wheel.case"] == []
        first, again = harvested(place(folder / "venv", [wheel], tools[0]), folder / "W", compress)
        assert again.content == original.content
        assert outside_bin(again.executable) == outside_bin(original.executable)
        there = place(folder / ("another prefix " + "x" * 100), [first], tools[1])
        assert there.manifest.distributions[0].content == original.content
        second, _ = harvested(there, folder / "W2", compress)
        assert second.name == first.name
        assert second.read_bytes() == first.read_bytes()
        if compress == "none":
            with zipfile.ZipFile(second) as archive:
                assert sum(info.compress_size for info in archive.infolist()) == sum(
                    info.file_size for info in archive.infolist()
                )


SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@settings(
    max_examples=8, derandomize=True, database=None, phases=[Phase.generate],
    suppress_health_check=SLOW,
)  # fmt: skip
@given(distributions(8), st.permutations(TOOLS), st.sampled_from(list(COMPRESSORS)))
def test_a_few_distributions(drawn: Drawn, tools: Sequence[str], compress: str) -> None:
    round_trip(drawn, tools, compress)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_file_that_is_named_like_a_data_folder(tool: str) -> None:
    files = {".data/purelib/x.data": b"", "pkg/__init__.py": b"x = 1\n"}
    drawn = Drawn(files=files, executable=(), version="1.0", purelib=False, scripts="")
    round_trip(drawn, [tool, tool], "fast")


@pytest.mark.long
@settings(
    max_examples=150, derandomize=False, database=None, suppress_health_check=SLOW
)  # fmt: skip
@given(
    distributions(20),
    st.lists(st.sampled_from(TOOLS), min_size=2, max_size=2),
    st.sampled_from(list(COMPRESSORS)),
)
def test_many_distributions(drawn: Drawn, tools: Sequence[str], compress: str) -> None:
    round_trip(drawn, tools, compress)
