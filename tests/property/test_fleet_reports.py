"""Whatever a node's file holds: it is merged or named, and everything can be shown."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import jsonschema
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envlock.fleet import document
from envlock.fleet.merge import merge_reports
from envlock.fleet.page import to_html
from envlock.fleet.words import findings, said, sections
from tests.support import simulated

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "docs" / "schemas" / "fleet-1.json").read_text(encoding="utf-8")
)
GOOD = json.dumps(simulated.device_report(2))

_TEXTS = st.one_of(
    st.text(st.characters(), max_size=8), st.sampled_from(["\ud800", "\x1b[2J", "passed", "a@1"])
)
_NUMBERS = st.one_of(
    st.integers(), st.floats(), st.sampled_from([10**400, -1, 1e308, 5e-324, -1e308])
)
_JSON = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=8,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value of a document."""
    found = [path] if path else []
    keys: list[Any] = list(value) if isinstance(value, dict) else []
    keys += range(len(value)) if isinstance(value, list) else []
    for key in keys:
        found += places(value[key], (*path, key))
    return found


# most of a report is deep inside, most of what is read is not
PLACES = [path for path in places(json.loads(GOOD)) if len(path) <= 4 or "metrics" in path]


def replaced(changes: list[tuple[tuple[Any, ...], Any]]) -> str:
    """The good report with other values in some places."""
    whole = json.loads(GOOD)
    for path, value in changes:
        at = whole
        try:
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took the place away
    return json.dumps(whole)


_CHANGES = st.lists(st.tuples(st.sampled_from(PLACES), _JSON), min_size=1, max_size=4)


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(_CHANGES.map(replaced) | _JSON.map(json.dumps), min_size=1, max_size=3))
def test_any_report_can_be_merged_and_shown(texts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for number in range(5):
            (Path(folder) / f"n{number}.json").write_text(GOOD)
        for number, text in enumerate(texts):
            (Path(folder) / f"odd{number}.json").write_text(text)
        merged = merge_reports(folder, [f"n{number}" for number in range(6)])
    assert len(merged.nodes) >= 6
    assert merged.exit_code in (3, 8)  # n5 did not answer
    for section in sections(merged):
        for line in section.lines:
            assert f"{line.nodes}{line.what}".isprintable()
    said(merged).encode()
    page = to_html(merged)
    page.encode()
    assert "<script" not in page
    data = json.loads(json.dumps(document.data(merged), allow_nan=False))
    jsonschema.validate(data, SCHEMA)
    assert all(one.what.isprintable() for one in findings(merged))
    reasons = document.to_drain(merged)
    assert document.drain_list(reasons).isascii()
