"""The rule of outliers on clean data, and that it does not depend on what it should not."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envlock.fleet.outliers import FEWEST, MARGIN, RATE, TIME, Group, Judged, Kind, judge

#: As ``docs/fleet-report.md`` says it: a node has 8 cards and 12 rates for each.
CARDS, RATES = 8, 12

Draw = Callable[[random.Random], float]
SHAPES: dict[str, Draw] = {
    "normal": lambda source: source.gauss(0, 1),
    "flat": lambda source: source.uniform(-1.7, 1.7),
    # a tail of cards that are slower, as power limits make it
    "skewed": lambda source: -source.gammavariate(4, 0.5),
}


def false_alarms(nodes: int, cards: int, noise: float, draw: Draw, seed: int) -> int:
    """Nodes of a clean fleet that are named."""
    source = random.Random(seed)
    named: set[int] = set()
    for _ in range(RATES):
        groups = {
            card: Group(
                values=[100 * (1 + noise * draw(source)) for _ in range(nodes)], nodes=range(nodes)
            )
            for card in range(cards)
        }
        for found in judge(groups, RATE).values():
            named |= {one.node for one in (*found.slower, *found.apart)}
    return len(named)


@pytest.mark.parametrize("noise", [0.002, 0.01, 0.03])
@pytest.mark.parametrize("nodes", [6, 16, 100])
def test_less_than_one_node_in_a_thousand_of_normal_noise_is_named(
    nodes: int, noise: float
) -> None:
    """docs/fleet-report.md: 'Of 1,000 clean nodes … fewer than one is named'."""
    fleets = 2400 // nodes
    found = sum(false_alarms(nodes, CARDS, noise, SHAPES["normal"], n) for n in range(fleets))
    assert found <= 2  # of 2,400


@pytest.mark.parametrize("shape", SHAPES)
def test_other_shapes(shape: str) -> None:
    """The skewed one has real slow cards in its tail; that they are few is all that is said."""
    found = sum(false_alarms(100, 2, 0.01, SHAPES[shape], n) for n in range(10))
    assert found <= (20 if shape == "skewed" else 0)


_KINDS = st.sampled_from([RATE, TIME, MARGIN])
_VALUES = st.lists(st.floats(0.01, 1e4), min_size=FEWEST, max_size=40)


def _judged(values: list[float], kind: Kind) -> Judged:
    return judge({0: Group(values=values, nodes=range(len(values)))}, kind)[0]


@settings(max_examples=200)
@given(_VALUES, _KINDS, st.randoms())
def test_the_order_of_nodes_does_not_matter(
    values: list[float], kind: Kind, source: random.Random
) -> None:
    order = list(range(len(values)))
    source.shuffle(order)
    one, other = _judged(values, kind), _judged([values[at] for at in order], kind)
    for name in ("slower", "faster"):
        assert sorted(odd.value for odd in getattr(one, name)) == sorted(
            odd.value for odd in getattr(other, name)
        )


@settings(max_examples=200)
@given(_VALUES, st.sampled_from([RATE, TIME]), st.sampled_from([2.0**-9, 2.0**5]))
def test_the_unit_does_not_matter(values: list[float], kind: Kind, factor: float) -> None:
    """Powers of two change no digit of a number."""
    one, other = _judged(values, kind), _judged([value * factor for value in values], kind)
    assert [odd.node for odd in one.slower] == [odd.node for odd in other.slower]


@settings(max_examples=200)
@given(_VALUES, _KINDS)
def test_nobody_is_slower_than_half_of_the_others(values: list[float], kind: Kind) -> None:
    found = _judged(values, kind)
    if not found.apart:
        assert len(found.slower) <= len(values) // 2
        assert {odd.node for odd in found.slower}.isdisjoint(odd.node for odd in found.faster)


@settings(max_examples=200)
@given(_VALUES.filter(lambda values: len(values) >= FEWEST), st.floats(1.1, 50))
def test_a_value_that_gets_worse_is_not_named_less(values: list[float], worse: float) -> None:
    """Of the worst value: the others, and so their median and spread, stay as they are."""
    at = min(range(len(values)), key=values.__getitem__)
    before, after = (
        _judged(values, RATE),
        _judged(
            [value / worse if place == at else value for place, value in enumerate(values)], RATE
        ),
    )
    if not (before.apart or after.apart) and at in {odd.node for odd in before.slower}:
        assert at in {odd.node for odd in after.slower}
