"""Every label that vendors have published, from file names, direct URLs and installed metadata."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.model.label import is_version, parse_label, same_version, split_version
from envlock.model.wheels import parse_wheel_name
from tests.model.labels import FILES, URLS, VERSIONS, Seen


def _version_in(file: str) -> str:
    """The version as the file name spells it, before any normalisation."""
    return unquote(file).split("-")[1]


@pytest.mark.parametrize("file", [*FILES, *URLS])
def test_published_wheel(file: str) -> None:
    label = parse_label(_version_in(file))
    assert Seen.of(label) == {**FILES, **URLS}[file]
    assert label.raw == _version_in(file)


@pytest.mark.parametrize("version", VERSIONS)
def test_installed_version(version: str) -> None:
    assert Seen.of(parse_label(version)) == VERSIONS[version]


@pytest.mark.parametrize("file", [*FILES, *(unquote(url) for url in URLS)])
def test_published_file_name_is_readable(file: str) -> None:
    """Also the ones that PEP 440 does not know: the same label comes out of the name's version."""
    found = parse_wheel_name(file)
    assert Seen.of(parse_label(found.version)) == Seen.of(parse_label(_version_in(file)))


@pytest.mark.parametrize(
    ("version", "public", "local"),
    [
        ("2.10.0", "2.10.0", ""),
        ("0.1_gita38191a_dtk22.04.2", "0.1", "gita38191a_dtk22.04.2"),
        ("2.1.0+das1.0+git00661e0.dtk2404", "2.1.0", "das1.0+git00661e0.dtk2404"),
        ("18.1das.dtk2604", "18.1", "das.dtk2604"),
        ("1.0.das", "1.0.", "das"),
        ("", "", ""),
        ("+", "", ""),
    ],
)
def test_split(version: str, public: str, local: str) -> None:
    assert split_version(version) == (public, local)


def test_releases_order_by_month_then_patch() -> None:
    """``dtk25042`` is older than ``dtk2604`` though it is the larger number."""
    newer = parse_label("1+dtk2604").release
    older = parse_label("1+dtk25042").release
    assert older is not None
    assert newer is not None
    assert older < newer


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2.9+abi0.dtk23.04.1", "2.9+abi0.dtk23.4.1", True),
        ("2.9+dtk.04.1", "2.9+dtk.4.1", True),
        ("2.10.0+das.dtk2604", "2.10.0", False),
        ("2.10+das.dtk2604", "2.10.0+DAS.dtk2604", True),
        ("0.1_dtk22.04.1", "0.1_dtk22.04.1", True),
        ("0.1_dtk22.04.1", "0.1_dtk22.04.2", False),
        ("1.0+dtk2604", "1.0+dtk25042", False),
        ("2.1.0+das1.0+git1", "2.1.0+das1.0+git1", True),
        ("2.1.0+das1.0+git1", "2.1.0+das1.0+git2", False),
    ],
)
def test_same_version(one: str, other: str, same: bool) -> None:
    assert same_version(one, other) is same
    assert same_version(other, one) is same


@given(st.text())
def test_any_text_is_a_version(text: str) -> None:
    """Nothing ever raises on a strange version, and the raw string is kept."""
    label = parse_label(text)
    assert label.raw == text
    assert same_version(text, text)


SEGMENTS = st.sampled_from(
    [
        *("das", "das1.1", "das185", "opt1", "rc2", "g6b060a", "git00661e0", "abi0", "hcuopt1"),
        *("dtk2604", "dtk25041", "dtk22.10", "dtk23.04.1", "torch271", "torch2100", "torch29"),
        *("torch2.1.0", "cu130", "rocm6.4", "cpu", "staging"),
        *("20260325", "2608171710", "202604021232"),
    ]
)


@given(st.lists(SEGMENTS, max_size=8), st.sampled_from("._-+"))
def test_segments_in_any_order(segments: list[str], joint: str) -> None:
    """Order is not fixed: a stamp stays a stamp wherever it stands."""
    label = parse_label("1.0+" + joint.join(segments))
    stamps = [part for part in segments if part.isdigit()]
    assert (label.stamp in stamps) if stamps else label.stamp is None
    assert (label.das is not None) is any(part.startswith("das") for part in segments)
    assert (label.release is not None) is any(part.startswith("dtk") for part in segments)


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("2.10.0+das.opt1.dtk2604.20260325.g6b060a", True),
        ("1.0-1", True),
        ("", False),
        ("2.10.0+das+opt", False),
        ("2.1.0a0_das", False),
    ],
)
def test_versions_that_pep_440_knows(text: str, known: bool) -> None:
    assert is_version(text) is known
