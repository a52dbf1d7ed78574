"""The harness runs on old Pythons, answers by file, and tells failures from errors."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from envlock.adapters.interpreter import probes_folder
from tests.support.fake_checks import write_checks
from tests.support.pythons import clean_env, python_for

PROBES = probes_folder()


def _run(folder: Path, python: str, body: str, **request: Any) -> dict[str, Any]:
    write_checks(folder / "checks", mine=body)
    (folder / "request.json").write_text(json.dumps({"device": "cpu", **request}))
    script, asked, answer = folder / "checks/mine.py", folder / "request.json", folder / "answer"
    command = [python, "-s", str(PROBES / "harness.py"), str(script), str(asked), str(answer)]
    done = subprocess.run(command, env=clean_env(), capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(answer.read_text())
    assert not list(folder.glob("*.part"))
    return found


def _cases(body: str, tmp_path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = _run(tmp_path, sys.executable, body)["cases"]
    return found


@pytest.mark.parametrize("script", sorted(PROBES.rglob("*.py")), ids=lambda path: path.name)
def test_every_script_is_python_3_8(script: Path) -> None:
    tree = ast.parse(script.read_text(encoding="utf-8"), feature_version=(3, 8))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert "envlock" not in imported


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10", "3.13"])
def test_the_harness_runs_on(version: str, tmp_path: Path) -> None:
    python = python_for(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    body = "context.facts['v'] = sys.version_info[:2]; yield context.case('one', dict)"
    answer = _run(tmp_path, python, body)
    assert answer["done"] is True
    assert answer["facts"]["v"] == [int(part) for part in version.split(".")]
    assert answer["cases"][0]["status"] == "passed"


def test_metrics_that_are_not_finite_are_texts(tmp_path: Path) -> None:
    made = "{'a': float('nan'), 'b': [float('inf')], 'c': {1: -1e999}}"
    body = f"yield context.case('x', lambda: {made})"
    metrics = _cases(body, tmp_path)[0]["metrics"]
    assert {key: metrics[key] for key in "abc"} == {"a": "nan", "b": ["inf"], "c": {"1": "-inf"}}


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ("yield context.case('x', failing)", "failed", "off by one"),
        ("yield context.case('x', skipping)", "skipped", "no such thing here"),
        ("yield context.case('x', lambda: {'warning': 'slow'})", "warned", "slow"),
        ("yield context.case('x', harness.subject, int, 'y')", "failed", "raised ValueError: "),
        ("yield context.case('x', harness.subject, failing)", "failed", "off by one"),
        ("yield context.case('x', int, 'y')", "error", "ValueError: invalid literal"),
        (
            "def f():\n        assert 1 == 2, 'unequal'\n    yield context.case('x', f)",
            "failed",
            "unequal",
        ),
        (
            "def f():\n        raise MemoryError\n    yield context.case('x', harness.subject, f)",
            "error",
            "out of memory",
        ),
    ],
)
def test_what_a_case_becomes(tmp_path: Path, body: str, status: str, reason: str) -> None:
    found = _cases(body, tmp_path)[0]
    assert found["status"] == status
    assert reason in found["reason"]


def test_a_failure_carries_what_was_measured(tmp_path: Path) -> None:
    found = _cases("yield context.case('x', failing)", tmp_path)[0]
    assert found["metrics"] == {"max_abs": 1.0, "limit": 0.5}


def test_a_failure_outside_a_case_is_one(tmp_path: Path) -> None:
    found = _run(tmp_path, sys.executable, "harness.subject(int, 'y'); yield")
    assert found["done"] is True
    assert [case["status"] for case in found["cases"]] == ["failed"]


def test_an_error_keeps_the_end_of_the_traceback(tmp_path: Path) -> None:
    found = _run(tmp_path, sys.executable, "yield context.case('one', dict); raise ValueError('x')")
    assert found["done"] is True
    assert found["error"].splitlines()[-1] == "ValueError: x"
    assert [case["status"] for case in found["cases"]] == ["passed"]


def test_modules_of_the_target_are_not_shadowed(tmp_path: Path) -> None:
    """``environment``, ``harness`` and ``checks`` are names that a target may have as well."""
    (tmp_path / "site").mkdir()
    for name in ("environment", "checks"):
        (tmp_path / "site" / f"{name}.py").write_text("WHOSE = 'target'\n")
    body = (
        f"sys.path.append({str(tmp_path / 'site')!r}); import environment, checks;"
        " context.facts['whose'] = [environment.WHOSE, checks.WHOSE];"
        " yield context.case('one', dict)"
    )
    assert _run(tmp_path, sys.executable, body)["facts"]["whose"] == ["target", "target"]
