"""Nodes by check and values by number as geometry: positions in an SVG, pure.

One user unit is one pixel at the page's full width. The template draws, and knows no number.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from envlock.fleet.results import Distribution, Merged, Node, Outlier, State
from envlock.fleet.traits import split_id
from envlock.fleet.words import compared, folded, shown
from envlock.model.amounts import cut
from envlock.model.check import Status

WIDTH = 1040
#: Where labels of rows end and cells begin, and height of a row.
LEFT, ROW = 210, 17
#: Room for the names of checks, which stand on end.
TOP = 118
#: Nodes up to which each has a row; of more, those that are the same in everything share one.
ALONE = 40
#: Rows that are drawn; what is beyond is in the lists above.
MOST_ROWS = 160
_ALIKE = "alike"
_CELLS = {
    Status.PASSED.value: "good",
    Status.WARNED.value: "warned",
    Status.SKIPPED.value: "skipped",
    Status.BLOCKED.value: "none",
    Status.NOT_RUN.value: "none",
}
_WIDEST = 24.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Cells of one row that look the same, side by side."""

    x: float
    width: float
    look: str
    title: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A node, or nodes that are the same in everything; ``title``: all of their names."""

    y: float
    label: str
    look: str
    title: str
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    x: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Map:
    """Nodes by check.

    Attributes:
        edges: x between two columns.
        left_out: nodes that have no row any more.
    """

    width: float
    height: float
    columns: tuple[Column, ...]
    edges: tuple[float, ...]
    rows: tuple[Row, ...]
    left_out: int


def heat_map(merged: Merged) -> Map | None:
    """Every node by every check, the worst first; None where no check is known."""
    if not merged.columns:
        return None
    names = (_ALIKE, *merged.columns)
    wide = min(_WIDEST, (WIDTH - LEFT - 40) / len(names))
    marks = _marks(merged)
    groups = list(_alike(merged, marks))
    rows = tuple(
        _row(nodes, marks, names, wide, TOP + at * ROW)
        for at, nodes in enumerate(groups[:MOST_ROWS])
    )
    return Map(
        width=WIDTH,
        height=TOP + len(rows) * ROW + 8,
        columns=tuple(
            Column(x=round(LEFT + (at + 0.5) * wide, 1), label=name)
            for at, name in enumerate(names)
        ),
        edges=tuple(round(LEFT + at * wide, 1) for at in range(len(names) + 1)),
        rows=rows,
        left_out=sum(map(len, groups[MOST_ROWS:])),
    )


Marks = Mapping[str, Mapping[str, tuple[str, str, str]]]  # node, check: look, title, text


def _marks(merged: Merged) -> Marks:
    """What is to be seen of a node beside how its checks ended."""
    found: dict[str, dict[str, tuple[str, str, str]]] = defaultdict(dict)
    for one in reversed(merged.slower):  # the worst last, over the others
        lost = f"{round(100 * one.loss)}"
        found[one.node][one.measure.check] = ("slow", compared(one), lost if one.loss < 1 else "")
    for apart in merged.apart:
        for name in apart.nodes:
            title = f"{apart.measure.text}: in a group apart"
            found[name].setdefault(apart.measure.check, ("slow", title, ""))
    for differing in merged.differing:
        text = "; ".join(f"{d.name} {d.value}, usually {d.usual}" for d in differing.differences)
        for name in differing.nodes:
            found[name][_ALIKE] = ("slow", text, "")
    for late in merged.slow:
        title = f"{late.check} took {late.seconds:.0f} s, usually {late.usual:.1f} s"
        found[late.node].setdefault(split_id(late.check)[0], ("warned", title, ""))
    for tie in merged.ties:
        for values, nodes in tie.sides:
            text = "no majority: " + "; ".join(map(" ".join, zip(tie.names, values, strict=True)))
            for name in nodes:
                found[name].setdefault(_ALIKE, ("skipped", text, ""))
    return found


def _alike(merged: Merged, marks: Marks) -> Iterator[list[Node]]:
    """Rows: single nodes, or with many those that look the same; the worst first."""
    order = list(State)
    nodes = sorted(
        merged.nodes, key=lambda node: (order.index(node.state), -len(marks.get(node.name, {})))
    )
    if len(nodes) <= ALONE:
        yield from ([node] for node in nodes)
        return
    groups: dict[object, list[Node]] = defaultdict(list)
    for node in nodes:
        looks = tuple(sorted(marks.get(node.name, {}).items()))
        groups[node.state, node.cells, looks].append(node)
    yield from groups.values()


def _row(nodes: Sequence[Node], marks: Marks, names: Sequence[str], wide: float, y: float) -> Row:
    node = nodes[0]
    cells, own = dict(node.cells), marks.get(node.name, {})
    reasons = {split_id(one.id)[0]: one.reason for one in node.bad}
    looks = [_look(name, cells, own, reasons) for name in names]
    runs: list[Run] = []
    at = 0
    for (look, title, text), same in groupby(looks):
        length = len(list(same))
        x, width = round(LEFT + at * wide, 1), round(length * wide, 1)
        runs += [Run(x=x, width=width, look=look, title=title, text=text)] if look else []
        at += length
    label = folded(one.name for one in nodes)
    number = f" ({len(nodes)})" if len(nodes) > 1 else ""
    return Row(
        y=y,
        label=f"{cut(label, 27 - len(number))}{number}",
        look="" if node.state is State.PASSED else "worse",
        title=f"{cut(label, 4000)}: {node.state.value}{f', {node.why}' if node.why else ''}",
        runs=tuple(runs),
    )


def _look(
    name: str,
    cells: Mapping[str, str],
    own: Mapping[str, tuple[str, str, str]],
    reasons: Mapping[str, str],
) -> tuple[str, str, str]:
    """How a cell looks, what it says where the pointer rests, and what is written in it."""
    status = cells.get(name)
    look = _CELLS.get(status, "failed") if status is not None else ""
    if look == "failed":
        return look, f"{name} {status}: {reasons.get(name, '')}".rstrip(": "), ""
    if name in own:
        return own[name]
    if name == _ALIKE:
        return ("good", "", "") if cells else ("", "", "")
    return look, f"{name} {status}" if look in ("warned", "skipped") else "", ""


# --- distributions --------------------------------------------------------------------------

#: Of one distribution: where its steps begin and end, their height, and room for marks below.
FROM, TO, HIGH, BELOW = 330, 760, 40, 16
#: Distributions that are drawn with something marked, and without.
MOST_MARKED, MOST_PLAIN = 24, 60
_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """An outlier; ``before``: its label stands on its left."""

    x: float
    title: str
    label: str
    before: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """One distribution: steps, the median, and the outliers below it."""

    title: str
    device: str
    steps: tuple[Step, ...]
    median: float
    dots: tuple[Dot, ...]
    said: str
    ends: tuple[str, str]
    note: str


def distributions(merged: Merged) -> tuple[list[Plot], list[Plot]]:
    """Those with something marked, the worst first, and the others whose values are not all the
    same."""
    marked = [one for one in merged.distributions if one.marked or one.apart]
    marked.sort(key=lambda one: -max((odd.loss for odd in one.marked), default=0.0))
    plain = [
        one
        for one in merged.distributions
        if not (one.marked or one.apart) and one.most > one.least
    ]
    plain.sort(key=lambda one: one.measure.metric == "margin")
    return _plots(marked[:MOST_MARKED]), _plots(plain[:MOST_PLAIN])


def _plots(found: Iterable[Distribution]) -> list[Plot]:
    return [_plot(one) for one in found]


def _plot(one: Distribution) -> Plot:
    metric = one.measure.metric
    number = f"{one.number:,} values"
    return Plot(
        title=one.measure.text,
        device=one.measure.device,
        steps=tuple(_steps(one)),
        median=_at(one, one.median),
        dots=tuple(_dots(one)),
        said=f"{shown(one.median, metric)}, {number}",
        ends=(shown(one.least, metric), shown(one.most, metric)),
        note="two groups" if one.apart else "",
    )


def _at(one: Distribution, value: float) -> float:
    """x of a value."""
    if one.most <= one.least:
        return (FROM + TO) / 2
    return round(FROM + (value - one.least) / (one.most - one.least) * (TO - FROM), 1)


def _steps(one: Distribution) -> Iterator[Step]:
    """Height is the square root of the number: one value among thousands can be seen."""
    width = (TO - FROM) / len(one.counts)
    most = math.sqrt(max(one.counts))
    for at, count in enumerate(one.counts):
        if count:
            height = round(max(math.sqrt(count) / most * HIGH, 1.5), 1)
            x = round(FROM + at * width, 1)
            yield Step(x=x, y=round(HIGH - height, 1), width=round(width - 0.6, 1), height=height)


def _dots(one: Distribution) -> Iterator[Dot]:
    for at, odd in enumerate(sorted(one.marked, key=lambda odd: -odd.loss)):
        x = _at(one, odd.value)
        yield Dot(
            x=x,
            title=f"{_card(odd)}: {compared(odd)}",
            label=_card(odd) if at < _NAMED else "",
            before=x > (FROM + TO) / 2,
        )


def _card(odd: Outlier) -> str:
    return f"{odd.node}#{odd.measure.index}"
