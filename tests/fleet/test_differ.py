"""What is not the same on all nodes, by majority."""

from __future__ import annotations

from envlock.fleet.differ import Difference, Differing, Stated, compare


def nodes(number: int, *, kind: str = "BW", start: int = 1, **traits: str) -> list[Stated]:
    return [
        Stated(node=f"n{index}", kind=kind, traits=tuple(traits.items()))
        for index in range(start, start + number)
    ]


def amounts(*values: float) -> list[Stated]:
    return [
        Stated(node=f"n{at}", kind="BW", traits=(), amounts=(("memory", value),))
        for at, value in enumerate(values)
    ]


def test_nobody_and_one() -> None:
    assert compare([]).differing == compare(nodes(1, driver="1")).differing == ()


def test_nodes_that_differ_in_the_same_things_are_one_group() -> None:
    found = compare(
        [*nodes(6, driver="6", torch="2"), *nodes(2, start=7, driver="5", torch="1"),
         *nodes(1, start=9, driver="5", torch="2")]
    )  # fmt: skip
    driver = Difference(name="driver", value="5", usual="6")
    torch = Difference(name="torch", value="1", usual="2")
    assert found.differing == (
        Differing(differences=(driver, torch), nodes=("n7", "n8")),
        Differing(differences=(driver,), nodes=("n9",)),
    )


def test_the_most_common_is_enough() -> None:
    """Two fifths against three times a fifth."""
    parts = [nodes(2, start=2 * at + 1, driver=str(at)) for at in (1, 2, 3)]
    found = compare([*nodes(4, start=20, driver="0"), *(one for part in parts for one in part)])
    assert len(found.differing) == 3
    assert found.ties == ()


def test_a_tie_names_both_sides_once_for_all_that_parts_them() -> None:
    found = compare([*nodes(3, a="1", b="x", c="y"), *nodes(3, start=4, a="2", b="z", c="y")])
    (tie,) = found.ties
    assert tie.names == ("a", "b")
    assert tie.sides == (
        (("1", "x"), ("n1", "n2", "n3")),
        (("2", "z"), ("n4", "n5", "n6")),
    )
    assert found.differing == ()


def test_what_a_node_does_not_say_is_not_compared() -> None:
    assert compare([*nodes(3, driver="6"), *nodes(2, start=4)]).differing == ()


def test_amounts_that_are_near_are_the_same() -> None:
    assert compare(amounts(100, 101, 98, 104.9, 95.1)).differing == ()
    (far,) = compare(amounts(100, 101, 98, 120, 99)).differing
    assert far.nodes == ("n3",)
    assert far.differences[0].value == "120"


def test_amounts_that_are_far_and_near_to_each_other_are_one_group() -> None:
    (far,) = compare(amounts(100, 100, 100, 50, 50.5, 49.8, 100)).differing
    assert far.nodes == ("n3", "n4", "n5")


def test_near_is_near_to_what_most_have() -> None:
    odd = [96.0, 95.9, 95.8, 95.7, 95.6, 91.5]
    (far,) = compare(amounts(*[100.0] * 20, *odd)).differing
    assert far.nodes == ("n25",)


def test_no_limit_is_no_amount() -> None:
    (far,) = compare(amounts(-1.0, -1.0, -1.0, 0.5)).differing
    assert far.differences == (Difference(name="memory", value="0.5", usual="-1"),)


def test_kinds_have_majorities_of_their_own() -> None:
    found = compare(
        [*nodes(10, driver="6"), *nodes(5, kind="K100", start=11, driver="5"),
         *nodes(1, kind="Z", start=16, driver="6")]
    )  # fmt: skip
    assert found.kinds == (("BW", 11), ("K100", 5))
    assert [one.nodes for one in found.differing] == [("n16",)]


def test_a_node_that_does_not_know_its_device_is_compared_with_most() -> None:
    found = compare([*nodes(6, driver="6"), *nodes(1, kind="", start=7, driver="5")])
    assert found.kinds == (("BW", 7),)
    assert [one.differences for one in found.differing] == [
        (Difference(name="driver", value="5", usual="6"),)
    ]
    assert compare(nodes(3, kind="", driver="6")).differing == ()
