"""Judges what was measured against what such a device can do. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from envlock.model.check import Case, Status
from envlock.model.profile import Peaks

#: More than this share of the maker's figure no device reaches: the measurement is wrong. Above 1,
#: since real clocks may be higher than the figure assumes.
IMPOSSIBLE = 1.05
#: Worth a word: below this share of what a healthy device of the kind was measured at, as DCGM's
#: own limits are made.
LOW = 0.75
_UNITS = (("tflops", "TFLOPS"), ("gbps", "GB/s"))


def judged(cases: Iterable[Case], peaks: Peaks | None) -> tuple[Case, ...]:
    """The cases with the figures of their device, and what those say.

    A rate that no such device can reach is an error of the measurement, a low one a warning.
    What went wrong already stays as it is.

    Args:
        cases: with a rate and a resource in their metrics, or without.
        peaks: None for a device that nobody described.
    """
    return tuple(_judged(case, peaks) if peaks else case for case in cases)


def _judged(case: Case, peaks: Peaks) -> Case:
    key, unit = next(((k, u) for k, u in _UNITS if k in case.metrics), ("", ""))
    rate = case.metrics.get(key)
    if not isinstance(rate, int | float):
        return case
    added: dict[str, Any] = {}
    for name, figure in (
        ("reference", peaks.values.get(str(case.metrics.get("resource")))),
        ("typical", peaks.measured.get(case.name)),
    ):
        if figure:
            added[name] = figure
            added["ratio" if name == "reference" else "typical_ratio"] = round(rate / figure, 4)
    case = replace(case, metrics={**case.metrics, **added})
    return _said(case, f"{rate:.4g} {unit}", added)


def _said(case: Case, rate: str, added: Mapping[str, Any]) -> Case:
    ratio, typical = added.get("ratio"), added.get("typical_ratio")
    if case.status not in (Status.PASSED, Status.WARNED):
        return case
    if ratio is not None and ratio > IMPOSSIBLE:
        text = f"{rate} is more than the device can do ({added['reference']:g}): mismeasured"
        return replace(case, status=Status.ERROR, reason=text)
    floor = case.metrics.get("floor")
    if case.status is Status.WARNED:
        return case
    if typical is not None and typical < LOW:
        text = f"{rate}: {typical:.0%} of what a healthy device reaches ({added['typical']:g})"
    elif typical is None and ratio is not None and floor is not None and ratio < floor:
        text = f"{rate}: {ratio:.0%} of the maker's figure ({added['reference']:g})"
    else:
        return case
    return replace(case, status=Status.WARNED, reason=text)
