"""Stub wheels: a distribution with its metadata and nothing else, for a resolver to see."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable
from pathlib import Path

from packaging.version import InvalidVersion, Version

from envlock.model.dist import Distribution
from envlock.model.wheels import wheel_file_name

_EXTRA = re.compile(r"""extra\s*==\s*["']([\w.-]+)["']""")


def stubbed(held: Iterable[Distribution]) -> list[Distribution]:
    """The distributions that can take part: no resolver reads a version that PEP 440 does not
    know."""
    return [dist for dist in held if _is_valid(dist)]


def _is_valid(dist: Distribution) -> bool:
    try:
        Version(dist.version)
    except InvalidVersion:
        return False
    return True


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


def lines(of: Iterable[str]) -> str:
    """Each on a line of its own."""
    return "".join(f"{line}\n" for line in of)
