"""What code runs on, and which devices the driver says are here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from envlock.verify import static_code


@pytest.mark.parametrize(
    ("targets", "wanted", "every", "lost"),
    [
        (["gfx936"], ["gfx928", "gfx936"], False, []),
        (["gfx936"], ["gfx928", "gfx936"], True, ["gfx928"]),
        (["sm_80"], ["sm_90"], True, ["sm_90"]),
        (["sm_80"], ["sm_86"], True, []),
        (["sm_90"], ["sm_80"], True, ["sm_80"]),
        (["compute_80"], ["sm_90"], True, []),
        (["compute_90"], ["sm_80"], True, ["sm_80"]),
        (["gfx906"], ["gfx90a"], False, ["gfx90a"]),
    ],
)
def test_what_code_runs_on(
    targets: list[str], wanted: list[str], every: bool, lost: list[str]
) -> None:
    assert static_code.lacking(targets, wanted, every) == lost


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"0": "cpu_cores_count 64\ngfx_target_version 0\n"}, ()),
        ({"0": "gfx_target_version 0\n", "1": "gfx_target_version 90306\n"}, ("gfx936",)),
        ({"1": "gfx_target_version 90010\n"}, ("gfx90a",)),
        ({"1": "gfx_target_version 90402\n"}, ("gfx942",)),
        ({}, ()),
    ],
)  # fmt: skip
def test_what_the_driver_says_is_here(
    tmp_path: Path, files: Mapping[str, str], found: tuple[str, ...]
) -> None:
    for name, text in files.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "properties").write_text(text)
    assert static_code.architectures(str(tmp_path)) == found
