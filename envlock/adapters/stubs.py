"""Stub wheels: a distribution with its metadata and nothing else, for a resolver to see."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable
from pathlib import Path

from envlock.adapters.resolving import Question
from envlock.model.dist import Distribution
from envlock.model.label import is_version
from envlock.model.wheels import wheel_file_name

_EXTRA = re.compile(r"""extra\s*==\s*["']([\w.-]+)["']""")


def stubbed(held: Iterable[Distribution]) -> list[Distribution]:
    """The distributions that can take part: no resolver reads a version that PEP 440 does not
    know."""
    return [dist for dist in held if is_version(dist.version)]


def write_stub(folder: Path, dist: Distribution) -> None:
    """A wheel with the metadata of a distribution, for every Python and platform."""
    file = wheel_file_name(dist.name, dist.version, "", "py3-none-any")
    info = f"{'-'.join(file.split('-')[:2])}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {dist.name}\nVersion: {dist.version}\n"
    metadata += "".join(f"Requires-Dist: {line}\n" for line in dist.requires)
    extras = sorted({name for line in dist.requires for name in _EXTRA.findall(line)})
    metadata += "".join(f"Provides-Extra: {name}\n" for name in extras)
    with zipfile.ZipFile(folder / file, "w") as stub:
        stub.writestr(f"{info}/METADATA", metadata)
        stub.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        stub.writestr(f"{info}/RECORD", "")


def lay_out(folder: Path, question: Question) -> list[Distribution]:
    """Writes what every resolver is given: ``asked.in``, ``limits.txt`` and the folder ``stubs``.

    Returns:
        The held distributions that take part.
    """
    held = stubbed(question.held)
    stubs = folder / "stubs"
    stubs.mkdir()
    for dist in held:
        write_stub(stubs, dist)
    (folder / "asked.in").write_text(_lines(question.requirements), encoding="utf-8")
    (folder / "limits.txt").write_text(_lines(question.constraints), encoding="utf-8")
    return held


def _lines(of: Iterable[str]) -> str:
    """Each on a line of its own."""
    return "".join(f"{line}\n" for line in of)
