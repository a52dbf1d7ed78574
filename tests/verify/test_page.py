"""The page: whole, escaped, and looked at by a browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from envlock.verify import plots
from envlock.verify.page import to_html
from envlock.verify.saved import parse
from envlock.verify.timeline import timeline
from tests.support import browser
from tests.support.fake_report import (
    case,
    check,
    device_report,
    document,
    rated,
    samples,
    troubled_report,
)

REPORTS: dict[str, Callable[[], str]] = {
    "device": lambda: to_html(parse(device_report())),
    "baseline": lambda: to_html(parse(device_report(0.8, 1.25)), parse(device_report())),
    "troubled": lambda: to_html(parse(troubled_report())),
    "empty": lambda: to_html(parse(document(verdict="running", said="", exit=None))),
}


@pytest.mark.parametrize("name", REPORTS)
def test_it_needs_nothing_from_anywhere(name: str) -> None:
    page = REPORTS[name]()
    assert "<script" not in page
    assert re.findall(r"(?:https?:|//)[a-z]", page) == []
    assert re.findall(r"(?:src|href)=\"(?!data:|#)", page) == []
    assert "default-src 'none'" in page


HOSTILE = "<script>alert(1)</script>\"'&{{ 7*7 }}<img src=x onerror=alert(1)>"


def test_what_a_check_says_is_never_markup() -> None:
    bad = check(
        HOSTILE, "failed", title=HOSTILE, reason=HOSTILE, output=HOSTILE, facts={HOSTILE: HOSTILE},
        cases=[case(HOSTILE, "failed", HOSTILE, **{"margin": 2.0, HOSTILE: HOSTILE}),
               rated(HOSTILE, 1.0, 2.0)],
    )  # fmt: skip
    seen = {"seconds": [0, 1], "power_w": [1, 2]}
    finding = dict.fromkeys(("code", "subject", "what", "why", "hint"), HOSTILE)
    report = document(
        bad, check(f"{HOSTILE}2", facts={"samples": seen}),
        findings=[{**finding, "level": "error"}],
        said=HOSTILE, tool=HOSTILE, profile=HOSTILE,
        device={"kind": HOSTILE, "device": HOSTILE, HOSTILE: HOSTILE},
    )  # fmt: skip
    page = to_html(parse(report), parse(document(check(HOSTILE), tool=HOSTILE)))
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;script&gt;" in page
    assert "{{ 7*7 }}" in page  # a text is no template either


def test_every_case_has_its_place() -> None:
    """A dot for each case with a margin, a bar for each with a rate, at the place it names."""
    report = parse(device_report())
    drawn = plots.margins(report.results, {})
    assert drawn is not None
    assert sum(len(strip.dots) for strip in drawn.strips) == 146
    groups = plots.bars(report.results, {})
    assert [len(group.bars) for group in groups] == [12, 6]
    bar = next(bar for bar in groups[0].bars if bar.label == "fp16 12288")
    assert bar.peak == plots.RIGHT
    assert bar.width == pytest.approx((plots.RIGHT - plots.LEFT) * 439.2 / 480, abs=0.1)
    assert (bar.value, bar.note, bar.before) == ("439.2 TFLOPS", "91 % of 480", None)


# margin, x: decades are of one width, and what is out of range is at the edge
PLACES = [
    (0.0, plots.LEFT), (1e-9, plots.LEFT), (1e-4, plots.LEFT),
    (1e-2, plots.LEFT + 0.4 * (plots.RIGHT - plots.LEFT)),
    (1.0, plots.LEFT + 0.8 * (plots.RIGHT - plots.LEFT)),
    (10.0, plots.RIGHT), (1e6, plots.RIGHT),
]  # fmt: skip


@pytest.mark.parametrize(("margin", "x"), PLACES)
def test_margins_are_logarithmic(margin: float, x: float) -> None:
    drawn = plots.margins(parse(document(check("a", cases=[case("b", margin=margin)]))).results, {})
    assert drawn is not None
    assert drawn.strips[0].dots[0].x == pytest.approx(x, abs=0.1)


def test_the_baseline_is_drawn_beside() -> None:
    old, new = parse(device_report()), parse(device_report(0.8, 1.25))
    before = plots.cases_of(old.results)
    bars = plots.bars(new.results, before)[0].bars
    assert all(bar.before and bar.before > plots.LEFT + bar.width for bar in bars)
    assert {(bar.change, bar.verdict) for bar in bars} == {("-20.0 %", "worse")}
    drawn = plots.margins(new.results, before)
    assert drawn is not None
    moved = [dot for strip in drawn.strips for dot in strip.dots if dot.x > plots.LEFT + 5]
    assert all(dot.before is not None and dot.before < dot.x for dot in moved)


def test_a_bar_tells_the_rest_where_the_pointer_rests() -> None:
    metrics: dict[str, Any] = {
        "tflops": 250.0,
        "seconds_median": 0.0005,
        "seconds_p95": 0.0006,
        "spread": 0.02,
    }
    one = case("fp16 4096", "warned", "half of it", typical=288.3, **metrics)
    (group,) = plots.bars(parse(document(check("a", cases=[one]))).results, {})
    assert group.bars[0].title == (
        "fp16 4096, median 0.5 ms, p95 0.6 ms, spread 2 %, a healthy device: 288.3 TFLOPS, "
        "half of it"
    )
    assert group.bars[0].status == "warned"


def test_other_units_have_another_measure() -> None:
    cases = [rated("copy", 1000, None, "gbps"), rated("gemm", 2, None), rated("gemm 2", 4, None)]
    (group,) = plots.bars(parse(document(check("a", cases=cases))).results, {})
    full = plots.RIGHT - plots.LEFT
    assert [bar.width for bar in group.bars] == [full, full / 2, full]


def test_a_change_within_the_noise_is_not_coloured() -> None:
    now = rated("one", 90, None)
    now["metrics"]["spread"] = 0.2
    before = parse(document(check("a", cases=[rated("one", 100, None)])))
    after = parse(document(check("a", cases=[now])))
    (group,) = plots.bars(after.results, plots.cases_of(before.results))
    assert (group.bars[0].change, group.bars[0].verdict) == ("-10.0 %", "")


def test_long_names_are_cut_and_still_told() -> None:
    name = "bf16 " + "4x16x8192x128 " * 5
    metrics: dict[str, Any] = {"tflops": 1.0, "margin": 0.5}
    report = parse(document(check("a", cases=[case(name, **metrics)])))
    (group,), drawn = plots.bars(report.results, {}), plots.margins(report.results, {})
    assert drawn is not None
    assert len(group.bars[0].label) == 34
    assert len(drawn.strips[0].case) == 27
    assert group.bars[0].title == name
    assert name in drawn.strips[0].dots[0].title


def test_a_rate_above_the_reference_stays_inside_the_plot() -> None:
    (group,) = plots.bars(parse(document(check("a", cases=[rated("b", 96, 48)]))).results, {})
    (bar,) = group.bars
    assert bar.width == plots.RIGHT - plots.LEFT
    assert bar.peak == (plots.LEFT + plots.RIGHT) / 2


def test_rates_without_a_reference_are_measured_by_the_largest() -> None:
    cases = [rated("slow", 5, None), rated("fast", 10, None)]
    (group,) = plots.bars(parse(document(check("a", cases=cases))).results, {})
    assert [bar.peak for bar in group.bars] == [None, None]
    assert group.bars[0].width * 2 == group.bars[1].width


def test_the_line_is_broken_where_the_tool_did_not_say() -> None:
    seen = {"seconds": [0, 1, 2, 3, 4], "power_w": [50, 100, None, "n/a", 80], "clock_mhz": [None]}
    drawn = timeline(parse(document(check("a", facts={"samples": seen}))).results)
    assert drawn is not None
    (panel,) = drawn.panels  # of a quantity nobody saw there is none
    assert [len(line.split()) for line in panel.lines] == [2, 2]
    assert panel.said == "least 50, median 80, most 100 W"


@pytest.mark.parametrize("odd", [None, {}, {"seconds": []}, {"seconds": 3}, {"power_w": [1]}, [1]])
def test_odd_samples_are_no_timeline(odd: Any) -> None:
    assert timeline(parse(document(check("a", facts={"samples": odd}))).results) is None


def test_checks_follow_each_other_in_time() -> None:
    first = check("a", seconds=40.0, facts={"samples": samples(40, 300, 1500)})
    second = check("b", seconds=10.0, facts={"samples": samples(10, 100, 1500)})
    drawn = timeline(parse(document(first, check("between"), second)).results)
    assert drawn is not None
    assert [band.label for band in drawn.bands] == ["a", "b"]
    assert drawn.bands[1].x == pytest.approx(drawn.bands[0].x + drawn.bands[0].width, abs=0.2)
    assert drawn.bands[0].width == pytest.approx(4 * drawn.bands[1].width, rel=0.01)


def test_drawings_are_well_formed() -> None:
    page = REPORTS["baseline"]()
    drawings = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(drawings) == 4
    for drawing in drawings:
        root = ElementTree.fromstring(drawing)
        width, height = map(float, root.attrib["viewBox"].split()[2:])
        for element in root.iter():
            for key in ("x", "x1", "x2", "cx"):
                assert 0 <= float(element.get(key, 0)) <= width
            for key in ("y", "y1", "y2", "cy"):
                assert -5 <= float(element.get(key, 0)) <= height


@pytest.mark.skipif(browser.find_browser() is None, reason="no Chromium on PATH")
@pytest.mark.parametrize(
    ("name", "dark", "width", "media"),
    [
        ("baseline", False, 1180, ""),
        ("troubled", True, 420, ""),
        ("empty", False, 420, ""),
        ("device", False, 800, "print"),
    ],
)
def test_a_browser_shows_it(tmp_path: Path, name: str, dark: bool, width: int, media: str) -> None:
    path = tmp_path / "page.html"
    path.write_text(REPORTS[name](), encoding="utf-8")
    seen = browser.look(path, tmp_path, dark=dark, width=width, media=media)
    assert (seen.logged, seen.requests) == ([], [])
    assert seen.text.startswith("envlock verify")
    assert seen.overflow <= 0
    assert seen.png.startswith(b"\x89PNG")
    assert len(seen.png) > 10_000


@pytest.mark.skipif(browser.find_browser() is None, reason="no Chromium on PATH")
def test_a_browser_would_tell(tmp_path: Path) -> None:
    """What the test above finds absent is found where it is there."""
    path = tmp_path / "page.html"
    path.write_text(
        "<!doctype html><img src='http://127.0.0.1:9/a.png'><p style='width:3000px'>wide"
        "<script>console.log('said'); undefined_name()</script>"
    )
    seen = browser.look(path, tmp_path)
    assert any("said" in line for line in seen.logged)
    assert any("undefined_name" in line for line in seen.logged)
    assert seen.requests == ["http://127.0.0.1:9/a.png"]
    assert seen.overflow > 1000
