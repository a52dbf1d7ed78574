"""What a source says about its build, as far as reading tells: nothing of it is run.

``[build-system] requires`` of ``pyproject.toml`` (PEP 518), what ``setup.py`` imports, and the
import packages that lie in a tree. What a build backend asks for at build time is not known.
"""

from __future__ import annotations

import io
import os
import re
import sys
import threading
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from queue import Empty, Queue
from typing import IO, Any
from urllib.parse import unquote

from packaging.utils import canonicalize_name

from envlock.adapters.files import names_in
from envlock.adapters.incoming import Web, no_answer
from envlock.adapters.zipmember import NO_ZIP

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: Endings of source archives (PEP 625, and what indexes still have).
ARCHIVES = (".tar.gz", ".tgz", ".zip", ".tar.bz2", ".tar.xz", ".tar")
_FILES = ("pyproject.toml", "setup.py")
_NAME = re.compile(r"^name\s*[:=]\s*([A-Za-z0-9._-]+)\s*$", re.M | re.I)
_IMPORT = re.compile(r"^\s*(?:import|from)\s+([A-Za-z_]\w*)", re.M)
#: A source archive behind a URL is fetched up to this size and for this long.
_MOST = 4 * 1024 * 1024
_SECONDS = 1.5
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


def project_name(source: str) -> str:
    """Canonical name that a tree on this machine says it has; empty where only its build knows.

    ``[project] name``, ``[metadata] name`` of ``setup.cfg``, or what an unpacked archive carries.
    """
    folder = unquote(source.removeprefix("file://").partition("[")[0])
    folder = os.path.abspath(os.path.expanduser(folder))
    if "://" in source.removeprefix("file://") or not os.path.isdir(folder):
        return ""
    try:
        project = tomllib.loads(_text(os.path.join(folder, "pyproject.toml")) or "").get("project")
    except tomllib.TOMLDecodeError:
        project = None
    name = project.get("name") if isinstance(project, Mapping) else None
    for file in ("setup.cfg", "PKG-INFO"):
        said = None if name else _NAME.search(_text(os.path.join(folder, file)) or "")
        name = said[1] if said else name
    return canonicalize_name(name) if isinstance(name, str) else ""


def read_archive(path: str) -> SourceFacts | None:
    """A source archive on this machine; None for one that cannot be read."""
    try:
        with open(path, "rb") as file:
            return _archive(file, path)
    except OSError:
        return None


def fetch_archives(
    urls: Iterable[str], env: Mapping[str, str], seconds: float = _SECONDS
) -> dict[str, SourceFacts]:
    """Small source archives behind URLs, by URL, all at once: without those that are large, that
    cannot be read, or that do not come in time.

    Args:
        env: names certificates and proxies.
        seconds: for all of them together, with the look-up of names, which nothing can interrupt.
    """
    waiting = set(urls)
    until = time.monotonic() + seconds
    web = Web(env, until)
    answers: Queue[tuple[str, SourceFacts | None]] = Queue()
    for url in waiting:
        # no pool: nobody waits for a thread that hangs, not even the end of the program
        threading.Thread(
            target=lambda one: answers.put((one, _fetched(one, web))), args=(url,), daemon=True
        ).start()
    found: dict[str, SourceFacts] = {}
    for _ in waiting:
        try:
            url, facts = answers.get(timeout=max(0.0, until - time.monotonic()))
        except Empty:
            break
        found.update({url: facts} if facts is not None else {})
    return found


def _fetched(url: str, web: Web) -> SourceFacts | None:
    try:
        with web.open(url) as response:
            if int(response.headers.get("Content-Length") or 0) > _MOST:
                return None
            data = web.read(response, _MOST)
    except (OSError, ValueError):
        return None
    except no_answer():
        return None
    return _archive(io.BytesIO(data), url.split("#")[0].split("?")[0])


def _text(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_TEXT)
    except OSError:
        return None


def _packages(folder: str) -> Iterable[str]:
    names = names_in(folder)
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
    except _no_archive():
        return None
    return _facts(texts, packages) if texts else None


def _no_archive() -> tuple[type[Exception], ...]:
    """What reading an archive may raise; loaded when something was raised."""
    from lzma import LZMAError
    from tarfile import TarError

    return (TarError, zlib.error, LZMAError, *NO_ZIP)


def _zipped(file: IO[bytes]) -> Iterator[tuple[str, Callable[[], bytes]]]:
    with zipfile.ZipFile(file) as archive:
        for one in archive.infolist():
            yield one.filename, partial(_member, archive.open, one)


def _tarred(file: IO[bytes]) -> Iterator[tuple[str, Callable[[], bytes]]]:
    import tarfile

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
