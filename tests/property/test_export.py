"""Whatever is in a manifest: a file that pip and uv can parse, and nothing vanishes in silence."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.pylock import Pylock
from packaging.requirements import Requirement

from envlock.adapters.exports import FORMATS, Wanted, export
from envlock.errors import UnusableInput
from envlock.model.manifest import Manifest
from tests.property.strategies import manifests

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def named(text: str) -> list[str]:
    """What a file of requirements or constraints names, each line read as pip reads it."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return [Requirement(line.partition(" --hash=")[0]).name for line in lines]


@pytest.mark.parametrize("format_name", FORMATS)
@given(manifest=manifests, hashes=st.booleans())
def test_every_distribution_is_written_or_named(
    format_name: str, manifest: Manifest, hashes: bool
) -> None:
    try:
        made = export(manifest, Wanted(format=format_name, hashes=hashes))
    except UnusableInput as error:
        assert error.message.startswith(f"{format_name}: nothing to write: ")
        return
    written = [dist.name for dist in made.written]
    left_out = [one for one in made.findings if one.code == "export.left-out"]
    assert len(written) + len(left_out) == len(manifest.distributions)
    assert made.incomplete == any(one.level == "error" for one in left_out)
    if format_name == "pylock":
        lock = Pylock.from_dict(tomllib.loads(made.text))
        assert [str(package.name) for package in lock.packages] == written
    else:
        assert named(made.text) == written
