"""What people see of a transfer where there is no terminal."""

from __future__ import annotations

import pytest

from envlock.cli.show import Screen


def shown(
    capsys: pytest.CaptureFixture[str], screen: Screen, total: int | None, *steps: int
) -> list[str]:
    with screen.transfer("downloading 2 files", total) as advance:
        for step in steps:
            advance(step)
    found = capsys.readouterr()
    assert found.out == ""
    return found.err.splitlines()


def test_a_line_for_every_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    million = 1_000_000
    steps = (5 * million, 5 * million, 5 * million, -8 * million, 3 * million, 90 * million)
    assert shown(capsys, Screen(), 100 * million, *steps) == [
        "downloading 2 files, 100.0 MB …",
        "  10.0 MB of 100.0 MB",
        "  100.0 MB of 100.0 MB",
    ]


@pytest.mark.parametrize(
    ("total", "line"),
    [(1000, "downloading 2 files, 1.0 kB …"), (None, "downloading 2 files …")],
)
def test_short_ones_have_one_line(
    capsys: pytest.CaptureFixture[str], total: int | None, line: str
) -> None:
    assert shown(capsys, Screen(), total, 500, 500) == [line]


def test_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, Screen(quiet=True), 10**9, 10**9) == []
    assert shown(capsys, Screen(json=True), 1000, 1000) == ["downloading 2 files, 1.0 kB …"]
