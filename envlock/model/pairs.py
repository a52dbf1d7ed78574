"""Pairs of nodes: who is tried with whom, and what it says of a link or a node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

#: Rounds at most: with more nodes than this each meets so many others, near and far.
MOST_ROUNDS = 16
#: Of the usual rate; a link below it is named, though it computes.
SLOW = 0.5
#: Pairs of which the usual rate is learned.
FEWEST = 5


def rounds(names: Sequence[str], most: int = MOST_ROUNDS) -> list[list[tuple[str, str]]]:
    """Pairs in rounds, in each of which nobody is in two of them.

    All pairs where there are few nodes. One stands and the others walk around it: after ``n - 1``
    rounds everybody has met everybody; of more than ``most`` rounds some are taken, evenly.
    """
    place = {name: number for number, name in enumerate(names)}
    circle: list[str | None] = [*names, *([None] if len(names) % 2 else [])]
    count = len(circle) - 1
    found = []
    for _ in range(count if len(names) > 1 else 0):
        half = len(circle) // 2
        facing = zip(circle[:half], reversed(circle[half:]), strict=True)
        pairs = [(a, b) for a, b in facing if a is not None and b is not None]
        found.append([(a, b) if place[a] < place[b] else (b, a) for a, b in pairs])
        circle = [circle[0], circle[-1], *circle[1:-1]]
    if len(found) <= most:
        return found
    return [found[number * len(found) // most] for number in range(most)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """Nodes that were tried together.

    Attributes:
        nodes: two, or all.
        why: what is wrong; empty where nothing is.
        gbps: rate of the largest size; None where it did not come to that.
    """

    nodes: tuple[str, ...]
    why: str = ""
    gbps: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What pairs say.

    Attributes:
        nodes: those that failed with everybody they were tried with, and what one pair said.
        links: other pairs that failed.
        slow: pairs that compute, at less than half of the usual rate.
        usual: median rate of the pairs, 10^9 bytes a second; None with too few.
    """

    nodes: tuple[tuple[str, str], ...] = ()
    links: tuple[Tried, ...] = ()
    slow: tuple[Tried, ...] = ()
    usual: float | None = None


def judge(pairs: Iterable[Tried]) -> Judged:
    """A node is bad where all of its pairs are, and it has at least two; else the link is."""
    pairs = list(pairs)
    bad = [pair for pair in pairs if pair.why]
    names = dict.fromkeys(name for pair in bad for name in pair.nodes)
    alone = {
        name: _first_of(bad, name)
        for name in names
        if (tried := [pair for pair in pairs if name in pair.nodes]) and len(tried) > 1
        and all(pair.why for pair in tried)
    }  # fmt: skip
    rates = [pair.gbps for pair in pairs if pair.gbps and not pair.why]
    usual = median(rates) if len(rates) >= FEWEST else None
    return Judged(
        nodes=tuple(alone.items()),
        links=tuple(pair for pair in bad if not alone.keys() & set(pair.nodes)),
        slow=tuple(
            pair
            for pair in pairs
            if usual and pair.gbps and not pair.why and pair.gbps < SLOW * usual
        ),
        usual=usual,
    )


def _first_of(bad: Sequence[Tried], name: str) -> str:
    return next(pair.why for pair in bad if name in pair.nodes)
