"""Thousands of reports into one verdict, one report in memory at a time.

What is kept of a report is a row, whose parts thousands of rows share, and its measured numbers at
8 bytes each; the numbers of one metric are judged when all are there. One process reads them all:
with two on two processors it took as long, since what is kept has to be sent from one to the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar, cast

from envlock.fleet import differ, roll
from envlock.fleet.judging import Series, judge_values, slow_checks
from envlock.fleet.reading import Key, Reading, Seen, files_in, node_of, read
from envlock.fleet.results import Merged, Node, State, Twin
from envlock.fleet.traits import split_id
from envlock.model.check import BAD, Status

_BAD = frozenset(status.value for status in BAD)
# from best to worst: what several devices of one node make of a check
_ORDER = tuple(
    status.value
    for status in (
        Status.PASSED, Status.SKIPPED, Status.BLOCKED, Status.NOT_RUN, Status.WARNED,
        Status.ERROR, Status.TIMEOUT, Status.CRASHED, Status.UNKILLABLE, Status.FAILED,
    )
)  # fmt: skip
_RAN = frozenset({Status.PASSED.value, Status.WARNED.value, Status.FAILED.value})
# what another check kept from running says nothing of its own
_FOLLOWS = frozenset({Status.BLOCKED.value, Status.NOT_RUN.value})
_STOPPED = frozenset({"running", "interrupted"})

T = TypeVar("T", bound=Hashable)


def merge_reports(
    folder: str, expected: Sequence[str] = (), advance: Callable[[int], None] | None = None
) -> Merged:
    """Merges the reports of a folder.

    Args:
        folder: with a file ``NODE.json`` or ``NODE/report.json`` for each node.
        expected: nodes that should have answered; none where nobody knows.
        advance: called with the number of files that were read since the last call.

    Raises:
        UnusableInput: there is no such folder.
    """
    gathering = _Gathering()
    for file in files_in(folder):
        found = read(folder, file)
        if found is not None:
            gathering.take(found)
        if advance is not None:
            advance(1)
    return gathering.judged(expected)


class _Gathering:
    """What is kept of the reports read so far."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.stated: list[tuple[int, differ.Stated]] = []
        self.series: dict[Key, Series] = defaultdict(Series)
        self.seconds: dict[str, Series] = defaultdict(Series)
        self.files: dict[str, list[str]] = defaultdict(list)
        self.columns: dict[str, None] = {}
        self._shared: dict[Hashable, Hashable] = {}

    def take(self, found: Reading) -> None:
        """Adds a report."""
        files = self.files[found.node.casefold()]
        files.append(found.file)
        name = found.node if len(files) == 1 else f"{found.node}~{len(files)}"
        number = len(self.nodes)
        cells = _cells(found.checks) if found.traits else {}
        self.columns |= dict.fromkeys(cells)
        self.nodes.append(
            Node(
                name=name,
                file=found.file,
                state=_state(found),
                why=found.problem or found.said,
                bad=tuple(one for one in found.checks if one.required and one.status in _BAD),
                cells=self._same(tuple(cells.items())),
            )
        )
        if not found.traits:
            return
        self._numbers(number, found)
        stated = differ.Stated(
            node=name,
            kind=found.kind,
            traits=self._same(found.traits),
            amounts=self._same(found.amounts),
        )
        self.stated.append((number, stated))

    def _same(self, value: T) -> T:
        """The first of equal values: thousands of nodes say the same."""
        return cast(T, self._shared.setdefault(value, value))

    def _numbers(self, number: int, found: Reading) -> None:
        for value in found.values:
            self.series[value.key].add(number, value.value, value.digits)
        for check in found.checks:
            if check.status in _RAN:
                self.seconds[check.id].add(number, check.seconds, 0)

    def judged(self, expected: Sequence[str]) -> Merged:
        """The verdict over everything that was taken."""
        names = [node.name for node in self.nodes]
        answered = [node_of(files[0]) for files in self.files.values()]
        missing, unexpected = roll.call(answered, expected)
        nodes = [*self.nodes, *(Node(name=n, file="", state=State.MISSING) for n in missing)]
        compared = differ.compare([self._with_checks(*one) for one in self.stated])
        values = judge_values(self.series, names)
        twins = [files for files in self.files.values() if len(files) > 1]
        order = list(State)
        return Merged(
            nodes=tuple(sorted(nodes, key=lambda node: (order.index(node.state), node.name))),
            columns=tuple(self.columns),
            expected=roll.number(expected) or None,
            unexpected=tuple(unexpected),
            twins=tuple(Twin(node=node_of(files[0]), files=tuple(files)) for files in twins),
            differing=compared.differing,
            ties=compared.ties,
            kinds=compared.kinds,
            slow=tuple(slow_checks(self.seconds, names)),
            slower=values.slower,
            faster=values.faster,
            apart=values.apart,
            distributions=values.distributions,
            measures=values.measures,
            few=values.few,
        )

    def _with_checks(self, number: int, stated: differ.Stated) -> differ.Stated:
        """What a node says of itself, and how its checks went."""
        node = self.nodes[number]
        cells, failed = dict(node.cells), {split_id(one.id)[0] for one in node.bad}
        went = (
            (f"check {name}", "ran" if name in failed else _went(cells.get(name)))
            for name in self.columns
            if cells.get(name) not in _FOLLOWS
        )
        return replace(stated, traits=self._same((*stated.traits, *went)))


def _went(status: str | None) -> str:
    """How a check went that no verdict needs; a failed one that it needs is told as such."""
    if status is None or status == Status.SKIPPED.value:
        return "did not run"
    return "ran" if status in (Status.PASSED.value, Status.WARNED.value) else status


def _cells(checks: Iterable[Seen]) -> dict[str, str]:
    """Each check with the worst that one of the devices made of it."""
    found: dict[str, str] = {}
    for check in checks:
        base, _ = split_id(check.id)
        known = found.get(base, check.status)
        found[base] = max(known, check.status, key=_ORDER.index)
    return found


def _state(found: Reading) -> State:
    if found.problem:
        return State.UNREADABLE
    if found.verdict == "failed" or any(c.required and c.status in _BAD for c in found.checks):
        return State.FAILED
    if found.verdict in _STOPPED:
        return State.UNFINISHED
    return State.PASSED if found.verdict == "passed" else State.INCOMPLETE
