"""What modules say of themselves: read, kept beside the metadata, never imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from envlock.adapters.modules import module_facts
from tests.adapters.site import Site

MARKS = ("__hcu_version__", "__dcu_version__")
TORCH = """
from typing import Optional
__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip']
__version__ = '2.10.0'
debug = False
cuda: Optional[str] = None
git_version = '6b060a1234567890'
hip: Optional[str] = '6.3.26093'
__hcu_version__ = '2.10.0+das.opt1.dtk2604'
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def facts(site: Site) -> dict[str, str]:
    return dict(module_facts(site.one(), MARKS))


def test_torch(site: Site) -> None:
    label = "2.10.0+das.opt1.dtk2604.20260325.g6b060a"
    site.add("torch", label, {"torch/__init__.py": "raise 1\n", "torch/version.py": TORCH})
    assert facts(site) == {
        "__version__": "2.10.0",
        "hip": "6.3.26093",
        "git_version": "6b060a1234567890",
        "__hcu_version__": "2.10.0+das.opt1.dtk2604",
    }


def test_a_module_that_contradicts_its_metadata(site: Site) -> None:
    """Both are kept: neither is the other's fault."""
    site.add(
        "flash_attn", "2.8.3+das.opt1.dtk2604.torch2100",
        {
            "flash_attn/__init__.py": '__version__ = "2.6.1"\n',
            "flash_attn/version.py": "version = '2.6.1'\nabi = 1\ndtk = '26.04'\n",
        },
    )  # fmt: skip
    assert site.one().version.startswith("2.8.3")
    assert facts(site) == {"__version__": "2.6.1", "version": "2.6.1", "dtk": "26.04", "abi": "1"}


def test_a_name_that_is_written_in_another_way(site: Site) -> None:
    site.add("PyYAML-ft", "1", {"PyYAML_ft/__init__.py": "__version__ = '1.0'\n"})
    assert facts(site) == {"__version__": "1.0"}


def test_what_the_metadata_says_already(site: Site) -> None:
    site.add("x", "1.0", {"x/__init__.py": "__version__ = version = '1.0'\nhip = '6.3.26093'\n"})
    assert facts(site) == {"hip": "6.3.26093"}


@pytest.mark.parametrize(
    "text",
    [
        "__version__ = make()\n",
        "__version__ = ''\n",
        "__version__ = '/home/somebody/x'\n",  # no path gets into a manifest that is shared
        "__version__ = 'a\\nb'\n",
        f"__version__ = '{'1' * 200}'\n",
        "__version__ = 1.5\n",
        "if x:\n    __version__ = '1'\n",
        "def\n",
        "\x00",
        "x = '\\d'\n",
        f"__version__ = '1'\n# {'x' * 70_000}\n",
        "(" * 5000,
    ],
)
def test_what_is_not_kept(site: Site, text: str) -> None:
    site.add("x", "1.0", {"x/__init__.py": text})
    assert facts(site) == {}


def test_no_module(site: Site) -> None:
    site.add("x", "1.0", {"other/__init__.py": "__version__ = '1'\n"})
    assert facts(site) == {}
    (site.add("y", "1.0", {"y/__init__.py": "__version__ = '1'\n"}) / "RECORD").unlink()
    assert [module_facts(dist) for dist in site.dists()] == [(), ()]
