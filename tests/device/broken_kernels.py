"""``python -m tests.device.broken_kernels PYTHON``: broken kernels, each caught by its check.

Run by a Python that has envlock. PYTHON is the target, which is not changed: the faults come by
PYTHONPATH. Ends with 1 when a fault was not caught by the check that should.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

FAULTS = Path(__file__).with_name("faults")
#: fault -> the check that has to fail
CAUGHT_BY = {
    "gemm-slice": "num.gemm_exact",
    "gemm-tf32": "num.gemm_ident",
    "sdpa-gradient": "sdpa.causal",
    "flash-gradient": "fa.causal",
    "triton-element": "tri.add",
}


@dataclass(frozen=True)
class Caught:
    """How verify ended on a broken kernel."""

    check: str
    status: str
    reason: str
    code: int

    @property
    def well(self) -> bool:
        return (self.status, self.code) == ("failed", 3)


def broken(fault: str, python: str, device: str) -> Caught:
    """Runs the check that should see a fault, with that fault; no fault with an empty name."""
    check = CAUGHT_BY.get(fault, "num.gemm_exact")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        env = {**os.environ, "PYTHONPATH": str(FAULTS), "ENVLOCK_FAULT": fault}
        env["XDG_STATE_HOME"] = folder
        command = [sys.executable, "-m", "envlock", "verify", "--python", python]
        command += ["--device", device, "--level", "full", "--only", check, "--report", str(report)]
        root = str(Path(__file__).parents[2])
        done = subprocess.run(command, env=env, cwd=root, stdout=subprocess.DEVNULL)
        (found,) = json.loads(report.read_text(encoding="utf-8"))["checks"]
    return Caught(check, found["status"], found["reason"], done.returncode)


def main() -> int:
    python = sys.argv[1]
    print("| broken | check | status | exit | what it says |\n|---|---|---|---|---|", flush=True)
    missed = []
    for fault in CAUGHT_BY:
        found = broken(fault, python, "cuda")
        words = f"{found.check} | {found.status} | {found.code} | {found.reason}"
        print(f"| {fault} | {words} |", flush=True)
        if not found.well:
            missed.append(fault)
    print(f"\n{len(CAUGHT_BY) - len(missed)} of {len(CAUGHT_BY)} caught", *missed, sep="\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
