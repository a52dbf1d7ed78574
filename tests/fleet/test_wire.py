"""What nodes say through a launcher's output, and the word that tells them what to do."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.errors import UsageProblem
from envlock.fleet.job import Job, decode, encode, filled
from envlock.fleet.launch import free_name, is_node_name, worst
from envlock.fleet.wire import Collector, lines_of

TEXT = st.text(max_size=3000)
MESSAGES = st.lists(st.dictionaries(st.sampled_from(["kind", "text", "name"]), TEXT), max_size=5)


def collected(data: bytes, *cuts: int) -> list[dict[str, Any]]:
    collector, last = Collector(), 0
    found: list[dict[str, Any]] = []
    for cut in (*sorted(cuts), len(data)):
        found += collector.feed(data[last:cut])
        last = max(last, cut)
    return [*found, *collector.end()]


@given(MESSAGES, st.randoms(use_true_random=False), st.lists(st.integers(0, 5000), max_size=4))
def test_messages_arrive_whole(
    messages: list[dict[str, str]], chance: random.Random, cuts: list[int]
) -> None:
    """Lines of all nodes are mixed, have names before them, and arrive in pieces."""
    lines = [
        f"{chance.choice(['', '3: ', 'n001: ', '[1,0]<stdout>:'])}{line}"
        for number, message in enumerate(messages)
        for line in lines_of(message, f"{number:08x}")
    ]
    lines += ["slurmstepd: error: *** STEP 4.0 ON n1 CANCELLED ***", "@envlock nonsense"]
    chance.shuffle(lines)
    found = collected("\n".join(lines).encode(), *cuts)
    assert sorted(map(repr, found)) == sorted(map(repr, messages))


def test_lines_are_short() -> None:
    """A pipe takes 4,096 bytes whole, srun's line buffer 1,024."""
    chance = random.Random(1)
    text = "".join(chance.choice("abcdefgh") for _ in range(20_000))
    lines = list(lines_of({"text": text}, "0" * 16))
    assert len(lines) > 1
    assert max(map(len, lines)) < 1000


def test_a_shell_says_little() -> None:
    said = b"n3: @envlock-sh n3 missing 127\n@envlock-sh n4 room 0"
    assert collected(said) == [
        {"kind": "shell", "node": "n3", "what": "missing", "code": 127},
        {"kind": "shell", "node": "n4", "what": "room", "code": 0},
    ]


@pytest.mark.parametrize("data", [b"@envlock 00000000 0 1 AAAA", b"@envlock 00000000 5 1 AAAA"])
def test_what_is_damaged_is_passed_over(data: bytes) -> None:
    assert collected(data) == []


@given(st.lists(TEXT, max_size=4), TEXT, st.floats(0, 1e6))
def test_a_job_is_one_safe_word(words: list[str], manifest: str, seconds: float) -> None:
    job = Job(
        run="00ff", out="/a b/$HOME", words=tuple(words), manifest=manifest, seconds=seconds,
        reports=True, beside=".yaml", towards="10.0.0.1",
    )  # fmt: skip
    word = encode(job)
    assert set(word) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    assert decode(word) == job


@pytest.mark.parametrize("word", ["", "x", "AAAA", encode(Job(run="1", out="/", words=()))[:-4]])
def test_no_job(word: str) -> None:
    with pytest.raises(UsageProblem, match="job: "):
        decode(word)


def test_places_are_filled_in() -> None:
    known = {"{node}": "n017", "{kit}": "/tmp/k"}
    words = ["--python", "/local/{node}/env", "{kit}/wheels", "{other}"]
    assert filled(words, known) == ["--python", "/local/n017/env", "/tmp/k/wheels", "{other}"]


@pytest.mark.parametrize(
    ("codes", "code"),
    [([0, 0], 0), ([0, 8], 8), ([8, 3, 0], 3), ([3, 6], 6), ([6, 7], 7), ([0, 1], 5), ([0, 137], 5),
     ([4, 5], 4), ([], 8)],
)  # fmt: skip
def test_the_worst_decides(codes: list[int], code: int) -> None:
    """1 is a bug of ours only when it is ours: a node's is a program that failed."""
    assert worst(codes) == code


def test_names() -> None:
    assert free_name("n1", {}) == "n1"
    assert free_name("n1", {"n1", "n1~2"}) == "n1~3"
    assert is_node_name("n1~2")
    assert not any(map(is_node_name, ("../n1", "", "n1/x", "~", "n1~x", ".hidden")))
