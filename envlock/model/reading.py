"""Typed getters for documents from outside; a bad value is named by its path.

Scalars arrive as strings, whatever they look like: a YAML loader that guesses turns the version
``3.10`` into the number 3.1. Every getter therefore knows what it wants.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from envlock.errors import UnusableInput

T = TypeVar("T")

_WHOLE = re.compile(r"[0-9]{1,18}\Z")
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


@dataclass(frozen=True, slots=True)
class Node:
    """A value and the path that leads to it, ``distributions[3].content``.

    Raises (every getter):
        UnusableInput: the value is missing or of another kind; the message names file and path.
    """

    value: Any
    path: str = ""
    file: str = ""
    hint: str = ""

    def bad(self, expected: str) -> UnusableInput:
        """The error for this value."""
        found = "nothing" if self.value is None else repr(self.value)
        if len(found) > 60:
            found = found[:57] + "…"
        where = ": ".join(part for part in (self.file, self.path) if part)
        return UnusableInput(
            f"{where or 'document'}: expected {expected}, found {found}", self.hint
        )

    def get(self, key: str) -> Node:
        """The value below ``key``; a missing one is a Node of None."""
        if not isinstance(self.value, Mapping):
            raise self.bad("a mapping")
        path = f"{self.path}.{key}" if self.path else key
        return Node(self.value.get(key), path, self.file, self.hint)

    def only(self, *keys: str) -> None:
        """Refuses keys that nobody reads: a key with a slip in it would do nothing, and say so to
        nobody."""
        if not isinstance(self.value, Mapping):
            raise self.bad("a mapping")
        for key in self.value:
            if key not in keys:
                where = ": ".join(filter(None, (self.file, self.get(str(key)).path)))
                raise UnusableInput(f"{where}: no such key", f"one of {', '.join(sorted(keys))}")

    @property
    def present(self) -> bool:
        return self.value is not None

    def text(self, default: str | None = None) -> str:
        if self.value is None and default is not None:
            return default
        if not isinstance(self.value, str):
            raise self.bad("text")
        return self.value

    def integer(self, default: int | None = None) -> int:
        if self.value is None and default is not None:
            return default
        if isinstance(self.value, str) and _WHOLE.match(self.value):
            return int(self.value)
        if isinstance(self.value, int) and not isinstance(self.value, bool) and self.value >= 0:
            return self.value
        raise self.bad("a whole number")

    def number(self) -> float:
        try:
            return float(self.value)
        except (TypeError, ValueError):
            raise self.bad("a number") from None

    def boolean(self, default: bool | None = None) -> bool:
        if self.value is None and default is not None:
            return default
        known = {"true": True, "false": False, True: True, False: False}
        if isinstance(self.value, str | bool) and self.value in known:
            return known[self.value]
        raise self.bad("true or false")

    def choice(self, *allowed: str) -> str:
        if self.value not in allowed:
            raise self.bad(" | ".join(allowed))
        return str(self.value)

    def sha256(self) -> str:
        """64 hexadecimal digits."""
        if not isinstance(self.value, str) or not _SHA256.match(self.value):
            raise self.bad("64 hexadecimal digits")
        return self.value

    def content(self) -> str:
        """``sha256:…``, or empty when missing."""
        if self.value is None:
            return ""
        head, _, hexa = str(self.value).partition(":")
        if head != "sha256" or not _SHA256.match(hexa):
            raise self.bad("sha256:…")
        return str(self.value)

    def items(self) -> list[Node]:
        """The elements of a list; missing is an empty list."""
        if self.value is None:
            return []
        if not isinstance(self.value, list | tuple):
            raise self.bad("a list")
        return [
            Node(value, f"{self.path}[{index}]", self.file, self.hint)
            for index, value in enumerate(self.value)
        ]

    def each(self, read: Callable[[Node], T]) -> tuple[T, ...]:
        """The elements of a list, each read by ``read``."""
        return tuple(read(node) for node in self.items())

    def texts(self) -> tuple[str, ...]:
        """A list of texts; missing is empty."""
        return self.each(Node.text)

    def mapping(self) -> dict[str, str]:
        """A mapping of text to text; missing is empty."""
        if self.value is None:
            return {}
        if not isinstance(self.value, Mapping):
            raise self.bad("a mapping")
        return {str(key): self.get(str(key)).text() for key in self.value}

    def figures(self) -> dict[str, float]:
        """A mapping of text to numbers, zero or more; whole ones stay whole; missing is empty."""
        if self.value is None:
            return {}
        if not isinstance(self.value, Mapping):
            raise self.bad("a mapping")
        return {str(key): self.get(str(key)).figure() for key in self.value}

    def figure(self) -> float:
        """A number, zero or more; a whole one stays whole."""
        value = self.number()
        if not 0 <= value < float("inf"):
            raise self.bad("a number, zero or more")
        return int(value) if value == int(value) else value
