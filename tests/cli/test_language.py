"""The language: where it comes from, and how a sentence is found."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.cli import language, main, show
from envlock.cli.language import of_environment, take, translator
from envlock.cli.translating import Catalogue
from envlock.errors import UsageProblem
from envlock.model.manifest import dump
from tests.support.fake_manifest import locked

Capture = pytest.CaptureFixture[str]

ENVIRONMENTS: list[tuple[Mapping[str, str], str]] = [
    ({}, "en"),
    ({"LANG": "C"}, "en"),
    ({"LANG": "C.UTF-8"}, "en"),
    ({"LANG": "POSIX", "LANGUAGE": "zh_CN"}, "en"),
    ({"LANGUAGE": "zh_CN"}, "en"),  # no locale at all is the C locale
    ({"LANG": "en_US.UTF-8"}, "en"),
    ({"LANG": "de_DE.UTF-8"}, "en"),
    ({"LANG": "zh_CN.UTF-8"}, "zh"),
    ({"LANG": "zh_CN.GB18030"}, "zh"),
    ({"LANG": "zh_TW.UTF-8"}, "zh"),
    ({"LC_MESSAGES": "zh_CN.UTF-8", "LANG": "en_US.UTF-8"}, "zh"),
    ({"LC_ALL": "en_US.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, "en"),
    ({"LC_ALL": "", "LANG": "zh_CN.UTF-8"}, "zh"),
    ({"LC_ALL": "C", "LANG": "zh_CN.UTF-8", "LANGUAGE": "zh"}, "en"),
    ({"LANGUAGE": "zh_CN:en", "LANG": "en_US.UTF-8"}, "zh"),
    ({"LANGUAGE": "en:zh", "LANG": "zh_CN.UTF-8"}, "en"),
    ({"LANGUAGE": "de:zh", "LANG": "en_US.UTF-8"}, "zh"),
    ({"LANGUAGE": "", "LANG": "zh_CN.UTF-8"}, "zh"),
]


@pytest.mark.parametrize(("env", "expected"), ENVIRONMENTS)
def test_environment(env: Mapping[str, str], expected: str) -> None:
    assert of_environment(env) == expected


WORDS = [
    ("verify --lang zh --level quick", "zh", "verify --level quick"),
    ("--lang=zh verify", "zh", "verify"),
    ("verify -q --lang en", "en", "verify -q"),
    ("--lang zh guard pip install x", "zh", "guard pip install x"),
    ("guard --lang zh --python P pip install x", "zh", "guard --python P pip install x"),
    ("guard --python P --lang zh -- pip x", "zh", "guard --python P -- pip x"),
    ("guard pip install --lang zh x", "en", "guard pip install --lang zh x"),
    ("guard --python P pip install --lang zh", "en", "guard --python P pip install --lang zh"),
    ("guard -- tool --lang zh", "en", "guard -- tool --lang zh"),
    ("fleet verify -- --lang zh", "en", "fleet verify -- --lang zh"),
    ("diff guard b --lang zh", "zh", "diff guard b"),
    ("", "en", ""),
]


@pytest.mark.parametrize(("typed", "expected", "rest"), WORDS)
def test_words(typed: str, expected: str, rest: str) -> None:
    assert take(typed.split(), {}) == (expected, rest.split())


def test_a_word_counts_more_than_the_environment() -> None:
    env = {"LANG": "zh_CN.UTF-8"}
    assert take(["verify"], env) == ("zh", ["verify"])
    assert take(["verify", "--lang", "en"], env) == ("en", ["verify"])


@pytest.mark.parametrize("words", [["--lang", "fr"], ["verify", "--lang"], ["diff", "--lang="]])
def test_no_such_language(words: list[str], capsys: Capture) -> None:
    with pytest.raises(UsageProblem):
        take(words, {})
    assert main(words) == 2
    assert "hint: one of en, zh" in capsys.readouterr().err


MESSAGES = {
    "": "the head of the catalogue",
    "'{}' is not installed": "没有安装 '{}'",
    "{} is not installed, {} is": "安装的是 {1},不是 {0}",
    "nothing is wrong": "没有问题",
    "{} wheel{s}": "{} 个 wheel",
    "{} of {} checks passed": "{1} 项检查中 {0} 项通过",
    "failed": "失败",
    " and {} more": " 等,另有 {} 个",
    "not known: {}": "未知: {}",
    "{}: cannot be read: {}": "{}: 无法读取: {}",
    "Permission denied": "权限不够",
    "; {} free": ";可用 {}",
    "hint": "建议",
    " for {}": ",用于 {}",
    "'{}': {} for {}, {}": "'{}': {} 用于 {},{}",
    "{} build": "{} 构建",
    "other build": "另一个构建",
}
SENTENCES = [
    ("", ""),
    ("nothing is wrong", "没有问题"),
    ("  nothing is wrong", "  没有问题"),
    ("nothing is wrong\nfailed", "没有问题\n失败"),
    ("something else", "something else"),
    ("'failed' is not installed", "没有安装 'failed'"),  # a name is no word
    ("a is not installed, b is", "安装的是 b,不是 a"),
    ("1 wheel", "1 个 wheel"),
    ("12 wheels", "12 个 wheel"),
    ("Old wheels", "Old wheels"),  # a name, and no count
    ("failed: 3 of 8 checks passed; a.b failed", "失败: 8 项检查中 3 项通过;a.b 失败"),
    ("not known: 'a', 'b' and 3 more", "未知: 'a', 'b' 等,另有 3 个"),
    ("failed: cannot be read: x", "失败: 无法读取: x"),
    ("hint: cannot be read: x", "hint: 无法读取: x"),  # a file of that name
    ("a: b: cannot be read: Permission denied", "a: b: 无法读取: 权限不够"),
    ("2 wheels; 3 GB free", "2 个 wheel;可用 3 GB"),
    ("2 wheels; of a", "2 个 wheel; of a"),
    ("'x': it is for y, and not known: z", "'x': it is for y, and not known: z"),
    ("a wheel build -> other build", "a wheel 构建 -> 另一个构建"),
    ("1.5  failed      x", "1.5  失败        x"),  # columns stay
    ("\x1b[31mfailed\x1b[0m  x", "\x1b[31m失败\x1b[0m  x"),
]


@pytest.mark.parametrize(("text", "expected"), SENTENCES)
def test_sentences(text: str, expected: str) -> None:
    assert Catalogue(MESSAGES).say(text) == expected


CHINESE = translator("zh")
WORDS_OF_SENTENCES = ["'a'", "{}", "is", "not", "of", "for", "in", "and", "more", "; ", ": ", ", "]


@given(st.text() | st.lists(st.sampled_from(WORDS_OF_SENTENCES)).map(" ".join))
def test_any_text(text: str) -> None:
    """Nothing ends envlock because of what it says, and no line of it is lost."""
    assert CHINESE is not None
    said = CHINESE(text)
    assert said.count("\n") == text.count("\n")
    assert bool(said.strip()) == bool(text.strip())


@given(st.text(st.characters(exclude_characters="'\n", exclude_categories=["C", "Z"]), min_size=1))
def test_names_stay(name: str) -> None:
    """What stands in quotes is the same in every language."""
    assert CHINESE is not None
    for sentence in ("'{}' is installed", "target: '{}' does not exist", "kit: '{}' is no kit: x"):
        assert f"'{name}'" in CHINESE(sentence.replace("{}", name))


def test_english_reads_no_catalogue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(language, "_LOCALE", tmp_path)
    assert translator("en") is None
    assert main(["diff", "none"]) == 4
    assert capsys.readouterr().err.startswith("error: none: cannot be read")


def test_a_catalogue_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(language, "_LOCALE", tmp_path)
    assert main(["diff", "none", "--lang", "zh"]) == 4
    assert capsys.readouterr().err.startswith("error: none: cannot be read")


def test_a_terminal_without_the_letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text(dump(locked()))
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="ascii"))
    assert main(["diff", str(tmp_path / "a"), str(tmp_path / "a"), "--lang", "zh"]) == 0
    assert b"? 0 ?" in out.getvalue().splitlines()[-1]


def test_the_next_run_speaks_its_own(capsys: Capture) -> None:
    for words, expected in ((["--lang", "zh"], "错误: none"), ([], "error: none")):
        assert main(["diff", "none", *words]) == 4
        assert capsys.readouterr().err.startswith(expected)


def test_a_command_is_known_behind_the_language(capsys: Capture) -> None:
    assert main(["--lang", "zh", "diff", "--nope"]) == 2
    assert "建议: 见 'envlock diff --help'" in capsys.readouterr().err


def test_columns() -> None:
    assert show.columns("abc") == 3
    assert show.columns("失败") == 4
    assert show.columns("é…") == 2


def test_a_table_of_both(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(show, "_said", Catalogue(MESSAGES).say)
    show.Screen().table([("failed", "x"), ("ab", "y")])
    assert capsys.readouterr().out == "失败  x\nab    y\n"
