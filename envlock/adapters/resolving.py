"""The protocols of programs that find and fetch wheels for a target that is somewhere else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from envlock.model.dist import Distribution
from envlock.model.manifest import LockedTarget


@dataclass(frozen=True, slots=True)
class Pin:
    """One resolved distribution: canonical name, version, and the sha256 (hexadecimal) of every
    file that the index has of it."""

    name: str
    version: str
    hashes: tuple[str, ...] = ()


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
    """

    requirements: tuple[str, ...]
    files: tuple[str, ...]
    held: tuple[Distribution, ...]
    constraints: tuple[str, ...]
    target: LockedTarget


class Resolver(Protocol):
    """Finds versions for a target that is not this machine."""

    def resolve(self, question: Question) -> tuple[Pin, ...]:
        """The requirements and all they need; held distributions among them.

        Raises:
            Refused: there is no solution; says why.
            ProgramFailed: the program is missing or failed (no index can be reached, say).
        """


class Downloader(Protocol):
    """Fetches wheels."""

    def download(self, wanted: Sequence[Pin], target: LockedTarget, folder: str) -> None:
        """Fetches one wheel for each pin that fits the target, each with one of its hashes.

        Raises:
            ProgramFailed: the program is missing or failed.
        """
