"""Nothing is missing: every sentence of the source is in the catalogue, translated, and found."""

from __future__ import annotations

import gettext
import re
import string
from pathlib import Path

import pytest

from envlock.cli.translating import Catalogue, Template
from tests import catalogue as tool

KNOWN = tool.meanings(tool.read())
SOURCE = tool.found_in_source()
CHINESE = Catalogue(KNOWN)
MEND = "run 'python -m tests.catalogue --update', and fill in what it names"


def test_nothing_is_missing() -> None:
    assert sorted(set(SOURCE) - set(KNOWN)) == [], MEND


def test_nothing_is_stale() -> None:
    assert sorted(set(KNOWN) - set(SOURCE)) == [], MEND


def test_nothing_is_uncertain() -> None:
    assert [str(entry.id) for entry in tool.read() if entry.id and entry.fuzzy] == []


def places(text: str) -> list[str]:
    """What is put in: numbers, counted where they are not written."""
    found = [name for _, name, _, _ in string.Formatter().parse(text) if name not in (None, "s")]
    return sorted(name or str(index) for index, name in enumerate(map(str, found)))


def test_the_same_is_put_in() -> None:
    other = [text for text, meaning in KNOWN.items() if places(text) != places(meaning)]
    assert other == []
    for meaning in KNOWN.values():
        meaning.format(*"abcdefgh")  # not numbered here and counted there


def test_different_places_are_seen() -> None:
    assert places("'{}' of {}") == places("{1} 的 '{0}'") == places("{} 的 '{}'")
    assert places("{} wheel{s}") == places("{} 个 wheel")
    assert places("'{}' of {}") != places("{}")
    assert places("'{}' of {}") != places("{0} {0}")


def test_it_is_compiled() -> None:
    with tool.CATALOGUE.with_suffix(".mo").open("rb") as file:
        compiled = vars(gettext.GNUTranslations(file))["_catalog"]
    assert {text: meaning for text, meaning in compiled.items() if text} == KNOWN, MEND


def test_what_no_sentence_changes_stays() -> None:
    """Names of commands, options, files and codes are the same in every language."""
    kept = re.compile(
        r"--[a-z][a-z-]+|(?<!\w)'[a-z]+ [a-z -]+'|[a-z]+\.(?:yaml|toml|html)|[A-Z]+_[A-Z_]+"
    )
    lost = [
        (text, word)
        for text, meaning in KNOWN.items()
        for word in kept.findall(text)
        if word not in meaning
    ]
    assert lost == []


@pytest.mark.parametrize("text", sorted(KNOWN))
def test_every_template_is_found(text: str) -> None:
    """A sentence that was made of a template is not shown in English."""
    words = ["x1", "y2", "z3", "v4", "w5"]
    counted = re.fullmatch(r"\{\} [^{}]+\{s\}", text)
    made = text.replace("{s}", "s").format(*(["3"] if counted else words))
    tail = Template(text, "").is_tail and text[0].isspace()
    said = CHINESE.say(f"head{made}" if tail else made)
    assert said != (f"head{made}" if tail else made) or KNOWN[text] == text
    for word in words[: text.count("{}")] if not counted else ["3"]:
        assert word in said


SAMPLES = [
    ('raise Bad(f"target: {where!r} is {what}", "name it")', ["target: {} is {}", "name it"]),
    ('say(f"{n} wheel{\'\' if n == 1 else \'s\'} kept")', ["{} wheel{s} kept"]),
    ('say(count(len(x), "old wheel"))', ["{} old wheel{s}"]),
    ('say("not kept: " + ", ".join(names))', ["not kept: {}"]),
    ('say(f"{\'is first\' if a else \'is last\'} here")', ["{} here", "is first", "is last"]),
    ('HINT = "no answer of {name}"', ["no answer of {}"]),
    ('"""A docstring."""', []),
    ('x = Annotated[str, Option("--a", help="some help")]', []),
    ('re.compile("a pattern")', []),
    ('if x == "one of them": pass', []),
    ('argv = ["pip install x"]', []),
    ('print("one line\\n  and another")', ["one line", "and another"]),
]  # fmt: skip


@pytest.mark.parametrize(("source", "found"), SAMPLES)
def test_templates_of_the_source(source: str, found: list[str]) -> None:
    assert sorted(set(tool.templates(source))) == sorted(found)


def test_an_update_keeps_what_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "CATALOGUE", tmp_path / "LC_MESSAGES" / "envlock.po")
    assert tool.meanings(tool.read()) == {}
    first = tool.updated(tool.empty(), {"a word of it": {"a.py"}, "an old one": {"a.py"}})
    first.get("a word of it").string = "其中一词"
    tool.write(first)
    second = tool.updated(tool.read(), {"a word of it": {"b.py"}, "a new one": {"b.py"}})
    assert tool.meanings(second) == {"a word of it": "其中一词"}
    assert {str(entry.id) for entry in second if entry.id} == {"a word of it", "a new one"}


def test_the_same_entries_give_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool, "CATALOGUE", tmp_path / "envlock.po")
    found = []
    for _ in range(2):
        tool.write(tool.updated(tool.empty(), {"a word of it": {"b.py", "a.py"}}))
        found.append([path.read_bytes() for path in sorted(tmp_path.iterdir())])
    assert found[0] == found[1]
