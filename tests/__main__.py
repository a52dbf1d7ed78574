"""Everything that has to pass, in one command: ``python -m tests [pytest options]``.

Each step runs, also after one has failed; the exit code is 1 if any did.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent

STEPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("lint", (f"{BIN}/ruff", "check", "--quiet")),
    ("format", (f"{BIN}/ruff", "format", "--check", "--quiet")),
    ("types", (f"{BIN}/mypy",)),
    ("imports", (f"{BIN}/lint-imports", "--no-logo")),
)


def check(name: str, command: Sequence[str]) -> bool:
    """Runs one quiet step; what it printed is shown where it failed."""
    started = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    passed = done.returncode == 0
    print(
        f"{name:8} {'ok' if passed else 'FAILED'} ({time.monotonic() - started:.1f} s)", flush=True
    )
    if not passed:
        print(done.stdout + done.stderr, flush=True)
    return passed


def main(options: Sequence[str]) -> int:
    """Exit code of all steps together."""
    results = [check(name, command) for name, command in STEPS]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", *options]
    results.append(subprocess.run(command, cwd=ROOT, check=False).returncode == 0)
    print("all passed" if all(results) else "FAILED", flush=True)
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
