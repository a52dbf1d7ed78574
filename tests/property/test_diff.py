"""The laws of a comparison: a manifest is like itself, both sides tell the same, nothing is
missed."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from envlock.errors import UnusableInput
from envlock.model.diff import compare
from envlock.model.diff_words import fact_row, finding_of, said, to_data, verdict
from envlock.model.manifest import Manifest, dump, load, to_document
from tests.property.strategies import AWKWARD, LABELS, manifests

_MAKING = ("schema", "created", "tool")


@given(manifests)
def test_a_manifest_is_like_itself(manifest: Manifest) -> None:
    """diff(a, a) is empty."""
    assert compare(manifest, manifest).count == 0
    assert compare(manifest, load(dump(manifest))).count == 0


@given(manifests, manifests)
def test_both_sides_tell_the_same(old: Manifest, new: Manifest) -> None:
    """diff(a, b) mirrors diff(b, a)."""
    found, back = compare(old, new), compare(new, old)
    assert found.mirrored() == back
    assert found.mirrored().mirrored() == found
    assert (found.count == 0) == (back.count == 0)


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every scalar and every list or mapping."""
    if path:
        yield path
    if isinstance(value, dict):
        for key in value:
            yield from _leaves(value[key], (*path, key))
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _leaves(one, (*path, index))


def _spoil(document: Any, path: tuple[Any, ...], how: Any) -> None:
    """Removes a value, or puts another in its place."""
    *above, last = path
    for key in above:
        document = document[key]
    if how is None:
        del document[last]
    else:
        document[last] = how


_OTHERS = st.none() | st.sampled_from(
    [*AWKWARD, *(f"1.0{label}" for label in LABELS), 7, True, [], f"sha256:{'c' * 64}"]
)


@given(manifests, st.data())
def test_every_change_is_named(manifest: Manifest, data: st.DataObject) -> None:
    """Every change made to a manifest is named."""
    document = yaml.safe_load(yaml.safe_dump(_plain(to_document(manifest))))
    path = data.draw(st.sampled_from([p for p in _leaves(document) if p[0] not in _MAKING]))
    spoiled = copy.deepcopy(document)
    _spoil(spoiled, path, data.draw(_OTHERS))
    try:
        changed = load(yaml.safe_dump(spoiled))
    except UnusableInput:
        assume(False)
    assume(changed != manifest)
    found = compare(manifest, changed)
    assert found.count > 0
    assert not verdict(found).startswith("no difference")
    assert all(said(change) for change in found.changes)
    assert all(len(fact_row(fact)) == 5 for fact in found.facts)
    if path[0] == "distributions" and len(path) > 1:
        named = {change.name for change in found.changes}
        assert manifest.distributions[path[1]].name in named
        assert {finding_of(change).subject for change in found.changes} == named


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value


@given(manifests, manifests)
def test_as_json(old: Manifest, new: Manifest) -> None:
    """As many distributions, facts and findings in the document as there are differences."""
    found = compare(old, new)
    data = to_data(found, {})
    health = data["health"]
    listed = [*data["distributions"], *data["facts"], *health["appeared"], *health["gone"]]
    assert len(listed) == found.count
    assert data["same"] == (not listed)
