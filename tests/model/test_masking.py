"""Secrets never leave."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.model.masking import mask, without_places

MASKED = [
    ("https://me:secret@host/simple", "https://****@host/simple"),
    ("https://secret@host", "https://****@host"),
    ("https://me:sec@ret@host/x", "https://****@host/x"),
    ("https://me:it's@host/x", "https://****@host/x"),
    ("git+ssh://git:secret@host/a.git@v1", "git+ssh://****@host/a.git@v1"),
    ("a https://u:p@h b http://u:p@i c", "a https://****@h b http://****@i c"),
    ("pkg @ https://me:secret@host/d.whl", "pkg @ https://****@host/d.whl"),
    ("https://host/path?to=a@b", "https://host/path?to=a@b"),
    ("https://host?to=a@b", "https://host?to=a@b"),
    ("https://host#a@b", "https://host#a@b"),
    ("me@host", "me@host"),
    ("no url", "no url"),
]


@pytest.mark.parametrize(("text", "shown"), MASKED)
def test_mask(text: str, shown: str) -> None:
    assert mask(text) == shown
    assert mask(shown) == shown


secrets = st.text(st.characters(exclude_categories=["Cs", "Z", "C"], exclude_characters='/?#"'),
                  min_size=8)  # fmt: skip


@given(st.text(max_size=20), secrets, st.text(max_size=20))
def test_no_part_of_a_password_is_left(before: str, secret: str, after: str) -> None:
    text = f"{before} https://user:{secret}@host/ {after}"
    assert mask(text) == f"{mask(before + ' ')}https://****@host/{mask(' ' + after)}"


@given(st.dictionaries(st.text(max_size=9), st.text() | st.sampled_from([t for t, _ in MASKED])))
def test_a_masked_document_is_still_one(document: dict[str, str]) -> None:
    assert set(json.loads(mask(json.dumps(document, indent=2)))) <= set(map(mask, document))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("removing '/home/me/v/lib/~orch'", "removing 'lib/~orch'"),
        ("copy in '/home/you/.local/site-packages'", "copy in '…/site-packages'"),
        ("'/a/' and '/b/c/'", "'/a/' and '…/c'"),
        ("'lib/x.py': No such file", "'lib/x.py': No such file"),
        ("see https://me:pw@host/x", "see https://****@host/x"),
    ],
)
def test_without_places(text: str, shown: str) -> None:
    assert without_places(text, "/home/me/v") == shown
