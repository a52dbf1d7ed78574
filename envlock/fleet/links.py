"""One node's part of a collective: torch's launcher, as training starts it, and its answers."""

from __future__ import annotations

import fcntl
import json
import socket
import struct
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envlock.adapters import process
from envlock.adapters.interpreter import probes_folder
from envlock.errors import UnusableInput, UsageProblem
from envlock.fleet.job import pack, unpack
from envlock.model.reading import Node

#: Seconds for one group; a library that waits for a peer that never comes waits for ever.
LIMIT = 420.0
#: Seconds in which the launchers of a group have to find each other.
JOIN = 90
_GRACE = 5.0
_SIOCGIFADDR = 0x8915
_WORKER = "_link_worker.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Nodes that compute together.

    Attributes:
        nodes: by name; the first is where they meet.
        addresses: of each.
        port: where they meet.
        rounds: pairs that compute before all do, as numbers of nodes; in a round each is in one.
    """

    nodes: tuple[str, ...]
    addresses: tuple[str, ...]
    port: int
    rounds: tuple[tuple[tuple[int, int], ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """A node with a partner, or with all.

    Attributes:
        wrong: elements that are not the exact ones, by size.
        gbps: rate of each size, of the slowest process.
    """

    wrong: Mapping[str, int] = field(default_factory=dict)
    gbps: Mapping[str, float] = field(default_factory=dict)

    @property
    def why(self) -> str:
        """What is wrong; empty where nothing is."""
        bad = (f"{count} wrong elements at {size}" for size, count in self.wrong.items() if count)
        return ", ".join(bad)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What a node's processes found.

    Attributes:
        error: why they did not come to their end; empty where they did.
        began: whether any process of this node got to work, or its launcher waited for others all
            of its time; if not, the fault is its own.
        met: by partner, and ``all``.
    """

    error: str = ""
    began: bool = True
    met: Mapping[str, Met] = field(default_factory=dict)

    @property
    def why(self) -> str:
        """What is wrong; empty where nothing is."""
        return self.error or next((f"with {n}: {m.why}" for n, m in self.met.items() if m.why), "")


def plan_word(groups: Sequence[Group]) -> str:
    """Groups as one word of a command."""
    return pack({"groups": [[list(g.nodes), list(g.addresses), g.port, g.rounds] for g in groups]})


def own_group(word: str, node: str) -> Group | None:
    """The group that a node is in; None where it rests.

    Raises:
        UsageProblem: it is no word of :func:`plan_word`.
    """
    try:
        document = Node(unpack(word), "", "plan")
        for one in document.get("groups").items():
            nodes, addresses, port, rounds = one.items()
            if node in nodes.texts():
                return Group(
                    nodes=nodes.texts(),
                    addresses=addresses.texts(),
                    port=port.integer(),
                    rounds=rounds.each(_round),
                )
    except (ValueError, UnusableInput) as error:
        raise UsageProblem(f"plan: {error}", "'envlock fleet verify' makes it") from error
    return None


def _round(node: Node) -> tuple[tuple[int, int], ...]:
    return tuple((pair.items()[0].integer(), pair.items()[1].integer()) for pair in node.items())


def take_part(python: str, group: Group, node: str, env: Mapping[str, str], on_cpu: bool) -> Part:
    """Starts this node's processes and waits for them.

    Args:
        python: the target's.
        env: with the vendor's variables.
        on_cpu: one process with gloo; else one for each device, with what stands for nccl.
    """
    rank = group.nodes.index(node)
    worker = str(probes_folder() / "checks" / _WORKER)
    command = [
        python, "-s", "-m", "torch.distributed.run", "--nnodes", str(len(group.nodes)),
        "--node-rank", str(rank), "--nproc-per-node", "1" if on_cpu else "gpu",
        "--master-addr", group.addresses[0], "--master-port", str(group.port),
        "--rdzv-conf", f"timeout={JOIN}", "--local-addr", group.addresses[rank],
        "--max-restarts", "0", worker,
    ]  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="envlock-", ignore_cleanup_errors=True) as folder:
        more = {"ENVLOCK_FOLDER": folder, "ENVLOCK_BACKEND": "gloo" if on_cpu else "nccl"}
        more["ENVLOCK_ROUNDS"] = json.dumps(group.rounds)
        if on_cpu:
            more |= {"OMP_NUM_THREADS": "1", **_gloo(group.addresses[rank], env)}
        done = process.run(command, env={**env, **more}, timeout=LIMIT, grace=_GRACE)
        answers = [_read(path) for path in sorted(Path(folder).glob("*.json"))]
    return judged(done, [answer for answer in answers if answer], group.nodes)


def judged(
    done: process.Finished, answers: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> Part:
    """A node's part, from how its launcher ended and what its processes answered."""
    met: dict[str, Met] = {}
    for answer in answers:
        for partner, cases in dict(answer.get("with") or {}).items():
            name = names[int(partner)] if partner.isdigit() else partner
            met[name] = _joined(met.get(name, Met()), cases)
    began = bool(answers) or done.timed_out or done.seconds >= JOIN
    return Part(error=_error(done, answers, names), began=began, met=met)


def _joined(known: Met, cases: Mapping[str, Mapping[str, Any]]) -> Met:
    wrong, gbps = dict(known.wrong), dict(known.gbps)
    for size, case in cases.items():
        wrong[size] = wrong.get(size, 0) + int(case["wrong"])
        gbps[size] = min(gbps.get(size, float("inf")), float(case["gbps"]))
    return Met(wrong=wrong, gbps=gbps)


def _error(
    done: process.Finished, answers: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> str:
    if not answers:
        return f"no answer (exit {done.code}): {process.last_lines(done.output, 1)}"
    at = next((_at(answer, names) for answer in answers if not answer.get("done")), "")
    said = next((str(answer["error"]) for answer in answers if answer.get("error")), "")
    if said:
        return said + at
    if done.timed_out:
        return f"no end within {done.seconds:.0f} s{at}"
    return f"ended in the middle (exit {done.code}){at}" if done.code != 0 or at else ""


def _at(answer: Mapping[str, Any], names: Sequence[str]) -> str:
    """Where a process was: with whom, and at which size."""
    partner, _, rest = str(answer.get("at") or "").partition(" ")
    name = names[int(partner)] if partner.isdigit() else partner
    return f", with {name} {rest}" if partner else ", before all processes had come"


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _gloo(address: str, env: Mapping[str, str]) -> dict[str, str]:
    """Which interface gloo has to use: it asks for the host's own name otherwise, which need not
    resolve, or resolves to the loopback."""
    if "GLOO_SOCKET_IFNAME" in env:
        return {}
    found = interface_of(address)
    return {"GLOO_SOCKET_IFNAME": found} if found else {}


def interface_of(address: str) -> str:
    """Name of the network interface with an IPv4 address; empty when there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for _, name in socket.if_nameindex():
            with suppress(OSError):
                raw = fcntl.ioctl(asked, _SIOCGIFADDR, struct.pack("256s", name[:15].encode()))
                if socket.inet_ntoa(raw[20:24]) == address:
                    return name
    return ""
