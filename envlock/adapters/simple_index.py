"""Where the indexes and folders that are configured for pip have the files of a project."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from packaging.utils import canonicalize_name

from envlock.adapters.network import default_index
from envlock.adapters.resolving import Pin, RemoteFile
from envlock.adapters.web import Reply, Unreachable, Web, path_of
from envlock.model import transfer
from envlock.model.label import same_version
from envlock.model.wheels import parse_wheel_name

#: JSON where the index has it (PEP 691), else HTML (PEP 503).
_ACCEPT = (
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, "
    "text/html;q=0.1"
)
_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Files of a project, and what could not be asked: URL for people, and why."""

    files: tuple[RemoteFile, ...]
    problems: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleIndex:
    """Asks every index and every page of links. May be used by several threads.

    Attributes:
        wait: called with seconds to wait before asking again; may raise to end everything.
    """

    web: Web
    wait: Callable[[float], None]
    _pages: dict[str, Found] = field(default_factory=dict)

    def wheels(self, pin: Pin) -> Found:
        """The wheels of one version; a file that several places have is there several times."""
        found = self._project(pin.name)
        return replace(
            found, files=tuple(file for file in found.files if is_wheel_of(file.file, pin))
        )

    def _project(self, name: str) -> Found:
        if name not in self._pages:
            files: list[RemoteFile] = []
            problems: list[tuple[str, str]] = []
            for place in self._places(name):
                try:
                    files += self._links(place)
                except Unreachable as error:
                    problems.append((transfer.shown(place), error.why))
            self._pages[name] = Found(files=tuple(files), problems=tuple(problems))
        return self._pages[name]

    def _places(self, name: str) -> Iterator[str]:
        settings = self.web.settings
        yield from settings.links
        if not settings.no_index:
            main = [settings.index] if settings.index else default_index()
            for base in (*main, *settings.more):
                yield f"{base.rstrip('/')}/{name}/"

    def _links(self, place: str) -> list[RemoteFile]:
        if "://" not in place and not place.startswith("file:"):
            if os.path.isdir(place):
                return _in_folder(Path(place))
            place = Path(place).absolute().as_uri()
        if place in self.web.settings.links and place.startswith("file:"):
            folder = Path(path_of(place))
            if folder.is_dir():
                return _in_folder(folder)
        return self._page(place)

    def _page(self, url: str) -> list[RemoteFile]:
        for number in range(1, _TRIES + 1):
            try:
                with self.web.get(url, {"Accept": _ACCEPT}) as reply:
                    if not transfer.is_for_now(reply.status):
                        return _read_page(reply)
                    why = Unreachable(f"it answers {reply.status}")
            except Unreachable as error:
                if error.final:
                    raise
                why = error
            if number < _TRIES:
                self.wait(transfer.pause(number))
        raise why


def _read_page(reply: Reply) -> list[RemoteFile]:
    """Raises:
    Unreachable: it is no page of an index.
    """
    if reply.status in (404, 410):  # this index does not have the project
        return []
    if reply.status != 200:
        raise Unreachable(f"it answers {reply.status}", final=True)
    data = b"".join(reply.chunks)
    try:
        if "json" in reply.headers.get("content-type", ""):
            return list(from_json(json.loads(data), reply.url))
        return list(from_html(data.decode("utf-8", "replace"), reply.url))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unreachable("it is no page of an index", final=True) from error


def from_json(page: Any, base: str) -> Iterator[RemoteFile]:
    """The files of a page (PEP 691, PEP 700)."""
    for entry in page["files"]:
        size = entry.get("size")
        yield RemoteFile(
            file=entry["filename"],
            urls=(urldefrag(urljoin(base, entry["url"]))[0],),
            sha256=str(entry.get("hashes", {}).get("sha256", "")).lower(),
            size=size if isinstance(size, int) and size >= 0 else None,
        )


class _Anchors(HTMLParser):
    """The targets of a page's links."""

    def __init__(self, base: str) -> None:
        super().__init__()
        self.base, self.found = base, list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        target = dict(attrs).get("href")
        if target and tag == "base":
            self.base = urljoin(self.base, target)
        elif target and tag == "a":
            self.found.append(urljoin(self.base, target))


def from_html(page: str, base: str) -> Iterator[RemoteFile]:
    """The files of a page (PEP 503): what a link's path ends with, and the hash in its fragment."""
    parser = _Anchors(base)
    parser.feed(page)
    for target in parser.found:
        url, fragment = urldefrag(target)
        algorithm, _, value = fragment.partition("=")
        yield RemoteFile(
            file=unquote(urlsplit(url).path.rpartition("/")[2]),
            urls=(url,),
            sha256=value.partition("&")[0].lower() if algorithm == "sha256" else "",
        )


def _in_folder(folder: Path) -> list[RemoteFile]:
    return [
        RemoteFile(file=path.name, urls=(path.absolute().as_uri(),), size=path.stat().st_size)
        for path in sorted(folder.glob("*.whl"))
    ]


def is_wheel_of(file: str, pin: Pin) -> bool:
    """Whether a file name, which may come from anybody, is one of this version's wheels."""
    if any(sign in file for sign in "/\\:\0"):  # it would lead out of the folder
        return False
    try:
        name = parse_wheel_name(file)
    except ValueError:
        return False
    return name.name == canonicalize_name(pin.name) and same_version(name.version, pin.version)
