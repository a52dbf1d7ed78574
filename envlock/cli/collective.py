"""``envlock fleet verify --collective``: pairs of nodes first, so that a bad link has a name, then
all nodes together.

One start does all of it where nothing is wrong. Where something is, nodes that could not begin are
named and left out; then every pair is started by itself, since a hang in one hides the others.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from envlock.adapters import files
from envlock.cli.show import count
from envlock.fleet.job import NODE
from envlock.fleet.launch import How, Node
from envlock.fleet.links import Group, plan_word
from envlock.model.facts import Finding
from envlock.model.pairs import Judged, Tried, judge, rounds

if TYPE_CHECKING:
    from envlock.cli.launching import Asked
    from envlock.cli.options import Common

#: Below the ports that a kernel gives away by itself.
_PORTS = range(20_000, 32_000)
_LARGEST = "256 MiB"
_FOLDER = "links"
_ALL = "all"
_SILENT: Mapping[str, Any] = {"why": "it did not answer", "began": False, "with": {}}


@dataclass(slots=True)
class Found:
    """What was found out; ``alone`` are nodes that could not begin, and why."""

    pairs: list[Tried] = field(default_factory=list)
    together: Tried | None = None
    alone: dict[str, str] = field(default_factory=dict)

    @property
    def code(self) -> int:
        """3 where anything is not exact; 0."""
        tried = [*self.pairs, *([self.together] if self.together else [])]
        return 3 if self.alone or any(one.why for one in tried) else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """Starts nodes together.

    Attributes:
        there: nodes that answered before, by name.
        out: absolute folder of the reports.
    """

    common: Common
    asked: Asked
    device: str
    there: Mapping[str, Node]
    out: str

    def run(self) -> Found:
        """All pairs and all nodes."""
        found, names = Found(), list(self.there)
        for attempt in range(1, len(self.there)):
            if len(names) < 2:
                break
            answers = self._together(names, f"{_ALL}-{attempt}" if attempt > 1 else _ALL)
            if not any(one["why"] for one in answers.values()):
                _take(found, names, answers)
                break
            own = {name: one["why"] for name, one in answers.items() if not one["began"]}
            if not own:
                self._one_by_one(found, names, answers)
                break
            found.alone |= own
            names = [name for name in names if name not in own]
        return found

    def _together(self, names: Sequence[str], title: str) -> dict[str, Any]:
        """One start with pairs and all in it."""
        number = {name: at for at, name in enumerate(names)}
        inside = tuple(
            tuple((number[a], number[b]) for a, b in one) for one in rounds(names) if len(names) > 2
        )
        group = replace(self._groups([names])[0], rounds=inside)
        return self._started([group], title)

    def _one_by_one(self, found: Found, names: Sequence[str], answers: Mapping[str, Any]) -> None:
        """Every pair in a start of its own, as many at once as there are nodes for."""
        for number, one in enumerate(rounds(names), start=1):
            groups = self._groups(one)
            said = self._started(groups, f"pairs-{number:02}")
            found.pairs += [_tried(group.nodes, said, _ALL) for group in groups]
        found.together = _tried(names, answers, _ALL)

    def _groups(self, groups: Sequence[Sequence[str]]) -> list[Group]:
        ports = random.SystemRandom().sample(_PORTS, len(groups))
        return [
            Group(
                nodes=tuple(names),
                addresses=tuple(self.there[name].address or name for name in names),
                port=port,
            )
            for names, port in zip(groups, ports, strict=True)
        ]

    def _started(self, groups: Sequence[Group], title: str) -> dict[str, Any]:
        """What each node answered; a node in no group rests."""
        from envlock.cli.launching import run

        words = ["fleet", "link", "--plan", plan_word(groups), "--node", NODE]
        words += ["--device", self.device]
        out = os.path.join(self.out, _FOLDER, title)
        asked = replace(self.asked, words=words, out=out, seconds=0.0)
        run(self.common, asked, title=f"collective {title}")
        return {name: _data(out, name) for group in groups for name in group.nodes}


def collective(
    common: Common, asked: Asked, device: str, nodes: Sequence[Node], out: str
) -> tuple[int, list[Finding]]:
    """Tries the nodes that answered; ``links.json`` comes beside their reports.

    Returns:
        3 where one is not exact, 8 with fewer than two nodes, else 0; and what there is to say.
    """
    there = {node.name: node for node in nodes if node.how is How.ENDED}
    if len(there) < 2:
        few = Finding(
            code="fleet.alone", subject="collective", what="fewer than two nodes answered",
            hint="a collective needs more of them",
        )  # fmt: skip
        return 8, [few]
    found = Collective(common=common, asked=asked, device=device, there=there, out=out).run()
    judged = judge(found.pairs)
    findings = _findings(found, judged)
    _write(out, found)
    common.screen.say(_said(found, judged))
    return found.code, findings


def _take(found: Found, names: Sequence[str], answers: Mapping[str, Any]) -> None:
    """Everything, from one start."""
    for one in rounds(names):
        found.pairs += [
            Tried(
                nodes=pair,
                gbps=_rate(
                    answers[a]["with"].get(b if len(names) > 2 else _ALL)
                    for a, b in (pair, pair[::-1])
                ),
            )
            for pair in one
        ]
    if len(names) > 2:
        found.together = _tried(names, answers, _ALL)


def _tried(names: Sequence[str], answers: Mapping[str, Any], partner: str) -> Tried:
    """What nodes say together: the first that names a fault of its own."""
    whys = [f"{name}: {answers[name]['why']}" for name in names if answers[name]["why"]]
    rate = _rate(answers[name]["with"].get(partner) for name in names)
    return Tried(nodes=tuple(names), why=min(whys, key=_waited, default=""), gbps=rate)


def _waited(why: str) -> bool:
    """A node that only waited for another one says less."""
    return any(word in why for word in ("no end within", "imed out", "timeout"))


def _rate(met: Any) -> float | None:
    rates = [one["gbps"].get(_LARGEST) for one in met if one is not None]
    return min((rate for rate in rates if rate is not None), default=None)


def _data(out: str, name: str) -> dict[str, Any]:
    """A node's answer to ``fleet link``, or what stands in its place."""
    try:
        with open(os.path.join(out, f"{name}.json"), encoding="utf-8") as file:
            document = json.load(file)
    except (OSError, ValueError):
        return dict(_SILENT)
    data = document.get("data") or {}
    if "why" in data:
        return dict(data)
    what = [str(one.get("what")) for one in document.get("findings", ())]
    return {**_SILENT, "why": "; ".join(what) or f"exit code {document.get('exit')}"}


def _said(found: Found, judged: Judged) -> str:
    exact = sum(not pair.why for pair in found.pairs)
    rate = f", {judged.usual:.2f} GB/s usual" if judged.usual else ""
    text = f"collective: {exact} of {count(len(found.pairs), 'pair')} exact{rate}"
    if found.together is None:
        return text
    whole = "not exact" if found.together.why else "exact"
    return f"{text}; {count(len(found.together.nodes), 'node')} together {whole}"


def _findings(found: Found, judged: Judged) -> list[Finding]:
    said = [
        Finding(
            code="fleet.node", subject=name, what=why, why="it could not take part",
            hint="look at this node, not at the network", level="error",
        )
        for name, why in found.alone.items()
    ]  # fmt: skip
    said += [
        Finding(
            code="fleet.node", subject=name, what="it fails with every node it was tried with",
            why=why, hint="look at this node, and at its way into the network", level="error",
        )
        for name, why in judged.nodes
    ]  # fmt: skip
    said += [_link(pair, pair.why, "error") for pair in judged.links]
    said += [
        _link(pair, f"{pair.gbps:.2f} GB/s, {judged.usual:.2f} GB/s is usual", "warning")
        for pair in judged.slow
    ]
    if found.together is not None and found.together.why and not said:
        said.append(
            Finding(
                code="fleet.all", subject="all nodes", what=found.together.why, level="error",
                hint="every pair is exact: what the library does for many nodes, or a switch",
            )
        )  # fmt: skip
    return said


def _link(pair: Tried, what: str, level: str) -> Finding:
    return Finding(
        code="fleet.link", subject=" – ".join(pair.nodes), what=what, level=level,
        hint="each of them is well with others: look at the link between them",
    )  # fmt: skip


def _write(out: str, found: Found) -> None:
    def told(one: Tried) -> dict[str, Any]:
        return {"nodes": list(one.nodes), "why": one.why, "gbps": one.gbps}

    data = {
        "pairs": [told(one) for one in found.pairs],
        "all": told(found.together) if found.together else None,
        "alone": found.alone,
    }
    document = {
        "schema": "1.0", "command": "fleet links", "exit": found.code, "findings": [], "data": data,
    }  # fmt: skip
    files.write_whole(os.path.join(out, "links.json"), json.dumps(document, indent=2) + "\n")
