"""The page of doctor: what it shows is what is printed, and it has every code."""

from __future__ import annotations

import re
from pathlib import Path

from envlock.model.triage import Verdict

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/doctor.md").read_text(encoding="utf-8")
_SOURCES = (
    *sorted((ROOT / "envlock/doctor").glob("*.py")),
    *(ROOT / "envlock/model" / name for name in ("sizing.py", "stack.py", "hardware.py")),
)
_CODE = re.compile(
    r'"((?:limits|device|tool|driver|stack|python|config|state|drift|disk)\.[a-z-]+)"'
)


def test_what_it_shows_is_what_is_printed() -> None:
    printed = Path(__file__).with_name("notebook.txt").read_text(encoding="utf-8")
    assert f"$ envlock doctor --no-network\n{printed}```" in PAGE


def test_every_code_is_in_the_table() -> None:
    cells = re.findall(r"^\| ([^|]+) \|", PAGE.partition("## Findings")[2], re.M)
    table = set(re.findall(r"`([a-z]+\.[a-z-]+)`", " ".join(cells)))
    used = {code for path in _SOURCES for code in _CODE.findall(path.read_text(encoding="utf-8"))}
    assert len(used) > 50
    assert used - table == set()
    others = {code for code in table - used if not code.startswith(("always.", "path.", "dist."))}
    assert others == set()


def test_every_verdict_of_the_network() -> None:
    [row] = [line for line in PAGE.splitlines() if line.startswith("| `network.…`")]
    missing = [
        one.value
        for one in Verdict
        if one not in (Verdict.ANSWERS, Verdict.NOT_ASKED) and f"`{one.value}`" not in row
    ]
    assert missing == []
