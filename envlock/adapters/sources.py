"""What a source says about its build, as far as reading tells: nothing of it is run.

``[build-system] requires`` of ``pyproject.toml`` (PEP 518), what ``setup.py`` imports, and the
import packages that lie in a tree. What a build backend asks for at build time is not known.
"""

from __future__ import annotations

import io
import os
import re
import sys
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from lzma import LZMAError
from typing import IO, Any

from envlock.adapters.incoming import Web
from envlock.adapters.zipmember import NO_ZIP

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: Endings of source archives (PEP 625, and what indexes still have).
ARCHIVES = (".tar.gz", ".tgz", ".zip", ".tar.bz2", ".tar.xz", ".tar")
_FILES = ("pyproject.toml", "setup.py")
_IMPORT = re.compile(r"^\s*(?:import|from)\s+([A-Za-z_]\w*)", re.M)
#: A source archive behind a URL is fetched up to this size and for this long.
_MOST = 4 * 1024 * 1024
_SECONDS = 1.5
_NO_ARCHIVE: tuple[type[Exception], ...] = (tarfile.TarError, zlib.error, LZMAError, *NO_ZIP)
#: The most of one file that is read.
_TEXT = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFacts:
    """What was read: raw build requirements, imports of ``setup.py``, import packages."""

    requires: tuple[str, ...] = ()
    imports: frozenset[str] = frozenset()
    packages: frozenset[str] = frozenset()


def read_tree(folder: str) -> SourceFacts | None:
    """A source tree; None for a folder that is none."""
    texts = {name: _text(os.path.join(folder, name)) for name in _FILES}
    if not any(text is not None for text in texts.values()):
        return None
    packages = {*_packages(folder), *_packages(os.path.join(folder, "src"))}
    return _facts({k: v for k, v in texts.items() if v is not None}, packages)


def read_archive(path: str) -> SourceFacts | None:
    """A source archive on this machine; None for one that cannot be read."""
    try:
        with open(path, "rb") as file:
            return _archive(file, path)
    except OSError:
        return None


def fetch_archive(url: str, env: Mapping[str, str]) -> SourceFacts | None:
    """A small source archive behind a URL; None when it is large or does not come in time."""
    web = Web(env, time.monotonic() + _SECONDS)
    try:
        with web.open(url) as response:
            if int(response.headers.get("Content-Length") or 0) > _MOST:
                return None
            data = web.read(response, _MOST)
    except (OSError, ValueError, HTTPException):
        return None
    return _archive(io.BytesIO(data), url.split("#")[0].split("?")[0])


def _text(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_TEXT)
    except OSError:
        return None


def _packages(folder: str) -> Iterable[str]:
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [name for name in names if os.path.isfile(os.path.join(folder, name, "__init__.py"))]


def _archive(file: IO[bytes], name: str) -> SourceFacts | None:
    """Of ``NAME-VERSION/pyproject.toml`` and ``setup.py`` beside it."""
    texts: dict[str, str] = {}
    packages: set[str] = set()
    try:
        for path, read in _zipped(file) if name.endswith(".zip") else _tarred(file):
            parts = path.removeprefix("./").split("/")[1:]
            inside = parts[1:] if parts[:1] == ["src"] else parts
            if len(inside) == 2 and inside[1] == "__init__.py":
                packages.add(inside[0])
            if len(parts) == 1 and parts[0] in _FILES:
                texts[parts[0]] = read().decode("utf-8", "replace")
    except _NO_ARCHIVE:
        return None
    return _facts(texts, packages) if texts else None


def _zipped(file: IO[bytes]) -> Iterator[tuple[str, Callable[[], bytes]]]:
    with zipfile.ZipFile(file) as archive:
        for one in archive.infolist():
            yield one.filename, partial(_member, archive.open, one)


def _tarred(file: IO[bytes]) -> Iterator[tuple[str, Callable[[], bytes]]]:
    with tarfile.open(fileobj=file) as archive:
        for one in archive:
            if one.isfile():
                yield one.name, partial(_member, archive.extractfile, one)


def _member(opened: Callable[[Any], IO[bytes] | None], one: object) -> bytes:
    file = opened(one)
    return file.read(_TEXT) if file else b""


def _facts(texts: Mapping[str, str], packages: Iterable[str]) -> SourceFacts | None:
    try:
        found = tomllib.loads(texts.get("pyproject.toml", ""))
    except tomllib.TOMLDecodeError:
        return None
    system = found.get("build-system")
    requires = system.get("requires") if isinstance(system, Mapping) else None
    listed = requires if isinstance(requires, list) else []
    return SourceFacts(
        requires=tuple(one for one in listed if isinstance(one, str)),
        imports=frozenset(_IMPORT.findall(texts.get("setup.py", ""))),
        packages=frozenset(packages),
    )
