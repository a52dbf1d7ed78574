"""Which nodes are not like most of them: stack, driver, limits, devices. Pure.

Nodes are compared with those that have the same devices. A kind of device that a tenth of the
nodes have, and five of them, is a kind of its own; what fewer have is held against the largest
kind, so that one wrong card among five hundred is a difference.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Any

#: Amounts that are this near to the usual one are the same: firmware takes its share of the memory.
NEAR = 0.05
#: Share of all nodes, and number of them, from which on a kind of device is compared by itself.
KIND_SHARE, KIND_FEWEST = 0.1, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """What one node says of itself.

    Attributes:
        node: its name.
        kind: of its devices; empty where nobody knows.
        traits: text that is the same or not.
        amounts: numbers that may be off by :data:`NEAR`.
    """

    node: str
    kind: str
    traits: Sequence[tuple[str, str]]
    amounts: Sequence[tuple[str, float]] = ()


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Difference:
    """One thing that is not as usual."""

    name: str
    value: str
    usual: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Differing:
    """Nodes that differ from the majority in the same things."""

    differences: tuple[Difference, ...]
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tie:
    """What has no majority.

    Attributes:
        names: of the things that part the nodes in the same way.
        sides: the values of each side, one for each name, and its nodes.
    """

    names: tuple[str, ...]
    sides: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Everything that differs; ``kinds`` are those that were compared by themselves."""

    differing: tuple[Differing, ...] = ()
    ties: tuple[Tie, ...] = ()
    kinds: tuple[tuple[str, int], ...] = ()


def compare(stated: Sequence[Stated]) -> Compared:
    """Groups nodes by what is not as with most of their kind; the larger groups first."""
    kinds = _kinds(stated)
    differing: list[Differing] = []
    ties: list[Tie] = []
    for members in kinds.values():
        patterns = _patterns(members)
        usual, torn = _usual(patterns)
        differing += _differing(patterns, usual)
        ties += _ties(patterns, torn)
    return Compared(
        differing=tuple(sorted(differing, key=lambda one: (-len(one.nodes), one.nodes))),
        ties=tuple(ties),
        kinds=tuple((kind, len(members)) for kind, members in kinds.items()),
    )


@dataclass(frozen=True, slots=True)
class _Pattern:
    """Nodes that say the same: most of them."""

    said: Mapping[str, str]
    nodes: Sequence[str]


def _kinds(stated: Sequence[Stated]) -> dict[str, list[Stated]]:
    """Members of each kind, the largest first."""
    counts = Counter(one.kind for one in stated if one.kind) or Counter({"": 1})
    if not stated:
        return {}
    least = max(KIND_FEWEST, KIND_SHARE * len(stated))
    largest = min(counts, key=lambda kind: (-counts[kind], kind))
    own = {kind for kind, count in counts.items() if count >= least} | {largest}
    found: dict[str, list[Stated]] = {}
    for kind in sorted(own, key=lambda kind: (-counts[kind], kind)):
        found[kind] = []
    for one in stated:
        found[one.kind if one.kind in own else largest].append(one)
    return found


def _patterns(members: Sequence[Stated]) -> list[_Pattern]:
    """Everything that nodes say, as texts that are the same or not."""
    alike: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    amounts: dict[str, list[float]] = defaultdict(list)
    for one in members:
        alike[one.kind, tuple(one.traits), tuple(one.amounts)].append(one.node)
        for name, amount in one.amounts:
            amounts[name].append(amount)
    texts = {name: _texts(found) for name, found in amounts.items()}
    return [
        _Pattern(
            {
                **({"device": kind} if kind else {}),
                **dict(traits),
                **{name: texts[name][amount] for name, amount in own},
            },
            nodes,
        )
        for (kind, traits, own), nodes in alike.items()
    ]


def _texts(amounts: Iterable[float]) -> dict[float, str]:
    """One text for amounts that are near to each other: that of the one in the middle."""
    found: dict[float, str] = {}
    rest = sorted(amounts)
    while rest:
        middle = median_low(rest)
        near = {amount for amount in rest if abs(amount - middle) <= NEAR * abs(middle)}
        found |= dict.fromkeys(near, f"{middle:.4g}")
        rest = [amount for amount in rest if amount not in near]
    return found


def _usual(patterns: Sequence[_Pattern]) -> tuple[dict[str, str], set[str]]:
    """The most common value of each thing, and the things that have two of them."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for one in patterns:
        for name, value in one.said.items():
            counts[name][value] += len(one.nodes)
    usual, torn = {}, set()
    for name, values in counts.items():
        (first, most), *others = values.most_common(2)
        if others and others[0][1] == most:
            torn.add(name)
        else:
            usual[name] = first
    return usual, torn


def _differing(patterns: Sequence[_Pattern], usual: Mapping[str, str]) -> list[Differing]:
    groups: dict[tuple[Difference, ...], list[str]] = defaultdict(list)
    for one in patterns:
        found = tuple(
            Difference(name=name, value=value, usual=usual[name])
            for name, value in sorted(one.said.items())
            if name in usual and value != usual[name]
        )
        if found:
            groups[found] += one.nodes
    return [Differing(differences=what, nodes=tuple(nodes)) for what, nodes in groups.items()]


def _ties(patterns: Sequence[_Pattern], torn: Iterable[str]) -> list[Tie]:
    """Things without a majority; those that part the nodes in the same way are one."""
    alike: dict[tuple[tuple[str, ...], ...], list[tuple[str, tuple[str, ...]]]] = defaultdict(list)
    for name in sorted(torn):
        sides: dict[str, list[str]] = defaultdict(list)
        for one in patterns:
            if name in one.said:
                sides[one.said[name]] += one.nodes
        ordered = sorted(sides.items(), key=lambda side: (-len(side[1]), side[1]))
        nodes = tuple(tuple(sorted(side)) for _, side in ordered)
        alike[nodes].append((name, tuple(value for value, _ in ordered)))
    return [
        Tie(
            names=tuple(name for name, _ in things),
            sides=tuple(
                (tuple(values[at] for _, values in things), side) for at, side in enumerate(nodes)
            ),
        )
        for nodes, things in alike.items()
    ]
