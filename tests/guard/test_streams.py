"""A list that can be read once is the tool's to read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from envlock.cli.wiring import read_text
from envlock.errors import UsageProblem


def test_a_stream_is_refused_and_not_read(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    try:
        os.write(writer, b"torch\n")
        for path in (f"/proc/self/fd/{reader}", f"file:///proc/self/fd/{reader}"):
            with pytest.raises(UsageProblem) as caught:
                read_text(path)
            assert "write it to a file" in caught.value.hint
        assert os.read(reader, 99) == b"torch\n"
    finally:
        os.close(reader)
        os.close(writer)


def test_a_terminal_is_a_stream() -> None:
    import pty

    master, slave = pty.openpty()
    try:
        with pytest.raises(UsageProblem):
            read_text(os.ttyname(slave))
    finally:
        os.close(master)
        os.close(slave)


def test_what_can_be_read_twice_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageProblem):
        read_text("-")
    Path("-").write_text("peft\n")
    assert read_text("-") == "peft\n"
    assert read_text(os.devnull) == ""
    assert read_text("nowhere.txt") is None
    assert read_text("https://h/r.txt") is None
