"""Two reports side by side: what differs, and what it means."""

from __future__ import annotations

from typing import Any

import pytest

from envlock.verify.compare import Comparison, Difference, Kind, compare
from envlock.verify.saved import parse
from envlock.verify.words import change, compared, comparison_findings, told
from tests.support.fake_report import case, check, device_report, document


def _compare(old: dict[str, Any], new: dict[str, Any]) -> Comparison:
    return compare(parse(old), parse(new))


def _of_cases(
    old: dict[str, Any], new: dict[str, Any], *, required: bool = True
) -> list[Difference]:
    """What differs between two reports with one case of one check."""
    reports = [
        document(check("x.y", required=required, cases=[case("one", **metrics)]))
        for metrics in (old, new)
    ]
    return list(_compare(*reports).differences)


def test_a_report_does_not_differ_from_itself() -> None:
    report = device_report()
    found = _compare(report, report)
    assert found.differences == ()
    assert (found.cases, found.margins, found.rates) == (166, 146, 18)
    assert compared(found) == "166 cases compared, 146 by margin, 18 by rate"


# margin before, margin now, level
MARGINS = [
    (0.40, 0.45, None),
    (0.40, 0.50, None),  # a tenth of the limit is noise
    (0.40, 0.51, "warning"),
    (0.51, 0.40, "info"),
    (0.0, 0.2, "warning"),
    (0.9, 3.0, "warning"),  # its own status says that it failed
]


@pytest.mark.parametrize(("old", "new", "level"), MARGINS)
def test_numerics_by_margin(old: float, new: float, level: str | None) -> None:
    for before, after in (
        ({"margin": old}, {"margin": new}),
        ({"max_abs": old * 4, "limit": 4}, {"max_abs": new * 4, "limit": 4}),
        ({"fro_rel": old * 4, "fro_limit": 4}, {"fro_rel": new * 4, "fro_limit": 4}),
    ):
        found = _of_cases(before, after)
        assert [(d.kind, d.level) for d in found] == ([(Kind.MARGIN, level)] if level else [])
        assert all(d.change == pytest.approx(new - old) for d in found)


# metric, before, now, spread of both, whether required, level
RATES = [
    ("tflops", 300.0, 290.0, 0.0, False, None),
    ("tflops", 300.0, 286.0, 0.0, False, None),
    ("tflops", 300.0, 284.0, 0.0, False, "warning"),
    ("tflops", 300.0, 100.0, 0.0, False, "warning"),  # performance is no failure by itself
    ("tflops", 300.0, 284.0, 0.0, True, "warning"),
    ("tflops", 300.0, 269.0, 0.0, True, "error"),  # unless the registry requires the check
    ("tflops", 300.0, 320.0, 0.0, True, "info"),
    ("gbps", 48.0, 44.0, 0.0, False, "warning"),
    ("gbps", 48.0, 44.0, 0.05, False, None),  # it scatters by that much
    ("gbps", 48.0, 25.0, 3.0, False, None),
    ("gbps", 48.0, 23.0, 3.0, False, "warning"),  # half is half
    ("seconds_median", 1.0, 1.2, 0.0, False, "warning"),
    ("seconds_median", 1.0, 1.2, 0.0, True, "error"),
    ("seconds_median", 1.0, 0.8, 0.0, True, "info"),
]


@pytest.mark.parametrize(("key", "old", "new", "spread", "required", "level"), RATES)
def test_performance_by_relative_change(
    key: str, old: float, new: float, spread: float, required: bool, level: str | None
) -> None:
    found = _of_cases({key: old, "spread": spread}, {key: new, "spread": spread}, required=required)
    expected = [(Kind.RATE, key, level)] if level else []
    assert [(d.kind, d.metric, d.level) for d in found] == expected
    assert all(d.change == pytest.approx(new / old - 1) for d in found)


def test_more_memory_is_told_and_is_no_failure() -> None:
    found = _of_cases({"tflops": 1.0, "peak_bytes": 2**30}, {"tflops": 1.0, "peak_bytes": 2**31})
    assert [(d.metric, d.level, told(d)) for d in found] == [
        ("peak_bytes", "warning", "2,048 MiB, was 1,024 MiB (+100 %)")
    ]


@pytest.mark.parametrize("odd", ["nan", None, True, 0, [1], {"a": 1}])
def test_what_is_no_number_is_not_compared(odd: Any) -> None:
    assert _of_cases({"tflops": odd, "margin": odd}, {"tflops": 1.0, "margin": odd}) == []


# status before, status now, whether required, level
STATUSES = [
    ("passed", "failed", True, "error"),
    ("passed", "failed", False, "warning"),
    ("passed", "warned", True, "warning"),
    ("warned", "failed", True, "error"),
    ("failed", "passed", True, "info"),
    ("passed", "crashed", True, "error"),
    ("passed", "skipped", True, "error"),
    ("skipped", "passed", True, "info"),
    ("passed", "not-run", True, None),  # the run has not come to it yet
    ("not-run", "failed", True, None),
]


@pytest.mark.parametrize(("old", "new", "required", "level"), STATUSES)
def test_how_checks_ended(old: str, new: str, required: bool, level: str | None) -> None:
    reports = [document(check("x.y", status, required=required)) for status in (old, new)]
    found = _compare(*reports).differences
    assert [(d.kind, d.old, d.new, d.level) for d in found] == (
        [(Kind.STATUS, old, new, level)] if level else []
    )


# key of the configuration, its other value, words
CONFIGURATIONS = [
    ("level", "standard", "full, was standard"),
    ("seed", 7, "336, was 7"),
    ("caches", "warm", "cold, was warm"),
    ("timeout_scale", 4.0, "1.0, was 4.0"),
    ("suite", "sha256:" + "cd" * 32, "other check scripts: shapes or limits may not be the same"),
    ("checks", ["x.y", "a.b"], "only before: a.b"),
]


@pytest.mark.parametrize(("key", "value", "words"), CONFIGURATIONS)
def test_another_configuration_is_said_and_numbers_are_compared(
    key: str, value: Any, words: str
) -> None:
    old = document(check("x.y", cases=[case("one", tflops=300.0)]))
    new = document(check("x.y", cases=[case("one", tflops=200.0)]))
    old["config"][key] = value
    found = _compare(old, new)
    assert not found.same_configuration
    assert [(d.kind, d.subject) for d in found.differences] == [
        (Kind.CONFIG, key), (Kind.RATE, "x.y: one"),
    ]  # fmt: skip
    said = comparison_findings(found)[0]
    assert (said.what, said.level, said.code) == (words, "warning", "baseline.config")


def test_another_kind_of_device_is_another_configuration() -> None:
    old, new = document(check("x.y")), document(check("x.y"))
    old["device"]["kind"] = "cpu"
    assert [d.subject for d in _compare(old, new).differences] == ["device"]


def test_other_shapes_are_another_configuration() -> None:
    old = document(check("x.y", cases=[case("64"), case("128")]))
    new = document(check("x.y", cases=[case("64"), case("256")]))
    (found,) = _compare(old, new).differences
    assert (found.kind, found.subject) == (Kind.CONFIG, "x.y: cases")
    assert told(found) == "only before: 128; only now: 256"


def test_cases_that_a_crash_lost_are_not_other_shapes() -> None:
    old = document(check("x.y", cases=[case("64"), case("128")]))
    new = document(check("x.y", "crashed", cases=[case("64")]))
    assert [d.kind for d in _compare(old, new).differences] == [Kind.STATUS]


def test_a_baseline_that_had_not_ended_is_said() -> None:
    old = document(check("x.y"), verdict="interrupted", exit=130)
    assert [d.subject for d in _compare(old, document(check("x.y"))).differences] == ["verdict"]


# facts before, facts now, differences
FACTS = [
    ({"hip": "6.3"}, {"hip": "6.4"}, [("x.y.hip", "6.3", "6.4")]),
    ({"deep": {"a": 1, "b": 2}}, {"deep": {"a": 1, "b": 3}}, [("x.y.deep.b", 2, 3)]),
    ({"rows": [{"a": 1}]}, {"rows": [{"a": 2}]}, [("x.y.rows[0].a", 1, 2)]),
    ({"list": [1, 2]}, {"list": [1, 2, 3]}, [("x.y.list", [1, 2], [1, 2, 3])]),
    ({"a": 1}, {"a": 1, "b": 2}, [("x.y.b", None, 2)]),
    ({"average_ms": 1.0, "tflops": 3}, {"average_ms": 2.0, "tflops": 4}, []),  # measured
    ({"a": 1, "b": []}, {"a": 1, "b": None}, []),
    ({"cpu_throttled": 3}, {"cpu_throttled": 4}, []),
    ({"samples": {"seconds": [0]}}, {"samples": {"seconds": [1]}}, []),
    ({"sampled": {"power_w": 1}, "busy_before": 3}, {"sampled": {"power_w": 2}}, []),
]


@pytest.mark.parametrize(("old", "new", "expected"), FACTS)
def test_facts_as_facts(
    old: dict[str, Any], new: dict[str, Any], expected: list[tuple[str, Any, Any]]
) -> None:
    reports = [document(check("x.y", facts=facts)) for facts in (old, new)]
    found = _compare(*reports).differences
    assert [(d.subject, d.old, d.new) for d in found] == expected
    assert all((d.kind, d.level) == (Kind.FACT, "info") for d in found)


def test_the_stack_is_a_fact() -> None:
    old, new = document(check("x.y")), document(check("x.y"))
    new["device"]["torch"] = "2.11.0"
    new["target"]["python"] = "3.11.9"
    new["manifest"] = None
    assert {d.subject for d in _compare(old, new).differences} == {
        "device.torch", "python", "manifest",
    }  # fmt: skip


def test_a_device_that_only_one_of_them_asked_is_no_difference() -> None:
    old, new = document(check("x.y")), document(check("x.y"))
    old["device"] = {"kind": "cuda"}
    assert _compare(old, new).differences == ()


def test_the_worst_comes_first_and_many_are_not_all_told() -> None:
    found = _compare(device_report(), device_report(speed=0.8, scale=1.25))
    rates = [d for d in found.differences if d.kind is Kind.RATE]
    assert len(rates) == 18
    assert not found.failed  # performance checks are never required
    margins = [d for d in found.differences if d.kind is Kind.MARGIN]
    sizes = [abs(d.change or 0) for d in margins]
    assert sizes == sorted(sizes, reverse=True)
    said = [f for f in comparison_findings(found) if f.code == "baseline.rate"]
    assert len(said) == 6
    assert said[-1].what.startswith("and 13 more of the kind")
    assert change(rates[0]) == "-20 %"


def test_a_required_check_that_lost_speed_is_a_failure() -> None:
    reports = [document(check("x.y", cases=[case("one", tflops=v)])) for v in (300.0, 200.0)]
    assert _compare(*reports).failed
    assert not _compare(*reversed(reports)).failed
