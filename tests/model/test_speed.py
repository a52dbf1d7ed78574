"""Figures against what a device can do."""

from __future__ import annotations

from typing import Any

import pytest

from envlock.adapters.profiles import bundled_profiles, load_profile
from envlock.errors import UnusableInput
from envlock.model.check import Case, Status
from envlock.model.profile import Peaks, read_profile
from envlock.model.reading import Node
from envlock.model.speed import judged

PEAKS = Peaks(
    name="BW",
    compute_units=80,
    values={"fp16": 480.0, "memory": 1600.0},
    measured={"gemm fp16 8192": 301.9, "copy 1024 MiB": 1322.5},
)
LARGE = 2 * 8192**3


def _case(name: str = "gemm fp16 8192", status: Status = Status.PASSED, **metrics: Any) -> Case:
    return Case(name=name, status=status, metrics={"resource": "fp16", "flops": LARGE, **metrics})


# case -> status, words of the reason
JUDGED = [
    (_case(tflops=300.0), "passed", ""),
    (_case(tflops=504.0), "passed", ""),  # a clock above the nominal one
    (_case(tflops=505.0), "error", "more than the device can do"),
    (_case(tflops=220.0), "warned", "73% of what a healthy device reaches (301.9)"),
    (_case("gemm fp16 9000", tflops=250.0), "passed", ""),  # nobody measured it
    (_case("gemm fp16 9000", tflops=230.0, floor=0.5), "warned", "48% of the maker's figure (480)"),
    (_case("gemm fp16 2048", tflops=9.0), "passed", ""),  # a launch is timed
    (_case("gemm fp16 2048", tflops=1e5), "error", "more than the device"),
    (_case(tflops=220.0, status=Status.FAILED), "failed", ""),  # a wrong answer comes first
    (_case(tflops=1e5, status=Status.ERROR), "error", ""),
    (_case(tflops=1e5, status=Status.WARNED), "error", "mismeasured"),
    (_case(tflops="nan"), "passed", ""),
    (_case("copy 1024 MiB", resource="memory", gbps=900.0, bytes=1 << 31), "warned", "68%"),
    (_case("launch", resource=None), "passed", ""),
]


@pytest.mark.parametrize(("case", "status", "words"), JUDGED)
def test_figures_are_judged(case: Case, status: str, words: str) -> None:
    (found,) = judged([case], PEAKS)
    assert found.status.value == status
    assert words in found.reason
    assert {**found.metrics, **case.metrics} == found.metrics


def test_the_report_says_what_was_compared_with() -> None:
    (found,) = judged([_case(tflops=301.9)], PEAKS)
    metrics = found.metrics
    assert (metrics["reference"], metrics["ratio"]) == (480.0, 0.629)
    assert (metrics["typical"], metrics["typical_ratio"]) == (301.9, 1.0)
    case = _case(tflops=1e9)
    assert judged([case], None) == (case,)


def test_a_device_is_known_by_name_and_units() -> None:
    dtk, cuda = load_profile("dtk"), load_profile("cuda")
    bw = dtk.peaks_of("BW", 80)
    assert bw is not None
    assert bw.values["fp16"] == 480.0
    assert dtk.peaks_of("BW", 64) is None  # another card of the same name
    assert dtk.peaks_of("BW1", 80) is None
    h200 = cuda.peaks_of("NVIDIA H200", 132)
    assert h200 is not None
    assert h200.values["memory"] == 4800.0
    nvl = cuda.peaks_of("NVIDIA H200 NVL", 132)
    assert nvl is not None
    assert nvl.values["bf16"] == 836.0
    assert cuda.peaks_of("NVIDIA A100-PCIE-40GB", 108) is not None


def test_what_was_measured_is_below_the_makers_figures() -> None:
    """A slip in a table would make a healthy card impossible, or a sick one healthy."""
    kinds = {"gemm": 1, "h2d": 0, "d2h": 0, "copy": 0, "add": 0}
    for peaks in (one for profile in bundled_profiles() for one in profile.peaks):
        assert set(peaks.values) == {"fp16", "bf16", "fp32", "fp64", "memory", "host"}
        for name, figure in peaks.measured.items():
            words = name.split()
            assert words[0] in kinds
            resource = words[1] if words[0] == "gemm" else "memory"
            resource = "host" if words[0] in ("h2d", "d2h") else resource
            assert 0.1 < figure / peaks.values[resource] < 1, name


@pytest.mark.parametrize(
    ("peaks", "words"),
    [
        ([{"name": "("}], r"peaks\[0\].name: expected a regular expression"),
        ([{"values": {"fp16": "1"}}], r"peaks\[0\].name: expected text"),
        ([{"name": "A", "values": {"fp16": "0"}}], r"values.fp16: expected a number above zero"),
        ([{"name": "A", "values": {"fp16": "inf"}}], r"values.fp16: expected a number above zero"),
        ([{"name": "A", "values": {"fp16": "nan"}}], r"values.fp16: expected a number above zero"),
        ([{"name": "A", "measured": {"x": "fast"}}], r"measured.x: expected a number"),
        ([{"name": "A", "measured": ["x"]}], r"measured: expected a mapping"),
        ([{"name": "A", "compute_units": "many"}], r"compute_units: expected a whole number"),
    ],
)
def test_a_bad_figure_is_named(peaks: list[Any], words: str) -> None:
    document = {"name": "x", "title": "x", "device": "cuda", "peaks": peaks}
    with pytest.raises(UnusableInput, match=words):
        read_profile(Node(document))
