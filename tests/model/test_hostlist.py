"""Lists of nodes as schedulers write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.errors import UsageProblem
from envlock.model.hostlist import MOST_NODES, expand, fold, is_host_name

EXPANDED: dict[str, tuple[str, ...]] = {
    "": (),
    "n1": ("n1",),
    "n[1-3]": ("n1", "n2", "n3"),
    "n[001-003,200],login1": ("n001", "n002", "n003", "n200", "login1"),
    "n[8-11]": ("n8", "n9", "n10", "n11"),
    "n[08-11]": ("n08", "n09", "n10", "n11"),
    "rack[1-2]-n[01-02]": ("rack1-n01", "rack1-n02", "rack2-n01", "rack2-n02"),
    "n[1-2].cluster": ("n1.cluster", "n2.cluster"),
    "a b\nc,d": ("a", "b", "c", "d"),
    "n1,n[1-2],n1": ("n1", "n2"),
    "n[5]": ("n5",),
}


@pytest.mark.parametrize("text", EXPANDED)
def test_expand(text: str) -> None:
    assert expand(text) == EXPANDED[text]


@pytest.mark.parametrize(
    "text",
    ["n[", "n]", "n[1-2", "n[[1]]", "n[]", "n[a-b]", "n[5-1]", "n[1-]", "-n", "n;rm", "n$(x)", "ñ1",
     f"n[1-{MOST_NODES + 1}]", "n[1-1000]x[1-1000]", "n[1-99999999999999999999]"],
)  # fmt: skip
def test_what_is_no_list(text: str) -> None:
    with pytest.raises(UsageProblem, match="list of nodes: "):
        expand(text)


FOLDED = {
    "n[001-003,200]": ["n200", "n002", "n001", "n003"],
    "n[8-11]": ["n8", "n9", "n10", "n11"],
    "n[098-101]": ["n098", "n099", "n100", "n101"],
    "n[0-10]": [f"n{number}" for number in range(11)],
    "gpu,login1": ["login1", "gpu"],
    "n[1-2],n[01-02]": ["n1", "n01", "n2", "n02"],
    "rack1-n[1-2],rack2-n1": ["rack1-n1", "rack2-n1", "rack1-n2"],
    "n,n[0-1]": ["n0", "n", "n1"],
    "n1": ["n1", "n1"],
    "": [],
}


@pytest.mark.parametrize("text", FOLDED)
def test_fold(text: str) -> None:
    assert fold(FOLDED[text]) == text


_NAMES = st.builds(
    "{}{}{}".format,
    st.sampled_from("abc"),
    st.sampled_from(["", "-", "-x"]),
    st.text("0123456789", max_size=4),
).filter(is_host_name)


@given(st.lists(_NAMES, max_size=30))
def test_what_is_folded_expands_to_the_same_names(names: list[str]) -> None:
    """ "``expand(fold(names))`` are the same names\""""
    assert sorted(expand(fold(names))) == sorted(set(names))


def test_names_of_hosts() -> None:
    assert all(map(is_host_name, ("n1", "a-b.c", "1", "N_1x")))
    assert not any(map(is_host_name, ("", "-n", "n-", "a b", "a'b", "n[1]", "x" * 254, "a\n")))
