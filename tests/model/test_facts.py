"""Layouts that move, and tags computed from facts."""

from __future__ import annotations

from envlock.model.facts import Layout, TagFacts, supported_tags

LAYOUT = Layout(
    prefix="/v",
    purelib="/v/lib/python3.10/site-packages",
    platlib="/v/lib64/python3.10/site-packages",
    scripts="/v/bin",
    headers="/v/include/site/python3.10",
    data="/v",
)


def test_relative_to_the_prefix() -> None:
    assert LAYOUT.relative() == {
        "purelib": "lib/python3.10/site-packages",
        "platlib": "lib64/python3.10/site-packages",
        "scripts": "bin",
        "headers": "include/site/python3.10",
        "data": ".",
    }


def test_moved() -> None:
    moved = LAYOUT.moved("/stage")
    assert moved.purelib == "/stage/lib/python3.10/site-packages"
    assert moved.data == "/stage"
    assert moved.moved("/v") == LAYOUT


def tags(platform: str, glibc: tuple[int, int] | None) -> tuple[str, ...]:
    return supported_tags(TagFacts(version=(3, 10), abi="cp310", platform=platform, glibc=glibc))


def test_own_platform_first_then_the_newest() -> None:
    found = tags("linux_x86_64", (2, 35))
    assert found[:2] == ("cp310-cp310-linux_x86_64", "cp310-cp310-manylinux_2_35_x86_64")
    assert found[-1] == "py30-none-any"
    assert found.index("cp310-cp310-manylinux_2_17_x86_64") < found.index(
        "cp310-cp310-manylinux2014_x86_64"
    )
    assert "cp310-cp310-manylinux_2_36_x86_64" not in found
    assert "cp39-abi3-manylinux_2_5_x86_64" in found
    assert len(found) == len(set(found))


def test_no_glibc_takes_plain_wheels_only() -> None:
    found = tags("linux_x86_64", None)
    assert found[0] == "cp310-cp310-linux_x86_64"
    assert not [tag for tag in found if "manylinux" in tag]


def test_other_processors_begin_at_glibc_2_17() -> None:
    found = tags("linux_aarch64", (2, 28))
    assert "cp310-cp310-manylinux2014_aarch64" in found
    assert not [tag for tag in found if "manylinux2010" in tag or "_2_16_" in tag]


def test_other_systems() -> None:
    assert tags("win_amd64", None)[0] == "cp310-cp310-win_amd64"
