"""Requests that a wheelhouse has met already: no index is asked what it has in the meantime."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from envlock.adapters.resolving import Pin, Question
from envlock.adapters.state import read_manifest
from envlock.errors import EnvlockError
from envlock.model.dist import Distribution
from envlock.model.health import applies, parse_requirement, satisfies
from envlock.model.label import same_version
from envlock.model.manifest import Manifest
from envlock.wheelhouse.enough import not_enough
from envlock.wheelhouse.folder import MANIFEST, replaceable, sha256_of


def settled(folder: str, manifest: Manifest, question: Question) -> tuple[Pin, ...]:
    """What an earlier build answered, where that answers this question too; else nothing.

    As for ``pip install``, what is there and meets the request is the answer, also where an index
    has something newer.

    Args:
        manifest: what the target has.
    """
    asked = _asked(question)
    before = _before(folder, manifest)
    if not asked or before is None:
        return ()
    known = {dist.name: dist for dist in before.distributions}
    for dist in question.held:  # with the requirements that count for it
        if same_version(dist.version, known[dist.name].version):
            known[dist.name] = replace(known[dist.name], requires=dist.requires)
    limits = [requirement for line in question.constraints if (requirement := _plain(line))]
    if not all(_meets(known.get(canonicalize_name(r.name)), r, missing=True) for r in limits):
        return ()
    needed = _needed(asked, known, manifest.target.markers)
    if needed is None or not all(_can_be_had(folder, dist, manifest) for dist in needed):
        return ()
    return tuple(_pin(dist) for dist in needed)


def _before(folder: str, manifest: Manifest) -> Manifest | None:
    """What an earlier build wrote, if it was for this target and left nothing open."""
    try:
        before = read_manifest(os.path.join(folder, MANIFEST))
    except EnvlockError:
        return None
    known = {dist.name: dist for dist in before.distributions}
    if before.target != manifest.target or not_enough(before):
        return None
    for dist in manifest.distributions:  # the target may have moved on
        then = known.get(dist.name)
        if then is None or not (then.wheel or same_version(then.version, dist.version)):
            return None
    return before


def _asked(question: Question) -> list[Requirement] | None:
    """The requirements, None where one of them is more than a name and versions."""
    found = []
    try:
        for line in (*question.requirements, *_lines_of(question.files)):
            requirement = _plain(line)
            if requirement is None:
                return None
            if applies(requirement, question.target.markers):
                found.append(requirement)
    except (OSError, UnicodeDecodeError):
        return None
    return found


def _lines_of(files: Iterable[str]) -> Iterator[str]:
    for path in files:
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            text = line.partition(" #")[0].strip()
            if text and not text.startswith("#"):
                yield text


def _plain(line: str) -> Requirement | None:
    requirement = parse_requirement(line)
    return None if requirement is None or requirement.url else requirement


def _meets(dist: Distribution | None, requirement: Requirement, *, missing: bool) -> bool:
    return missing if dist is None else satisfies(dist.version, requirement.specifier)


def _needed(
    asked: Iterable[Requirement], known: Mapping[str, Distribution], markers: Mapping[str, str]
) -> list[Distribution] | None:
    """What the requirements lead to, sorted by name; None where something does not meet them."""
    todo = list(asked)
    seen: set[tuple[str, str]] = set()
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        if not _meets(known.get(name), requirement, missing=False):
            return None
        for extra in {"", *requirement.extras} - {e for n, e in seen if n == name}:
            seen.add((name, extra))
            more = (parse_requirement(raw) for raw in known[name].requires)
            todo += [one for one in more if one and applies(one, markers, extra)]
    return [known[name] for name in sorted({name for name, _ in seen})]


def _can_be_had(folder: str, dist: Distribution, manifest: Manifest) -> bool:
    """Whether a distribution is in the folder, or only the target has it.

    A wheel that was there and is not any more is asked for anew: what an index or another folder
    had then, it need not have now.
    """
    there = manifest.find(dist.name)
    if there is not None and same_version(there.version, dist.version) and not replaceable(dist):
        return True
    if dist.wheel is None:
        return False
    return sha256_of(os.path.join(folder, dist.wheel.file)) == dist.wheel.sha256


def _pin(dist: Distribution) -> Pin:
    return Pin(dist.name, dist.version, (dist.wheel.sha256,) if dist.wheel else ())
