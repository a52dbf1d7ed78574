"""What a healthy image already violates: recorded once, so that it is not mistaken for damage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from packaging.markers import (
    InvalidMarker,
    Marker,
    UndefinedComparison,
    UndefinedEnvironmentName,
)
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from envlock.model.dist import Distribution
from envlock.model.facts import Finding
from envlock.model.label import split_version

#: What :func:`unsatisfied` finds.
REQUIREMENT_CODES = ("requires.invalid", "requires.missing", "requires.version")


def parse_requirement(raw: str) -> Requirement | None:
    """A Requires-Dist value, or None when it is not one (``pytz (>dev)`` exists in the wild)."""
    try:
        return Requirement(raw)
    except InvalidRequirement:
        return None


def applies(requirement: Requirement, markers: Mapping[str, str], extra: str = "") -> bool:
    """Whether a requirement counts in an environment; a marker that cannot be read counts."""
    return evaluates(requirement.marker, markers, extra)


def evaluates(marker: Marker | None, markers: Mapping[str, str], extra: str = "") -> bool:
    """What a marker says of an environment; none, and one that cannot be read, says yes."""
    if marker is None:
        return True
    try:
        return marker.evaluate({**markers, "extra": extra})
    except (InvalidMarker, UndefinedComparison, UndefinedEnvironmentName, InvalidVersion):
        return True


def satisfies(version: str, specifier: SpecifierSet) -> bool:
    """Whether an installed version is in a range, pre-releases included.

    An invalid version is judged by its public part: the build works, whatever tools can parse.
    """
    for candidate in (version, split_version(version)[0]):
        try:
            return specifier.contains(Version(candidate), prereleases=True)
        except InvalidVersion:
            continue
    return True


def unsatisfied(dists: Sequence[Distribution], markers: Mapping[str, str]) -> list[Finding]:
    """Requirements of installed distributions that the installed set does not meet."""
    return [finding for _, _, finding in unmet(dists, markers)]


def unmet(
    dists: Sequence[Distribution], markers: Mapping[str, str]
) -> list[tuple[Distribution, str, Finding]]:
    """As :func:`unsatisfied`, each with the distribution and the raw requirement.

    What an extra needs counts where somebody asks for that extra.
    """
    versions = {dist.name: dist.version for dist in dists}
    extras = _extras_asked_for(dists, markers)
    found = []
    for dist in dists:
        for raw in dist.requires:
            requirement = parse_requirement(raw)
            if requirement is None:
                text = f"requirement '{raw}' is invalid"
                found.append((dist, raw, _finding("requires.invalid", dist, text)))
                continue
            if not any(applies(requirement, markers, extra) for extra in extras[dist.name]):
                continue
            installed = versions.get(canonicalize_name(requirement.name))
            if installed is None:
                text = f"needs '{raw}'; not installed"
                found.append((dist, raw, _finding("requires.missing", dist, text)))
            elif not satisfies(installed, requirement.specifier):
                text = f"needs '{raw}'; '{installed}' is installed"
                found.append((dist, raw, _finding("requires.version", dist, text)))
    return found


def _extras_asked_for(
    dists: Sequence[Distribution], markers: Mapping[str, str]
) -> Mapping[str, set[str]]:
    """The extras of each distribution that others of the set ask for; the empty one is always
    among them."""
    found: dict[str, set[str]] = {dist.name: {""} for dist in dists}
    by_name = {dist.name: [parse_requirement(raw) for raw in dist.requires] for dist in dists}
    todo = [(dist.name, "") for dist in dists]
    while todo:
        name, extra = todo.pop()
        for requirement in by_name[name]:
            if requirement is None or not requirement.extras:
                continue
            other = canonicalize_name(requirement.name)
            if other not in found or not applies(requirement, markers, extra):
                continue
            new = set(requirement.extras) - found[other]
            found[other] |= new
            todo += [(other, one) for one in new]
    return found


def _finding(code: str, dist: Distribution, what: str) -> Finding:
    return Finding(code=code, subject=dist.name, what=what, level="info")


def overlaps(owners: Iterable[tuple[str, Iterable[str]]]) -> list[Finding]:
    """Files that two distributions own.

    Args:
        owners: name of a distribution, and the places (``SCHEME/PATH``) of its content.
    """
    first: dict[str, str] = {}
    shared: dict[tuple[str, str], list[str]] = {}
    for name, places in owners:
        for place in places:
            other = first.setdefault(place, name)
            if other != name:
                shared.setdefault((other, name), []).append(place)
    return [
        Finding(
            code="file.two-owners",
            subject=other,
            what=f"{len(places)} files are also owned by '{name}', e.g. '{min(places)}'",
            level="info",
        )
        for (other, name), places in sorted(shared.items())
    ]
