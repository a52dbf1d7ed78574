"""The merge as JSON (``docs/schemas/fleet-1.json``), and as a list for a scheduler."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from typing import Any

from envlock.fleet import outliers
from envlock.fleet.results import Apart, Measure, Merged, Node, Outlier, State
from envlock.fleet.words import said, verdict
from envlock.model.check import MARGIN_STEP
from envlock.model.hostlist import fold, is_host_name

SCHEMA = "1.0"


def data(merged: Merged) -> dict[str, Any]:
    """The ``data`` of ``envlock fleet report --json``."""
    return {
        "schema": SCHEMA,
        "verdict": verdict(merged),
        "said": said(merged),
        "expected": merged.expected,
        "counts": {state.value: len(nodes) for state, nodes in merged.by_state.items() if nodes},
        "nodes": [_node(node) for node in merged.nodes],
        "unexpected": list(merged.unexpected),
        "twins": [{"node": one.node, "files": list(one.files)} for one in merged.twins],
        "differing": [
            {
                "nodes": list(one.nodes),
                "differences": [
                    {"name": d.name, "value": d.value, "usual": d.usual} for d in one.differences
                ],
            }
            for one in merged.differing
        ],
        "ties": [
            {
                "names": list(one.names),
                "sides": [
                    {"values": list(values), "nodes": list(nodes)} for values, nodes in one.sides
                ],
            }
            for one in merged.ties
        ],
        "kinds": [{"device": device, "nodes": count} for device, count in merged.kinds],
        "slower": [_outlier(one) for one in merged.slower],
        "faster": [_outlier(one) for one in merged.faster],
        "apart": [_apart(one) for one in merged.apart],
        "slow_checks": [
            {"node": one.node, "check": one.check, "seconds": one.seconds, "usual": one.usual}
            for one in merged.slow
        ],
        "checks": list(merged.columns),
        "judged": {"metrics": merged.measures, "too_few": merged.few},
        "rule": {
            "least_loss": outliers.LEAST_LOSS,
            "least_margin": MARGIN_STEP,
            "score": outliers.SCORE,
            "few": outliers.FEW,
            "fewest": outliers.FEWEST,
        },
    }


def _node(node: Node) -> dict[str, Any]:
    return {
        "node": node.name,
        "file": node.file or None,
        "state": node.state.value,
        "why": node.why,
        "failed": [
            {"check": one.id, "status": one.status, "reason": one.reason} for one in node.bad
        ],
    }


def _number(measure: Measure) -> dict[str, Any]:
    return {
        "check": measure.check,
        "case": measure.case,
        "metric": measure.metric,
        "device": measure.device,
        "index": measure.index,
    }


def _outlier(one: Outlier) -> dict[str, Any]:
    return {
        "node": one.node,
        **_number(one.measure),
        "value": one.value,
        "median": one.median,
        "loss": one.loss,
        "score": one.score,
    }


def _apart(one: Apart) -> dict[str, Any]:
    return {
        **_number(one.measure),
        "nodes": list(one.nodes),
        "value": one.own,
        "median": one.median,
        "worse": one.worse,
    }


# --- for the scheduler ----------------------------------------------------------------------


def to_drain(merged: Merged) -> dict[str, tuple[str, ...]]:
    """Nodes that are not proven to be like the others, each under the first reason that holds.

    Left out is what no scheduler knows or nobody can point at: names that no host can have, nodes
    of one name, either side of a tie, and a group apart that is the faster one.
    """
    reasons: dict[str, Iterable[str]] = {
        state.value: [node.name for node in nodes]
        for state, nodes in merged.by_state.items()
        if state is not State.PASSED
    }
    reasons["slower"] = [one.node for one in merged.slower]
    reasons["slower group"] = [name for one in merged.apart if one.worse for name in one.nodes]
    reasons["differs"] = [name for one in merged.differing for name in one.nodes]
    twins = {one.node.casefold() for one in merged.twins}
    seen: set[str] = set()
    found: dict[str, tuple[str, ...]] = {}
    for reason, names in reasons.items():
        new = [name for name in dict.fromkeys(names) if name not in seen and _known(name, twins)]
        seen.update(new)
        if new:
            found[reason] = tuple(new)
    return found


def _known(name: str, twins: Iterable[str]) -> bool:
    return is_host_name(name) and name.casefold() not in twins


def drain_list(reasons: dict[str, tuple[str, ...]]) -> str:
    """One line that Slurm reads; empty for no node."""
    names = [name for found in reasons.values() for name in found]
    return f"{fold(names)}\n" if names else ""


def drain_commands(reasons: dict[str, tuple[str, ...]]) -> Iterator[str]:
    """What somebody may type; envlock never does."""
    for reason, names in reasons.items():
        words = [f"nodename={fold(names)}", "state=drain", f"reason=envlock: {reason}"]
        yield shlex.join(["scontrol", "update", *words])
