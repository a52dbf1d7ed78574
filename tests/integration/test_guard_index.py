"""Guard on the real index, with the real torch in the target: what it decides.

Versions on an index move on. What is asserted is the verdict and which build it is about; for
projects whose pin on torch comes and goes, the tool's own dry run says what is right.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envlock.adapters.network import default_index, reachable, uses_proxy
from envlock.cli import main
from tests.support.pythons import MACHINE, clean_env

pytestmark = [
    pytest.mark.integration,
    pytest.mark.torch,
    pytest.mark.skipif(
        sys.version_info[:2] != (3, 11), reason="the torch wheel is for Python 3.11"
    ),
]

Judge = Callable[[str], dict[str, Any]]

ALLOWED = (
    "pip install accelerate",
    "pip install peft",
    "pip install --no-deps torch",
    "pip install --no-deps torchvision",
    "uv pip install accelerate",
    "uv pip install peft",
    "uv pip install --no-deps torch",
)
REFUSED = (
    "pip install -U torch",
    "pip install torch==2.12.0",
    "pip install -U --upgrade-strategy eager accelerate",
    "pip install -r pinned.txt",
    "pip install --no-deps torch==2.12.0",
    "uv pip install -U torch",
    "uv pip install torch==2.12.0",
    "uv pip install -r pinned.txt",
    "uv pip install -U peft",
)
#: Their newest version may require an exact torch, a range, or nothing.
AS_THEY_ARE = (
    "pip install xformers",
    "pip install torchvision",
    "uv pip install xformers",
    "uv pip install torchvision",
)


@pytest.fixture(scope="module", autouse=True)
def index() -> None:
    if not uses_proxy(MACHINE) and not reachable(default_index(), 5):
        pytest.skip("the index cannot be reached")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """uv's, for all of these tests."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def judge(
    torch_target: Path,
    cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Judge:
    """What ``envlock guard --plan`` says about a command line."""
    monkeypatch.setenv("UV_CACHE_DIR", str(cache))
    monkeypatch.chdir(tmp_path)
    Path("pinned.txt").write_text("accelerate\ntorch==2.12.0\n")
    python = str(torch_target / "bin" / "python")

    def plan(line: str) -> dict[str, Any]:
        code = main(["guard", "--plan", "--json", "--python", python, *line.split()])
        said = capfd.readouterr()
        data: dict[str, Any] = json.loads(said.out)["data"]
        assert code == {"allowed": 0, "refused": 3}[data["verdict"]], said.err
        assert data["plan"]["known"] == "planned", said.err
        return data

    return plan


def named(data: dict[str, Any]) -> set[str]:
    """Builds that would be lost."""
    return {one["subject"] for one in data["reasons"] if one["level"] == "error"}


@pytest.mark.parametrize("line", ALLOWED)
def test_what_keeps_torch_is_allowed(line: str, judge: Judge) -> None:
    data = judge(line)
    assert data["verdict"] == "allowed"
    assert named(data) == set()


@pytest.mark.parametrize("line", REFUSED)
def test_what_replaces_torch_is_refused(line: str, judge: Judge) -> None:
    data = judge(line)
    assert data["verdict"] == "refused"
    assert "torch" in named(data)


@pytest.mark.parametrize("line", AS_THEY_ARE)
def test_a_dependent_is_judged_by_what_it_requires_today(
    line: str, judge: Judge, torch_target: Path, cache: Path
) -> None:
    data = judge(line)
    replaces = moves_torch(line.split(), torch_target / "bin" / "python", cache)
    assert (data["verdict"] == "refused") == replaces
    assert ("torch" in named(data)) == replaces


def moves_torch(words: list[str], python: Path, cache: Path) -> bool:
    """What the tool's own dry run says."""
    folder = Path(sys.executable).parent
    if words[0] == "uv":
        command = [f"{folder}/uv", "pip", "install", "--python", str(python), "--dry-run"]
    else:
        command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--dry-run"]
    done = subprocess.run(
        [*command, *words[words.index("install") + 1 :]],
        env=clean_env(UV_CACHE_DIR=str(cache), NO_COLOR="1"),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return bool(
        re.search(r"^ \+ torch==|^Would install .*\btorch-\d", done.stdout + done.stderr, re.M)
    )
