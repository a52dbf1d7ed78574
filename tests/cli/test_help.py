"""Help pages fit a terminal of 80 columns and say first what a command does; shells complete."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from envlock.cli import app, main


def _commands(group: typer.Typer, *before: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    for info in group.registered_commands:
        name = str(info.name or getattr(info.callback, "__name__", ""))
        if not info.hidden:
            yield (*before, name), info.callback
    for inner in group.registered_groups:
        assert inner.typer_instance is not None
        name = str(inner.typer_instance.info.name)
        yield (*before, name), inner.typer_instance
        yield from _commands(inner.typer_instance, *before, name)


EVERY = [((), app), *_commands(app)]
_IDS = [" ".join(words) or "envlock" for words, _ in EVERY]


@pytest.fixture
def page(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> str:  # fmt: skip
    """The help of a command, as a terminal of 80 columns shows it."""
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*request.param, "--help"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("page", [words for words, _ in EVERY], indirect=True, ids=_IDS)
def test_a_page_fits_and_is_whole(page: str) -> None:
    wide = [line for line in page.splitlines() if len(line) > 80]
    assert not wide
    # the list of commands is where a sentence would be cut short
    cut = [line for line in page.splitlines() if line.endswith("...")]
    assert not [line for line in cut if not line.startswith("Usage:")]


@pytest.mark.parametrize("page", [words for words, _ in EVERY], indirect=True, ids=_IDS)
def test_the_first_line_says_what_it_does(page: str) -> None:
    said = page.split("\n\n")[1].strip()
    assert said[0].isupper()
    assert said.endswith((".", ":", ".\n")), said
    assert len(" ".join(said.split())) <= 160


@pytest.mark.parametrize("page", [words for words, _ in EVERY], indirect=True, ids=_IDS)
def test_every_option_says_what_it_is_for(page: str) -> None:
    _, _, options = page.partition("\nOptions:\n")
    rows = [line for line in options.split("\n\n")[0].splitlines() if line.startswith("  -")]
    assert rows
    following = options.splitlines()
    for row in rows:
        alone = "  " not in row.strip()
        assert not alone or following[following.index(row) + 1].startswith("   "), row


def test_commands_stand_in_the_order_of_the_work(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    listed = [
        line.split()[0] for line in capsys.readouterr().out.partition("Commands:\n")[2].splitlines()
    ]
    assert listed[:5] == ["snapshot", "guard", "wheelhouse", "restore", "verify"]
    assert {*listed} == {words[0] for words, _ in EVERY if len(words) == 1}


@pytest.mark.parametrize("page", [words for words, _ in EVERY], indirect=True, ids=_IDS)
def test_examples_name_options_that_exist(page: str) -> None:
    options, _, examples = page.partition("Examples:")
    for line in examples.split("\n"):
        own = line.partition(" pip ")[0].split()
        assert {word for word in own if word.startswith("--") and len(word) > 2} <= {
            word.strip(",") for word in options.split()
        }


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("envlock re", {"restore"}),
        ("envlock wheelhouse h", {"harvest"}),
        ("envlock restore --wh", {"--wheelhouse"}),
        ("envlock verify --level s", {"static", "standard", "stress"}),
        ("envlock export --format p", {"pylock"}),
    ],
)
def test_a_shell_completes(typed: str, offered: set[str]) -> None:
    env = {
        **os.environ,
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
        "_ENVLOCK_COMPLETE": "complete_bash",
    }
    code = "from envlock.cli import main; import sys; sys.argv = ['envlock']; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, set(done.stdout.split())) == (0, offered), done.stderr


def test_the_script_of_a_shell_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--show-completion", "bash"]) == 0
    assert "_ENVLOCK_COMPLETE=complete_bash" in capsys.readouterr().out
