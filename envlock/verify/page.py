"""A report as one HTML page: no script, no request, light and dark, to be printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from envlock.adapters.pages import template
from envlock.model.amounts import amount, percent
from envlock.model.check import METRICS, CheckResult, Status, margin_of, number
from envlock.verify import plots
from envlock.verify.compare import Comparison, Difference, compare
from envlock.verify.saved import Report
from envlock.verify.timeline import timeline
from envlock.verify.words import (
    change,
    compared,
    hint,
    key_number,
    level_of,
    shown,
    told,
)

_QUIET = frozenset({Status.PASSED, Status.NOT_RUN, Status.BLOCKED})


@dataclass(frozen=True, slots=True)
class Line:
    """A check in the table."""

    result: CheckResult
    number: str
    level: str
    cases: tuple[tuple[str, str, str, str], ...]  # name, status, measured, reason
    facts: tuple[tuple[str, str], ...]
    output: str

    @property
    def why(self) -> str:
        """Why it could not run, in a line; what went wrong is told at the top of the page."""
        told = (Status.SKIPPED, Status.BLOCKED)
        return self.result.reason if self.result.status in told else ""

    @property
    def inside(self) -> str:
        """What its details hold: ``24 cases, facts``; empty when there are none."""
        number = len(self.cases)
        parts = [f"{number} case{'' if number == 1 else 's'}"] if number else []
        parts += ["facts"] if self.facts else []
        parts += ["output"] if self.output else []
        return ", ".join(parts)


def to_html(report: Report, baseline: Report | None = None) -> str:
    """The page.

    Args:
        report: whole or partial.
        baseline: drawn beside it.
    """
    before = plots.cases_of(baseline.results) if baseline is not None else {}
    return template("envlock.verify", "page.html").render(
        report=report.document,
        baseline=baseline.document if baseline is not None else None,
        head=_head(report),
        level=_level(report),
        trouble=[(r, level_of(r), hint(r)) for r in report.results if _is_trouble(r)],
        beside=_beside(compare(baseline, report)) if baseline is not None else None,
        bars=plots.bars(report.results, before),
        margins=plots.margins(report.results, before),
        timeline=timeline(report.results),
        lines=[_line(result) for result in report.results],
        facts=_facts(report),
        plot={"width": plots.WIDTH, "left": plots.LEFT, "right": plots.RIGHT, "row": plots.ROW},
    )


def _level(report: Report) -> str:
    known = {"passed": "good", "failed": "error", "incomplete": "warning"}
    return known.get(str(report.document.get("verdict")), "quiet")


def _is_trouble(result: CheckResult) -> bool:
    if result.status in _QUIET:
        return False
    return result.required or result.status is not Status.SKIPPED


def _head(report: Report) -> list[tuple[str, str]]:
    """What a reader wants to know before anything else."""
    device = report.part("device")
    manifest = report.part("manifest")
    seconds = sum(result.seconds for result in report.results)
    named = str(device.get("device") or device.get("kind") or "")
    pairs = [
        ("device", named),
        ("profile", str(report.document.get("profile"))),
        ("torch", str(device.get("torch") or "")),
        ("python", str(report.part("target").get("python") or "")),
        ("manifest", str(manifest.get("name") or "none: files were not compared")),
        ("level", str(report.document.get("level"))),
        ("started", str(report.document.get("started"))),
        ("took", f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"),
    ]
    return [(name, value) for name, value in pairs if value]


# --- beside a baseline ----------------------------------------------------------------------


def _beside(found: Comparison) -> dict[str, Any]:
    return {
        "compared": compared(found),
        "same": found.same_configuration,
        "rows": [_row(one) for one in found.differences],
    }


def _row(one: Difference) -> dict[str, str]:
    lists = isinstance(one.old, list) and isinstance(one.new, list)
    return {
        "kind": one.kind.value,
        "subject": one.subject,
        "old": "" if lists else shown(one, one.old),
        "new": told(one) if lists else shown(one, one.new),
        "change": change(one),
        "level": one.level,
    }


# --- checks and facts -----------------------------------------------------------------------


def _line(result: CheckResult) -> Line:
    cases = tuple((c.name, c.status.value, _measured(c.metrics), c.reason) for c in result.cases)
    facts = {key: value for key, value in result.facts.items() if key != "samples"}
    output = "" if result.status is Status.PASSED else result.output
    return Line(result, key_number(result), level_of(result), cases, tuple(_pairs(facts)), output)


def _measured(metrics: Mapping[str, Any]) -> str:
    """What a case measured, in one line: what the vocabulary knows, then the rest."""
    margin = margin_of(metrics)
    parts = [f"{percent(margin)} of limit"] if margin is not None else []
    for key in [*METRICS, *(key for key in metrics if key not in METRICS)]:
        if key in metrics and key != "margin":
            parts.append(f"{key} {_value(key, metrics[key])}")
    return ", ".join(parts)


def _value(key: str, value: Any) -> str:
    figure = number(value)
    if key in METRICS and METRICS[key].unit and figure is not None:
        return amount(figure, key)
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k} {_value('', v)}" for k, v in value.items()) + "}"
    return str(value)


def _facts(report: Report) -> list[tuple[str, list[tuple[str, str]]]]:
    """Tables of facts: the run, the device."""
    document = report.document
    run = {key: document.get(key) for key in ("tool", "profile", "level", "started", "ended")}
    run |= {f"target {key}": value for key, value in report.part("target").items()}
    run |= {f"manifest {key}": value for key, value in report.part("manifest").items()}
    config = {key: value for key, value in report.config.items() if key not in ("checks", "level")}
    tables = [("Run", run), ("Device", dict(report.part("device"))), ("Configuration", config)]
    return [(title, list(_pairs(values))) for title, values in tables if values]


def _pairs(values: Mapping[str, Any], path: str = "") -> Sequence[tuple[str, str]]:
    """Name and value of every fact; nested ones by their path."""
    found: list[tuple[str, str]] = []
    for key, value in values.items():
        name = f"{path}{key}"
        if isinstance(value, Mapping):
            found += _pairs(value, f"{name}.")
        elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
            found += _pairs({str(index): item for index, item in enumerate(value)}, f"{name}.")
        elif value not in (None, "", []):
            text = ", ".join(map(str, value)) if isinstance(value, list) else _value("", value)
            found.append((name, text))
    return found
