"""What uv is asked, and what its answers mean."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envlock.adapters.installer import Change, Known, Plan
from envlock.adapters.uv import dry_run, without

INSTALLED = {"torch": "2.10.0+das", "tqdm": "4.0"}
FETCH = "error: Failed to fetch: `http://x/simple/torch/`\n  Caused by:"


def _answer(folder: Path, text: str, code: int = 0) -> Plan:
    said = folder / "said"
    said.write_text(text)
    return dry_run(["sh", "-c", f"cat '{said}'; exit {code}"], {}, installed=INSTALLED)


@pytest.mark.parametrize("action", ["replace", "create", "check"])
def test_an_environment_made_anew_loses_everything(action: str, tmp_path: Path) -> None:
    new = [{"name": "tqdm", "version": "4.1", "action": "installed"}]
    found = _answer(tmp_path, "note\n" + json.dumps({"sync": {"action": action, "changes": new}}))
    gone = Change(name="torch", old="2.10.0+das", new=None)
    anew = action == "replace"
    assert (gone in found.changes) is anew
    tqdm = Change(name="tqdm", old="4.0" if anew else None, new="4.1")
    assert found == Plan(changes=(gone, tqdm) if anew else (tqdm,))


@pytest.mark.parametrize(
    ("said", "known"),
    [
        (
            f"{FETCH} error sending request\n  Caused by: operation timed out",
            Known.UNKNOWN,
        ),
        (f"{FETCH} connection closed before message completed", Known.UNKNOWN),
        (f"{FETCH} HTTP status server error (503 Service Unavailable) for url", Known.UNKNOWN),
        (f"{FETCH} HTTP status client error (404 Not Found) for url", Known.REJECTED),
        ("error: unexpected argument '--bogus' found", Known.REJECTED),
        ("  x No solution found when resolving dependencies:", Known.REJECTED),
    ],
)
def test_no_answer_of_an_index_is_no_answer_of_uv(said: str, known: Known, tmp_path: Path) -> None:
    assert _answer(tmp_path, said, code=2).known is known


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("-qqr f x", "-r f x"),
        ("-qqU x", "-U x"),
        ("-Uq x", "-U x"),
        ("-q -qq --quiet x", "x"),
        ("-nqqv -rq.txt", "-nv -rq.txt"),
        ("-qrq.txt -fq/q", "-rq.txt -fq/q"),
        ("--no-index q", "--no-index q"),
    ],
)
def test_uv_is_asked_aloud(words: str, asked: str) -> None:
    assert " ".join(without(words.split())) == asked
