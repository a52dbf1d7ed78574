"""The same command on every node: started once, watched, and told apart by how each node ended."""

from __future__ import annotations

import json
import os
import re
import secrets
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from envlock.adapters import files, process
from envlock.adapters.launching import Launcher, interrupt, into_file
from envlock.errors import ProgramFailed, UnusableInput, UsageProblem
from envlock.fleet.job import RUNS, Job
from envlock.fleet.node import GRACE, ended
from envlock.fleet.roll import NODES_FILE
from envlock.fleet.wire import Collector
from envlock.model.hostlist import expand, fold, is_host_name

_TICK = 0.2  # seconds between two looks at what came
_SILENCE = 30.0  # seconds without news
# what outweighs what, the worst first; another code is a program's that failed
_ORDER = (7, 6, 3, 4, 5, 8, 0)
_TWIN = re.compile(r"~[0-9]{1,4}\Z")
#: What a node's shell says: exit code and words.
_SHELL_SAYS = {
    "full": (4, "there is no room for the kit in its scratch"),
    "kit": (4, "the kit did not arrive whole, or could not be unpacked"),
    "missing": (5, "there is no envlock on this node"),
}


class How(str, Enum):
    """How a node ended."""

    ENDED = "ended"  # and said so, whatever its command's code was
    CUT = "cut"  # began, and was never heard of again
    NO_ENVLOCK = "no-envlock"  # there is none on it, and no kit
    SILENT = "silent"  # never began


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node after the run.

    Attributes:
        name: of its report.
        code: exit code of its command; 8 where it has none.
        why: last words of a command that did not end with 0.
        seconds: wall time.
        address: where it is reached.
    """

    name: str
    how: How = How.SILENT
    code: int = 8
    why: str = ""
    seconds: float = 0.0
    address: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A run on all nodes.

    Attributes:
        nodes: in the order of their names.
        said: the last lines of the launcher itself.
        code: the launcher's own exit code.
    """

    nodes: tuple[Node, ...]
    said: str = ""
    code: int = 0

    @property
    def expected(self) -> tuple[str, ...]:
        """Hosts that have answered, or should have."""
        return tuple(dict.fromkeys(host_of(node.name) for node in self.nodes))

    @property
    def whole(self) -> int:
        """0 where every node came to its end, whatever that was; 8."""
        return 0 if all(node.how is How.ENDED for node in self.nodes) else 8

    @property
    def worst(self) -> int:
        """The exit code of the whole: of the node that ended worst; 8 where nobody did anything."""
        return worst([node.code for node in self.nodes])


def worst(codes: Iterable[int]) -> int:
    """The exit code of many; 8 of none."""
    known = {code if code in _ORDER else 5 for code in codes} or {8}
    return min(known, key=_ORDER.index)


def _ignore(_: Any) -> None:
    """Somebody who does not want to know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Who is told: the names once they are known, each node as it ends, and now and then those that
    the others wait for."""

    on_nodes: Callable[[Sequence[str]], None] = _ignore
    on_node: Callable[[Node], None] = _ignore
    on_wait: Callable[[Sequence[str]], None] = _ignore


def new_run() -> str:
    """A name for a run that no other one has."""
    return secrets.token_hex(6)


def claim_folder(out: str) -> str:
    """Makes the folder for the reports; its absolute path.

    Raises:
        UnusableInput: it holds reports already, or cannot be made.
    """
    path = os.path.abspath(out)
    hint = "name a new folder with --out: reports of two runs are not one verdict"
    try:
        os.makedirs(path, exist_ok=True)
        if any(name == NODES_FILE or name.endswith(".json") for name in os.listdir(path)):
            raise UnusableInput(f"{out}: there are reports in it already", hint)
        os.makedirs(os.path.join(path, RUNS), exist_ok=True)
    except OSError as error:
        raise UnusableInput(f"{out}: cannot be written: {error.strerror}", hint) from error
    return path


@dataclass(slots=True)
class _Roll:
    """Who was heard of, and of whom one knows that they should have been.

    Attributes:
        stream: file that the launcher's output goes to.
        names: of nodes, by the number that their process has given itself.
        deadline: until when nodes may put their work right after an interrupt; 0 before one.
    """

    job: Job
    watch: Watch
    stream: str
    expected: dict[str, None] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    collector: Collector = field(default_factory=Collector)
    read: int = 0
    deadline: float = 0.0

    def look(self) -> bool:
        """Takes what came since the last look; whether anything did."""
        with open(self.stream, "rb") as file:
            file.seek(self.read)
            data = file.read()
        self.read += len(data)
        for message in self.collector.feed(data):
            self.take(message)
        return bool(data)

    def waiting(self) -> list[str]:
        """Those who are not at their end, once half of all are."""
        names = [*self.nodes, *(name for name in self.expected if name not in self.nodes)]
        ended = {n.name for n in self.nodes.values() if n.how in (How.ENDED, How.NO_ENVLOCK)}
        return [name for name in names if name not in ended] if 2 * len(ended) >= len(names) else []

    def expect(self, names: Sequence[str]) -> None:
        """Nodes that have to answer; written down, so that who reads the reports knows, too."""
        if set(names) <= self.expected.keys():
            return
        self.expected |= dict.fromkeys(names)
        path = os.path.join(self.job.out, NODES_FILE)
        files.write_whole(path, f"{fold(self.expected)}\n")
        self.watch.on_nodes(tuple(self.expected))

    def take(self, message: Mapping[str, Any]) -> None:
        """One message of a node; one that is not as we write it is passed over."""
        kind, name = message.get("kind"), self.names.get(str(message.get("id")))
        if kind == "shell":
            self._shell(str(message["node"]), str(message["what"]))
        elif kind == "began":
            self._began(message)
        elif name is not None and kind == "file":
            self._keep(name + _ending(message.get("ending")), str(message.get("text")))
        elif name is not None and kind == "ended":
            done = replace(
                self.nodes[name],
                how=How.ENDED,
                code=int(message.get("code", 8)),
                why=str(message.get("why", "")),
                seconds=float(message.get("seconds", 0)),
            )
            self._ended(done)

    def _began(self, message: Mapping[str, Any]) -> None:
        name = str(message.get("name"))
        name = free_name(name if is_node_name(name) else "node", self.nodes)
        self.names[str(message.get("id"))] = name
        with suppress(UsageProblem):  # a name that only Slurm understands
            self.expect(expand(str(message.get("step") or "")) or (host_of(name),))
        self.nodes[name] = Node(name=name, how=How.CUT, address=str(message.get("address", "")))

    def _shell(self, name: str, what: str) -> None:
        code, why = _SHELL_SAYS.get(what, (5, what))
        name = name if is_node_name(name) else "node"
        self.expect([name])
        node = Node(name=name, how=How.NO_ENVLOCK, code=code, why=why)
        self._document(node)
        self._ended(node)

    def refused(self, name: str) -> None:
        """A node on which nothing was started."""
        self._shell(name, "full")

    def _ended(self, node: Node) -> None:
        self.nodes[node.name] = node
        self.watch.on_node(node)

    def _keep(self, file: str, text: str) -> None:
        files.write_whole(os.path.join(self.job.out, file), text)

    def _document(self, node: Node) -> None:
        path = os.path.join(self.job.out, f"{node.name}.json")
        if not os.path.exists(path):
            self._keep(
                f"{node.name}.json", json.dumps(ended(node.name, node.code, node.why), indent=2)
            )

    def close(self) -> tuple[Node, ...]:
        """Everybody, when nothing more can come."""
        self.look()
        for message in self.collector.end():
            self.take(message)
        for node in list(self.nodes.values()):
            if node.how is How.CUT:
                cut = replace(node, why="it began, and was not heard of again")
                self._document(cut)
                self._ended(cut)
        silent = [Node(name=name) for name in self.expected if name not in self.nodes]
        for node in silent:
            self.watch.on_node(node)
        found = [*self.nodes.values(), *silent]
        order = {name: number for number, name in enumerate(self.expected)}
        return tuple(sorted(found, key=lambda node: order.get(node.name, len(order))))


def _ending(said: Any) -> str:
    """One of the two that a node sends; what comes from elsewhere chooses no path."""
    return ".yaml" if said == ".yaml" else ".json"


def host_of(name: str) -> str:
    """``n017`` of ``n017~2``."""
    return _TWIN.sub("", name)


def is_node_name(name: str) -> bool:
    """Whether a report may be called so: a host's name, of a twin perhaps."""
    return is_host_name(host_of(name))


def free_name(name: str, taken: Container[str]) -> str:
    """The name, or ``n017~2`` where another node is called so."""
    number, found = 2, name
    while found in taken:
        number, found = number + 1, f"{name}~{number}"
    return found


def launch(
    launcher: Launcher,
    words: Sequence[str],
    job: Job,
    watch: Watch | None = None,
    full: Sequence[str] = (),
) -> Ended:
    """Starts words on every node, and waits for all of them.

    Args:
        launcher: what is there to start them with.
        words: start the node's part with the job; see :func:`envlock.fleet.node.work`.
        job: what they do; its folder is there.
        watch: is told.
        full: nodes that had no room for what the words need, and are not started on.

    Raises:
        ProgramFailed: the launcher cannot be started, or no node was ever heard of.
        KeyboardInterrupt: after the nodes have put right what they were at.
    """
    folder = os.path.join(job.out, RUNS, job.run)
    os.makedirs(folder)
    stream = os.path.join(job.out, RUNS, f"{job.run}.stream")
    roll = _Roll(job=job, watch=watch or Watch(), stream=stream)
    try:
        files.write_whole(stream, b"")
        roll.expect(launcher.expected)
        for name in full:
            roll.refused(name)
        command = into_file(launcher.command(words), stream)
        with process.while_waiting(_looking(roll)):
            done = process.run(command, env=launcher.env)
        if roll.deadline:
            raise KeyboardInterrupt
        nodes = roll.close()
    finally:
        for path in (folder, stream, f"{stream}.pid"):
            files.remove_tree(path)
        with suppress(OSError):
            os.rmdir(os.path.join(job.out, RUNS))
    said = process.last_lines(done.output, 6)
    if all(node.how is How.SILENT for node in nodes):
        files.remove_tree(os.path.join(job.out, NODES_FILE))  # the same --out can be used again
        raise ProgramFailed(
            f"{os.path.basename(launcher.command(())[0])}: no node answered (exit {done.code})"
            f"{': ' + said if said else ''}",
            "try the same launcher with 'hostname' in the place of envlock",
        )
    return Ended(nodes=nodes, said=said, code=done.code)


def _looking(roll: _Roll) -> Iterator[None]:
    """Looks at what came; says whom the others wait for when nothing comes for a while."""
    told = time.monotonic()
    while True:
        try:
            time.sleep(_TICK)
        except KeyboardInterrupt:
            if roll.deadline or not interrupt(roll.stream):
                raise
            roll.deadline = time.monotonic() + GRACE
        if roll.deadline and time.monotonic() > roll.deadline:
            raise KeyboardInterrupt
        if roll.look():
            told = time.monotonic()
        elif time.monotonic() - told > _SILENCE and (names := roll.waiting()):
            roll.watch.on_wait(names)
            told = time.monotonic()
        yield
