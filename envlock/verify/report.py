"""The report: one JSON document, whole after every check."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from envlock.model.check import Check, CheckResult, Status, base_id
from envlock.model.facts import Finding, Target
from envlock.model.manifest import Manifest, dump
from envlock.model.masking import mask
from envlock.verify.compare import Comparison
from envlock.verify.privacy import Hidden
from envlock.verify.registry import CANARY
from envlock.verify.saved import Report
from envlock.verify.words import VERDICTS

SCHEMA = "1.0"
_SEED = 336


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What a report says before its checks.

    Attributes:
        tool: ``envlock 0.1.0``.
        target: whose Python ran the checks; its path stays out of the report.
        manifest: what was compared with; None without one.
        profile: name of the vendor profile.
        device: ``cpu`` or ``cuda``.
        indices: devices that were chosen by number, as torch counts those it sees.
        config: what two runs must share to be comparable.
        findings: environment findings.
        started: UTC, to the second.
        hidden: what this machine and this person are called; it stays out of the report.
    """

    tool: str
    target: Target
    manifest: Manifest | None
    profile: str
    device: str
    config: Mapping[str, Any]
    findings: tuple[Finding, ...]
    started: str
    hidden: Hidden = field(default_factory=Hidden)
    indices: tuple[int, ...] = ()


def configuration(
    checks: Sequence[Check], level: str, timeout_scale: float, scripts: Path
) -> dict[str, Any]:
    """The part of a report that has to be equal for two runs to be compared.

    ``suite`` is a digest of the check scripts: other shapes or limits give another one.
    """
    return {
        "level": level,
        "checks": [check.id for check in checks],
        "seed": _SEED,
        "caches": "cold",
        "timeout_scale": timeout_scale,
        "suite": _digest(scripts),
    }


def _digest(folder: Path) -> str:
    total = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        total.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return f"sha256:{total.hexdigest()}"


def manifest_digest(manifest: Manifest) -> str:
    """``sha256:…`` of the manifest's text."""
    return f"sha256:{hashlib.sha256(dump(manifest).encode()).hexdigest()}"


def build(
    head: Head, results: Sequence[CheckResult], code: int | None, ended: str, said: str
) -> dict[str, Any]:
    """The whole document.

    Args:
        head: the fixed part.
        results: every check of the run; those still to come are ``not-run``.
        code: exit code; None while the run goes on.
        ended: UTC; empty while the run goes on.
        said: the verdict in words.
    """
    counts = Counter(result.status.value for result in results)
    shared = head.hidden.value
    return {
        "schema": SCHEMA,
        "tool": head.tool,
        "started": head.started,
        "ended": ended,
        "target": {"python": head.target.python, "short": head.target.short},
        "manifest": _manifest(head.manifest),
        "profile": head.profile,
        "device": _device(head, results),
        "level": head.config["level"],
        "config": dict(head.config),
        "findings": [shared(asdict(finding)) for finding in head.findings],
        "checks": [_check(result, head.hidden) for result in results],
        "counts": {status.value: counts[status.value] for status in Status if counts[status.value]},
        "verdict": "running" if code is None else VERDICTS.get(code, "failed"),
        "said": said,
        "exit": code,
        "baseline": None,
    }


def _manifest(manifest: Manifest | None) -> dict[str, str] | None:
    if manifest is None:
        return None
    return {"name": manifest.name, "digest": manifest_digest(manifest)}


def _device(head: Head, results: Sequence[CheckResult]) -> dict[str, Any]:
    facts = head.hidden.value(_device_facts(results))
    return {"kind": head.device, "indices": list(head.indices), **facts}


def _device_facts(results: Sequence[CheckResult]) -> dict[str, Any]:
    return next((dict(result.facts) for result in results if base_id(result.id) == CANARY), {})


def _check(result: CheckResult, hidden: Hidden) -> dict[str, Any]:
    shared = hidden.value
    return {
        "id": result.id,
        "title": result.title,
        "status": result.status.value,
        "required": result.required,
        "reason": shared(result.reason),
        "seconds": result.seconds,
        "exit": result.exit,
        "facts": shared(result.facts),
        "cases": [
            shared({"name": c.name, "status": c.status.value, "reason": c.reason})
            | {"metrics": shared(c.metrics)}
            for c in result.cases
        ],
        "output": shared(result.output),
        "dropped": result.dropped,
    }


def with_baseline(
    document: Mapping[str, Any], baseline: Report, comparison: Comparison
) -> dict[str, Any]:
    """The document with what differs from a baseline.

    A required check that lost speed makes a run fail that passed by itself.
    """
    changed: dict[str, Any] = {}
    if comparison.failed and document["exit"] == 0:
        said = f"{VERDICTS[3]}: slower than the baseline; {document['said'].partition(': ')[2]}"
        changed = {"exit": 3, "verdict": VERDICTS[3], "said": said}
    part = {
        "started": baseline.document.get("started"),
        "tool": baseline.document.get("tool"),
        "manifest": baseline.document.get("manifest"),
        **comparison_data(comparison),
    }
    return {**document, **changed, "baseline": part}


def comparison_data(comparison: Comparison) -> dict[str, Any]:
    """A comparison as JSON."""
    return {
        "same_configuration": comparison.same_configuration,
        "cases": comparison.cases,
        "margins": comparison.margins,
        "rates": comparison.rates,
        "differences": [{**asdict(one), "kind": one.kind.value} for one in comparison.differences],
    }


def to_text(document: Mapping[str, Any]) -> str:
    """The report as JSON; what looks like a password is masked."""
    return mask(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)) + "\n"
