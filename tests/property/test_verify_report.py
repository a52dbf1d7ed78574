"""Whatever checks answer, a run is not lost by showing or comparing it."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envlock.model.check import METRICS, SAMPLES, Status
from envlock.verify import report as reports
from envlock.verify.compare import compare
from envlock.verify.junit import to_xml
from envlock.verify.page import to_html
from envlock.verify.saved import parse
from envlock.verify.words import comparison_findings
from tests.support.fake_report import case, check, document

_TEXTS = st.text(max_size=12) | st.sampled_from(["nan", "<script>", "https://a:b@c/"])
_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _TEXTS
_SCALARS = _SCALARS.filter(lambda value: value not in (float("inf"), float("-inf")))
_JSON = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=6,
)
_METRICS = st.dictionaries(st.sampled_from([*METRICS]) | _TEXTS, _JSON, max_size=6)
_SAMPLES = st.dictionaries(st.sampled_from([*SAMPLES]), st.lists(_SCALARS, max_size=5) | _JSON)
_FACTS = st.dictionaries(_TEXTS, _JSON, max_size=3) | st.fixed_dictionaries({"samples": _SAMPLES})
_STATUSES = st.sampled_from([status.value for status in Status])
_CASES = st.builds(
    lambda name, status, reason, metrics: case(name, status, reason) | {"metrics": metrics},
    st.sampled_from("abc"), _STATUSES, _TEXTS, _METRICS,
)  # fmt: skip
_CHECKS = st.builds(
    lambda name, status, **more: check(name, status, **more),
    st.sampled_from(["num.a", "perf.b", "static.lock"]), _STATUSES,
    required=st.booleans(), reason=_TEXTS, output=_TEXTS, facts=_FACTS,
    cases=st.lists(_CASES, max_size=3), seconds=st.floats(0, 1e4),
)  # fmt: skip
_REPORTS = st.lists(_CHECKS, max_size=3, unique_by=lambda one: one["id"]).map(
    lambda checks: document(*checks)
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(_REPORTS, _REPORTS)
def test_any_two_reports_can_be_compared_and_shown(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    before, after = parse(old), parse(new)
    found = compare(before, after)
    comparison_findings(found)
    whole = reports.with_baseline(new, before, found)
    json.loads(reports.to_text(whole))
    ElementTree.fromstring(to_xml(parse(whole)).encode())
    page = to_html(parse(whole), before)
    assert "<script" not in page
    assert compare(after, after).differences == ()
