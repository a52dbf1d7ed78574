"""RECORD, places of installation, and the content digest.

The content digest is sha256 over the lines ``SCHEME/PATH NUL hex LF``, sorted by ``SCHEME/PATH``
as bytes. SCHEME is the place of installation, not the wheel's spelling: ``lib/`` (wheel root,
purelib, platlib), ``bin/`` (scripts, and data under bin), ``include/``, ``data/`` (the rest). It is
the same for the vendor's wheel, a rebuilt wheel and the installed files.
"""

from __future__ import annotations

import csv
import hashlib
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from configparser import ConfigParser
from configparser import Error as ConfigError
from typing import NamedTuple

from packaging.utils import canonicalize_name

from envlock.model.facts import Layout

#: Written by installers into a distribution's own ``.dist-info``; never part of its content.
INSTALLER_FILES = re.compile(
    r"(RECORD(\..*)?|INSTALLER|REQUESTED|direct_url\.json|provenance_url\.json|uv_.*\.json)\Z"
)
_SIZE_DIGITS = 18
_BYTECODE = re.compile(r"(^|/)__pycache__/[^/]*\.pyc\Z")
_HEADERS = re.compile(r"include/(?:site/)?python\d+\.\d+[^/]*/([^/]+)/(.+)\Z")
_SITE = re.compile(r"lib(?:64)?/python\d+\.\d+[^/]*/(?:site|dist)-packages/(.+)\Z")
# ensurepip and pip itself write these beside what entry_points.txt of pip and setuptools names
_VERSIONED_SCRIPT = {
    "pip": re.compile(r"pip\d+(\.\d+)?\Z"),
    "setuptools": re.compile(r"easy_install-\d+(\.\d+)?\Z"),
}
_SHEBANG = re.compile(rb"#!.*python.*\Z", re.DOTALL)
# distlib and uv write this where the interpreter's path is over 127 characters or has a space
_TRAMPOLINE = re.compile(rb"#!/bin/sh\r?\n'''exec' [^\n]*python[^\n]*\n' '''\r?\n")
_NORMAL_SHEBANG = b"#!python\n"
#: Longest head of a script that :func:`script_head` needs to see.
HEAD_BYTES = 8192


class Row(NamedTuple):
    """One line of a RECORD: path as written, ``sha256=…`` or empty, size or None.

    A tuple: torch alone has 12,000 of them, and a frozen dataclass takes three times as long.
    """

    path: str
    hash: str
    size: int | None


def parse_record(text: str) -> tuple[Row, ...]:
    """The rows of a RECORD, in order; rows without a path are dropped.

    Raises:
        ValueError: it is not CSV.
    """
    # not splitlines(): a file's name may hold any of the other line ends that Unicode knows
    lines = text.split("\n")
    plain = '"' not in text and "\r" not in text
    try:
        if not plain or max(map(len, lines)) > csv.field_size_limit():
            fields = csv.reader(f"{line}\n" for line in lines)
            return tuple(_row(one) for one in fields if one and one[0])
    except csv.Error as error:
        raise ValueError(str(error)) from error
    # nothing is quoted: half the time, and torch alone has 12,000 lines
    return tuple([_row(line.split(",")) for line in lines if line and line[0] != ","])


def _row(fields: Sequence[str]) -> Row:
    try:
        path, digest, size = fields
    except ValueError:  # what installers do not write
        path, digest, size = (*fields, "", "")[:3]
    plain = size.isdigit() and size.isascii() and len(size) <= _SIZE_DIGITS
    return Row(path, digest, int(size) if plain else None)


def is_bytecode(path: str) -> bool:
    """Whether a path is cached byte code; a ``.pyc`` outside ``__pycache__`` is content."""
    return _BYTECODE.search(path) is not None


def _under(path: str, folder: str) -> str | None:
    """``path`` relative to ``folder``, or None when it is not below it."""
    prefix = folder.rstrip("/") + "/"
    return path[len(prefix) :] if path.startswith(prefix) else None


def data_place(rest: str, name: str) -> str:
    """Place of a file that a wheel keeps in its ``data`` scheme (relative to the prefix)."""
    if rest.startswith("bin/"):
        return rest
    headers = _HEADERS.match(rest)
    if headers and canonicalize_name(headers[1]) == canonicalize_name(name):
        return f"include/{headers[2]}"
    site = _SITE.match(rest)
    return f"lib/{site[1]}" if site else f"data/{rest}"


def installed_place(path: str, layout: Layout, name: str) -> str | None:
    """Place of an installed file.

    Args:
        path: absolute and normalised, below the same prefix spelling as ``layout``.
        name: the distribution's name; headers are kept in a folder of that name.

    Returns:
        ``SCHEME/PATH``, or None when the file is outside the target.
    """
    for folder in (layout.purelib, layout.platlib):
        rest = _under(path, folder)
        if rest is not None:
            return f"lib/{rest}"
    rest = _under(path, layout.scripts)
    if rest is not None:
        return f"bin/{rest}"
    rest = _under(path, layout.headers)
    if rest is not None and "/" in rest:
        owner, _, header = rest.partition("/")
        if canonicalize_name(owner) == canonicalize_name(name):
            return f"include/{header}"
    rest = _under(path, layout.data)
    return None if rest is None else data_place(rest, name)


def place_path(place: str, layout: Layout, headers_name: str) -> str:
    """Absolute path of a place in a target: the inverse of :func:`installed_place`."""
    scheme, _, rest = place.partition("/")
    if scheme == "include":
        return posixpath.join(layout.headers, headers_name, rest)
    folder = {"lib": layout.purelib, "bin": layout.scripts, "data": layout.data}[scheme]
    return posixpath.join(folder, rest)


def entry_point_names(entry_points: str) -> frozenset[str]:
    """Script names that ``entry_points.txt`` declares; unreadable text declares none."""
    parser = ConfigParser(delimiters=("=",), strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[method-assign,assignment]  # names are case-sensitive
    try:
        parser.read_string(entry_points)
    except ConfigError:
        return frozenset()
    return frozenset(
        name.strip()
        for section in ("console_scripts", "gui_scripts")
        if parser.has_section(section)
        for name in parser[section]
    )


def is_content(place: str, dist_info: str, name: str, scripts: frozenset[str]) -> bool:
    """Whether a placed file is part of the distribution's content.

    Args:
        place: ``SCHEME/PATH``.
        dist_info: the ``.dist-info`` folder's own name.
        name: the distribution's name.
        scripts: names that its entry_points.txt declares.
    """
    own = _under(place, f"lib/{dist_info}")
    if own is not None and INSTALLER_FILES.match(own):
        return False
    if is_bytecode(place):
        return False
    script = _under(place, "bin")
    return script is None or not is_generated_script(script, name, scripts)


def is_generated_script(script: str, name: str, scripts: frozenset[str]) -> bool:
    """Whether an installer wrote this file of ``bin`` from entry_points.txt."""
    stem = re.sub(r"(-script\.pyw?|\.exe)\Z", "", script)
    if script in scripts or stem in scripts:
        return True
    versioned = _VERSIONED_SCRIPT.get(canonicalize_name(name))
    return versioned is not None and versioned.match(script) is not None


def script_head(head: bytes) -> tuple[bytes, int]:
    """A script's first line as content sees it.

    Args:
        head: the first :data:`HEAD_BYTES` of a file in ``bin``; fewer mean the whole file.

    Returns:
        What stands for the head, and how many bytes of the file it replaces (0: as it is).
    """
    trampoline = _TRAMPOLINE.match(head)
    if trampoline:
        return _NORMAL_SHEBANG, trampoline.end()
    line, newline, _ = head.partition(b"\n")
    whole = newline or len(head) < HEAD_BYTES  # installers end the line that a wheel left open
    if whole and _SHEBANG.match(line.rstrip(b"\r")):
        return _NORMAL_SHEBANG, len(line) + len(newline)
    return b"", 0


def content_digest(files: Mapping[str, str] | Iterable[tuple[str, str]]) -> str:
    """``sha256:…`` of a distribution's content.

    Args:
        files: place (``SCHEME/PATH``) and sha256 of the content in hexadecimal, for each file.
    """
    pairs = files.items() if isinstance(files, Mapping) else files
    lines = sorted((place.encode("utf-8", "surrogateescape"), hexa) for place, hexa in pairs)
    total = hashlib.sha256()
    for place, hexa in lines:
        total.update(place + b"\0" + hexa.encode("ascii") + b"\n")
    return f"sha256:{total.hexdigest()}"
