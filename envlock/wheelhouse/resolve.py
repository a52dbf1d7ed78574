"""build: a wheelhouse for a target that is somewhere else, from any machine with an index."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from packaging.utils import canonicalize_name

from envlock.adapters import files
from envlock.adapters.installer import pins
from envlock.adapters.resolving import Downloader, Pin, Question, Resolver
from envlock.adapters.wheelfile import WheelFile, inspect_wheel
from envlock.errors import Refused
from envlock.model.dist import Distribution, WheelRef
from envlock.model.facts import Finding
from envlock.model.health import applies, parse_requirement, satisfies
from envlock.model.label import same_version
from envlock.model.manifest import LockedTarget, Manifest
from envlock.model.wheels import parse_wheel_name
from envlock.wheelhouse.check import not_enough
from envlock.wheelhouse.folder import (
    cannot_write,
    make_folder,
    wheel_files,
    wheels_before,
    write_papers,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What a build did.

    Attributes:
        manifest: what the target will have afterwards, as written to ``envlock.yaml``.
        added: distributions that are new or have moved.
        held: distributions that the request needs and the target has.
        findings: moves, and requirements that the new set does not meet.
    """

    manifest: Manifest
    added: tuple[Distribution, ...]
    held: tuple[Distribution, ...]
    findings: tuple[Finding, ...]


def build(
    folder: str,
    manifest: Manifest,
    wanted: tuple[Sequence[str], Sequence[str]],
    resolver: Resolver,
    downloader: Downloader,
) -> Built:
    """Adds to a wheelhouse what a target needs to get some more distributions.

    A protected build never moves; others keep their version unless a request demands another.

    Args:
        folder: the wheelhouse; made if it is not there.
        manifest: what the target has.
        wanted: requirements, and paths of requirements files.

    Raises:
        Refused: there is no solution, or a downloaded wheel cannot be used.
        ProgramFailed: an index cannot be reached, or a program is missing.
        UnusableInput: the folder cannot be written.
    """
    make_folder(folder)
    present = present_wheels(folder, manifest)
    question = Question(
        requirements=tuple(wanted[0]),
        files=tuple(os.path.abspath(path) for path in wanted[1]),
        held=tuple(replace(dist, requires=met(dist, manifest)) for dist in manifest.distributions),
        constraints=constraints(manifest),
        target=manifest.target,
    )
    found = resolver.resolve(question)
    refuse_moves(found, manifest)
    fresh = [pin for pin in found if not _same(pin, manifest.find(pin.name))]
    added = _fetch(fresh, folder, manifest, downloader)
    result = _afterwards(manifest, added, present)
    write_papers(folder, result)
    names = {pin.name for pin in found} - {dist.name for dist in added}
    return Built(
        manifest=result,
        added=tuple(added),
        held=tuple(dist for dist in manifest.distributions if dist.name in names),
        findings=(*moves(manifest, added), *not_enough(result)),
    )


def _same(pin: Pin, dist: Distribution | None) -> bool:
    return dist is not None and same_version(pin.version, dist.version)


def met(dist: Distribution, manifest: Manifest) -> tuple[str, ...]:
    """The requirements that the target meets. The others are part of a state that works all the
    same, and would bring in what a vendor left out on purpose."""
    return tuple(raw for raw in dist.requires if _is_met(raw, manifest))


def _is_met(raw: str, manifest: Manifest) -> bool:
    requirement = parse_requirement(raw)
    if requirement is None:
        return False
    if not applies(requirement, manifest.target.markers):
        return True  # for another platform, or behind an extra
    there = manifest.find(canonicalize_name(requirement.name))
    return there is not None and satisfies(there.version, requirement.specifier)


def constraints(manifest: Manifest) -> tuple[str, ...]:
    """What a resolution must not break: the protected builds, and whatever the distributions of
    the target ask of each other and have."""
    lines = set(pins([(d.name, d.version) for d in manifest.protected], arbitrary=False))
    for dist in manifest.distributions:
        for raw in met(dist, manifest):
            requirement = parse_requirement(raw)
            if requirement is None or requirement.url or not requirement.specifier:
                continue
            if applies(requirement, manifest.target.markers):
                lines.add(f"{canonicalize_name(requirement.name)}{requirement.specifier}")
    return tuple(sorted(lines))


def refuse_moves(found: Iterable[Pin], manifest: Manifest) -> None:
    """Raises:
    Refused: the solution would replace a protected build.
    """
    lost = [
        f"'{dist}' by '{pin.version}'"
        for pin in found
        if (dist := manifest.find(pin.name)) is not None and dist.protected and not _same(pin, dist)
    ]
    if lost:
        raise Refused(
            f"wheelhouse: the request would replace {', '.join(lost)}",
            "ask for versions that suit the protected builds",
        )


def moves(manifest: Manifest, added: Iterable[Distribution]) -> list[Finding]:
    """What the request moves to another version."""
    return [
        Finding(
            code="build.moved",
            subject=dist.name,
            what=f"'{old.version}' becomes '{dist.version}'",
            why="the request demands it",
        )
        for dist in added
        if (old := manifest.find(dist.name)) is not None
    ]


def present_wheels(folder: str, manifest: Manifest) -> dict[str, WheelRef]:
    """Wheels of the manifest's distributions that the folder has already, by name."""
    before = wheels_before(folder)
    found = {}
    for dist in manifest.distributions:
        for known in (dist, before.get(dist.name)):
            if known is None or known.wheel is None or known.content != dist.content:
                continue
            if _sha256(os.path.join(folder, known.wheel.file)) == known.wheel.sha256:
                found[dist.name] = known.wheel
    return found


def _sha256(path: str) -> str:
    try:
        return files.sha256(path)
    except OSError:
        return ""


def _fetch(
    wanted: Sequence[Pin], folder: str, manifest: Manifest, downloader: Downloader
) -> list[Distribution]:
    """Downloads what the folder does not have, and gives it its final name once it is judged."""
    have = {name: dist for name, dist in wheels_before(folder).items() if dist.wheel is not None}
    there = [pin for pin in wanted if _is_there(pin, have.get(pin.name), folder)]
    missing = [pin for pin in wanted if pin not in there]
    added = [replace(have[pin.name], protected=False, vendor=()) for pin in there]
    if not missing:
        return added
    try:
        with tempfile.TemporaryDirectory(prefix=".part-", dir=folder) as staging:
            downloader.download(missing, manifest.target, staging)
            wheels = [inspect_wheel(os.path.join(staging, f)) for f in wheel_files(staging)]
            _refuse_bad(missing, wheels, manifest.target)
            for wheel in wheels:
                os.replace(wheel.path, os.path.join(folder, wheel.file))
    except OSError as error:
        raise cannot_write(folder, error) from error
    return added + [entry(wheel) for wheel in wheels]


def _is_there(pin: Pin, dist: Distribution | None, folder: str) -> bool:
    if dist is None or dist.wheel is None or not _same(pin, dist):
        return False
    sha256 = _sha256(os.path.join(folder, dist.wheel.file))
    return sha256 == dist.wheel.sha256 and sha256 in pin.hashes


def _refuse_bad(wanted: Sequence[Pin], wheels: Sequence[WheelFile], target: LockedTarget) -> None:
    """Raises:
    Refused: a wheel is broken, does not fit, has other bytes than were resolved, or is missing.
    """
    hashes = {pin.name: pin.hashes for pin in wanted}
    bad = [f"'{problem.subject}': {problem.what}" for w in wheels for problem in w.errors]
    for wheel in wheels:
        if wheel.sha256 not in hashes.get(wheel.name, ()):
            bad.append(f"'{wheel.file}' has other bytes than the index said")
        elif not parse_wheel_name(wheel.file).fits(target.tags):
            bad.append(f"'{wheel.file}' does not fit the target")
    got = {wheel.name for wheel in wheels}
    bad += [f"'{pin.name} {pin.version}' was not found" for pin in wanted if pin.name not in got]
    if bad:
        raise Refused(f"wheelhouse: {'; '.join(bad)}", "try another index or another version")


def entry(wheel: WheelFile) -> Distribution:
    """A manifest's entry for what a wheel will put into a target."""
    return Distribution(
        name=wheel.name,
        version=wheel.version,
        requires=wheel.requires,
        content=wheel.content,
        files=len(wheel.files),
        bytes=sum(found.size for found in wheel.files.values()),
        executable=wheel.executable,
        wheel=WheelRef(file=wheel.file, sha256=wheel.sha256, size=wheel.size, origin="index"),
    )


def _afterwards(
    manifest: Manifest, added: Sequence[Distribution], present: Mapping[str, WheelRef]
) -> Manifest:
    """What the target will have; wheels only where the folder has them."""
    fresh = {dist.name: dist for dist in added}
    stays = [
        replace(dist, wheel=present.get(dist.name))
        for dist in manifest.distributions
        if dist.name not in fresh
    ]
    together = sorted([*stays, *fresh.values()], key=lambda dist: dist.key)
    return replace(manifest, distributions=tuple(together))
