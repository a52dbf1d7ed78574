"""Who should have answered, and who did not."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from envlock.errors import UnusableInput, UsageProblem
from envlock.model.hostlist import expand

#: In the folder of reports: the nodes that were started, as a list that Slurm reads.
NODES_FILE = "nodes.txt"
# a second process that called its node the same was started on the same node
_TWINS = re.compile(r"~(?:[0-9]+|\[[0-9,-]*\])")
_HINT = "one name or list a line: n[001-128,200]"


def named(text: str) -> tuple[str, ...]:
    """Nodes by a list, ``n[001-128,200]``, or by a file of names and lists.

    Raises:
        UsageProblem: it is no list.
        UnusableInput: the file cannot be read, or holds none.
    """
    return _in_file(text) if os.path.isfile(text) else expand(text)


def started(folder: str) -> tuple[str, ...]:
    """Nodes that the launcher wrote down; none where it did not.

    Raises:
        UnusableInput: the file cannot be read, or holds no list.
    """
    path = os.path.join(folder, NODES_FILE)
    return _in_file(path) if os.path.isfile(path) else ()


def _in_file(path: str) -> tuple[str, ...]:
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", None) or "no text"
        raise UnusableInput(f"{path}: cannot be read: {said}", _HINT) from error
    try:
        return expand(_TWINS.sub("", " ".join(line.partition("#")[0] for line in lines)))
    except UsageProblem as error:
        raise UnusableInput(f"{path}: {error.message}", error.hint) from error


def number(expected: Iterable[str]) -> int:
    """Of nodes, whatever number of processes each has."""
    return len(_nodes(expected))


def _nodes(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(_TWINS.sub("", name) for name in names))


def call(answered: Sequence[str], expected: Sequence[str]) -> tuple[list[str], list[str]]:
    """Expected nodes that did not answer, and answers that nobody expected.

    ``n1`` and ``n1.cluster`` are one node, where one of the two lists has no domains.
    """
    expected = _nodes(expected)
    if not expected:
        return [], []
    there = {name.casefold() for name in answered}
    asked = {name.casefold() for name in expected}
    missing = [name for name in expected if name.casefold() not in there]
    strangers = [name for name in answered if name.casefold() not in asked]
    short: dict[str, list[str]] = defaultdict(list)
    for name in strangers:
        short[name.casefold().partition(".")[0]].append(name)
    silent = []
    for name in missing:
        head, _, domain = name.casefold().partition(".")
        same = [other for other in short[head] if not (domain and "." in other)]
        if len(same) == 1:
            strangers.remove(same[0])
        else:
            silent.append(name)
    return silent, strangers
