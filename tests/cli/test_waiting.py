"""What a person in front of a terminal reads while another program thinks."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from envlock.cli.show import Screen
from envlock.model.facts import Finding


class Terminal(io.StringIO):
    """Standard error that says of itself that it is a terminal."""

    def isatty(self) -> bool:
        return True


@contextmanager
def in_front_of(screen: io.StringIO) -> Iterator[None]:
    """Not a fixture: pytest puts its own standard error back between set-up and test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", screen)
        yield


def wait_for_words(terminal: Terminal) -> None:
    deadline = time.monotonic() + 20
    while not terminal.getvalue() and time.monotonic() < deadline:
        time.sleep(0.01)


def test_a_long_wait_says_what_it_is_for_and_leaves_nothing() -> None:
    terminal = Terminal()
    with in_front_of(terminal), Screen().waiting("asking pip what it would do", 0.0):
        wait_for_words(terminal)
        assert terminal.getvalue() == "envlock: asking pip what it would do …"
    assert terminal.getvalue() == "envlock: asking pip what it would do …\r\x1b[2K"


def test_a_short_wait_says_nothing() -> None:
    terminal = Terminal()
    with in_front_of(terminal), Screen().waiting("asking pip", 600):
        pass
    assert terminal.getvalue() == ""


def test_the_line_goes_when_the_wait_fails() -> None:
    terminal = Terminal()

    def interrupted() -> None:
        with in_front_of(terminal), Screen().waiting("asking pip", 0.0):
            wait_for_words(terminal)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert terminal.getvalue() == "envlock: asking pip …\r\x1b[2K"


@pytest.mark.parametrize("quiet", [True, False])
def test_a_log_and_a_quiet_command_get_no_line(quiet: bool) -> None:
    found = Terminal() if quiet else io.StringIO()
    with in_front_of(found), Screen(quiet=quiet).waiting("asking pip", 0.0):
        time.sleep(0.05)
    assert found.getvalue() == ""


def test_a_finding_ends_its_lines_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal; the hint below it is one line, since it is copied."""
    monkeypatch.setenv("COLUMNS", "40")
    hint = "envlock guard pip install --no-deps a b c d e f g h"
    found = Finding(
        code="guard.replaced", subject="torch", what="'2.10.0+das' would be replaced by '2.11.0'",
        hint=hint, level="error",
    )  # fmt: skip
    window = Terminal()
    with in_front_of(window):
        Screen(color=False).findings([found])
    assert window.getvalue().splitlines() == [
        "error: torch: '2.10.0+das' would be",
        "  replaced by '2.11.0' [guard.replaced]",
        f"  hint: {hint}",
    ]
    file = io.StringIO()
    with in_front_of(file):
        Screen(color=False).findings([found])
    assert len(file.getvalue().splitlines()) == 2
