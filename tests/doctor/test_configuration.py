"""Settings that nobody types."""

from __future__ import annotations

import pytest

from envlock.adapters.configuration import unreadable
from envlock.doctor.configuration import Setting, configuration_section


def codes(*settings: Setting) -> dict[str, str]:
    return {one.code: one.level for one in configuration_section(settings, []).findings}


def setting(tool: str, option: str, *values: str, missing: tuple[str, ...] = ()) -> Setting:
    return Setting(tool=tool, option=option, values=values, origin="PIP_X", missing=missing)


@pytest.mark.parametrize(
    ("one", "found"),
    [
        (setting("pip", "--target", "/x"), {"config.elsewhere": "warning"}),
        (setting("pip", "--user"), {"config.elsewhere": "warning"}),
        (setting("pip", "--upgrade"), {"config.moves": "warning"}),
        (setting("pip", "--upgrade-strategy", "eager"), {"config.moves": "warning"}),
        (setting("pip", "--upgrade-strategy", "only-if-needed"), {}),
        (setting("uv", "--reinstall"), {"config.moves": "warning"}),
        (setting("pip", "--constraint", "/c.txt"), {"config.constraint-pip-only": "info"}),
        (setting("uv", "--constraints", "/c.txt"), {}),
        (setting("uv", "--constraints", "/c", missing=("/c",)),
         {"config.constraint-missing": "error"}),
        (setting("pip", "--index-url", "https://i"), {"config.index-pip-only": "info"}),
        (setting("uv", "--default-index", "https://i"), {}),
        (setting("pip", "--no-binary", ":all:"), {"config.no-binary": "info"}),
        (setting("pip", "--timeout", "5"), {}),
    ],
)  # fmt: skip
def test_findings(one: Setting, found: dict[str, str]) -> None:
    assert codes(one) == found


def test_both_tools_have_the_index() -> None:
    pip, uv = setting("pip", "--index-url", "https://i"), setting("uv", "--index-url", "https://i")
    assert codes(pip, uv) == {}


def test_rows() -> None:
    timeout, index = setting("pip", "--timeout", "5"), setting("pip", "--index-url", "https://i")
    section = configuration_section([timeout, index], [("pip", "/etc/pip.conf")])
    assert [(row.name, row.value, row.detail) for row in section.rows] == [
        ("pip", "timeout = 5  (PIP_X)", True),
        ("pip", "index-url = https://i  (PIP_X)", False),
        ("pip reads", "/etc/pip.conf", True),
    ]
    [first, _] = configuration_section([timeout], []).rows
    assert first.value == "nothing is set that changes what an install does"


@pytest.mark.parametrize(
    ("tool", "text", "readable"),
    [
        ("pip", "[global]\nindex-url = https://i\n", True),
        ("pip", "", True),
        ("pip", "index-url = https://i\n", False),
        ("pip", "[global]\nx = 1\nx = 2\n", False),
        ("uv", "# nothing\n", True),
        ("uv", "offline = true\n", True),
        ("uv", "offline = yes\n", False),
    ],
)
def test_files_that_cannot_be_read(tool: str, text: str, readable: bool) -> None:
    assert (unreadable(tool, "/x", text) == "") == readable
