"""The report: one JSON document, whole after every check."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from envlock.adapters import files
from envlock.errors import UnusableInput
from envlock.model.check import Check, CheckResult, Status
from envlock.model.facts import Finding, Target
from envlock.model.manifest import Manifest, dump
from envlock.model.masking import mask
from envlock.verify.registry import CANARY
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
        config: what two runs must share to be comparable.
        findings: environment findings.
        started: UTC, to the second.
    """

    tool: str
    target: Target
    manifest: Manifest | None
    profile: str
    device: str
    config: Mapping[str, Any]
    findings: tuple[Finding, ...]
    started: str


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
    return {
        "schema": SCHEMA,
        "tool": head.tool,
        "started": head.started,
        "ended": ended,
        "target": {"python": head.target.python, "short": head.target.short},
        "manifest": _manifest(head.manifest),
        "profile": head.profile,
        "device": {"kind": head.device, **_device_facts(results)},
        "level": head.config["level"],
        "config": dict(head.config),
        "findings": [asdict(finding) for finding in head.findings],
        "checks": [_check(result) for result in results],
        "counts": {status.value: counts[status.value] for status in Status if counts[status.value]},
        "verdict": "running" if code is None else VERDICTS.get(code, "failed"),
        "said": said,
        "exit": code,
    }


def _manifest(manifest: Manifest | None) -> dict[str, str] | None:
    if manifest is None:
        return None
    return {"name": manifest.name, "digest": manifest_digest(manifest)}


def _device_facts(results: Sequence[CheckResult]) -> dict[str, Any]:
    return next((dict(result.facts) for result in results if result.id == CANARY), {})


def _check(result: CheckResult) -> dict[str, Any]:
    return {
        "id": result.id,
        "title": result.title,
        "status": result.status.value,
        "required": result.required,
        "reason": result.reason,
        "seconds": result.seconds,
        "exit": result.exit,
        "facts": result.facts,
        "cases": [
            {"name": c.name, "status": c.status.value, "reason": c.reason, "metrics": c.metrics}
            for c in result.cases
        ],
        "output": result.output,
        "dropped": result.dropped,
    }


def write(path: str, document: Mapping[str, Any]) -> None:
    """Writes the report whole, or leaves the last one.

    Raises:
        UnusableInput: the file cannot be written.
    """
    text = mask(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)) + "\n"
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        files.write_whole(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise UnusableInput(
            f"{path}: the report cannot be written: {error.strerror}",
            "name another file with --report",
        ) from error
