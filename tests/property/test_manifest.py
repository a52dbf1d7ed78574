"""The manifest's law: what is written is what is read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.errors import UnusableInput
from envlock.model.manifest import Manifest, dump, load
from tests.property.strategies import manifests


@given(manifests)
def test_round_trip(manifest: Manifest) -> None:
    """``load(dump(m)) == m``."""
    text = dump(manifest)
    assert load(text) == manifest
    assert dump(load(text)) == text


@given(manifests, st.data())
def test_cut_off_anywhere(manifest: Manifest, data: st.DataObject) -> None:
    """A truncated manifest is an input that cannot be used, wherever it was cut."""
    whole = dump(manifest)
    end = data.draw(st.integers(0, len(whole.rstrip()) - 1))
    with pytest.raises(UnusableInput) as caught:
        load(whole[:end], "lock.yaml")
    assert caught.value.message.startswith("lock.yaml: ")


@given(st.text(max_size=60))
def test_any_text(text: str) -> None:
    """Whatever the file holds: a manifest, or a message that names the file."""
    try:
        load(text, "lock.yaml")
    except UnusableInput as error:
        assert error.message.startswith("lock.yaml: ")
        assert "\n" not in error.message
