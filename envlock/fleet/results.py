"""What the merge found: values that the command, the page and the launcher read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from envlock.fleet.differ import Differing, Tie
from envlock.fleet.reading import Seen


class State(str, Enum):
    """What a node answered, the worst first."""

    FAILED = "failed"
    UNREADABLE = "unreadable"  # its file is cut off, empty, of another schema, or no report
    MISSING = "missing"  # was expected and never answered
    UNFINISHED = "unfinished"  # ended in the middle of its run
    INCOMPLETE = "incomplete"  # a required check could not run
    PASSED = "passed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node, by its report.

    Attributes:
        name: of the node; the second report of one name is ``n017~2``.
        file: relative to the folder; empty where there is none.
        why: verdict in words, or why the file cannot be used.
        bad: required checks that failed, crashed or did not end.
        cells: check without the device's number, and the worst status it had.
    """

    name: str
    file: str
    state: State
    why: str = ""
    bad: tuple[Seen, ...] = ()
    cells: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """Which number it is.

    Attributes:
        device: name of the device; ``index``: its number on the node.
        metric: a key of ``METRICS``.
    """

    check: str
    case: str
    metric: str
    device: str
    index: int = 0

    @property
    def text(self) -> str:
        return f"{self.check}: {self.case}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlier:
    """A value that is not like those of its sisters.

    Attributes:
        median: of the sisters.
        loss: part of the median; of a margin the difference; negative: better.
        score: loss over spread.
    """

    node: str
    measure: Measure
    value: float
    median: float
    loss: float
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """The smaller of two groups of values, with a gap between them.

    Attributes:
        median: of the other group; ``own``: of this one.
        worse: whether this one is the worse.
    """

    measure: Measure
    nodes: tuple[str, ...]
    own: float
    median: float
    worse: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow:
    """A check that took much longer than on most nodes; seconds."""

    node: str
    check: str
    seconds: float
    usual: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """Several files that call their node the same."""

    node: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """All values of one metric, over all device numbers, to be drawn.

    Attributes:
        measure: index 0.
        number: of values; ``median``, ``least`` and ``most`` of them.
        limit: loss from which on a value is named, the smallest of the device numbers.
        counts: values in steps of equal width from ``least`` to ``most``.
        marked: outliers among them.
    """

    measure: Measure
    number: int
    median: float
    least: float
    most: float
    limit: float
    counts: tuple[int, ...]
    marked: tuple[Outlier, ...] = ()
    apart: bool = False


@dataclass(frozen=True, kw_only=True)
class Merged:
    """The verdict over all nodes.

    Attributes:
        nodes: every report, and every node without one; the worst first.
        columns: checks without device numbers, in the order they ran.
        expected: number of nodes that should have answered; None where nobody said.
        unexpected: nodes that answered and were not expected.
        differing, ties: what is not the same on all nodes.
        kinds: devices that were compared by themselves, and their nodes.
        slower, faster: outliers, the worst first.
        apart: metrics with two groups.
        slow: checks that took long, which is told and decides nothing.
        measures: metrics that were judged; ``few``: those with too few values for that.
    """

    nodes: tuple[Node, ...] = ()
    columns: tuple[str, ...] = ()
    expected: int | None = None
    unexpected: tuple[str, ...] = ()
    twins: tuple[Twin, ...] = ()
    differing: tuple[Differing, ...] = ()
    ties: tuple[Tie, ...] = ()
    kinds: tuple[tuple[str, int], ...] = ()
    slower: tuple[Outlier, ...] = ()
    faster: tuple[Outlier, ...] = ()
    apart: tuple[Apart, ...] = ()
    slow: tuple[Slow, ...] = ()
    distributions: tuple[Distribution, ...] = ()
    measures: int = 0
    few: int = 0

    @cached_property
    def by_state(self) -> Mapping[State, tuple[Node, ...]]:
        """Nodes of each state."""
        return {state: tuple(node for node in self.nodes if node.state is state) for state in State}

    @property
    def uneven(self) -> bool:
        """Whether the nodes are not alike: they differ, or a value is not like the others."""
        return bool(self.differing or self.ties or self.slower or self.apart)

    @property
    def exit_code(self) -> int:
        """0 every node passed and all are alike; 3 a node failed, differs or is slower; 8 one did
        not answer, or what it answered is no verdict. 3 outweighs 8."""
        states = self.by_state
        if states[State.FAILED] or self.uneven:
            return 3
        if self.twins or len(states[State.PASSED]) < len(self.nodes) or not self.nodes:
            return 8
        return 0
