"""The measured numbers of all nodes, judged metric by metric."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from envlock.fleet.outliers import MARGIN, RATE, TIME, Group, Judged, Kind, Odd, judge
from envlock.fleet.reading import Key
from envlock.fleet.results import Apart, Distribution, Measure, Outlier, Slow
from envlock.model.check import METRICS

#: A check that took this many times as long as on most nodes, and this many seconds longer, is
#: named: file systems and first compilations vary, and whether a device is fast is measured.
SLOW_FACTOR, SLOW_SECONDS = 3.0, 5.0
#: Nodes of which the usual time of a check is learned.
SLOW_FEWEST = 3
#: Steps of a distribution.
STEPS = 48
#: From as many digits behind the point on a number is as exact as it was measured.
_EXACT = 12


@dataclass(slots=True)
class Series:
    """The values of one key, 8 bytes each: a value, and the number of its node.

    Attributes:
        digits: the most behind the point.
    """

    values: array[float] = field(default_factory=lambda: array("f"))
    nodes: array[int] = field(default_factory=lambda: array("I"))
    digits: int = 0

    def add(self, node: int, value: float, digits: int) -> None:
        self.values.append(value)
        self.nodes.append(node)
        self.digits = max(self.digits, digits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """What the numbers say; as in :class:`Merged`."""

    slower: tuple[Outlier, ...] = ()
    faster: tuple[Outlier, ...] = ()
    apart: tuple[Apart, ...] = ()
    distributions: tuple[Distribution, ...] = ()
    measures: int = 0
    few: int = 0


def judge_values(series: Mapping[Key, Series], names: Sequence[str]) -> Values:
    """Judges every metric.

    Args:
        series: by key.
        names: of the nodes, by number.
    """
    slower: list[Outlier] = []
    faster: list[Outlier] = []
    apart: list[Apart] = []
    distributions: list[Distribution] = []
    few = 0
    families = _families(series)
    for members in families:
        kind = kind_of(members[0].metric)
        found = judge({key.unit: _group(series[key]) for key in members}, kind)
        few += not any(one.enough for one in found.values())
        marked: list[Outlier] = []
        for key in members:
            judged, measure = found[key.unit], _measure(key)
            marked += _named(judged.slower, judged, measure, names)
            faster += _named(judged.faster, judged, measure, names)
            apart += _apart(judged, measure, names)
        slower += marked
        if any(one.enough for one in found.values()):
            distributions.append(_distribution(members, series, found, marked))
    return Values(
        slower=tuple(sorted(slower, key=lambda one: -one.loss)),
        faster=tuple(sorted(faster, key=lambda one: one.loss)),
        apart=tuple(apart),
        distributions=tuple(distributions),
        measures=len(families) - few,
        few=few,
    )


def kind_of(metric: str) -> Kind:
    """How a metric is judged."""
    if metric == "margin":
        return MARGIN
    return RATE if METRICS[metric].better == "more" else TIME


def _families(series: Mapping[Key, Series]) -> list[list[Key]]:
    """Keys that differ in the device's number alone."""
    found: dict[Key, list[Key]] = defaultdict(list)
    for key in series:
        found[key._replace(unit=0)].append(key)
    return [sorted(members, key=lambda key: key.unit) for members in found.values()]


def _group(series: Series) -> Group:
    step = 10.0**-series.digits if series.digits < _EXACT else 0.0
    return Group(values=series.values, nodes=series.nodes, step=step)


def _measure(key: Key) -> Measure:
    return Measure(
        check=key.check, case=key.case, metric=key.metric, device=key.device, index=key.unit
    )


def _named(
    odd: Sequence[Odd], judged: Judged, measure: Measure, names: Sequence[str]
) -> Iterator[Outlier]:
    for one in odd:
        yield Outlier(
            node=names[one.node],
            measure=measure,
            value=one.value,
            median=judged.median,
            loss=one.loss,
            score=one.score,
        )


def _apart(judged: Judged, measure: Measure, names: Sequence[str]) -> Iterator[Apart]:
    if judged.apart:
        yield Apart(
            measure=measure,
            nodes=tuple(names[one.node] for one in judged.apart),
            own=median(one.value for one in judged.apart),
            median=judged.median,
            worse=median(one.loss for one in judged.apart) > 0,
        )


def _distribution(
    members: Sequence[Key],
    series: Mapping[Key, Series],
    found: Mapping[int, Judged],
    marked: Sequence[Outlier],
) -> Distribution:
    """The values of all device numbers together."""
    values = array("f")
    for key in members:
        values.extend(series[key].values)
    least, most = min(values), max(values)
    counts = [0] * STEPS
    width = (most - least) / STEPS
    for value in values:
        counts[min(int((value - least) / width), STEPS - 1) if width > 0 else STEPS // 2] += 1
    return Distribution(
        measure=_measure(members[0]._replace(unit=0)),
        number=len(values),
        median=median(values),
        least=least,
        most=most,
        limit=min(one.limit for one in found.values() if one.enough),
        counts=tuple(counts),
        marked=tuple(marked),
        apart=any(one.apart for one in found.values()),
    )


def slow_checks(seconds: Mapping[str, Series], names: Sequence[str]) -> Iterator[Slow]:
    """Checks that took much longer than on most nodes."""
    for check, series in seconds.items():
        if len(series.values) < SLOW_FEWEST:
            continue
        usual = median(series.values)
        limit = max(SLOW_FACTOR * usual, usual + SLOW_SECONDS)
        for node, took in zip(series.nodes, series.values, strict=True):
            if took > limit:
                yield Slow(node=names[node], check=check, seconds=took, usual=usual)
