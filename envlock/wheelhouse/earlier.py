"""What earlier builds left in a wheelhouse: it stays, and what was lost is got again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from envlock.adapters.installer import pins
from envlock.adapters.resolving import Pin, Question, Resolver
from envlock.errors import Refused
from envlock.model.dist import Distribution, WheelRef
from envlock.model.label import same_version
from envlock.model.manifest import Manifest
from envlock.wheelhouse.folder import replaceable
from envlock.wheelhouse.sources import resolve


def with_earlier(manifest: Manifest, before: Manifest | None) -> Manifest:
    """The target's manifest with what earlier builds added to the folder for the same target.

    Raises:
        Refused: the folder has something for another target that would be forgotten.
    """
    names = {dist.name for dist in manifest.distributions}
    more = [
        dist
        for dist in (before.distributions if before is not None else ())
        if dist.name not in names and (dist.wheel is not None or dist.protected)
    ]
    if before is not None and more and before.target.tags != manifest.target.tags:
        raise Refused(
            "wheelhouse: the folder is for another target, and the manifest does not have "
            + ", ".join(f"'{dist}'" for dist in more),
            "name another folder, or leave out --manifest to add to this one",
        )
    together = sorted([*manifest.distributions, *more], key=lambda dist: dist.key)
    return replace(manifest, distributions=tuple(together))


def refs(manifest: Manifest, before: Manifest | None) -> dict[str, WheelRef]:
    """The wheels of a manifest's distributions that the folder had, by name; some may be lost."""
    known = {dist.name: dist for dist in before.distributions} if before is not None else {}
    return {
        dist.name: then.wheel
        for dist in manifest.distributions
        if (then := known.get(dist.name)) is not None
        and then.wheel is not None
        and same_version(then.version, dist.version)
        and then.content == dist.content
    }


def lost(
    manifest: Manifest, before: Manifest | None, present: Mapping[str, WheelRef]
) -> dict[str, Distribution]:
    """What the folder had, has no more, and can be had again, by name."""
    had = refs(manifest, before)
    return {
        dist.name: dist
        for dist in manifest.distributions
        if dist.name in had and dist.name not in present and replaceable(dist)
    }


def resolve_anew(
    resolver: Resolver, question: Question, gone: Mapping[str, Distribution]
) -> tuple[Pin, ...]:
    """As :func:`resolve`; what was lost is asked for like something new, in the same version
    where that can be had."""
    if not gone:
        return resolve(resolver, question)
    held = tuple(dist for dist in question.held if dist.name not in gone)
    anew = replace(question, held=held)
    same = pins([(dist.name, dist.version) for dist in gone.values()], arbitrary=False)
    try:
        pinned = tuple(sorted({*question.constraints, *same}))
        return resolve(resolver, replace(anew, constraints=pinned))
    except Refused:
        return resolve(resolver, anew)
