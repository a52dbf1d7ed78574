"""Power, clock and temperature over time as geometry, like :mod:`envlock.verify.plots`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from envlock.model.check import SAMPLES, CheckResult, number
from envlock.verify.plots import WIDTH, Tick

#: Height of a panel, and of what is between two.
PANEL, GAP = 96, 30
#: Where time begins.
START = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One quantity over time: lines of points that are next to each other, and its scale."""

    y: float
    title: str
    lines: tuple[str, ...]
    scale: tuple[tuple[float, str], ...]
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """The time of one check."""

    x: float
    width: float
    label: str
    shaded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    height: float
    panels: tuple[Panel, ...]
    bands: tuple[Band, ...]
    ticks: tuple[Tick, ...]


def timeline(results: Sequence[CheckResult]) -> Timeline | None:
    """Power and clock over the checks that were watched, one after the other; None without any."""
    watched = [(r, r.facts["samples"]) for r in results if _is_watched(r)]
    if not watched:
        return None
    lengths = [max(r.seconds, *_times(samples), 1e-3) for r, samples in watched]
    total, starts = sum(lengths), [sum(lengths[:i]) for i in range(len(lengths))]
    pixels = (WIDTH - START - 10) / total
    panels: list[Panel] = []
    for key in [name for name in SAMPLES if name not in ("seconds", "use_percent")]:
        runs = [
            [(START + (start + t) * pixels, v) for t, v in _series(samples, key)]
            for start, (_, samples) in zip(starts, watched, strict=True)
        ]
        if any(value is not None for run in runs for _, value in run):
            panels.append(_panel(key, runs, 40 + len(panels) * (PANEL + GAP)))
    bands = tuple(
        Band(
            x=round(START + start * pixels, 1),
            width=round(length * pixels, 1),
            label=r.id if length * pixels > 6.2 * len(r.id) + 8 else "",
            shaded=index % 2 == 0,
        )
        for index, (start, length, (r, _)) in enumerate(zip(starts, lengths, watched, strict=True))
    )
    ticks = tuple(
        Tick(x=START + share * (WIDTH - START - 10), label=f"{share * total:.0f} s")
        for share in (0, 0.25, 0.5, 0.75, 1)
    )
    height = 40 + len(panels) * (PANEL + GAP) + 12
    return Timeline(height=height, panels=tuple(panels), bands=bands, ticks=ticks)


def _is_watched(result: CheckResult) -> bool:
    samples = result.facts.get("samples")
    return isinstance(samples, Mapping) and bool(_times(samples))


def _times(samples: Mapping[str, Any]) -> list[float]:
    found = samples.get("seconds")
    return [t for v in found if (t := number(v)) is not None] if isinstance(found, list) else []


def _series(samples: Mapping[str, Any], key: str) -> list[tuple[float, float | None]]:
    values = samples.get(key)
    if not isinstance(values, list):
        return []
    pairs = zip(samples["seconds"], values, strict=False)
    return [(at, number(value)) for t, value in pairs if (at := number(t)) is not None]


def _panel(key: str, runs: list[list[tuple[float, float | None]]], y: float) -> Panel:
    values = sorted(value for run in runs for _, value in run if value is not None)
    top = _round_up(values[-1])
    name, _, _ = key.partition("_")
    unit = SAMPLES[key]
    median = values[len(values) // 2]
    return Panel(
        y=y,
        title=f"{name}, {unit}",
        lines=tuple(line for run in runs for line in _lines(run, y, top)),
        scale=((y, f"{top:g}"), (y + PANEL / 2, f"{top / 2:g}"), (y + PANEL, "0")),
        said=f"least {values[0]:g}, median {median:g}, most {values[-1]:g} {unit}",
    )


def _lines(run: list[tuple[float, float | None]], y: float, top: float) -> Iterator[str]:
    """Points that are next to each other; where the tool did not say, the line is broken."""
    points: list[str] = []
    for x, value in [*run, (0.0, None)]:
        if value is not None:
            points.append(f"{x:.1f},{y + PANEL * (1 - value / top):.1f}")
        elif points:
            # a lone point is still seen: a line of no length with round ends
            yield " ".join(points if len(points) > 1 else points * 2)
            points = []


def _round_up(value: float) -> float:
    """The next of 1, 2, 5, 10 … that is not smaller."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if value <= step * power)
