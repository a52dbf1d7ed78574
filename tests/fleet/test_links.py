"""One node's part of a collective, and what the parts of all nodes come to."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from envlock.adapters.process import Finished
from envlock.cli import collective as collectives
from envlock.cli import launching
from envlock.cli.options import Common
from envlock.cli.show import Screen
from envlock.errors import UsageProblem
from envlock.fleet.launch import How, Node
from envlock.fleet.links import Group, interface_of, judged, own_group, plan_word

NAMES = ("n1", "n2", "n3", "n4")
GROUP = Group(
    nodes=NAMES, addresses=("10.0.0.1",) * 4, port=20001, rounds=(((0, 3), (1, 2)), ((0, 1),))
)
RIGHT = {"wrong": 0, "gbps": 2.0}


def answer(*partners: str, **more: Any) -> dict[str, Any]:
    """Of one process."""
    met = {partner: {"4 B": RIGHT, "256 MiB": RIGHT} for partner in partners}
    return {"error": "", "at": "all at 256 MiB", "with": met, "done": True, **more}


def test_a_plan_is_one_word() -> None:
    word = plan_word([GROUP, Group(nodes=("n5", "n6"), addresses=("a", "b"), port=1)])
    assert own_group(word, "n3") == GROUP
    assert own_group(word, "n7") is None
    with pytest.raises(UsageProblem, match="plan: "):
        own_group("AAAA", "n1")


def test_exact() -> None:
    part = judged(Finished(code=0, output=""), [answer("3", "all"), answer("3", "all")], NAMES)
    assert (part.why, part.began) == ("", True)
    assert list(part.met) == ["n4", "all"]
    assert part.met["n4"].gbps["256 MiB"] == 2.0


def test_wrong_elements_of_all_processes_are_counted() -> None:
    bad = answer("3", "all")
    bad["with"]["3"]["4 B"] = {"wrong": 2, "gbps": 1.0}
    part = judged(Finished(code=0, output=""), [bad, answer("3"), bad], NAMES)
    assert part.why == "with n4: 4 wrong elements at 4 B"


@pytest.mark.parametrize(
    ("done", "answers", "why", "began"),
    [
        (
            Finished(code=1, output="x\nModuleNotFoundError: No module named 'torch'\n"),
            [],
            "no answer (exit 1): ModuleNotFoundError: No module named 'torch'",
            False,
        ),
        (
            # it waited for a node that did not come
            Finished(code=1, output="DistStoreError: wait timeout\n", seconds=91.0),
            [],
            "no answer (exit 1): DistStoreError: wait timeout",
            True,
        ),
        (
            Finished(code=1, output=""),
            [answer("3", error="RuntimeError: Connection closed", at="2 at 16 MiB", done=False)],
            "RuntimeError: Connection closed, with n3 at 16 MiB",
            True,
        ),
        (
            Finished(code=-9, output="", timed_out=True, seconds=240.2),
            [answer(at="all at 4 B", done=False)],
            "no end within 240 s, with all at 4 B",
            True,
        ),
        (
            Finished(code=1, output=""),
            [answer("3", "all"), answer("3", at="3 at 1 MiB", done=False)],
            "ended in the middle (exit 1), with n4 at 1 MiB",
            True,
        ),
        (
            Finished(code=1, output=""),
            [answer(at="", done=False)],
            "ended in the middle (exit 1), before all processes had come",
            True,
        ),
    ],
)
def test_what_is_wrong_with_a_part(
    done: Finished, answers: list[dict[str, Any]], why: str, began: bool
) -> None:
    part = judged(done, answers, NAMES)
    assert (part.why, part.began) == (why, began)


def test_the_loopback_has_a_name() -> None:
    assert interface_of("127.0.0.1") in {name for _, name in socket.if_nameindex()}
    assert interface_of("203.0.113.77") == ""


# --- all nodes ------------------------------------------------------------------------------


@dataclass
class World:
    """What is wrong between nodes, in the place of a cluster.

    Attributes:
        links: pairs that compute wrongly.
        absent: nodes on which torch cannot be started.
        whole: what is wrong only where all are together.
        starts: how often all nodes were started.
    """

    links: set[frozenset[str]] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)
    whole: str = ""
    starts: int = 0

    def run(self, common: Common, asked: launching.Asked, *, title: str) -> None:
        self.starts += 1
        for name in NAMES:
            group = own_group(asked.words[3], name)
            if group is not None:
                self._answer(Path(asked.out), name, group)

    def _answer(self, out: Path, name: str, group: Group) -> None:
        out.mkdir(parents=True, exist_ok=True)
        inside = [frozenset(pair) for pair in self.links if pair <= set(group.nodes)]
        why = ""
        if self.absent & set(group.nodes):
            why = "no answer (exit 1)" if name in self.absent else "timed out, with all at 4 B"
        elif inside:
            here = any(name in pair for pair in inside)
            why = "with x: 1 wrong elements at 4 B" if here else ""
        elif len(group.nodes) > 2:
            why = self.whole
        partners = ["all", *(NAMES if group.rounds else ())]
        met = {partner: {"why": "", "gbps": {"256 MiB": 5.0}} for partner in partners}
        data = {"why": why, "began": name not in self.absent, "with": met}
        (out / f"{name}.json").write_text(json.dumps({"exit": 3 if why else 0, "data": data}))


def tried(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[int, list[str]]:
    """Exit code, and the subjects and words of all findings."""
    monkeypatch.setattr(launching, "run", world.run)
    common, asked = Common(screen=Screen(quiet=True)), launching.Asked(words=(), out="")
    nodes = [Node(name=name, how=How.ENDED, code=0, address="10.0.0.1") for name in NAMES]
    nodes.append(Node(name="n5", how=How.CUT))
    code, found = collectives.collective(common, asked, "cpu", nodes, str(tmp_path))
    return code, [f"{one.level}: {one.subject}: {one.what}" for one in found]


def test_healthy_nodes_are_started_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    assert tried(world, tmp_path, monkeypatch) == (0, [])
    assert world.starts == 1
    data = json.loads((tmp_path / "links.json").read_text())["data"]
    assert len(data["pairs"]) == 6
    assert data["all"] == {"nodes": list(NAMES), "why": "", "gbps": 5.0}


def test_a_bad_link_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(links={frozenset(("n2", "n4"))})
    code, found = tried(world, tmp_path, monkeypatch)
    assert code == 3
    assert found == ["error: n2 – n4: n2: with x: 1 wrong elements at 4 B"]
    assert world.starts == 1 + 3


def test_a_node_with_only_bad_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(links={frozenset(("n2", other)) for other in ("n1", "n3", "n4")})
    code, found = tried(world, tmp_path, monkeypatch)
    assert code == 3
    assert found == ["error: n2: it fails with every node it was tried with"]


def test_a_node_that_cannot_begin_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are tried without it, and it is not taken for a bad link of theirs."""
    world = World(absent={"n3"})
    code, found = tried(world, tmp_path, monkeypatch)
    assert code == 3
    assert found == ["error: n3: no answer (exit 1)"]
    assert world.starts == 2
    data = json.loads((tmp_path / "links.json").read_text())["data"]
    assert data["all"]["nodes"] == ["n1", "n2", "n4"]
    assert len(data["pairs"]) == 3


def test_only_all_together_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, found = tried(World(whole="3 wrong elements at 1 MiB"), tmp_path, monkeypatch)
    assert code == 3
    assert found == ["error: all nodes: n1: 3 wrong elements at 1 MiB"]
