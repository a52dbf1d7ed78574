"""Where nodes share nothing: a kit is broadcast to the disk of each by sbcast.

sbcast ends at the first node that cannot take a block, and leaves half a file on all others. So
nodes are asked for room first, and the file goes to a step that has only those who have it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from envlock.adapters import files, process
from envlock.adapters.launching import into_file
from envlock.adapters.slurm import Srun, sbcast
from envlock.errors import ProgramFailed
from envlock.fleet.job import RUNS
from envlock.fleet.wire import Collector
from envlock.model.hostlist import fold

_ASK_SECONDS = 120.0
_GRACE = 10.0
_TICK = 0.1
_ASK = """\
node=${SLURMD_NODENAME:-$(uname -n)}
mkdir -p "$1" 2>/dev/null && df -Pk "$1" | tail -n 1 | {
    read -r _ _ _ free _
    [ "$free" -ge "$2" ] && [ -w "$1" ] && echo "@envlock-sh $node room 0" && exit 0
    exit 1
} || echo "@envlock-sh $node full 4"
"""
_HOLD = 'echo "@envlock-sh ${SLURMD_NODENAME:-$(uname -n)} hold ${SLURM_STEP_ID:-0}"; sleep 86400'


class _HasCome(Exception):
    """The broadcast has ended; the step that was held for it may go."""

    def __init__(self, done: process.Finished) -> None:
        super().__init__()
        self.done = done


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """Who has the kit.

    Attributes:
        nodes: whose disks it is on.
        full: nodes that have no room for it.
    """

    nodes: tuple[str, ...]
    full: tuple[str, ...]


def carry(kit: str, target: str, need: int, srun: Srun, out: str) -> Carried:
    """Broadcasts a kit.

    Args:
        kit: its file, here.
        target: its path on the nodes.
        need: bytes that it and what is unpacked from it take there.
        srun: starts on the nodes of the allocation.
        out: absolute folder for reports; the answers of nodes go there for a moment.

    Raises:
        ProgramFailed: nobody has room, or sbcast failed.
    """
    said = os.path.join(out, RUNS, "kit")
    try:
        asking = ["/bin/sh", "-c", _ASK, "sh", os.path.dirname(target), str(need // 1024 + 1)]
        done = process.run(
            into_file(srun.command(asking), said), env=srun.env, timeout=_ASK_SECONDS
        )
        answers = _answers(said)
        nodes = tuple(name for name, what, _ in answers if what == "room")
        full = tuple(name for name, what, _ in answers if what == "full")
        if not nodes:
            last = process.last_lines(done.output) or f"no room for {need / 1e6:.0f} MB anywhere"
            raise ProgramFailed(f"kit: no node can take it: {last}", "name another --scratch")
        _broadcast(kit, target, only(srun, nodes), said, len(nodes))
    finally:
        for path in (said, f"{said}.pid"):
            files.remove_tree(path)
    return Carried(nodes=nodes, full=full)


def only(srun: Srun, nodes: Sequence[str]) -> Srun:
    """The same for some of the nodes."""
    more = (f"--nodelist={fold(nodes)}", f"--nodes={len(nodes)}")
    return replace(srun, options=(*srun.options, *more))


def _broadcast(kit: str, target: str, srun: Srun, said: str, nodes: int) -> None:
    """Holds a step on the nodes for as long as sbcast needs one."""

    def send() -> Iterator[None]:
        while len(held := _held(said)) < nodes:
            time.sleep(_TICK)
            yield
        with process.while_waiting(iter(())):
            done = process.run(sbcast(kit, target, srun.env, step=held[0]), env=srun.env)
        raise _HasCome(done)

    files.write_whole(said, b"")
    holding = into_file(srun.command(["/bin/sh", "-c", _HOLD]), said)
    try:
        with process.while_waiting(send()):
            ended = process.run(holding, env=srun.env, grace=_GRACE)
    except _HasCome as come:
        if come.done.code != 0:
            raise ProgramFailed(
                f"sbcast: exit {come.done.code}: {process.last_lines(come.done.output)}",
                "copy the kit to the nodes by other means",
            ) from None
    else:
        raise ProgramFailed(f"srun: {process.last_lines(ended.output)}", "no step could be made")


def _held(said: str) -> list[int]:
    return [code for _, what, code in _answers(said) if what == "hold"]


def _answers(path: str) -> list[tuple[str, str, int]]:
    """Node, what it says, and the number behind it."""
    collector = Collector()
    found = [*collector.feed(Path(path).read_bytes()), *collector.end()]
    return [(one["node"], one["what"], one["code"]) for one in found if one["kind"] == "shell"]
