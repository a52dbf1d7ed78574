"""Which of many sisters is not like the others, by one number that all of them measured. Pure.

**The rule.** A value is compared with the median of its sisters: the same check, case, metric and
check scripts, on devices of the same name and number. It is an outlier when its loss is both

- at least :data:`LEAST_LOSS` of the median (of a margin: :data:`MARGIN_STEP` of its limit), and
- at least :func:`threshold` times the spread, which is 1.4826 times the median absolute deviation.

A loss is what is worse: less of a rate, more of a time or of a margin. As much on the other side is
a note. The spread is the larger of the group's own and that of all device numbers together, so that
five nodes of eight cards have forty values to learn it from, and a slot that scatters more keeps
its own. Where more than half of the values are the same, the spread is zero and the least loss
decides alone. Of a value that was written with few digits one step of its last digit is given away
first. Fewer than :data:`FEWEST` values are not judged.

Where the values stand in two groups with a gap between them, as with two kinds of cards under one
name, median and deviation of all say nothing: the smaller group is named as a group, and each group
is judged by itself (:func:`split`).

**The constants.** 1.4826 makes the deviation that of a normal distribution; its bias for few values
is taken out with the factors of Croux and Rousseeuw (1992). Iglewicz and Hoaglin (1993) call a
score above 3.5 an outlier, which is meant for one list of numbers: of a node with 8 cards and 12
rates each, 96 scores are asked, so that one good node in 50 would be named. :data:`SCORE` and
:data:`FEW` are such that of normal noise, whatever its size, one value in 100,000 is beyond the
threshold with 6 values or more (simulated, 2 to 6 million values for each number of sisters; one in
15,000 with 5), and fewer than one in a million from 20 values on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from envlock.model.check import MARGIN_STEP

#: Values of one group below which none is judged: with four, half of them may be the odd ones.
FEWEST = 5
#: Part of the median: nobody drains a node for less, and clocks alone move in steps of 1 %.
LEAST_LOSS = 0.02
#: Score from which on a value is an outlier among very many, and how much more is asked of few.
SCORE, FEW = 6.0, 80.0
#: A score that is larger says no more.
MOST_SCORE = 1000.0
_NORMAL = 1.4826
# expected value of the deviation of 2 to 9 normal values against that of many
_BIAS = {2: 1.196, 3: 1.495, 4: 1.363, 5: 1.206, 6: 1.200, 7: 1.140, 8: 1.129, 9: 1.107}
#: Part of the values that a group has to have to be one, and fewest values in which two are looked
#: for: of ten normal values one set in 700 has such a gap by chance, of twenty none in 4,000.
SPLIT_SHARE, SPLIT_FROM = 0.2, 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """How a metric is judged.

    Attributes:
        better: ``more`` or ``less``.
        relative: as part of the median; else as plain difference.
        least: loss below which nobody is named.
    """

    better: str
    relative: bool = True
    least: float = LEAST_LOSS


RATE = Kind(better="more")
TIME = Kind(better="less")
MARGIN = Kind(better="less", relative=False, least=MARGIN_STEP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Values of sisters.

    Attributes:
        values: finite; of a rate or a time above zero. One for each of ``nodes``.
        nodes: who measured them: numbers that mean something to the caller.
        step: of the last digit that the values were written with; 0 for full precision.
    """

    values: Sequence[float]
    nodes: Sequence[int]
    step: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Odd:
    """One value that is not like the others.

    Attributes:
        loss: how much worse, as part of the median; of a margin the difference; negative: better.
        score: loss over spread.
    """

    node: int
    value: float
    loss: float
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What the rule says of one group.

    Attributes:
        number: of values.
        median, spread: of the values; the spread in units of the loss.
        limit: loss from which on a value is named.
        slower, faster: outliers, the worst first.
        apart: the smaller of two groups, each with a gap to the other; empty for one group.
        enough: whether there were enough values to judge.
    """

    number: int
    median: float
    spread: float = 0.0
    limit: float = 0.0
    slower: tuple[Odd, ...] = ()
    faster: tuple[Odd, ...] = ()
    apart: tuple[Odd, ...] = ()
    enough: bool = True


def threshold(number: int) -> float:
    """Score from which on a value is an outlier, where the spread was learned of ``number``."""
    return SCORE + FEW / max(number - 4, 1)


@dataclass(frozen=True, slots=True)
class _Heap:
    """A group with its values in order: medians of what is in order cost nothing."""

    group: Group
    ordered: Sequence[float]

    @property
    def middle(self) -> float:
        return median(self.ordered)


def judge(groups: Mapping[int, Group], kind: Kind) -> dict[int, Judged]:
    """Judges the same metric for each device number.

    Args:
        groups: by device number.
        kind: of the metric.
    """
    whole: dict[int, _Heap] = {}
    found: dict[int, Judged] = {}
    for index, group in groups.items():
        heap, number = _Heap(group, sorted(group.values)), len(group.values)
        if number < FEWEST:
            found[index] = Judged(
                number=number, median=heap.middle if number else 0.0, enough=False
            )
        elif (parts := _split(heap, kind)) is not None:
            found[index] = _apart(*parts, kind)
        else:
            whole[index] = heap
    pooled = _pooled(whole.values(), kind)
    for index, heap in whole.items():
        found[index] = _judged(heap, kind, *pooled)
    return found


def _loss(kind: Kind, middle: float) -> Callable[[float], float]:
    """What a value lost against the middle. Of a time: of the speed that it stands for."""
    if not kind.relative:
        return (lambda value: value - middle) if kind.better == "less" else _never
    if kind.better == "more":
        return lambda value: 1 - value / middle
    return lambda value: 1 - middle / value


def _never(_value: float) -> float:
    return 0.0


def _spread(losses: Iterable[float], bias_of: int) -> float:
    """Robust deviation of losses around their median, which is zero."""
    bias = _BIAS.get(bias_of) or bias_of / (bias_of - 0.8)
    return _NORMAL * bias * median(map(abs, losses))


def _pooled(heaps: Iterable[_Heap], kind: Kind) -> tuple[float, int]:
    """The spread over all device numbers, and of how many values."""
    losses: list[float] = []
    fewest = math.inf
    for heap in heaps:
        losses += map(_loss(kind, heap.middle), heap.ordered)
        fewest = min(fewest, len(heap.ordered))
    return (_spread(losses, int(fewest)), len(losses)) if losses else (0.0, 0)


def _judged(heap: _Heap, kind: Kind, pooled: float, number: int) -> Judged:
    middle = heap.middle
    loss = _loss(kind, middle)
    spread = max(pooled, _spread(map(loss, heap.ordered), len(heap.ordered)))
    step = _step(heap.group, middle, kind)
    limit = max(kind.least, threshold(number) * spread) + step
    odd = list(_beyond(heap, loss, limit, spread))
    return Judged(
        number=len(heap.ordered),
        median=middle,
        spread=spread,
        limit=limit,
        slower=tuple(one for one in odd if one.loss > 0),
        faster=tuple(one for one in odd if one.loss < 0),
    )


def _beyond(heap: _Heap, loss: Callable[[float], float], limit: float, spread: float) -> list[Odd]:
    """Values whose loss is the limit or more, in either direction; the largest first."""
    if max(abs(loss(heap.ordered[0])), abs(loss(heap.ordered[-1]))) < limit:
        return []
    rows = zip(heap.group.nodes, heap.group.values, strict=True)
    found = [
        Odd(node=node, value=value, loss=lost, score=_score(lost, spread))
        for node, value in rows
        if abs(lost := loss(value)) >= limit
    ]
    return sorted(found, key=lambda one: (-abs(one.loss), one.node))


def _step(group: Group, middle: float, kind: Kind) -> float:
    """What one step of the last digit is, in units of the loss; each of two values is off by half
    of one."""
    return group.step / middle if kind.relative else group.step


def _score(loss: float, spread: float) -> float:
    if spread <= 0:
        return math.copysign(MOST_SCORE, loss)
    return max(-MOST_SCORE, min(loss / spread, MOST_SCORE))


# --- two groups -----------------------------------------------------------------------------


def split(group: Group, kind: Kind) -> tuple[Group, Group] | None:
    """The larger and the smaller of two groups with a gap between them; None for one group.

    The gap is the widest one that leaves a fifth of the values on each side. It parts them when it
    is as wide as the least loss, and wider than :data:`SCORE` times the spread of either side.
    """
    found = _split(_Heap(group, sorted(group.values)), kind)
    return None if found is None else (found[0].group, found[1].group)


def _split(heap: _Heap, kind: Kind) -> tuple[_Heap, _Heap] | None:
    ordered = heap.ordered
    if len(ordered) < SPLIT_FROM:
        return None
    least = math.ceil(SPLIT_SHARE * len(ordered))
    cuts = range(least, len(ordered) - least + 1)
    cut = max(cuts, key=lambda at: ordered[at] - ordered[at - 1])
    gap = ordered[cut] - ordered[cut - 1] - heap.group.step
    if gap < (kind.least * heap.middle if kind.relative else kind.least):
        return None
    low, high = _part(heap, ordered[:cut]), _part(heap, ordered[cut:])
    for side in (low, high):
        if gap < SCORE * _spread((v - side.middle for v in side.ordered), len(side.ordered)):
            return None
    return (low, high) if len(low.ordered) >= len(high.ordered) else (high, low)


def _part(heap: _Heap, ordered: Sequence[float]) -> _Heap:
    """The values from the least to the most of ``ordered``, and their nodes."""
    rows = zip(heap.group.nodes, heap.group.values, strict=True)
    chosen = [(node, value) for node, value in rows if ordered[0] <= value <= ordered[-1]]
    nodes, values = [node for node, _ in chosen], [value for _, value in chosen]
    return _Heap(Group(values=values, nodes=nodes, step=heap.group.step), ordered)


def _apart(larger: _Heap, smaller: _Heap, kind: Kind) -> Judged:
    """Outliers of each group by its own median; the smaller group against the larger one's."""
    own = [
        _judged(part, kind, 0.0, len(part.ordered))
        for part in (larger, smaller)
        if len(part.ordered) >= FEWEST  # a fifth of twenty is four
    ]
    loss = _loss(kind, larger.middle)
    spread = _spread(map(loss, larger.ordered), len(larger.ordered))
    rows = zip(smaller.group.nodes, smaller.group.values, strict=True)
    apart = tuple(
        Odd(node=node, value=value, loss=loss(value), score=_score(loss(value), spread))
        for node, value in rows
    )
    return Judged(
        number=len(larger.ordered) + len(smaller.ordered),
        median=larger.middle,
        spread=spread,
        limit=max((one.limit for one in own), default=0.0),
        slower=tuple(odd for one in own for odd in one.slower),
        faster=tuple(odd for one in own for odd in one.faster),
        apart=apart,
    )
