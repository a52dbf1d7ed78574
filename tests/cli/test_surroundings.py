"""What guard reads around a command line."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from envlock.cli import wiring
from envlock.errors import UnusableInput
from envlock.guard.command import parse


def test_a_name_that_no_file_can_have_is_no_file() -> None:
    assert wiring.read_text("a\0b") is None


TARGET: Any = SimpleNamespace(
    python="3.11.7", venv=True, layout=SimpleNamespace(prefix="/v", purelib="/v/lib")
)
COMMON: Any = SimpleNamespace(env={"PATH": "/nowhere"})


@pytest.mark.parametrize("named", ["3", "3.11", "3.11.7", "python3.11", "cpython@3.11"])
def test_a_version_that_is_the_targets_names_it(named: str) -> None:
    request = parse(["uv", "pip", "install", "-p", named, "x"])
    wiring._same_environment(COMMON, request, TARGET)


@pytest.mark.parametrize("named", ["3.1", "3.12", "3.11.8", "/nowhere/python3.11"])
def test_another_version_does_not(named: str) -> None:
    request = parse(["uv", "pip", "install", "-p", named, "x"])
    with pytest.raises(UnusableInput):
        wiring._same_environment(COMMON, request, TARGET)
