"""Sentences of another language, found by their templates.

A template is an English sentence with ``{}`` where something is put in: ``'{}' is not installed``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from envlock.cli.show import columns

_PARTS = re.compile(r"(\{s?\})")
_COLUMNS = re.compile(r"( {2,}|\x1b\[[0-9;]*m)")
_COUNTED = re.compile(r"\{\} [^{}]+\{s\}")
_FEW = 5  # letters; what is put into so short a template is two words at most, ...
_LAST = re.compile(r"[:(] ?(\{\})+\)?$")  # ... but for what is listed at its end
#: What joins sentences and names, and what joins them where all of them are translated.
_JOINERS = {" -> ": " -> ", ", ": ",", " and ": "和"}
#: What stands first and alone is the name of a file or a distribution, but for these.
_NAME = re.compile(r"(?!(?:passed|failed|incomplete|interrupted)\Z)[^\s;:]+")
_SENTENCE = re.compile(r"(?<![\w'./-])[a-z]{2,} [a-z]{2,}")
_DEPTH = 8


@dataclass(frozen=True)
class Template:
    """A sentence with places for what is put in.

    Attributes:
        text: as the catalogue has it: ``{}`` for a place, ``{s}`` for the end of a plural.
        meaning: the translation; its places may be numbered.
    """

    text: str
    meaning: str

    @property
    def literals(self) -> list[str]:
        """What stands between the places."""
        parts = _PARTS.split(self.text)[::2]
        return [part.replace("{{", "{").replace("}}", "}") for part in parts]

    @cached_property
    def anchor(self) -> str:
        """The longest part that a sentence of this template has."""
        return max(self.literals, key=len)

    @cached_property
    def weight(self) -> int:
        """How much of it is fixed."""
        return sum(map(len, self.literals))

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Finds the places; what is added to a sentence also finds that sentence."""
        parts = _PARTS.split(self.text)
        places, literals = iter(enumerate(self.quoted)), iter(self.literals)
        for index, part in enumerate(parts):
            if part == "{}":
                parts[index] = self._place(*next(places))
            else:
                parts[index] = "(?:e?s)?" if part == "{s}" else re.escape(next(literals))
        return re.compile("(.*?)" * self.is_tail + "".join(parts), re.DOTALL)

    def _place(self, index: int, quoted: bool) -> str:
        if quoted:
            return "([^']*)"
        if _COUNTED.fullmatch(self.text):
            return r"(\d[\d.,]*)"
        if not self.is_telling and index + self._free < len(self.quoted):
            return r"(\S*?(?: \S+)?)"
        first = index == 0 and self.text.startswith("{}")
        return "((?:(?!; |: | -> ).)*?)" if first else "(.*?)"  # no end of another sentence

    @property
    def is_telling(self) -> bool:
        """Whether enough of it is fixed for anything to be put in."""
        return sum(letter.isalpha() for text in self.literals for letter in text) >= _FEW

    @property
    def _free(self) -> int:
        """How many places at its end anything can be put into."""
        found = _LAST.search(self.text)
        return found[0].count("{}") if found else 0

    @property
    def is_tail(self) -> bool:
        """Whether it is added to a sentence: ``, {} devices``."""
        return self.text[0] in " ,;:("

    @cached_property
    def quoted(self) -> list[bool]:
        """Of each place, whether a name stands there, in quotes."""
        parts = _PARTS.split(self.text)
        return [
            parts[index - 1].endswith("'") and parts[index + 1].startswith("'")
            for index, part in enumerate(parts)
            if part == "{}"
        ]


class Catalogue:
    """Sentences of another language, found by their templates."""

    def __init__(self, messages: Mapping[str, str]) -> None:
        known = [(text, meaning) for text, meaning in messages.items() if text]
        self._exact = {text: meaning for text, meaning in known if "{" not in text}
        made = sorted((Template(*one) for one in known), key=lambda one: -one.weight)
        self._whole = [one for one in made if "{" in one.text and not one.is_tail]
        self._tails = [one for one in made if one.is_tail]

    def say(self, text: str) -> str:
        """The text in that language, line by line; what it does not know stays as it is."""
        return "\n".join(map(self._line, text.split("\n")))

    def _line(self, line: str) -> str:
        """Columns and colours stay where they are."""
        if line in self._exact:
            return self._exact[line]
        parts = _COLUMNS.split(line)
        for index, part in enumerate(parts):
            text = part.strip()
            if index % 2 or not text:
                continue
            start = part.index(text)
            parts[index] = part[:start] + self._said(text) + part[start + len(text) :]
            if index + 1 < len(parts) and parts[index + 1].isspace():
                width = len(parts[index + 1]) + columns(part) - columns(parts[index])
                parts[index + 1] = " " * max(width, 2)
        return "".join(parts)

    def _said(self, text: str, depth: int = 0) -> str:
        known = self._exact.get(text)
        if known is not None:
            return known
        if depth >= _DEPTH or not any(letter.isalpha() for letter in text):
            return text
        depth += 1
        return (
            self._by_template(text, depth, self._whole)
            or self._by_template(text, depth, (t for t in self._tails if t.text[0] in ";:("))
            or self._by_sentences(text, depth)
            or self._by_template(text, depth, (t for t in self._tails if t.is_telling))
            or self._by_words(text, depth)
            or self._by_template(text, depth, self._tails)
            or text
        )

    def _by_template(self, text: str, depth: int, templates: Iterable[Template]) -> str:
        for template in templates:
            if template.anchor in text and (found := template.pattern.fullmatch(text)):
                if not template.is_tail:
                    return self._filled(template, found.groups(), depth)
                head = self._said(found[1], depth)
                if head != found[1] or not _SENTENCE.search(head):
                    return head + self._filled(template, found.groups()[1:], depth)
        return ""

    def _filled(self, template: Template, places: Sequence[str], depth: int) -> str:
        said = [
            value if quoted else self._said(value, depth)
            for value, quoted in zip(places, template.quoted, strict=True)
        ]
        if template.text.startswith("{}") and _NAME.fullmatch(places[0]):
            said[0] = places[0]  # where it is, and no word of ours
        return template.meaning.format(*said)

    def _by_sentences(self, text: str, depth: int) -> str:
        """Sentences that were joined, each by itself; a place and what is said of it."""
        if "; " in text:
            return self._joined(text, "; ", ";", depth)
        where, found, what = text.partition(": ")
        return f"{self._said(where, depth)}: {self._said(what, depth)}" if found else ""

    def _by_words(self, text: str, depth: int) -> str:
        """A name or a number, and a word; a list. Empty where nothing of it is known."""
        first, _, rest = text.partition(" ")
        if rest in self._exact:
            return f"{first} {self._exact[rest]}"
        for joiner, meaning in _JOINERS.items():
            if joiner in text:
                said = self._joined(text, joiner, meaning, depth)
                return said if said != text else ""
        return ""

    def _joined(self, text: str, joiner: str, meaning: str, depth: int) -> str:
        parts = text.split(joiner)
        said = [self._said(part, depth) for part in parts]
        changed = all(not a or a != b for a, b in zip(parts, said, strict=True))
        return (meaning if changed else joiner).join(said)
