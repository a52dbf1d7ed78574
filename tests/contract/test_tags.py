"""Tags and markers computed from facts are those that ``packaging`` finds in the target."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import packaging
import pytest

from envlock.adapters.interpreter import Named, read_target
from envlock.model.facts import TagFacts, supported_tags
from tests.support.pythons import cached_wheels, clean_env, make_venv, python_for

ASK = """
import json, sys
sys.path.insert(0, sys.argv[1])
from packaging.markers import default_environment
from packaging.tags import sys_tags
print(json.dumps({"tags": [str(tag) for tag in sys_tags()], "markers": default_environment()}))
"""

#: Pythons that the current ``packaging`` has left behind.
LAST = ("3.8", "3.9")


def _packaging_for(version: str) -> str:
    """envlock's own ``packaging``, or the last one that still runs on the target."""
    if version in LAST:
        [wheel] = cached_wheels("packaging-25.0", "packaging==25.0").glob("*.whl")
        return str(wheel)
    return str(Path(packaging.__file__).parents[1])


def _ask(python: Path | str, version: str) -> dict[str, Any]:
    done = subprocess.run(
        [str(python), "-I", "-c", ASK, _packaging_for(version)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize(
    "version",
    [
        pytest.param("3.8", marks=pytest.mark.integration),
        pytest.param("3.9", marks=pytest.mark.integration),
        *("3.10", "3.11", "3.12", "3.13"),
    ],
)
def test_same_as_packaging(version: str, tmp_path: Path) -> None:
    base = python_for(version)
    if base is None:
        pytest.skip(f"no Python {version} here")
    for python in (Path(base), make_venv(tmp_path / "v", base)):
        target = read_target(Named(str(python), "--python"), clean_env())
        said = _ask(python, version)
        assert set(target.tags) == set(said["tags"])
        if version not in LAST:  # packaging 26 moved the bare platform to the front
            assert list(target.tags) == said["tags"]
        assert target.markers == said["markers"]


def test_free_threaded_and_debug_builds_are_others() -> None:
    """``cp313t`` never takes a wheel for ``cp313``, nor one with the stable ABI."""
    tags = supported_tags(
        TagFacts(version=(3, 13), abi="cp313t", platform="linux_x86_64", glibc=(2, 35))
    )
    assert tags[1] == "cp313-cp313t-manylinux_2_35_x86_64"
    assert not [tag for tag in tags if "-abi3-" in tag or "-cp313-" in tag]
