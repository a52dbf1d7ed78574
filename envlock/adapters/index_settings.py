"""Which indexes people configured for pip, so that every tool asks the same ones."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from envlock.adapters import process
from envlock.errors import ProgramFailed

_SECONDS = 60.0
#: Where pip looks, strongest last (pip's configuration precedence).
_SECTIONS = ("global", "install", "download", ":env:")
#: What pip would choose by, and a build for another machine does not.
_PIP_IGNORED = (
    "pre", "all-releases", "only-final", "only-binary", "no-binary", "prefer-binary",
    "uploaded-prior-to", "platform", "python-version", "abi", "implementation", "requirement",
)  # fmt: skip
_PIP_VARIABLES = ("PIP_BUILD_CONSTRAINT", "PIP_KEYRING_PROVIDER")
_UV_IGNORED = (
    "UV_PRERELEASE", "UV_RESOLUTION", "UV_EXCLUDE_NEWER", "UV_OVERRIDE", "UV_EXCLUDE",
    "UV_NO_BINARY", "UV_NO_BUILD", "UV_BUILD_CONSTRAINT", "UV_TORCH_BACKEND",
    "UV_KEYRING_PROVIDER", "UV_OFFLINE", "UV_CONFIG_FILE", "UV_INDEX_STRATEGY",
    "UV_PYTHON_PLATFORM", "UV_PYTHON_VERSION",
)  # fmt: skip
_LINKS = "--find-links"
#: uv lets an index have a name before its URL.
_INDEX_NAME = re.compile(r"\A[\w.-]+=(?=\w+://)")


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
        client_cert: a file with this client's own certificate and key.
        proxy: for http and https.
        timeout: seconds without a connection or a byte; 0 for the tool's default.
        constraints: files that bound every installation on this machine.
        ignored: variables and settings that would change what pip or uv chooses, and play no
            part here.
    """

    index: str = ""
    more: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    no_index: bool = False
    trusted: tuple[str, ...] = ()
    cert: str = ""
    client_cert: str = ""
    proxy: str = ""
    timeout: float = 0.0
    constraints: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    def options(self) -> list[str]:
        """What pip and uv spell alike."""
        found = ["--no-index"] if self.no_index else []
        found += ["--index-url", self.index] if self.index and not self.no_index else []
        for url in () if self.no_index else self.more:
            found += ["--extra-index-url", url]
        for place in self.links:
            found += ["--find-links", place]
        return found

    def places(self) -> list[str]:
        """Of these options, those that never hold a password: everybody on this machine can read
        the command line of a program."""
        found = ["--no-index"] if self.no_index else []
        return found + [w for place in self.links if not is_page(place) for w in (_LINKS, place)]

    def variables(self, index: str, more: str) -> dict[str, str]:
        """The indexes, as variables of these names give them to pip and uv."""
        if self.no_index:
            return {}
        found = {index: self.index, more: " ".join(self.more)}
        return {name: value for name, value in found.items() if value}

    def access(self) -> list[str]:
        """How pip's options say what is needed to reach them."""
        found = [word for host in self.trusted for word in ("--trusted-host", host)]
        for name, value in (
            ("--cert", self.cert),
            ("--client-cert", self.client_cert),
            ("--proxy", self.proxy),
            ("--timeout", f"{self.timeout:g}" if self.timeout else ""),
        ):
            found += [name, value] if value else []
        return found


def is_page(place: str) -> bool:
    """Whether links are found in a page of a server, whose URL may hold a password."""
    return "://" in place


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
    return with_uv_settings(parse_index_settings(done.output), env)


def with_uv_settings(settings: IndexSettings, env: Mapping[str, str]) -> IndexSettings:
    """Settings of pip, with what uv's variables add: pip's stay first, and a main index that both
    name is pip's."""

    def several(*names: str) -> tuple[str, ...]:
        words = [word for name in names for word in env.get(name, "").split()]
        return tuple(_INDEX_NAME.sub("", word) for word in words)

    main = several("UV_DEFAULT_INDEX") or several("UV_INDEX_URL")
    links = [word for word in env.get("UV_FIND_LINKS", "").split(",") if word]
    other = bool(main and settings.index and main[0] != settings.index)
    ignored = [name for name in (*_UV_IGNORED, *_PIP_VARIABLES) if env.get(name)]
    ignored += ["UV_DEFAULT_INDEX" if env.get("UV_DEFAULT_INDEX") else "UV_INDEX_URL"] * other
    return replace(
        settings,
        index=settings.index or (main[0] if main else ""),
        more=_together(settings.more, several("UV_INDEX", "UV_EXTRA_INDEX_URL")),
        links=_together(settings.links, map(os.path.expanduser, links)),
        no_index=settings.no_index or _is_yes(env.get("UV_NO_INDEX", "")),
        trusted=_together(settings.trusted, several("UV_INSECURE_HOST")),
        constraints=_together(settings.constraints, several("UV_CONSTRAINT")),
        ignored=tuple(sorted({*settings.ignored, *ignored})),
    )


def _together(first: Iterable[str], more: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *more)))


def _is_yes(text: str) -> bool:
    return text.lower() in ("1", "true", "yes", "on")


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
        no_index=_is_yes(one("no-index")),
        trusted=several("trusted-host"),
        cert=one("cert"),
        client_cert=one("client-cert"),
        proxy=one("proxy"),
        timeout=_seconds(one("timeout") or one("default-timeout")),
        constraints=several("constraint"),
        ignored=tuple(key for key in _PIP_IGNORED if one(key)),
    )


def _seconds(text: str) -> float:
    return float(text) if text.isascii() and text.replace(".", "", 1).isdigit() else 0.0


def _unquote(value: str) -> str:
    try:
        read = ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return value
    return read if isinstance(read, str) else value
