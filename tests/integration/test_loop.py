"""The loop on real torch: the script that people can follow, run as it stands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pythons import ROOT, clean_env, torch_wheels

pytestmark = [pytest.mark.integration, pytest.mark.torch]

PROVEN = (
    "ok: torch is protected, every distribution has a content digest",
    "ok: refused, and the target is byte for byte as before",
    "ok: an install that cannot hurt ran",
    "ok: two harvests are the same bytes, whole, and pip and uv install them",
    "ok: exactly the damaged distributions are named",
    "ok: every content digest equals the manifest's, and it computes",
    "ok: a new environment computes too",
)


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the torch wheel is for Python 3.11")
def test_loop(tmp_path: Path) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", str(ROOT / "examples/loop.sh"), str(torch_wheels()), str(tmp_path)],
        env=clean_env(PATH=path, HOME=str(tmp_path)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    assert [line for line in done.stdout.splitlines() if line.startswith("ok: ")] == list(PROVEN)
    refusal = next(line for line in done.stdout.splitlines() if line.startswith("error: torch"))
    assert "'2.13.0+cpu' would be replaced by '2." in refusal
