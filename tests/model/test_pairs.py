"""Who is tried with whom, and what pairs say of a link or a node."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.model.pairs import MOST_ROUNDS, Judged, Tried, judge, rounds


@given(st.integers(0, 40))
def test_nobody_is_in_two_pairs_of_a_round(count: int) -> None:
    names = [f"n{number}" for number in range(count)]
    for one in rounds(names):
        inside = [name for pair in one for name in pair]
        assert len(inside) == len(set(inside)) >= count - 1


@given(st.integers(2, MOST_ROUNDS))
def test_few_nodes_all_meet_once(count: int) -> None:
    names = [f"n{number}" for number in range(count)]
    met = [tuple(sorted(pair)) for one in rounds(names) for pair in one]
    assert sorted(met) == sorted(tuple(sorted(pair)) for pair in combinations(names, 2))


@pytest.mark.parametrize("count", [18, 19, 500, 501])
def test_many_nodes_meet_many(count: int) -> None:
    names = [f"n{number}" for number in range(count)]
    found = rounds(names)
    assert len(found) == MOST_ROUNDS
    met = [frozenset(pair) for one in found for pair in one]
    assert len(met) == len(set(met))
    for name in names:
        assert sum(name in pair for pair in met) >= MOST_ROUNDS - 1


def tried(*bad: str, slow: str = "") -> list[Tried]:
    """All pairs of four nodes, ``12`` being n1 with n2."""
    return [
        Tried(
            nodes=(f"n{a}", f"n{b}"),
            why="wrong" if a + b in bad else "",
            gbps=1.0 if a + b == slow else 10.0,
        )
        for a, b in combinations("1234", 2)
    ]


@pytest.mark.parametrize(
    ("bad", "nodes", "links"),
    [
        ((), [], []),
        (("13",), [], ["n1 n3"]),
        (("13", "24"), [], ["n1 n3", "n2 n4"]),
        (("12", "23", "24"), ["n2"], []),
        (("12", "23", "24", "13"), ["n2"], ["n1 n3"]),
        (("12", "13", "14", "23", "24", "34"), ["n1", "n2", "n3", "n4"], []),
    ],
)
def test_a_link_or_a_node(bad: tuple[str, ...], nodes: list[str], links: list[str]) -> None:
    found = judge(tried(*bad))
    assert sorted(name for name, _ in found.nodes) == nodes
    assert [" ".join(pair.nodes) for pair in found.links] == links


def test_one_pair_accuses_nobody() -> None:
    """Of two nodes that fail together, nothing says which it is."""
    found = judge([Tried(nodes=("n1", "n2"), why="wrong")])
    assert found.nodes == ()
    assert [pair.nodes for pair in found.links] == [("n1", "n2")]


def test_a_slow_link() -> None:
    found = judge(tried(slow="23"))
    assert [pair.nodes for pair in found.slow] == [("n2", "n3")]
    assert found.usual == 10.0
    few = judge(tried(slow="23")[2:5])
    assert few == Judged()
