"""Protection for people who forget to type ``envlock guard``, as far as the tools allow.

Nothing watches: the tools' own configuration says what they must keep. Each file of it is a place
where the builds are held; what it held before is given back, byte for byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from envlock.adapters.managed import Edit, apply
from envlock.guard.advice import unmet
from envlock.guard.decide import Protected
from envlock.model.facts import Finding

Builds = Sequence[tuple[str, str]]


class Place(Protocol):
    """A file in which builds can be held. Nothing here writes: edits are applied together."""

    @property
    def name(self) -> str:
        """``constraints``, ``pip``, ``uv`` or ``marker``."""

    @property
    def path(self) -> str:
        """Of the file."""

    def put(self, builds: Builds, /) -> Edit:
        """The edit that holds them; it changes nothing where they are held already."""

    def take(self) -> Edit:
        """The edit that gives the file back as it was found."""

    def present(self) -> bool:
        """Whether anything in the file is ours."""

    def holds(self, builds: Builds, /) -> bool:
        """Whether the tool finds in it what keeps the builds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The places of one target. pip's two hold together: the second names the first.

    Attributes:
        constraints: the list of builds.
        pip: pip's configuration of the target.
        uv: uv's of the person, for all environments.
        marker: makes pip and uv refuse; None in a venv, where nobody looks for it.
    """

    constraints: Place
    pip: Place
    uv: Place
    marker: Place | None

    def all(self) -> list[Place]:
        """In the order of writing: a file is there before another names it."""
        return [self.constraints, self.pip, *([self.marker] if self.marker else []), self.uv]

    def wanted(self, *, uv: bool, strict: bool) -> list[Place]:
        """Those to write: pip's, those asked for, and those that are in use already."""
        asked = {"constraints", "pip", *(["uv"] if uv else []), *(["marker"] if strict else [])}
        return [place for place in self.all() if place.name in asked or place.present()]


def enable(places: Sequence[Place], builds: Builds) -> list[str]:
    """Holds the builds; returns the files that were written.

    Raises:
        EnvlockError: a file cannot be read, edited safely or written; all are as they were.
    """
    return apply([place.put(builds) for place in places])


def disable(places: Places) -> list[str]:
    """Gives every file back; returns those that were written.

    Raises:
        EnvlockError: as :func:`enable`.
    """
    return apply([place.take() for place in reversed(places.all())])


def pairs(builds: Sequence[Protected]) -> list[tuple[str, str]]:
    """Name and version of each, sorted: the order they came in is no difference."""
    return sorted((build.name, build.version) for build in builds)


def inspect(places: Places, protected: Sequence[Protected]) -> list[Finding]:
    """What is not as it should be; an error means that plain installs are not held.

    Builds that are lost already may be listed or not: the list was right when it was written.
    """
    intact = pairs([build for build in protected if build.intact])
    in_use = [place for place in places.all() if place.present()]
    if not {"constraints", "pip"} & {place.name for place in in_use}:
        return [_off(places.pip.path)]
    found = []
    for place in places.wanted(uv=False, strict=False):
        if not place.holds(intact):
            found.append(_not_held(place))
        elif place.put(intact).changes and place.put(pairs(protected)).changes:
            found.append(_differs(place))
    return found


def contradictions(protected: Sequence[Protected]) -> list[Finding]:
    """Builds whose own metadata wants another build than the one that is held: a resolver that
    must keep both finds no solution, and plain installs of what needs them fail."""
    intact = [build for build in protected if build.intact]
    return [
        Finding(
            code="always.contradiction",
            subject=build.name,
            what=f"requires '{raw}', and '{other.name} {other.version}' is held",
            why=f"plain pip can then install nothing that needs '{build.name}'",
            hint="'envlock guard pip install …' still can",
        )
        for build in intact
        for raw in build.requires
        for other in intact
        if unmet(raw, other.name, other.version)
    ]


def _off(path: str) -> Finding:
    return Finding(
        code="always.off",
        subject=path,
        what="no build is held: plain 'pip install' can replace them",
        hint="hold them with 'envlock guard --enable'",
        level="error",
    )


def _not_held(place: Place) -> Finding:
    missing = place.name == "constraints" and not place.present()
    why = {
        "constraints": "a protected build is not in it",
        "pip": "it does not name the target's constraints file",
        "uv": "a protected build is not in it",
        "marker": "somebody has changed it",
    }[place.name]
    return Finding(
        code="always.missing" if missing else "always.changed",
        subject=place.path,
        what="is gone, and every install with pip fails without it" if missing else
             "does not hold the builds",
        why="" if missing else why,
        hint="write it again with 'envlock guard --enable'",
        level="error",
    )  # fmt: skip


def _differs(place: Place) -> Finding:
    return Finding(
        code="always.differs",
        subject=place.path,
        what="is not what would be written now",
        why="it was edited, or what is protected or configured elsewhere has changed",
        hint="bring it up to date with 'envlock guard --enable'",
    )
