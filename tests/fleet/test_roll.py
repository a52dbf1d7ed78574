"""Who should have answered."""

from __future__ import annotations

from pathlib import Path

import pytest

from envlock.errors import UnusableInput
from envlock.fleet.roll import NODES_FILE, call, named, number, started


def test_a_list_or_a_file(tmp_path: Path) -> None:
    path = tmp_path / "nodes"
    path.write_text("# the new rack\nn[1-2]\nn7, n9 # two more\n\n")
    assert named("n[1-3]") == ("n1", "n2", "n3")
    assert named(str(path)) == ("n1", "n2", "n7", "n9")


def test_what_the_launcher_wrote(tmp_path: Path) -> None:
    assert started(str(tmp_path)) == ()
    (tmp_path / NODES_FILE).write_text("n[1-2]\n")
    assert started(str(tmp_path)) == ("n1", "n2")


def test_a_second_process_of_one_name_is_the_same_node(tmp_path: Path) -> None:
    (tmp_path / NODES_FILE).write_text("n1,n1~2,n2~[2-3],n2\n")
    assert started(str(tmp_path)) == ("n1", "n2")
    assert call(["n1"], ["n1", "n1~2"]) == ([], [])
    assert number(["n1", "n1~2", "n2"]) == 2


def test_files_that_are_no_list(tmp_path: Path) -> None:
    path = tmp_path / NODES_FILE
    path.write_bytes(b"n1\xff")
    with pytest.raises(UnusableInput, match="no text"):
        started(str(tmp_path))
    path.write_text("n[1")
    with pytest.raises(UnusableInput, match=r"nodes\.txt: list of nodes: a bracket"):
        started(str(tmp_path))


CALLS: dict[str, tuple[list[str], list[str], list[str], list[str]]] = {
    "nobody asked": (["n1"], [], [], []),
    "all": (["n1", "n2"], ["n2", "n1"], [], []),
    "one silent, one unasked": (["n1", "n3"], ["n1", "n2"], ["n2"], ["n3"]),
    "case": (["N1"], ["n1"], [], []),
    "asked without a domain": (["n1.a.b"], ["n1"], [], []),
    "answered without a domain": (["n1"], ["n1.a.b"], [], []),
    "two domains": (["n1.a"], ["n1.b"], ["n1.b"], ["n1.a"]),
    "which of two": (["n1.a", "n1.b"], ["n1"], ["n1"], ["n1.a", "n1.b"]),
}


@pytest.mark.parametrize("name", CALLS)
def test_call(name: str) -> None:
    answered, expected, silent, unasked = CALLS[name]
    assert call(answered, expected) == (silent, unasked)
