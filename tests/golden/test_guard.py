"""The golden command lines: guard's answer, and what then really happens."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from envlock.cli import main
from tests.guard.world import World, make_world, protected_part, tree

ROWS: list[dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("guard.yaml").read_text(encoding="utf-8")
)
NEWEST = "pip"
OLD = ("pip 22.0.2", "pip 23.0.1", "pip 24.0")
FILES = {
    "harmless.txt": "tabulate  # a comment\n",
    "pinned.txt": "tabulate\ntorch==2.11.0 ; python_version > '3'\n",
    "nested.txt": "tabulate\n-r pinned.txt\n",
}

Worlds = Callable[[str], World]


@pytest.fixture(scope="session")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Worlds:
    """The world of each tool, made once."""
    made: dict[str, World] = {}

    def world(tool: str) -> World:
        version = tool.partition(" ")[2]
        if version not in made:
            made[version] = make_world(tmp_path_factory.mktemp("world"), version)
        return made[version]

    return world


def cases() -> list[Any]:
    """Each line for each tool; old pips only where the whole matrix is asked for."""
    found = []
    for row in ROWS:
        for tool in (NEWEST, "uv", *OLD):
            if tool.split()[0] in row:
                marks = [pytest.mark.long] if tool in OLD else []
                found.append(pytest.param(tool, row, id=f"{tool}: {row['line']}", marks=marks))
    return found


@pytest.mark.integration
@pytest.mark.parametrize(("tool", "row"), cases())
def test_line(
    tool: str,
    row: dict[str, Any],
    worlds: Worlds,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    world = worlds(tool)
    python = world.copy(tmp_path / "target")
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("UV_NO_CONFIG", raising=False)
    for name, value in world.env().items():
        monkeypatch.setenv(name, value)
    line = row["line"].format(index=world.index, vendor=world.vendor, folder=tmp_path)
    words = ["uv", "pip"] if tool == "uv" else ["pip"]
    before = tree(tmp_path / "target")

    code = main(["guard", "--python", str(python), "--json", *words, *shlex.split(line)])

    said = capfd.readouterr()
    document = json.loads(said.out)
    after = tree(tmp_path / "target")
    answer = row[tool.split()[0]]
    reasons = {finding["code"] for finding in document["data"]["reasons"]}
    if answer == "allowed":
        assert reasons == set(), said.err
        assert code == row.get("codes", {}).get(tool, row.get("code", 0)), said.err
        assert protected_part(after) == protected_part(before)
    else:
        assert reasons == {answer}, said.err
        assert code == 3
        assert after == before
        _keeps_every_build(document["data"]["instead"], python, capfd)


def _keeps_every_build(words: list[str], python: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What a refusal offers instead is allowed."""
    if words:
        assert main(["guard", "--plan", "--python", str(python), *words]) == 0
        assert "allowed" in capfd.readouterr().out
