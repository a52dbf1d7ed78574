"""What people read who chose Chinese; scripts read English all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envlock.cli import main
from envlock.model.dist import Distribution
from envlock.model.manifest import dump
from tests.support.fake_manifest import locked
from tests.support.wheels import make_wheel
from tests.support.worlds import VENDOR, World, vendor_world

pytestmark = pytest.mark.integration
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A target with three builds, in a shell of a person who reads Chinese."""
    world = vendor_world(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    return world


def test_a_refusal_of_guard(world: World, capsys: Capture) -> None:
    words = ["guard", "--python", str(world.python), "--plan", "pip", "uninstall", "-y", "torch"]
    assert main(words) == 3
    assert capsys.readouterr().err.splitlines() == [
        f"错误: torch: '{VENDOR}' 会被卸载 (请求了 'torch') [guard.removed]",
        "  建议: 去掉 'torch': 没有索引能还给你",
        "envlock: 已拒绝,没有改动任何东西: pip uninstall -y torch",
    ]


def test_a_refusal_of_restore(world: World, capsys: Capture) -> None:
    (world.site / "triton/__init__.py").write_text("broken\n")
    next(world.wheels.glob("triton-*.whl")).unlink()
    assert world.restore() == 4
    said = capsys.readouterr().err
    assert f"目标环境: {world.prefix}(Python " in said
    wheel = "triton-3.4.0+git1ef59765-py3-none-any.whl"
    assert f"错误: 还原: 'triton': '{wheel}' 不在 '{world.wheels}' 中\n" in said
    assert "\n建议: 请指定含有它的文件夹\n" in said


def test_a_verdict_of_verify(world: World, capsys: Capture) -> None:
    (world.site / "triton/__init__.py").write_text("broken\n")
    words = ["verify", "--only", "static.lock", "--manifest", str(world.wheels / "envlock.yaml")]
    assert world.run(*words) == 3
    said = capsys.readouterr()
    assert said.out.splitlines()[-1] == "失败: 1 项必需的检查中 0 项通过;static.lock 失败"
    assert (
        "错误: triton 3.4.0+git1ef59765: 已改变: 'lib/triton/__init__.py' [static.lock]" in said.err
    )
    assert "  建议: 用 'envlock restore' 把文件放回去" in said.err


def test_a_table(world: World, capsys: Capture) -> None:
    make_wheel(world.wheels, "left_over", "1.0", {"left_over.py": ""})
    (world.site / "triton/__init__.py").write_text("broken\n")
    assert world.run("diff", str(world.wheels), "--only", "protected") == 3
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("A: wheelhouse '")
    assert said[1].startswith("B: 目标环境 ")
    assert said[2].split() == ["内容", "A", "B"]
    assert said[3].startswith("内容不同  triton  3.4.0+git1ef59765  ")
    assert said[4] == "1 处差异,其中 1 个受保护的构建: 1 内容不同;比较了 3 个分发包"


USAGE = [
    ("bogus", "没有命令 'bogus'", "见 'envlock --help'"),
    ("verfy", "没有命令 'verfy'。是不是 'verify'?", "见 'envlock --help'"),
    ("diff --nope", "没有这个选项: --nope", "见 'envlock diff --help'"),
    ("diff a b c", "多余的参数(c)", "见 'envlock diff --help'"),
    (
        "verify --timeout-scale x",
        "'--timeout-scale' 的值不合法: 'x' 不是小数",
        "见 'envlock verify --help'",
    ),
    ("verify --level", "选项 '--level' 需要一个值", "见 'envlock verify --help'"),
    ("restore --exact --only x", "'--exact' 针对全部,'--only' 只针对一部分", "去掉其中一个"),
]  # fmt: skip


@pytest.mark.parametrize(("typed", "what", "hint"), USAGE)
def test_usage(typed: str, what: str, hint: str, capsys: Capture) -> None:
    assert main([*typed.split(), "--lang", "zh"]) == 2
    assert capsys.readouterr().err == f"错误: 命令行: {what}\n建议: {hint}\n"


def test_scripts_read_english(tmp_path: Path, capsys: Capture) -> None:
    """The document is the same in every language."""
    for name, version in (("a", "1.0"), ("b", "2.0")):
        text = dump(locked(Distribution(name="torch", version=version, protected=True)))
        (tmp_path / name).write_text(text)
    words = ["diff", str(tmp_path / "a"), str(tmp_path / "b"), "--json", "--lang"]
    found = []
    for named in ("en", "zh"):
        assert main([*words, named]) == 3
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1]
    assert found[0]["findings"][0]["what"].startswith("replaced: '1.0' -> '2.0'")
    assert main(["diff", "none", "--json", "--lang", "zh"]) == 4
    said = capsys.readouterr()
    assert said.err.startswith("错误: none: 无法读取: 没有这个文件或文件夹\n")
    assert json.loads(said.out)["findings"][0]["what"].startswith("none: cannot be read")
