"""The protocols of programs that find and fetch wheels for a target that is somewhere else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from envlock.errors import Refused
from envlock.model.dist import Distribution
from envlock.model.manifest import LockedTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """A file that can be fetched.

    Attributes:
        file: file name, ``+`` kept literally.
        urls: where it is, best first: ``https:``, ``http:`` or ``file:``, absolute; credentials
            in it are those that the person configured.
        sha256: hexadecimal; empty where nobody says.
        size: bytes; None where nobody says.
    """

    file: str
    urls: tuple[str, ...]
    sha256: str = ""
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Pin:
    """One resolved distribution.

    Attributes:
        name: canonical.
        version: as the resolver says it.
        hashes: sha256 (hexadecimal) of every wheel that may be taken.
        wheels: those wheels that fit the target, best tag first.
        sdist: its source, where there is one.
        origin: ``index``, or ``url`` and ``file`` where the request names the very file.
    """

    name: str
    version: str
    hashes: tuple[str, ...] = ()
    wheels: tuple[RemoteFile, ...] = ()
    sdist: RemoteFile | None = None
    origin: str = "index"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a resolver is asked.

    Attributes:
        requirements: as typed.
        files: requirements files, absolute.
        held: distributions the target has; they take part with their metadata alone, and keep
            their version unless a requirement demands another.
        constraints: what must not be broken.
        target: whose markers and tags count; never the host's.
        links: further folders and pages with links to files.
        sources: whether a distribution that has only its source is an answer too.
        unbuilt: canonical names that are none even then.
    """

    requirements: tuple[str, ...]
    files: tuple[str, ...]
    held: tuple[Distribution, ...]
    constraints: tuple[str, ...]
    target: LockedTarget
    links: tuple[str, ...] = ()
    sources: bool = False
    unbuilt: tuple[str, ...] = ()


class OnlySource(Refused):
    """There is no solution of wheels alone, and there might be one with sources."""


class Resolver(Protocol):
    """Finds versions for a target that is not this machine."""

    def resolve(self, question: Question) -> tuple[Pin, ...]:
        """The requirements and all they need; held distributions among them.

        Raises:
            OnlySource: a source would be needed, and the question does not allow one.
            Refused: there is no solution; says why.
            ProgramFailed: the program is missing or failed (no index can be reached, say).
        """


class Downloader(Protocol):
    """Fetches wheels."""

    def download(self, wanted: Sequence[Pin], target: LockedTarget, folder: str) -> tuple[str, ...]:
        """Fetches one wheel for each pin that fits the target, each with one of its hashes.

        What is in the folder already is not fetched again; what could not be ended is kept there,
        and the next run goes on with it.

        Returns:
            The wheels' file names in the folder, one for each pin, in order.

        Raises:
            ProgramFailed: some could not be fetched; the others are there.
            OSError: the folder cannot be written, or the disk is full.
        """


class Builder(Protocol):
    """Makes wheels from sources, on this machine."""

    def build(self, pin: Pin, folder: str) -> str:
        """Builds the source of a pin in isolation.

        Args:
            pin: one that has a source.
            folder: where it may write.

        Returns:
            Path of the wheel, whatever it turned out to be.

        Raises:
            ProgramFailed: it cannot be built here.
        """
