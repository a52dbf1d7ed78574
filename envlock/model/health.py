"""What a healthy image already violates: recorded once, so that it is not mistaken for damage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from packaging.markers import InvalidMarker, UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from envlock.model.dist import Distribution
from envlock.model.facts import Finding
from envlock.model.label import split_version


def parse_requirement(raw: str) -> Requirement | None:
    """A Requires-Dist value, or None when it is not one (``pytz (>dev)`` exists in the wild)."""
    try:
        return Requirement(raw)
    except InvalidRequirement:
        return None


def applies(requirement: Requirement, markers: Mapping[str, str], extra: str = "") -> bool:
    """Whether a requirement counts in an environment; a marker that cannot be read counts."""
    if requirement.marker is None:
        return True
    try:
        return requirement.marker.evaluate({**markers, "extra": extra})
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
    versions = {dist.name: dist.version for dist in dists}
    found = []
    for dist in dists:
        for raw in dist.requires:
            requirement = parse_requirement(raw)
            if requirement is None:
                found.append(_finding("requires.invalid", dist, f"requirement '{raw}' is invalid"))
                continue
            if not applies(requirement, markers):
                continue
            installed = versions.get(canonicalize_name(requirement.name))
            if installed is None:
                found.append(_finding("requires.missing", dist, f"needs '{raw}'; not installed"))
            elif not satisfies(installed, requirement.specifier):
                text = f"needs '{raw}'; '{installed}' is installed"
                found.append(_finding("requires.version", dist, text))
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
