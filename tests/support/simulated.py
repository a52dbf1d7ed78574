"""Reports of a cluster that nobody has: a real one, said again by thousands of nodes.

The real report is of a processor (``tests/fleet/report.json``: ``envlock verify --device cpu``,
fewer cases of each check). Here it is told as if several devices had run it, in the ids and facts
that reports of devices have; every rate is scattered, and some nodes are disturbed on purpose.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

REPORT = Path(__file__).parents[1] / "fleet" / "report.json"
#: As ``verify`` has it: these run once on each device.
_ONE_DEVICE = frozenset({"smoke", "num", "sdpa", "tri", "perf"})
_RATES = ("tflops", "gbps")

Document = dict[str, Any]
#: Changes the document, or the bytes, of one node.
Disturb = Callable[[Document], None]


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """What is simulated.

    Attributes:
        nodes: ``n0001`` and so on.
        devices: of each node.
        noise: relative standard deviation of every rate, drawn for each card and case.
        disturbed: by node number, counted from 1.
    """

    nodes: int
    devices: int = 2
    noise: float = 0.004
    seed: int = 7
    disturbed: Mapping[int, Disturb] = field(default_factory=dict)


def name_of(number: int) -> str:
    return f"n{number:04}"


def write(folder: Path, cluster: Cluster) -> None:
    """A file for each node."""
    source = random.Random(cluster.seed)
    text = json.dumps(device_report(cluster.devices))
    for number in range(1, cluster.nodes + 1):
        document = json.loads(text)
        scatter(document, source, cluster.noise)
        disturb = cluster.disturbed.get(number)
        if disturb is not None:
            disturb(document)
        (folder / f"{name_of(number)}.json").write_text(json.dumps(document))


@cache
def _real() -> str:
    return REPORT.read_text(encoding="utf-8")


def device_report(devices: int) -> Document:
    """The real report as that of a node with several cards."""
    document: Document = json.loads(_real())
    card = {"name": "BW", "arch": "gfx936", "units": 80, "lanes": 64, "memory": 65520.0, "bus": ""}
    document["device"] |= {
        "kind": "cuda", "device": "BW", "device_count": devices, "memory_gib": 63.98,
        "arch": "gfx936", "hip": "6.3.26093",
    }  # fmt: skip
    checks = []
    for check in document["checks"]:
        if check["id"] == "dev.enum":
            check |= _passed("properties", count=devices)
            check["facts"] = {"devices": [dict(card) for _ in range(devices)]}
        elif check["id"] == "dev.versions":
            check |= _passed("driver", driver="6.3.31", needed="6.3.31")
            check["facts"] = {"driver": "6.3.31-V1.5.0a", "release": "26.04"}
        check["facts"].pop("device", None)
        checks += _spread(check, devices)
    document["checks"] = checks
    document["config"]["checks"] = [check["id"] for check in checks]
    return document


def _passed(case: str, **metrics: Any) -> Document:
    cases = [{"name": case, "status": "passed", "reason": "", "metrics": metrics}]
    return {"status": "passed", "reason": "", "cases": cases}


def _spread(check: Document, devices: int) -> list[Document]:
    if devices == 1 or check["id"].partition(".")[0] not in _ONE_DEVICE:
        return [check]
    return [json.loads(json.dumps(check)) | {"id": f"{check['id']}@{n}"} for n in range(devices)]


def scatter(document: Document, source: random.Random, noise: float) -> None:
    """Other rates, as other cards of the kind have them."""
    for metrics in _measured(document):
        _times(metrics, 1 + noise * source.gauss(0, 1))


def _measured(document: Document, ending: str = "") -> list[Document]:
    """Metrics of everything that was timed, of the checks whose id ends so."""
    return [
        case["metrics"]
        for check in document["checks"]
        if check["id"].endswith(ending)
        for case in check["cases"]
        if "seconds_median" in case["metrics"]
    ]


def _times(metrics: Document, factor: float) -> None:
    metrics["seconds_median"] /= factor
    for key in _RATES:
        if key in metrics:
            metrics[key] *= factor


# --- disturbances ---------------------------------------------------------------------------


def slower(share: float, device: int) -> Disturb:
    """A card that is slower in everything."""

    def disturb(document: Document) -> None:
        for metrics in _measured(document, f"@{device}"):
            _times(metrics, 1 - share)

    return disturb


def driver(version: str) -> Disturb:
    def disturb(document: Document) -> None:
        _check(document, "dev.versions")["facts"]["driver"] = version

    return disturb


def without(*names: str) -> Disturb:
    """Checks that are not in the report."""

    def disturb(document: Document) -> None:
        kept = [c for c in document["checks"] if c["id"].partition("@")[0] not in names]
        document["checks"] = kept
        document["config"]["checks"] = [check["id"] for check in kept]

    return disturb


def manifest(digest: str) -> Disturb:
    def disturb(document: Document) -> None:
        document["manifest"]["digest"] = f"sha256:{digest * 64}"

    return disturb


def processors(number: int) -> Disturb:
    """Fewer processors may be used."""

    def disturb(document: Document) -> None:
        cases = _check(document, "env.cgroup")["cases"]
        case = next(case for case in cases if case["name"] == "processors")
        case["metrics"]["processors"] = number

    return disturb


def failing(name: str, reason: str) -> Disturb:
    """A required check that failed, and made what comes after it pointless."""

    def disturb(document: Document) -> None:
        at = _place(document, name)
        document["checks"][at] |= {"status": "failed", "reason": reason, "required": True}
        document |= {"verdict": "failed", "exit": 3, "said": f"failed: {name} failed"}
        _ends_at(document, at + 1, "blocked", f"blocked by {name}")

    return disturb


def stopped(document: Document) -> None:
    """A run that was killed before it knew its device."""
    document |= {"verdict": "running", "exit": None, "said": "", "ended": ""}
    _ends_at(document, _place(document, "imp.torch"), "not-run", "not run")


def _ends_at(document: Document, at: int, status: str, reason: str) -> None:
    for check in document["checks"][at:]:
        check |= {"status": status, "reason": reason, "cases": [], "facts": {}, "seconds": 0.0}
    if at <= _place(document, "dev.first"):
        document["device"] = {"kind": "cuda", "indices": []}


def lasting(name: str, seconds: float) -> Disturb:
    """A check that took longer."""

    def disturb(document: Document) -> None:
        _check(document, name)["seconds"] += seconds

    return disturb


def device_count(number: int) -> Disturb:
    """Cards that the node has lost."""

    def disturb(document: Document) -> None:
        listed = _check(document, "dev.enum")["facts"]["devices"]
        del listed[number:]
        gone = tuple(f"@{index}" for index in range(number, document["device"]["device_count"]))
        document["device"]["device_count"] = number
        document["checks"] = [c for c in document["checks"] if not c["id"].endswith(gone)]

    return disturb


def margin(name: str, value: float) -> Disturb:
    """Numbers that are right, and not those of the sisters."""

    def disturb(document: Document) -> None:
        case = _check(document, name)["cases"][0]
        case["metrics"] = {"margin": value}

    return disturb


def _check(document: Document, name: str) -> Document:
    found: Document = document["checks"][_place(document, name)]
    return found


def _place(document: Document, name: str) -> int:
    return next(at for at, check in enumerate(document["checks"]) if check["id"] == name)


def cut(path: Path, share: float = 0.5) -> None:
    """What a full disk leaves of a file."""
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
