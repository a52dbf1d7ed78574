"""A report as a card would give it, and the same again a little slower."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

#: Medians of a BW1000 and the profile's peaks, as in the reference tables.
_GEMM = {
    "fp16": (480.0, {2048: 183.5, 4096: 288.3, 8192: 301.9, 12288: 439.2}),
    "fp32": (60.0, {2048: 41.6, 4096: 53.2, 8192: 55.2, 12288: 55.8}),
    "fp64": (30.0, {2048: 22.5, 4096: 24.75, 8192: 23.95, 12288: 26.3}),
}
_COPY = {
    "H2D pageable 256 MiB": (64.0, 13.25), "H2D pinned 256 MiB": (64.0, 48.3),
    "D2H pageable 256 MiB": (64.0, 36.8), "D2H pinned 256 MiB": (64.0, 47.4),
    "D2D 1024 MiB": (1600.0, 1322.5), "vector add 1024 MiB": (1600.0, 1273.4),
}  # fmt: skip
_NUMERIC = {"num.gemm_real": 24, "num.elem": 60, "sdpa.causal": 18, "fa.causal": 36, "tri.dot": 8}


def case(name: str, status: str = "passed", reason: str = "", **metrics: Any) -> dict[str, Any]:
    """One case of the document."""
    return {"name": name, "status": status, "reason": reason, "metrics": metrics}


def check(name: str, status: str = "passed", **more: Any) -> dict[str, Any]:
    """One check of the document."""
    fixed: dict[str, Any] = {
        "id": name, "title": f"what {name} is about", "status": status, "required": True,
        "reason": "", "seconds": 4.2, "exit": 0, "facts": {}, "cases": [], "output": "",
        "dropped": 0,
    }  # fmt: skip
    return {**fixed, **more}


def document(*checks: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A whole report with these checks."""
    names = [one["id"] for one in checks]
    digest = "sha256:" + "ab" * 32
    fixed: dict[str, Any] = {
        "schema": "1.0", "tool": "envlock 0.1.0", "started": "2026-11-30T08:00:00Z",
        "ended": "2026-11-30T08:07:10Z", "target": {"python": "3.10.12", "short": "cp310"},
        "manifest": {"name": "dtk2604-cp310", "digest": digest}, "profile": "dtk",
        "device": {"kind": "cuda", "device": "BW", "torch": "2.10.0+das.opt1.dtk2604"},
        "level": "full",
        "config": {"level": "full", "checks": names, "seed": 336, "caches": "cold",
                   "timeout_scale": 1.0, "suite": digest},
        "findings": [], "checks": list(checks), "counts": {"passed": len(checks)},
        "verdict": "passed", "said": "passed: all required checks passed", "exit": 0,
        "baseline": None,
    }  # fmt: skip
    return {**fixed, **more}


def rated(name: str, value: float, reference: float | None, key: str = "tflops") -> dict[str, Any]:
    """A case with a rate."""
    metrics: dict[str, Any] = {
        key: value,
        "seconds_median": 0.0036,
        "seconds_p95": 0.0038,
        "spread": 0.012,
    }
    if reference is not None:
        metrics["reference"] = reference
    return case(name, **metrics)


def samples(seconds: float, power: float, clock: float) -> dict[str, list[float | None]]:
    """What the parent saw: it rises, holds, and once the tool did not answer."""
    times = [round(index * 0.4, 1) for index in range(int(seconds / 0.4))]
    rise = [1 - math.exp(-time) * 0.75 for time in times]
    watts: list[float | None] = [round(power * share + 4 * math.sin(9 * share)) for share in rise]
    watts[len(watts) // 2] = None
    return {
        "seconds": list(times), "power_w": watts,
        "clock_mhz": [round(clock * (0.7 + 0.3 * share)) for share in rise],
        "temperature_c": [round(48 + 24 * share) for share in rise],
    }  # fmt: skip


def _numeric(scale: float) -> Iterator[dict[str, Any]]:
    for number, (name, count) in enumerate(_NUMERIC.items()):
        cases = [
            case(
                f"bf16 {64 * (index + 1)}x{128 + index}",
                margin=round(scale * 0.6 * abs(math.sin(1.7 * index + number)) ** 3, 5),
                max_abs=1e-4, limit=4e-3,
            )
            for index in range(count)
        ]  # fmt: skip
        yield check(name, cases=cases, seconds=3.0 + number)


def device_report(speed: float = 1.0, scale: float = 1.0) -> dict[str, Any]:
    """A full report with every plot on its page.

    Args:
        speed: factor on the rates.
        scale: factor on the margins.
    """
    gemm = [
        rated(f"{kind} {size}", value * speed, peak)
        for kind, (peak, row) in _GEMM.items()
        for size, value in row.items()
    ]
    copies = [rated(name, v * speed, peak, "gbps") for name, (peak, v) in _COPY.items()]
    return document(
        check("static.lock", cases=[case("torch 2.10.0"), case("triton 3.5.0")]),
        check("imp.torch", facts={"module_version": "2.10.0", "hip": "6.3.26093"}),
        check("dev.first"),
        *_numeric(scale),
        check("perf.gemm", required=False, cases=gemm, seconds=40.0,
              facts={"samples": samples(40, 310 * speed, 1500)}),
        check("perf.copy", required=False, cases=copies, seconds=18.0,
              facts={"samples": samples(18, 140, 1480)}),
    )  # fmt: skip


def troubled_report() -> dict[str, Any]:
    """A run in which a good deal went wrong, and which was stopped."""
    output = "Fatal Python error: Segmentation fault\n\nThread 0x00007f (most recent call first):\n"
    return document(
        check("imp.torch"),
        check("num.gemm_real", "failed", reason="fp16 1000x264x4096: product is off by 0.2",
              cases=[case("fp16 64x64x64", margin=0.4),
                     case("fp16 1000x264x4096", "failed", "product is off by 0.2", margin=3.7)]),
        check("sdpa.causal", "crashed", reason="ended by SIGSEGV", exit=-11, output=output),
        check("fa.causal", "timeout", reason="no end after 900 s", seconds=900.0),
        check("tri.add", "blocked", reason="blocked by imp.triton"),
        check("perf.gemm", "warned", required=False, reason="fp16 4096: 52 % of the reference",
              cases=[rated("fp16 4096", 250.0, 480.0)]),
        check("vllm.import", "skipped", required=False, reason="'vllm' is not installed"),
        check("num.elem", "not-run", reason="not run", seconds=0.0),
        findings=[{"code": "stack.not-activated", "subject": "/opt/dtk/env.sh",
                   "what": "this shell has not sourced it", "why": "", "level": "warning",
                   "hint": "source /opt/dtk/env.sh"}],
        verdict="interrupted", exit=130, said="interrupted: 1 of 5 required checks passed",
        counts={"passed": 1},
    )  # fmt: skip
