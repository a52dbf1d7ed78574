"""Which of uv's platforms stands for a target."""

from __future__ import annotations

import pytest

from envlock.adapters.resolve_uv import UvPlatform, knows, uv_platform
from tests.contract.test_resolvers import named, target


@pytest.mark.parametrize(
    ("platform", "name"),
    [
        ("manylinux_2_35_x86_64", "x86_64-manylinux_2_35"),
        ("manylinux_2_99_aarch64", "aarch64-manylinux_2_40"),
        ("manylinux_2_30_x86_64", "x86_64-manylinux_2_28"),
        ("musllinux_1_2_aarch64", "aarch64-unknown-linux-musl"),
        ("win_arm64", "aarch64-pc-windows-msvc"),
    ],
)
def test_platforms_of_uv(platform: str, name: str) -> None:
    on = target((f"cp310-cp310-{platform}", "py3-none-any"), "linux", "x86_64")
    assert uv_platform(on) == UvPlatform(name=name)


@pytest.mark.parametrize(
    "tag",
    [
        "cp310-cp310-manylinux_2_12_x86_64",
        "cp310-cp310-musllinux_1_1_x86_64",
        "cp313-cp313t-manylinux_2_35_x86_64",
        "pp310-pypy310_pp73-manylinux_2_35_x86_64",
        "cp310-cp310-manylinux_2_35_riscv64",
    ],
)
def test_platforms_that_uv_does_not_know(tag: str) -> None:
    assert not knows(target((tag, "py3-none-any"), "linux", "x86_64"))


def test_oldest_macos() -> None:
    on = target(named("macosx_14_0_arm64", "macosx_13_0_arm64"), "darwin", "arm64")
    assert uv_platform(on) == UvPlatform(name="aarch64-apple-darwin", macos="14.0")
