"""Rates and margins as geometry: pure functions from results to positions in an SVG.

One user unit is one pixel at the page's full width. The template draws, and knows no number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from envlock.model.amounts import amount, cut, percent
from envlock.model.check import (
    METRICS,
    Case,
    CheckResult,
    margin_of,
    number,
    rate_of,
)
from envlock.verify.compare import named, noise

WIDTH = 960
ROW = 24
#: Where labels end, and where values begin.
LEFT, RIGHT = 250, 700
#: Margins below this are drawn at the left edge: nobody asks how far below.
LEAST_MARGIN, MOST_MARGIN = 1e-4, 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A line across a plot and what it says."""

    x: float
    label: str
    strong: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A rate against its reference.

    Attributes:
        width: of the bar, from ``LEFT``.
        peak: x of the reference; None without one.
        before: x of the baseline; None without one.
        value: the rate in words.
        note: its part of the reference.
        change: against the baseline; ``verdict``: ``better``, ``worse`` or empty.
    """

    y: float
    label: str
    width: float
    peak: float | None
    before: float | None
    value: str
    note: str
    title: str
    status: str
    change: str = ""
    verdict: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """The rates of one check."""

    title: str
    id: str
    height: float
    ticks: tuple[Tick, ...]
    bars: tuple[Bar, ...]
    has_baseline: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """The margin of one case. ``before``: x in the baseline; None without one."""

    x: float
    status: str
    title: str
    before: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """The margins of one check, a dot for each case."""

    y: float
    label: str
    dots: tuple[Dot, ...]
    worst: str
    case: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Margins:
    height: float
    ticks: tuple[Tick, ...]
    strips: tuple[Strip, ...]
    has_baseline: bool


Before = Mapping[tuple[str, str], Case]


def cases_of(results: Sequence[CheckResult]) -> dict[tuple[str, str], Case]:
    """Cases by check and name."""
    return {(r.id, name): case for r in results for name, case in named(r).items()}


# --- rates ----------------------------------------------------------------------------------


def bars(results: Sequence[CheckResult], before: Before) -> tuple[Bars, ...]:
    """A plot for each check that measured rates."""
    return tuple(plot for result in results if (plot := _bars(result, before)) is not None)


def _bars(result: CheckResult, before: Before) -> Bars | None:
    rated = {name: case for name, case in named(result).items() if _speed(case.metrics)}
    if not rated:
        return None
    old = {name: before.get((result.id, name)) for name in rated}
    speeds = [(_unit(rated[name]), max(_speeds(rated[name], old[name]))) for name in rated]
    whole = {
        name: _reference(case) or max(speed for unit, speed in speeds if unit == _unit(case))
        for name, case in rated.items()
    }
    top = max(1.0, *(s / whole[n] for n in rated for s in _speeds(rated[n], old[n])))
    against = any(map(_reference, rated.values()))
    found = tuple(
        _bar(case, old[name], whole[name] * top, (34 if against else 8) + index * ROW)
        for index, (name, case) in enumerate(rated.items())
    )
    return Bars(
        title=result.title,
        id=result.id,
        height=found[-1].y + ROW + 4,
        ticks=tuple(_shares(top)) if against else (),
        bars=found,
        has_baseline=any(bar.before is not None for bar in found),
    )


def _speed(metrics: Mapping[str, Any]) -> float:
    """A rate of which more is better; zero without one."""
    found = rate_of(metrics)
    return found[1] if found is not None and METRICS[found[0]].better == "more" else 0.0


def _speeds(case: Case, old: Case | None) -> tuple[float, float]:
    """Now and in the baseline; what was measured in another unit there is as good as nothing."""
    same = old is not None and _unit(old) == _unit(case)
    return _speed(case.metrics), _speed(old.metrics) if old is not None and same else 0.0


def _unit(case: Case) -> str:
    found = rate_of(case.metrics)
    return found[0] if found is not None else ""


def _reference(case: Case) -> float:
    """What a rate is drawn against; zero without one."""
    return max(number(case.metrics.get("reference")) or 0.0, 0.0)


def _bar(case: Case, before: Case | None, whole: float, y: float) -> Bar:
    key, (value, old), reference = _unit(case), _speeds(case, before), _reference(case)
    change = value / old - 1 if old else None
    return Bar(
        y=y,
        label=cut(case.name, 34),
        width=_across(value / whole),
        peak=LEFT + _across(reference / whole) if reference else None,
        before=LEFT + _across(old / whole) if old else None,
        value=amount(value, key),
        note=f"{percent(value / reference)} of {reference:,g}" if reference else "",
        title=", ".join([case.name, *_times(case, key)]),
        change="" if change is None else f"{change * 100:+.1f} %",
        status=case.status.value,
        verdict=_moved(change or 0.0, noise(before or case, case)),
    )


def _times(case: Case, key: str) -> Iterator[str]:
    """What else is known of a rate: shown where the pointer rests, and where a reader listens."""
    for name in ("median", "p95"):
        if (time := number(case.metrics.get(f"seconds_{name}"))) is not None:
            yield f"{name} {amount(time, f'seconds_{name}')}"
    if (spread := number(case.metrics.get("spread"))) is not None:
        yield f"spread {percent(spread)}"
    if (typical := number(case.metrics.get("typical"))) is not None:
        yield f"a healthy device: {amount(typical, key)}"
    if case.reason:
        yield case.reason


def _moved(change: float, usual: float) -> str:
    if abs(change) <= usual:
        return ""
    return "better" if change > 0 else "worse"


def _across(share: float) -> float:
    return round(min(share, 1.0) * (RIGHT - LEFT), 1)


def _shares(top: float) -> Iterator[Tick]:
    for hundredths in (0, 25, 50, 75, 100):
        x = LEFT + _across(hundredths / 100 / top)
        label = "reference peak" if hundredths == 100 else f"{hundredths} %"
        yield Tick(x=x, label=label, strong=hundredths == 100)


# --- margins --------------------------------------------------------------------------------


def margins(results: Sequence[CheckResult], before: Before) -> Margins | None:
    """Every case whose error has a limit, on a logarithmic scale; None where there is none."""
    strips: list[Strip] = []
    for result in results:
        places = ((case, before.get((result.id, name))) for name, case in named(result).items())
        dots = [dot for case, old in places if (dot := _dot(case, old)) is not None]
        if dots:
            worst = max(result.cases, key=lambda case: margin_of(case.metrics) or 0.0)
            margin = margin_of(worst.metrics) or 0.0
            strips.append(
                Strip(
                    y=42 + len(strips) * ROW,
                    label=result.id,
                    dots=tuple(dots),
                    worst="exact" if margin == 0 else percent(margin),
                    case=cut(worst.name, 27) if margin else f"{len(dots)} cases",
                )
            )
    if not strips:
        return None
    return Margins(
        height=len(strips) * ROW + 44,
        ticks=tuple(_decades()),
        strips=tuple(strips),
        has_baseline=any(dot.before is not None for strip in strips for dot in strip.dots),
    )


def _dot(case: Case, old: Case | None) -> Dot | None:
    margin = margin_of(case.metrics)
    if margin is None:
        return None
    was = margin_of(old.metrics) if old is not None else None
    said = f"{case.name}: {percent(margin)} of its limit"
    said += f", was {percent(was)}" if was is not None else ""
    x = None if was is None else _decade(was)
    return Dot(x=_decade(margin), status=case.status.value, title=said, before=x)


def _decade(margin: float) -> float:
    """x of a margin."""
    least, most = math.log10(LEAST_MARGIN), math.log10(MOST_MARGIN)
    at = math.log10(min(max(margin, LEAST_MARGIN), MOST_MARGIN))
    return round(LEFT + (at - least) / (most - least) * (RIGHT - LEFT), 1)


def _decades() -> Iterator[Tick]:
    for margin, label in ((1e-4, "≤ 0.01 %"), (1e-3, "0.1 %"), (1e-2, "1 %"), (0.1, "10 %")):
        yield Tick(x=_decade(margin), label=label)
    yield Tick(x=_decade(1.0), label="limit", strong=True)
    yield Tick(x=_decade(10.0), label="10 ×")
