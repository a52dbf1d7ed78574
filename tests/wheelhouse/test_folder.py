"""The folder of a wheelhouse: what is not finished in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from envlock.wheelhouse.folder import scratch


def test_what_a_killed_run_left_goes_and_what_runs_stays(tmp_path: Path) -> None:
    dead = tmp_path / ".part-dead"
    (dead / "below").mkdir(parents=True)
    (dead / "below/wheel").touch()
    (tmp_path / "torch-1.0-py3-none-any.whl").touch()
    with scratch(str(tmp_path)) as first:
        assert not dead.exists()
        with scratch(str(tmp_path)) as second:
            assert os.path.isdir(first)
            assert first != second
        assert not os.path.exists(second)
    assert os.listdir(tmp_path) == ["torch-1.0-py3-none-any.whl"]


def test_scratch_goes_with_the_error_in_it(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="full"), scratch(str(tmp_path)) as private:
        Path(private, "half").touch()
        raise OSError("full")
    assert os.listdir(tmp_path) == []
