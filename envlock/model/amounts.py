"""Measured numbers in words, for tables and pages."""

from __future__ import annotations

from envlock.model.check import METRICS


def amount(value: float, key: str) -> str:
    """A metric with its unit: ``439.2 TFLOPS``, ``1,184 MiB``, ``0.48 ms``."""
    unit = METRICS[key].unit if key in METRICS else ""
    if unit == "s":
        return f"{value * 1e3:.3g} ms" if value < 1 else f"{value:.3g} s"
    if unit == "B":
        return f"{value / 2**20:,.0f} MiB"
    if unit == "TFLOPS" and 0 < abs(value) < 0.1:  # a processor
        value, unit = value * 1000, "GFLOPS"
    text = f"{value:,.1f}" if abs(value) >= 10 else f"{value:.3g}"
    return f"{text} {unit}".rstrip()


def percent(share: float) -> str:
    """``41 %``; small ones keep a digit that says something."""
    return f"{share * 100:.0f} %" if share >= 0.01 or share == 0 else f"{share * 100:.1g} %"


def cut(text: str, most: int) -> str:
    """A label that has room; the whole text is told elsewhere, in a title or a table."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
