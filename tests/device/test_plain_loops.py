"""On a device: what verify measures is what a loop written by hand measures."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.pythons import clean_env

pytestmark = pytest.mark.device

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "plain_loops.py"


def test_figures_are_those_of_plain_loops() -> None:
    python = shutil.which("python3")
    assert python is not None
    done = subprocess.run(
        [python, str(SCRIPT)], env=clean_env(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
