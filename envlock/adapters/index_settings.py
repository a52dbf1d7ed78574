"""Which indexes people configured for pip, so that every tool asks the same ones."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from envlock.adapters import process
from envlock.errors import ProgramFailed

_SECONDS = 60.0
#: Where pip looks, strongest last (pip's configuration precedence).
_SECTIONS = ("global", "install", "download", ":env:")


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSettings:
    """Indexes and what is needed to reach them.

    Attributes:
        index: the main index; empty for the tool's default.
        more: further indexes, with equal rights.
        links: folders and pages with links to files.
        no_index: no index is asked.
        trusted: hosts whose certificate is not checked.
        cert: a file of certificate authorities.
        proxy: for http and https.
        constraints: files that bound every installation on this machine.
    """

    index: str = ""
    more: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    no_index: bool = False
    trusted: tuple[str, ...] = ()
    cert: str = ""
    proxy: str = ""
    constraints: tuple[str, ...] = ()

    def options(self) -> list[str]:
        """What pip and uv spell alike."""
        found = ["--no-index"] if self.no_index else []
        found += ["--index-url", self.index] if self.index and not self.no_index else []
        for url in () if self.no_index else self.more:
            found += ["--extra-index-url", url]
        for place in self.links:
            found += ["--find-links", place]
        return found


def read_index_settings(env: Mapping[str, str]) -> IndexSettings:
    """Asks envlock's own pip what its configuration files and variables say together.

    Raises:
        ProgramFailed: a configuration file cannot be read.
    """
    command = [sys.executable, "-m", "pip", "config", "list"]
    done = process.run(command, env={**env, "NO_COLOR": "1"}, timeout=_SECONDS)
    if done.code != 0:
        raise ProgramFailed(
            f"pip: its configuration cannot be read: {process.last_lines(done.output)}",
            "see 'pip config debug'",
        )
    return parse_index_settings(done.output)


def parse_index_settings(listed: str) -> IndexSettings:
    """Settings from the lines of ``pip config list``: ``section.key='value'``."""
    known: dict[tuple[str, str], str] = {}
    for line in listed.splitlines():
        name, equals, value = line.partition("=")
        section, dot, key = name.rpartition(".")
        if equals and dot and section in _SECTIONS:
            known[section, key] = _unquote(value)

    def one(key: str) -> str:
        return next((known[s, key] for s in reversed(_SECTIONS) if known.get((s, key))), "")

    def several(key: str) -> tuple[str, ...]:
        return tuple(one(key).split())

    return IndexSettings(
        index=one("index-url"),
        more=several("extra-index-url"),
        links=tuple(os.path.expanduser(place) for place in several("find-links")),
        no_index=one("no-index").lower() in ("1", "true", "yes", "on"),
        trusted=several("trusted-host"),
        cert=one("cert"),
        proxy=one("proxy"),
        constraints=several("constraint"),
    )


def _unquote(value: str) -> str:
    try:
        read = ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return value
    return read if isinstance(read, str) else value
