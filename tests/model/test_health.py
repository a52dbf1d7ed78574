"""What a healthy image already violates."""

from __future__ import annotations

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from envlock.model.dist import Distribution
from envlock.model.health import applies, overlaps, parse_requirement, satisfies, unsatisfied

MARKERS = {"python_version": "3.10", "sys_platform": "linux", "platform_machine": "x86_64"}
LABEL = "2.10.0+das.opt1.dtk2604"


@pytest.mark.parametrize(
    ("version", "specifier", "fine"),
    [
        (LABEL, "==2.10.0", True),
        (LABEL, ">=2.10", True),
        (LABEL, ">2.10.0", False),
        (LABEL, "!=2.10.0", False),
        ("2.0.0a0+17540c5", ">=1.11", True),
        ("2.1.0_gita38191a_dtk22.04.2", ">=2.0", True),
        ("2.1.0_gita38191a_dtk22.04.2", ">=3.0", False),
        ("das.dtk2604", ">=3.0", True),  # nobody can tell
        ("1.0", "", True),
    ],
)
def test_satisfies(version: str, specifier: str, fine: bool) -> None:
    assert satisfies(version, SpecifierSet(specifier)) is fine


@pytest.mark.parametrize(
    ("marker", "counts"),
    [
        ("python_version < '3.11'", True),
        ("python_version >= '3.11'", False),
        ("sys_platform == 'win32'", False),
        ("extra == 'dev'", False),
        ("python_version ~= '3'", True),  # no comparison at all: it counts
    ],
)
def test_applies(marker: str, counts: bool) -> None:
    assert applies(Requirement(f"x; {marker}"), MARKERS) is counts


def test_extras_count_where_they_are_asked_for() -> None:
    assert applies(Requirement("x; extra == 'dev'"), MARKERS, "dev")


def test_requirements_of_the_wild() -> None:
    assert parse_requirement("pytz (>dev)") is None
    assert parse_requirement("numpy (<2,>=1.2)") is not None


def dist(name: str, version: str, *requires: str) -> Distribution:
    return Distribution(name=name, version=version, requires=requires)


def test_what_an_extra_needs() -> None:
    """Through a chain of them, and only where one is asked for."""
    dists = [
        Distribution(name="a", version="1", requires=("b[x]",)),
        Distribution(
            name="b",
            version="1",
            requires=("c[y]; extra == 'x'", "gone; extra == 'x'", "never; extra == 'z'"),
        ),
        Distribution(name="c", version="1", requires=("lost; extra == 'y'", "no; extra == 'n'")),
    ]
    assert [(one.subject, one.what) for one in unsatisfied(dists, MARKERS)] == [
        ("b", "needs 'gone; extra == 'x''; not installed"),
        ("c", "needs 'lost; extra == 'y''; not installed"),
    ]
    assert unsatisfied(dists[1:], MARKERS) == []


def test_unsatisfied() -> None:
    dists = [
        dist("torch", LABEL, "Typing_Extensions>=4", "triton==9; sys_platform == 'linux'", "gone"),
        dist("typing-extensions", "4.12"),
        dist("triton", "3.4.0"),
        dist("other", "1.0", "torch==2.10.0", "pytz (>dev)", "win; sys_platform == 'win32'"),
    ]
    assert [(one.code, one.subject) for one in unsatisfied(dists, MARKERS)] == [
        ("requires.version", "torch"),
        ("requires.missing", "torch"),
        ("requires.invalid", "other"),
    ]


def test_two_owners() -> None:
    found = overlaps([("a", ["lib/x", "lib/y"]), ("b", ["lib/y", "lib/x"]), ("c", ["lib/z"])])
    assert [(one.code, one.subject) for one in found] == [("file.two-owners", "a")]
    assert found[0].what == "2 files are also owned by 'b', e.g. 'lib/x'"


def test_twins_do_not_overlap_themselves() -> None:
    assert overlaps([("a", ["lib/x"]), ("a", ["lib/x"])]) == []
