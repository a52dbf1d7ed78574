"""Sums over two processes, started by torch's own launcher."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from envlock.adapters.interpreter import probes_folder
from tests.support.pythons import clean_env

pytestmark = [pytest.mark.torch, pytest.mark.integration]

REDUCE = "    dist.all_reduce(mine, op=getattr(dist.ReduceOp, kind))\n"
# what a broken library does instead -> case, status, words
FAULTS = [
    ("    pass\n", "sum int32 1", "wrong in process"),  # nothing was sent
    pytest.param(
        REDUCE + "    mine[-1] += 1\n", "sum int32 1", "wrong in process 0: 1 elements",
        marks=pytest.mark.long,
    ),
    pytest.param(
        "    os.abort() if rank else time.sleep(1)\n", "2 processes", "gave no answer",
        marks=pytest.mark.long,
    ),
    pytest.param(
        "    raise RuntimeError('no peer')\n", "2 processes", "process 0: RuntimeError: no peer",
        marks=pytest.mark.long,
    ),
]  # fmt: skip


def _run(python: Path, folder: Path, instead: str = REDUCE) -> dict[str, Any]:
    """The check's answer, with another line in the worker."""
    probes = folder / "probes"
    shutil.copytree(probes_folder(), probes, ignore=shutil.ignore_patterns("__pycache__"))
    worker = probes / "checks" / "_col_worker.py"
    text = worker.read_text()
    assert REDUCE in text
    worker.write_text(text.replace(REDUCE, instead))
    request, answer = folder / "request.json", folder / "answer.json"
    request.write_text(json.dumps({"device": "cpu"}))
    script = probes / "checks" / "col_allreduce.py"
    command = [python, "-s", probes / "harness.py", script, request, answer]
    env = clean_env(PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run([str(part) for part in command], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(answer.read_text())
    assert found["done"], done.stdout
    return found


@pytest.fixture
def torch_python(torch_target: Path) -> Path:
    return torch_target / "bin" / "python"


def test_sums_of_two_processes_are_exact(torch_python: Path, tmp_path: Path) -> None:
    answer = _run(torch_python, tmp_path)
    assert answer["facts"] == {"backend": "gloo", "processes": 2}
    cases = {case["name"]: case for case in answer["cases"]}
    assert {case["status"] for case in cases.values()} == {"passed"}, cases
    assert {"2 processes", "sum bfloat16 1048579", "max float32", "gather", "broadcast"} <= set(
        cases
    )
    assert cases["all-reduce speed"]["metrics"]["gbps"] > 0
    assert cases["2 processes"]["metrics"]["processes"] == 2


@pytest.mark.parametrize(
    ("instead", "name", "words"), FAULTS, ids=["not-sent", "one-off", "one-died", "no-peer"]
)
def test_a_broken_library_is_caught(
    torch_python: Path, tmp_path: Path, instead: str, name: str, words: str
) -> None:
    answer = _run(torch_python, tmp_path, instead)
    cases = {case["name"]: case for case in answer["cases"]}
    assert cases[name]["status"] == "failed", cases
    assert words in cases[name]["reason"]
