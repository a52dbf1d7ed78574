"""The reading of METADATA."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.model.dist import Distribution, Metadata, parse_metadata


def test_headers() -> None:
    text = (
        "Metadata-Version: 2.1\nName: Flash_Attn\nVersion: 2.8.3+das.opt1.dtk2604\n"
        "Requires-Dist: torch\nRequires-Dist: einops>=0.6 ;\n  extra == 'all'\n"
        "Requires-Python: >=3.8\nProvides-Extra: all\n\nName: not this\n"
    )
    found = parse_metadata(text)
    assert found == Metadata(
        name="Flash_Attn",
        version="2.8.3+das.opt1.dtk2604",
        requires=("torch", "einops>=0.6 ; extra == 'all'"),
        requires_python=">=3.8",
        extras=("all",),
    )
    assert found.canonical == "flash-attn"


@pytest.mark.parametrize(
    ("text", "name", "version"),
    [
        ("", "", ""),
        ("garbage", "", ""),
        ("Name: a\r\nVersion: 1\r\n", "a", "1"),
        ("name: a\nVERSION: 0.1_dtk22.04.1\n", "a", "0.1_dtk22.04.1"),
        ("Name: é\nVersion: not a version\n", "é", "not a version"),
    ],
)
def test_odd_metadata(text: str, name: str, version: str) -> None:
    found = parse_metadata(text)
    assert (found.name, found.version) == (name, version)


@pytest.mark.parametrize("requirement", ["pytz (>dev)", "a @ http://h/%2Bx", "torch==2.10.0+das.x"])
def test_requirements_stay_raw(requirement: str) -> None:
    assert parse_metadata(f"Name: a\nRequires-Dist: {requirement}\n").requires == (requirement,)


@given(st.text())
def test_any_text(text: str) -> None:
    """Nothing is validated and nothing raises."""
    assert isinstance(parse_metadata(text).canonical, str)


def test_key_sorts_by_name_then_version() -> None:
    dists = [Distribution(name=n, version=v) for n, v in [("b", "1"), ("a", "2"), ("a", "1")]]
    assert [str(dist) for dist in sorted(dists, key=lambda dist: dist.key)] == ["a 1", "a 2", "b 1"]
