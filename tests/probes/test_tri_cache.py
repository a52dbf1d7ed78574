"""tri.cache against a stand-in for Triton that keeps what it "compiles", rightly and wrongly."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from envlock.adapters.interpreter import probes_folder
from tests.support.pythons import clean_env

_TRITON = """
import hashlib
import inspect
import os
import re

FAULT = {fault!r}


class jit:
    def __init__(self, function):
        self.function = function

    def __getitem__(self, grid):
        return self.launch

    def factor(self):
        source = inspect.getsource(self.function)
        compiled = re.search(r"x \\* (\\d+)", source).group(1)
        if FAULT == "wrong":
            compiled = "2"
        if FAULT == "nothing-kept":
            return int(compiled)
        name = self.function.__name__ if FAULT == "stale" else source
        key = hashlib.sha256(name.encode()).hexdigest()
        path = os.path.join(os.environ["TRITON_CACHE_DIR"], key)
        if FAULT == "garbled" and os.path.exists(path):
            return int(open(path).read()) + 1
        if not os.path.exists(path) or FAULT == "never-found":
            with open(path + str(os.getpid()), "w") as file:
                file.write(compiled)
            os.replace(path + str(os.getpid()), path)
        with open(path) as file:
            return int(file.read())

    def launch(self, x, out, count, BLOCK):
        if FAULT == "dies":
            os._exit(3)
        factor = self.factor()
        out.values[:] = [value * factor + 1 for value in x.values]
"""

_TORCH = """
int32 = "int32"


class Values:
    def __init__(self, values):
        self.values = list(values)

    def to(self, device):
        return self

    def cpu(self):
        return self

    def sum(self):
        return sum(self.values)

    def __mul__(self, factor):
        return Values(value * factor for value in self.values)

    def __add__(self, more):
        return Values(value + more for value in self.values)

    def __ne__(self, other):
        return Values(one != two for one, two in zip(self.values, other.values))


def arange(count, dtype):
    return Values(range(count))


def full_like(x, value):
    return Values(value for _ in x.values)
"""


def _cases(folder: Path, fault: str, device: str = "cuda") -> dict[str, Any]:
    """The answer's cases by name."""
    site = folder / "site"
    (site / "triton" / "language").mkdir(parents=True)
    (site / "triton" / "__init__.py").write_text(_TRITON.format(fault=fault))
    (site / "triton" / "language" / "__init__.py").write_text("constexpr = None\n")
    (site / "torch.py").write_text(_TORCH)
    request, answer = folder / "request.json", folder / "answer.json"
    request.write_text(json.dumps({"device": device}))
    harness, script = probes_folder() / "harness.py", probes_folder() / "checks" / "tri_cache.py"
    env = clean_env(PYTHONPATH=str(site), PYTHONDONTWRITEBYTECODE="1")
    command = [sys.executable, "-s", str(harness), str(script), str(request), str(answer)]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(answer.read_text())
    return found


COLD, WARM, CHANGED = "two at once, cold", "warm", "changed source"


@pytest.mark.parametrize(
    ("fault", "statuses", "words"),
    [
        ("", {COLD: "passed", WARM: "passed", CHANGED: "passed"}, ""),
        ("stale", {COLD: "passed", WARM: "passed", CHANGED: "failed"}, "elements are wrong"),
        ("wrong", {COLD: "failed", WARM: "failed", CHANGED: "failed"}, "elements are wrong"),
        ("nothing-kept", {COLD: "failed", WARM: "passed", CHANGED: "passed"}, "nothing was kept"),
        ("never-found", {COLD: "passed", WARM: "warned", CHANGED: "passed"}, "compiled again"),
        ("dies", {COLD: "failed", WARM: "failed", CHANGED: "failed"}, "ended with 3"),
    ],
)
def test_caches(tmp_path: Path, fault: str, statuses: dict[str, str], words: str) -> None:
    cases = _cases(tmp_path, fault)["cases"]
    assert {case["name"]: case["status"] for case in cases} == statuses
    assert not words or any(words in case["reason"] for case in cases)


def test_a_garbled_cache_is_seen_at_the_latest_when_it_is_warm(tmp_path: Path) -> None:
    cases = {case["name"]: case["status"] for case in _cases(tmp_path, "garbled")["cases"]}
    assert cases[WARM] == "failed"


def test_a_processor_has_no_cache(tmp_path: Path) -> None:
    answer = _cases(tmp_path, "", "cpu")
    assert (answer["cases"], answer["skip"]) == ([], "nothing is compiled for a processor")
