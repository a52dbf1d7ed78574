"""A distribution in a manifest, and the reading of its metadata."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from email.parser import HeaderParser
from email.policy import compat32

from packaging.utils import canonicalize_name

#: Origins of a wheel file, best first: what an index published, what a URL or a file gave, what
#: was built from a source, what was rebuilt from installed files (and so can never have the
#: publisher's hash).
ORIGINS = ("index", "url", "file", "built", "rebuilt")


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelRef:
    """A wheel file that gives a distribution back.

    Attributes:
        file: file name, ``+`` kept literally.
        sha256: hexadecimal.
        size: bytes; None when not known.
        origin: one of :data:`ORIGINS`.
        url: where it can be had, without credentials; of one that was built, its source, with
            ``#sha256=…`` of that. Empty when nobody says, or on one machine only.
        compressor: program, version and level that made a rebuilt one: the same three give the
            same bytes. Empty when nobody says.
    """

    file: str
    sha256: str
    origin: str
    size: int | None = None
    url: str = ""
    compressor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """An installed project as a manifest keeps it.

    Attributes:
        name: canonical (PEP 503) name.
        version: raw, as the metadata says it.
        vendor: signals that no index can give this build back: ``label``, ``direct-url``,
            ``runtime-library``; empty when there is none.
        protected: guard refuses to lose it.
        requires: raw Requires-Dist values.
        content: content digest ``sha256:…``; empty when there is none (``reason`` says why).
        files: number of files of the content.
        bytes: their size.
        executable: places (``SCHEME/PATH``) of the content with an exec bit.
        wheel: the wheel that gives it back, where one is known.
        module: what its module says of itself, name and value, of builds that are protected: it may
            contradict the metadata and is never trusted over it.
        editable: installed in development mode; there are no files to keep.
        reason: why it cannot be kept; empty when it can.
    """

    name: str
    version: str
    vendor: tuple[str, ...] = ()
    protected: bool = False
    requires: tuple[str, ...] = ()
    content: str = ""
    files: int = 0
    bytes: int = 0
    executable: tuple[str, ...] = ()
    wheel: WheelRef | None = None
    module: tuple[tuple[str, str], ...] = ()
    editable: bool = False
    reason: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """What a manifest is sorted by."""
        return (self.name, self.version)

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


@dataclass(frozen=True, slots=True)
class Metadata:
    """The part of a METADATA file that envlock reads; values raw, nothing validated."""

    name: str
    version: str
    requires: tuple[str, ...]
    requires_python: str = ""
    extras: tuple[str, ...] = ()

    @property
    def canonical(self) -> str:
        """Canonical (PEP 503) name."""
        return canonicalize_name(self.name)


def parse_metadata(text: str) -> Metadata:
    """Reads the headers of a METADATA or PKG-INFO file. Never raises; missing values are empty.

    The email parser is used as it is: ``packaging.metadata`` validates, and an image with one
    invalid version must still be readable.
    """
    message = HeaderParser(policy=compat32).parsestr(text)

    def every(header: str) -> tuple[str, ...]:
        return tuple(" ".join(str(value).split()) for value in message.get_all(header, ()))

    return Metadata(
        name=str(message.get("Name", "")).strip(),
        version=str(message.get("Version", "")).strip(),
        requires=every("Requires-Dist"),
        requires_python=str(message.get("Requires-Python", "")).strip(),
        extras=every("Provides-Extra"),
    )


def same_modes(wanted: Collection[str], found: Collection[str]) -> bool:
    """Whether files run that should.

    What is in ``bin`` may run even if it was not so before: uv gives every script an exec bit, pip
    only those whose wheel has one.
    """
    surplus = set(found) - set(wanted)
    return set(wanted) <= set(found) and all(place.startswith("bin/") for place in surplus)
