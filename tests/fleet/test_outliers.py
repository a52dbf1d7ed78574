"""The rule of outliers, by its parts."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from envlock.fleet.outliers import (
    FEW,
    FEWEST,
    LEAST_LOSS,
    MARGIN,
    MOST_SCORE,
    RATE,
    SCORE,
    SPLIT_FROM,
    TIME,
    Group,
    Judged,
    Kind,
    judge,
    split,
    threshold,
)


def normal(number: int, noise: float, seed: int = 3) -> list[float]:
    source = random.Random(seed)
    return [100 * (1 + noise * source.gauss(0, 1)) for _ in range(number)]


def judged(values: list[float], kind: Kind = RATE, step: float = 0.0) -> Judged:
    return judge({0: Group(values=values, nodes=range(len(values)), step=step)}, kind)[0]


def slower(found: Judged) -> list[int]:
    return [one.node for one in found.slower]


def test_a_card_that_is_6_percent_slower_is_named_with_how_much() -> None:
    found = judged([*normal(31, 0.005), 94.0])
    assert slower(found) == [31]
    (odd,) = found.slower
    assert odd.loss == pytest.approx(0.06, abs=0.005)
    assert odd.score == pytest.approx(odd.loss / found.spread)
    assert found.faster == ()


def test_and_one_that_is_3_percent_slower_where_the_others_are_alike() -> None:
    assert slower(judged([*normal(100, 0.003), 97.0])) == [100]


def test_but_not_where_the_others_scatter_as_much() -> None:
    assert slower(judged([*normal(100, 0.02), 97.0])) == []


def test_less_than_the_least_loss_is_nobodys_business() -> None:
    assert slower(judged([100.0] * 50 + [100 * (1 - LEAST_LOSS * 0.9)])) == []
    assert slower(judged([100.0] * 50 + [100 * (1 - LEAST_LOSS * 1.1)])) == [50]


def test_where_most_are_exactly_the_same_the_least_loss_decides() -> None:
    found = judged([100.0] * 9 + [90.0])
    assert found.spread == 0
    assert slower(found) == [9]
    assert found.slower[0].score == MOST_SCORE


def test_of_a_time_more_is_worse_and_of_a_rate_less() -> None:
    values = [*normal(40, 0.003), 110.0]
    assert slower(judged(values, TIME)) == [40]
    assert slower(judged(values, RATE)) == []
    assert [one.node for one in judged(values, RATE).faster] == [40]


def test_a_time_is_judged_as_the_speed_that_it_stands_for() -> None:
    rates = [*normal(40, 0.003), 94.0]
    by_rate, by_time = judged(rates), judged([1 / rate for rate in rates], TIME)
    assert slower(by_rate) == slower(by_time) == [40]
    assert by_time.slower[0].loss == pytest.approx(by_rate.slower[0].loss, abs=0.002)


def test_a_margin_is_judged_in_parts_of_its_limit() -> None:
    assert slower(judged([0.1] * 20 + [0.15], MARGIN)) == []
    assert slower(judged([0.1] * 20 + [0.31], MARGIN)) == [20]
    assert slower(judged([0.0] * 20 + [0.31], MARGIN)) == [20]
    assert judged([0.9] * 20 + [0.1], MARGIN).faster != ()


def test_a_value_of_few_digits_gets_one_step_of_the_last() -> None:
    """A report that rounds to 0.001 says 0.003 and 0.002 of cards that are the same."""
    coarse = [0.003] * 9 + [0.002]
    assert slower(judged(coarse, step=0.001)) == []
    assert slower(judged([0.003] * 9 + [0.001], step=0.001)) == [9]
    assert slower(judged(coarse)) == [9]


@pytest.mark.parametrize("number", range(FEWEST))
def test_fewer_than_five_are_not_judged(number: int) -> None:
    found = judged([100.0] * (number - 1) + [50.0] if number else [])
    assert not found.enough
    assert slower(found) == []


def test_five_are_enough() -> None:
    assert slower(judged([100.0, 100.0, 100.0, 100.0, 50.0])) == [4]


def test_of_few_more_is_asked() -> None:
    asked = [threshold(number) for number in (5, 6, 10, 20, 100, 10_000)]
    assert asked == sorted(asked, reverse=True)
    assert asked[0] > 80 and asked[-1] == pytest.approx(SCORE, rel=0.01)


def test_the_docs_have_the_same_constants() -> None:
    text = (Path(__file__).parents[2] / "docs" / "fleet-report.md").read_text(encoding="utf-8")
    for said in (
        f"{SCORE:g} + {FEW:g} / (n − 4) times the spread",
        f"with 6 values a score of {threshold(6):.0f}, with 20 of {threshold(20):.0f}",
        f"{LEAST_LOSS * 100:g} % of the median or more",
        f"from {SPLIT_FROM} values on",
        f"Fewer than {FEWEST} nodes",
    ):
        assert said in text


def test_device_numbers_have_their_own_medians() -> None:
    """Copies to the cards behind the second switch are slower, on every node."""
    near, far = [50.0] * 10, [40.0] * 10
    found = judge(
        {0: Group(values=near, nodes=range(10)), 1: Group(values=far, nodes=range(10))}, RATE
    )
    assert all(one.slower == one.apart == () for one in found.values())


def test_and_learn_the_spread_from_each_other() -> None:
    """Five nodes of eight cards: by itself a group of five tells nearly nothing."""
    groups = {index: Group(values=normal(5, 0.004, index), nodes=range(5)) for index in range(8)}
    odd = Group(values=[100.4, 99.7, 100.1, 99.5, 93.0], nodes=range(5))
    assert slower(judge({**groups, 3: odd}, RATE)[3]) == [4]
    assert slower(judge({3: odd}, RATE)[3]) == []


def test_a_slot_that_scatters_more_keeps_its_own_spread() -> None:
    quiet = {index: Group(values=normal(40, 0.002, index), nodes=range(40)) for index in range(7)}
    wild = Group(values=normal(40, 0.03, 9), nodes=range(40))
    assert slower(judge({**quiet, 7: wild}, RATE)[7]) == []


# --- two groups -----------------------------------------------------------------------------


def test_two_kinds_under_one_name_are_a_group_apart_not_a_list_of_outliers() -> None:
    found = judged([*normal(30, 0.005), *[0.9 * value for value in normal(10, 0.005, 4)]])
    assert sorted(one.node for one in found.apart) == list(range(30, 40))
    assert found.slower == found.faster == ()
    assert all(one.loss == pytest.approx(0.1, abs=0.03) for one in found.apart)


def test_half_and_half_too() -> None:
    found = judged([*normal(20, 0.005), *[0.9 * value for value in normal(20, 0.005, 4)]])
    assert len(found.apart) == 20


def test_each_group_is_judged_by_itself() -> None:
    low = [0.9 * value for value in normal(20, 0.003, 4)]
    found = judged([*normal(30, 0.003), *low, 95.0, 84.0])
    assert {one.node for one in found.slower} >= {51}


def test_few_slow_ones_are_outliers_not_a_group() -> None:
    found = judged([*normal(30, 0.005), 90.0, 90.2, 89.9])
    assert found.apart == ()
    assert sorted(slower(found)) == [30, 31, 32]


def test_one_wide_heap_is_not_two() -> None:
    source = random.Random(2)
    values = [source.uniform(80, 120) for _ in range(60)]
    assert split(Group(values=values, nodes=range(60)), RATE) is None


def test_few_values_are_never_two_groups() -> None:
    assert split(Group(values=[100.0] * 9 + [50.0] * 10, nodes=range(19)), RATE) is None
    assert split(Group(values=[100.0] * 10 + [50.0] * 10, nodes=range(20)), RATE) is not None
