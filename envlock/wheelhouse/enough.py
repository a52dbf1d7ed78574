"""Is what a wheelhouse holds enough: nothing else is needed on a machine without a network."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envlock.adapters.resolving import Question, Resolver
from envlock.adapters.wheelfile import WheelFile
from envlock.errors import ProgramFailed, Refused, UnusableInput
from envlock.model.dist import Distribution
from envlock.model.facts import Finding
from envlock.model.health import parse_requirement, unmet
from envlock.model.label import is_version
from envlock.model.manifest import Manifest
from envlock.wheelhouse.folder import MANIFEST


def as_the_wheels_say(manifest: Manifest, wheels: Mapping[str, WheelFile]) -> Manifest:
    """The manifest with the requirements that the wheels themselves have.

    Args:
        wheels: by canonical name; what is damaged has no say.
    """
    return replace(
        manifest,
        distributions=tuple(
            replace(dist, requires=wheel.requires)
            if (wheel := wheels.get(dist.name)) is not None and not wheel.errors
            else dist
            for dist in manifest.distributions
        ),
    )


def not_enough(manifest: Manifest) -> list[Finding]:
    """Requirements that the manifest's own set does not meet, beyond those it says were unmet in
    the healthy environment."""
    known = {(finding.code, finding.subject, finding.what) for finding in manifest.health}
    return [
        replace(
            finding,
            level="error",
            why="it cannot be had where there is no network",
            hint=_how_to_add(raw),
        )
        for _, raw, finding in unmet(manifest.distributions, manifest.target.markers)
        if (finding.code, finding.subject, finding.what) not in known
    ]


def _how_to_add(raw: str) -> str:
    requirement = parse_requirement(raw)
    if requirement is None:
        return "keep the vendor's own wheels: only its vendor can mend it"
    return f"add it: envlock wheelhouse build DIR '{requirement.name}{requirement.specifier}'"


def resolve_alone(manifest: Manifest, resolver: Resolver) -> list[Finding]:
    """Has a resolver find every distribution of a manifest among nothing but these.

    Each takes part with its own metadata. Left out is what :func:`not_enough` judges: what was
    unmet in the healthy environment, and what has been told already.

    Args:
        resolver: one that asks no index.

    Returns:
        What it misses; a warning where it cannot tell.
    """
    sound = {dist.name: dist for dist in manifest.distributions if is_version(dist.version)}
    odd = {dist.name for dist in manifest.distributions} - sound.keys()
    told: dict[str, set[str]] = {}
    for dist, raw, _ in unmet(manifest.distributions, manifest.target.markers):
        told.setdefault(dist.name, set()).add(raw)
    held = [
        replace(dist, requires=_countable(dist, odd, told.get(name, set())))
        for name, dist in sound.items()
    ]
    question = Question(
        requirements=tuple(f"{dist.name}=={dist.version}" for dist in held),
        files=(),
        held=tuple(held),
        constraints=(),
        target=manifest.target,
    )
    try:
        found = {pin.name for pin in resolver.resolve(question)}
    except Refused as error:
        return [_missing(error.message.removeprefix("uv: no solution: "))]
    except (ProgramFailed, UnusableInput) as error:
        return [
            Finding(
                code="wheelhouse.not-resolved",
                subject=MANIFEST,
                what=f"no resolver judged whether this is enough: {error.message}",
                why="only the requirements of each distribution were compared",
                hint=error.hint,
            )
        ]
    return [_missing(f"'{name}' is needed") for name in sorted(found - sound.keys())]


def _missing(what: str) -> Finding:
    return Finding(
        code="wheelhouse.not-enough",
        subject=MANIFEST,
        what=f"the wheels are not enough for the target: {what}",
        why="it cannot be had where there is no network",
        hint="add it: envlock wheelhouse build DIR NAME",
        level="error",
    )


def _countable(dist: Distribution, odd: Set[str], told: Set[str]) -> tuple[str, ...]:
    """The requirements that a resolver can judge from names and versions alone.

    Args:
        odd: distributions whose version no resolver can read.
        told: raw requirements that are judged already.
    """
    found = []
    for raw in dist.requires:
        requirement = parse_requirement(raw)
        if requirement is None or raw in told or canonicalize_name(requirement.name) in odd:
            continue
        found.append(_by_name(requirement) if requirement.url else raw)
    return tuple(found)


def _by_name(requirement: Requirement) -> str:
    """A requirement without its URL: what it leads to is here, or else told to be missing."""
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    marker = f"; {requirement.marker}" if requirement.marker else ""
    return f"{requirement.name}{extras}{marker}"
