"""The merge as one HTML page: no script, no request, light and dark, to be printed."""

from __future__ import annotations

from envlock.adapters.pages import template
from envlock.fleet import shapes
from envlock.fleet.document import SCHEMA
from envlock.fleet.outliers import FEWEST, LEAST_LOSS, SCORE
from envlock.fleet.results import Merged
from envlock.fleet.words import folded, said, sections, verdict

_BADGES = {"passed": "good", "incomplete": "warning"}


def to_html(merged: Merged) -> str:
    """The page; as small for ten thousand nodes as for two hundred that are not alike."""
    marked, plain = shapes.distributions(merged)
    return template("envlock.fleet", "page.html").render(
        verdict=verdict(merged),
        badge=_BADGES.get(verdict(merged), "error"),
        said=said(merged),
        head=_head(merged),
        sections=[
            (section, [(folded(line.nodes), len(line.nodes), line.what) for line in section.lines])
            for section in sections(merged)
        ],
        map=shapes.heat_map(merged),
        marked=marked,
        plain=plain,
        plot={
            "width": shapes.WIDTH, "left": shapes.LEFT, "row": shapes.ROW, "top": shapes.TOP,
            "from": shapes.FROM, "to": shapes.TO, "high": shapes.HIGH, "below": shapes.BELOW,
        },
        rule={"least": f"{LEAST_LOSS * 100:g}", "score": f"{SCORE:g}", "fewest": FEWEST},
        schema=SCHEMA,
    )  # fmt: skip


def _head(merged: Merged) -> list[tuple[str, str]]:
    pairs = [
        ("nodes", f"{len(merged.nodes):,}"),
        ("expected", "" if merged.expected is None else f"{merged.expected:,}"),
        ("devices", ", ".join(f"{device} ({count:,})" for device, count in merged.kinds)),
        ("checks", str(len(merged.columns))),
        ("numbers judged", f"{merged.measures:,}" if merged.measures else ""),
    ]
    return [(name, value) for name, value in pairs if value]
