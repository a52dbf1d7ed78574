"""What a kit holds: one document inside it, and nothing is taken out that it does not name.

A kit is one file in four parts: a first line that Python shows where the rest is cut off, the
packed files one after the other, envlock's own wheels with what starts them, and the directory of a
zip archive. Files are found by their place in the file, so that a kit larger than a zip archive
without 64-bit numbers can be is run by Python 3.10, too, which reads no other archives.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from envlock.errors import UnusableInput
from envlock.model.facts import TagFacts, supported_tags
from envlock.model.manifest import LockedTarget, parse_yaml
from envlock.model.reading import Node
from envlock.model.wheels import unsafe_path

FORMAT = 1
#: Names inside a kit.
CONTENTS, STREAM = "kit.json", "rebuilt.tar.zst"
STARTERS = {"__main__.py": "kit_main.py", "start.py": "kit.py"}  # and their names in probes/
WHEELS, TOOL, EXTRAS = "wheels/", "envlock/", "extras/"
#: Python cannot run a file that is cut off as an archive, takes it for a script, and says that
#: this encoding is not known: the only words that can reach a person then.
FIRST_LINE = b"# coding: this-kit-is-not-whole--copy-it-again-or-join-its-parts-with-cat\n"
#: What runs envlock: the oldest Python it supports.
OLDEST = (3, 10)
DAMAGED_HINT = "copy the kit again, or join its parts again with cat"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A file that a kit gives back: path in the folder (``/`` between names), sha256 in
    hexadecimal, size in bytes."""

    file: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob(Part):
    """A file that lies in the kit as it is.

    Attributes:
        at: where its bytes begin, counted from the start of the kit.
    """

    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The document of a kit.

    Attributes:
        name: of the manifest.
        envlock: version of the envlock inside.
        python: ``X.Y`` of the Python that runs it.
        machine: ``platform_machine`` of the target.
        blobs: files as they are; envlock's own wheels and the compressed stream among them.
        stream: the files in the compressed stream, in order.
    """

    name: str
    envlock: str
    python: str
    machine: str
    blobs: tuple[Blob, ...]
    stream: tuple[Part, ...] = ()

    @property
    def given(self) -> tuple[Part, ...]:
        """Everything that unpacking writes."""
        inside = (STREAM, *(blob.file for blob in self.blobs if blob.file.startswith(TOOL)))
        return (*(blob for blob in self.blobs if blob.file not in inside), *self.stream)

    @property
    def compressed(self) -> Blob | None:
        """The compressed stream, where there is one."""
        return next((blob for blob in self.blobs if blob.file == STREAM), None)


def dump_contents(contents: Contents) -> str:
    """As JSON, ASCII only: the Python that reads it may be an old one in any locale."""
    return json.dumps({"format": FORMAT, **asdict(contents)}, indent=1) + "\n"


def load_contents(text: str, file: str) -> Contents:
    """Reads the document of a kit.

    Args:
        file: name of the kit, for messages.

    Raises:
        UnusableInput: of a newer format, or with a bad value.
    """
    node = parse_yaml(text, file, DAMAGED_HINT)
    if not isinstance(node.value, dict) or not node.get("format").present:
        raise node.bad("the contents of a kit")
    if node.get("format").integer() != FORMAT:
        raise UnusableInput(
            f"{file}: a kit of format {node.get('format').integer()}; this envlock reads {FORMAT}",
            "run the kit itself: it has the envlock that made it",
        )
    return Contents(
        name=node.get("name").text(),
        envlock=node.get("envlock").text(),
        python=node.get("python").text(),
        machine=node.get("machine").text(""),
        blobs=node.get("blobs").each(_read_blob),
        stream=node.get("stream").each(_read_part),
    )


def _read_part(node: Node) -> Part:
    return Part(
        file=_read_path(node.get("file")),
        sha256=node.get("sha256").sha256(),
        size=node.get("size").integer(),
    )


def _read_blob(node: Node) -> Blob:
    return Blob(
        file=_read_path(node.get("file")),
        sha256=node.get("sha256").sha256(),
        size=node.get("size").integer(),
        at=node.get("at").integer(),
    )


def _read_path(node: Node) -> str:
    path = node.text()
    if unsafe_path(path) or path.endswith("/"):
        raise node.bad("a path inside a folder")
    return path


def twice(parts: Iterable[Part]) -> str:
    """A path that two files of a kit have; empty when there is none."""
    seen: set[str] = set()
    for part in parts:
        if part.file in seen:
            return part.file
        seen.add(part.file)
    return ""


def version_pair(text: str) -> tuple[int, int]:
    """``(3, 10)`` for ``3.10`` or ``3.10.12``.

    Raises:
        ValueError: it is no version of Python.
    """
    major, _, rest = text.partition(".")
    return int(major), int(rest.partition(".")[0])


def runner_of(target: LockedTarget, named: tuple[int, int] | None = None) -> LockedTarget:
    """What runs the envlock in a kit: the target, or another Python on the same machine where the
    target's is too old or another one is named.

    Raises:
        ValueError: the target's Python or tags cannot be read.
    """
    own = version_pair(target.python)
    wanted = named or max(own, OLDEST)
    if wanted == own:
        return target
    version, short = "{}.{}".format(*wanted), "cp{}{}".format(*wanted)
    facts = TagFacts(
        version=wanted, abi=short, platform=_bare_platform(target.tags), glibc=_glibc(target.tags)
    )
    markers = {**target.markers, "python_version": version, "python_full_version": f"{version}.0"}
    markers["implementation_version"] = f"{version}.0"
    return LockedTarget(
        python=f"{version}.0", markers=markers, tags=supported_tags(facts), paths=target.paths
    )


def _bare_platform(tags: Sequence[str]) -> str:
    platforms = (tag.rsplit("-", 1)[-1] for tag in tags)
    bare = next((one for one in platforms if not one.startswith(("many", "musl", "any"))), "")
    if not bare:
        raise ValueError("no platform in its tags")
    return bare


def _glibc(tags: Sequence[str]) -> tuple[int, int] | None:
    for tag in tags:
        words = tag.rsplit("-", 1)[-1].split("_")
        if words[0] == "manylinux" and len(words) > 2:
            return int(words[1]), int(words[2])
    return None
