"""The merge in words: one line for what nodes have in common, the worst first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from envlock.fleet.differ import Differing
from envlock.fleet.outliers import FEWEST
from envlock.fleet.results import Merged, Node, Outlier, State
from envlock.model.amounts import amount, percent
from envlock.model.facts import Finding
from envlock.model.hostlist import fold, is_host_name

_TOLD = 4  # things of one kind that a line names
_REASON = 110


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Lines of one kind.

    Attributes:
        code: of its findings, ``fleet.slower``.
        title: for people, after the number of nodes.
        level: ``error``, ``warning`` or ``info``.
        hint: what to do.
        lines: what is told.
    """

    code: str
    title: str
    level: str
    lines: tuple[Line, ...]
    hint: str = ""

    @property
    def nodes(self) -> int:
        """Number of nodes in it, each once."""
        return len({name for line in self.lines for name in line.nodes})


@dataclass(frozen=True, slots=True)
class Line:
    """Nodes, and what is said of all of them."""

    nodes: tuple[str, ...]
    what: str


#: How each state is told: code, title, level, what to do.
_STATES = {
    State.FAILED: (
        "failed", "failed", "error",
        "the check's own report says more; 'envlock verify --only CHECK' on the node asks again",
    ),
    State.UNREADABLE: (
        "unreadable", "with a report that cannot be read", "error",
        "a full disk, a node that died while it wrote, or another version of envlock: run it again",
    ),
    State.MISSING: (
        "no-answer", "never answered", "error",
        "is the node up, and does it see the folder? 'sinfo -R -n NODE' tells Slurm's side",
    ),
    State.UNFINISHED: (
        "unfinished", "stopped in the middle", "error",
        "killed, out of time, rebooted, or still at it: the scheduler's log of the step says which",
    ),
    State.INCOMPLETE: (
        "incomplete", "without a verdict", "error",
        "a check could not run there, or the command itself: see the node's own report",
    ),
}  # fmt: skip


def sections(merged: Merged) -> tuple[Section, ...]:
    """Everything that is to be told, the worst first; nodes that are as they should be are not."""
    found = [_of_state(merged, state) for state in _STATES]
    found += [*_values(merged), *_alike(merged), *_notes(merged)]
    return tuple(one for one in found if one.lines)


def findings(merged: Merged) -> tuple[Finding, ...]:
    """The same for ``--json``."""
    return tuple(
        Finding(
            code=f"fleet.{one.code}",
            subject=folded(line.nodes) or one.title,
            what=line.what,
            hint=one.hint,
            level=one.level,
        )
        for one in sections(merged)
        for line in one.lines
    )


def said(merged: Merged) -> str:
    """The verdict in a line."""
    states = merged.by_state
    everything = len(merged.nodes)
    if merged.exit_code == 0:
        return f"passed: all {everything} nodes, and they are alike"
    if not merged.nodes:
        return "incomplete: there is no report"
    parts = [
        f"{len(states[state])} {title}" for state, (_, title, _, _) in _STATES.items()
        if states[state]
    ]  # fmt: skip
    parts += [
        f"{one.nodes} {one.title}" for one in (*_values(merged), *_alike(merged)) if one.lines
    ]
    good = len(states[State.PASSED])
    return (
        f"{verdict(merged)}: of {everything} nodes {', '.join(parts)}; {good} passed by themselves"
    )


def verdict(merged: Merged) -> str:
    """``passed``, ``failed``, ``uneven`` (no node failed, and they are not alike) or
    ``incomplete``."""
    if merged.exit_code == 0:
        return "passed"
    if merged.by_state[State.FAILED]:
        return "failed"
    return "uneven" if merged.uneven else "incomplete"


def folded(names: Iterable[str]) -> str:
    """Names as Slurm writes them; those that no host can have stand for themselves."""
    names = list(dict.fromkeys(names))
    odd = [name for name in names if not is_host_name(name)]
    return ",".join([part for part in (fold(filter(is_host_name, names)), *odd) if part])


# --- what nodes answered --------------------------------------------------------------------


def _of_state(merged: Merged, state: State) -> Section:
    code, title, level, hint = _STATES[state]
    alike: dict[str, list[str]] = defaultdict(list)
    for node in merged.by_state[state]:
        alike[_why(node)].append(node.name)
    return Section(code=code, title=title, level=level, hint=hint, lines=_lines(alike.items()))


def _why(node: Node) -> str:
    if node.state is State.MISSING:
        return "no report"
    if not node.bad:
        return node.why or _how_far(node)
    first = node.bad[0]
    more = [one.id for one in node.bad[1:]]
    reason = first.reason[:_REASON] or first.status
    text = (
        f"{first.id} {first.status}: {reason}"
        if reason != first.status
        else f"{first.id}: {reason}"
    )
    return f"{text}; and {', '.join(more[:_TOLD])}{' …' if more[_TOLD:] else ''}" if more else text


def _how_far(node: Node) -> str:
    done = sum(status != "not-run" for _, status in node.cells)
    return f"{done} of {len(node.cells)} checks had run"


def _lines(pairs: Iterable[tuple[str, Sequence[str]]]) -> tuple[Line, ...]:
    """The lines with most nodes first."""
    lines = [Line(tuple(nodes), what) for what, nodes in pairs]
    return tuple(sorted(lines, key=lambda line: (-len(line.nodes), line.nodes)))


# --- by value -------------------------------------------------------------------------------


def _values(merged: Merged) -> Iterator[Section]:
    yield Section(
        code="slower",
        title="slower or less exact than their sisters",
        level="error",
        hint="run it again on the node alone; cooling, power limits, clocks and the slot come next",
        lines=tuple(_cards(merged.slower)),
    )
    yield Section(
        code="apart",
        title="in a group apart by value",
        level="error",
        hint="two kinds of one device, or two settings: power limit, clocks, memory, firmware",
        lines=_lines(_groups(merged)),
    )


def _cards(outliers: Sequence[Outlier]) -> Iterator[Line]:
    """A line for each node and kind of device, by the worst measurement."""
    nodes: dict[tuple[str, str], list[Outlier]] = defaultdict(list)
    for one in outliers:
        nodes[one.node, one.measure.device].append(one)
    for (node, device), found in nodes.items():
        worst, more = found[0], len(found) - 1
        rest = f"; and {more} more measurement{'' if more == 1 else 's'}" if more else ""
        indices = sorted({one.measure.index for one in found})
        others = f" and {len(indices) - 1} more" if indices[1:] else ""
        card = f"device {worst.measure.index}{others} ({device})"
        yield Line((node,), f"{card}: {compared(worst)}{rest}")


def compared(one: Outlier) -> str:
    """``perf.gemm: fp16 4096: 412.3 TFLOPS, its sisters 439.2 TFLOPS (-6.1 %)``."""
    metric = one.measure.metric
    value, usual = shown(one.value, metric), shown(one.median, metric)
    change = f"{-one.loss * 100:+.1f} %" if metric != "margin" else f"{one.loss * 100:+.0f} %"
    return f"{one.measure.text}: {value}, its sisters {usual} ({change})"


def shown(value: float, metric: str) -> str:
    """A number with its unit."""
    return f"{percent(value)} of the limit" if metric == "margin" else amount(value, metric)


def _groups(merged: Merged) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Metrics that part the nodes in the same way are one line."""
    alike: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for one in merged.apart:
        metric = one.measure.metric
        text = (
            f"{one.measure.text}: {shown(one.own, metric)}, the others {shown(one.median, metric)}"
        )
        alike[tuple(sorted(one.nodes))].append(text)
    for nodes, texts in alike.items():
        yield "; ".join([texts[0], *([f"and {len(texts) - 1} more"] if texts[1:] else [])]), nodes


# --- what is not the same -------------------------------------------------------------------


def _alike(merged: Merged) -> Iterator[Section]:
    yield Section(
        code="differs",
        title="not like most of them",
        level="error",
        hint="'envlock diff' of two nodes' reports says all of it; 'envlock fleet restore' puts "
        "a stack back",
        lines=_lines((_differences(one), one.nodes) for one in merged.differing),
    )
    yield Section(
        code="tie",
        title="without a majority",
        level="error",
        hint="which side is the right one only you know",
        lines=tuple(_ties(merged)),
    )
    yield Section(
        code="twin",
        title="with several reports of one name",
        level="error",
        hint="two nodes call themselves the same, or one ran twice: which of them is it?",
        lines=tuple(Line((one.node,), ", ".join(one.files)) for one in merged.twins),
    )


def _differences(one: Differing) -> str:
    texts = [f"{d.name} {d.value}, usually {d.usual}" for d in one.differences]
    more = f"; and {len(texts) - _TOLD} more" if texts[_TOLD:] else ""
    return "; ".join(texts[:_TOLD]) + more


def _ties(merged: Merged) -> Iterator[Line]:
    for one in merged.ties:
        for values, nodes in one.sides:
            pairs = [f"{name} {value}" for name, value in zip(one.names, values, strict=True)]
            yield Line(nodes, "; ".join(pairs[:_TOLD]) + (" …" if pairs[_TOLD:] else ""))


# --- what decides nothing -------------------------------------------------------------------


def _notes(merged: Merged) -> Iterator[Section]:
    yield Section(
        code="slow-check",
        title="with a check that took long",
        level="warning",
        hint="a file system or a first compilation, if nothing else is wrong there",
        lines=tuple(
            Line((one.node,), f"{one.check} took {one.seconds:.0f} s, usually {one.usual:.1f} s")
            for one in merged.slow
        ),
    )
    yield Section(
        code="unexpected",
        title="not among the expected",
        level="warning",
        lines=(Line(merged.unexpected, "answered all the same"),) if merged.unexpected else (),
    )
    yield Section(
        code="faster",
        title="faster than their sisters",
        level="info",
        lines=tuple(_cards(merged.faster)),
    )
    if merged.few and not merged.measures:
        text = f"no number was judged: none was measured on {FEWEST} nodes with the same device"
        yield Section(code="few", title="", level="info", lines=(Line((), text),))
    if len(merged.kinds) > 1:
        text = ", ".join(f"{count} with {kind}" for kind, count in merged.kinds)
        line = Line((), f"kinds of devices, each compared by itself: {text}")
        yield Section(code="kinds", title="", level="info", lines=(line,))
