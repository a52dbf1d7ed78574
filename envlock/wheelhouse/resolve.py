"""build: a wheelhouse for a target that is somewhere else, from any machine with an index."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from packaging.utils import canonicalize_name

from envlock.adapters.found_wheels import as_requirement, local_path
from envlock.adapters.installer import pins
from envlock.adapters.resolving import Builder, Downloader, Pin, Question, Resolver
from envlock.adapters.wheelfile import WheelFile, inspect_wheel
from envlock.errors import Refused
from envlock.model.diff import vanished
from envlock.model.dist import Distribution, WheelRef
from envlock.model.facts import Finding
from envlock.model.health import (
    REQUIREMENT_CODES,
    applies,
    parse_requirement,
    satisfies,
    unsatisfied,
)
from envlock.model.label import same_version
from envlock.model.manifest import LockedTarget, Manifest
from envlock.model.masking import shareable
from envlock.model.wheels import parse_wheel_name
from envlock.wheelhouse.at_hand import fetch_vendor, look
from envlock.wheelhouse.earlier import lost, refs, resolve_anew, with_earlier
from envlock.wheelhouse.enough import not_enough
from envlock.wheelhouse.folder import (
    cannot_write,
    make_folder,
    manifest_before,
    refuse_losses,
    scratch,
    sha256_of,
    wheels_before,
    write_papers,
)
from envlock.wheelhouse.settled import settled
from envlock.wheelhouse.sources import build_pure, source_mark

#: Distributions that carry the public runtimes of an accelerator (CUDA's names on public indexes),
#: and the compiler that the public builds bring with them.
_PUBLIC_RUNTIME = re.compile(r"(nvidia-|cuda-|triton\Z|pytorch-triton|rocm-sdk)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What a build did.

    Attributes:
        manifest: what the target will have afterwards, as written to ``envlock.yaml``.
        added: distributions that are new or have moved.
        held: distributions that the request needs and the target has.
        findings: moves, and requirements that the new set does not meet.
        new: number of wheels that were not in the folder before.
        fetched: their bytes.
    """

    manifest: Manifest
    added: tuple[Distribution, ...]
    held: tuple[Distribution, ...]
    findings: tuple[Finding, ...]
    new: int = 0
    fetched: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a build is asked for.

    Attributes:
        requirements: as typed; paths of wheels among them.
        files: paths of requirements files.
        links: further folders and pages with links to files.
        places: folders with links that are configured for every tool.
    """

    requirements: Sequence[str] = ()
    files: Sequence[str] = ()
    links: Sequence[str] = ()
    places: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What does the work of a build."""

    resolver: Resolver
    downloader: Downloader
    builder: Builder


def build(folder: str, manifest: Manifest, asked: Asked, tools: Tools) -> Built:
    """Adds to a wheelhouse what a target needs to get some more distributions.

    A protected build never moves; others keep their version unless a request demands another.

    Args:
        folder: the wheelhouse; made if it is not there.
        manifest: what the target has.

    Raises:
        Refused: there is no solution, a downloaded wheel cannot be used, or a source that is
            needed is no pure Python.
        ProgramFailed: an index cannot be reached, or a program is missing.
        UnusableInput: the folder cannot be written.
    """
    make_folder(folder)
    try:
        there = set(os.listdir(folder))
        with scratch(folder) as private:
            done = _build(folder, manifest, asked, tools, private)
    except OSError as error:
        raise cannot_write(folder, error) from error
    new = [dist for dist in done.added if dist.wheel and dist.wheel.file not in there]
    return replace(done, fetched=sum(dist.wheel.size or 0 for dist in new if dist.wheel),
                   new=len(new))  # fmt: skip


def _build(folder: str, manifest: Manifest, asked: Asked, tools: Tools, private: str) -> Built:
    named = os.path.join(private, "named")
    os.mkdir(named)
    before = manifest_before(folder)
    whole = with_earlier(manifest, before)
    refuse_losses(folder, whole, vanished)
    hand = look(folder, manifest, (*asked.links, *asked.places, *asked.requirements), named)
    links = (named, *(os.path.abspath(local_path(one)) if local_path(one) else one
                      for one in asked.links))  # fmt: skip
    question = Question(
        requirements=tuple(as_requirement(one, hand.wheels) for one in asked.requirements),
        files=tuple(os.path.abspath(path) for path in asked.files),
        held=tuple(replace(dist, requires=met(dist, manifest)) for dist in manifest.distributions),
        constraints=constraints(whole),
        target=manifest.target,
        links=links,
    )
    gone = lost(manifest, before, hand.present)
    found = settled(folder, manifest, question) or resolve_anew(tools.resolver, question, gone)
    refuse_moves(found, manifest)
    fresh = [p for p in found if p.name in gone or not _same(p, manifest.find(p.name))]
    added = _fetch(fresh, folder, manifest.target, tools, private)
    fetch_vendor(folder, manifest, hand, tools.downloader)
    result = _afterwards(whole, added, {**refs(whole, before), **hand.present})
    write_papers(folder, result)
    names = {pin.name for pin in found} - {dist.name for dist in added}
    return Built(
        manifest=result,
        added=tuple(added),
        held=tuple(dist for dist in manifest.distributions if dist.name in names),
        findings=(
            *hand.findings,
            *moves(manifest, added),
            *public_runtimes(manifest, added),
            *not_enough(result),
        ),
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
    """What a resolution must not break: the protected builds, and what the distributions of the
    target ask of each other. What is not there is bounded as well, so that what comes in suits
    those that are; only a bound that the target itself breaks is none."""
    lines = set(pins([(d.name, d.version) for d in manifest.protected], arbitrary=False))
    for dist in manifest.distributions:
        for raw in dist.requires:
            requirement = parse_requirement(raw)
            if requirement is None or requirement.url or not requirement.specifier:
                continue
            name = canonicalize_name(requirement.name)
            there = manifest.find(name)
            broken = there is not None and not satisfies(there.version, requirement.specifier)
            if applies(requirement, manifest.target.markers) and not broken:
                lines.add(f"{name}{requirement.specifier}")
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
        and not same_version(old.version, dist.version)
    ]


def public_runtimes(manifest: Manifest, added: Iterable[Distribution]) -> list[Finding]:
    """What belongs to the public builds of a stack, and was added beside a vendor's."""
    vendor = next((str(dist) for dist in manifest.protected if dist.vendor), "")
    return [
        Finding(
            code="build.public-runtime",
            subject=dist.name,
            what=f"'{dist.version}' comes with public builds, and '{vendor}' is none",
            why="it is of no use to the vendor's build, or stands in its way",
            hint="see which request needs it: envlock wheelhouse check; leave that one out",
        )
        for dist in added
        if vendor and _PUBLIC_RUNTIME.match(dist.name)
    ]


def _fetch(
    wanted: Sequence[Pin], folder: str, target: LockedTarget, tools: Tools, scratch: str
) -> list[Distribution]:
    """Gets what the folder does not have, and judges it.

    Raises:
        OSError: the folder cannot be written.
    """
    have = {name: dist for name, dist in wheels_before(folder).items() if dist.wheel is not None}
    there = [pin for pin in wanted if _is_there(pin, have.get(pin.name), folder)]
    missing = [pin for pin in wanted if pin not in there]
    added = [replace(have[pin.name], protected=False, vendor=()) for pin in there]
    from_source = [pin for pin in missing if not pin.wheels and pin.sdist is not None]
    built = build_pure(tools.builder, from_source, scratch)
    ready = [pin for pin in missing if pin not in from_source]
    names = tools.downloader.download(ready, target, folder) if ready else ()
    wheels = [inspect_wheel(os.path.join(folder, name)) for name in names]
    _refuse_bad(ready, wheels, target)
    _refuse_bad([replace(b.pin, hashes=()) for b in built], [b.wheel for b in built], target)
    for one in built:
        os.replace(one.wheel.path, os.path.join(folder, one.wheel.file))
    pins = {pin.name: pin for pin in ready}
    return [
        *added,
        *(entry(wheel, pins[wheel.name].origin, _url_of(pins[wheel.name])) for wheel in wheels),
        *(entry(one.wheel, "built", one.url) for one in built),
    ]


def _url_of(pin: Pin) -> str:
    """Where a wheel that the request names itself can be had; an index needs no saying."""
    return shareable(pin.wheels[0].urls[0]) if pin.origin == "url" and pin.wheels else ""


def _is_there(pin: Pin, dist: Distribution | None, folder: str) -> bool:
    if dist is None or dist.wheel is None or not _same(pin, dist):
        return False
    sha256 = sha256_of(os.path.join(folder, dist.wheel.file))
    if sha256 != dist.wheel.sha256:
        return False
    if pin.wheels or pin.hashes:
        return sha256 in pin.hashes
    return dist.wheel.origin == "built" and dist.wheel.url == source_mark(pin) != ""


def _refuse_bad(wanted: Sequence[Pin], wheels: Sequence[WheelFile], target: LockedTarget) -> None:
    """Raises:
    Refused: a wheel is broken, does not fit, has other bytes than were resolved, or is missing.
    """
    hashes = {pin.name: pin.hashes for pin in wanted}
    bad = [f"'{problem.subject}': {problem.what}" for w in wheels for problem in w.errors]
    for wheel in wheels:
        expected = hashes.get(wheel.name)
        if expected is None or (expected and wheel.sha256 not in expected):
            bad.append(f"'{wheel.file}' has other bytes than the index said")
        elif not parse_wheel_name(wheel.file).fits(target.tags):
            bad.append(f"'{wheel.file}' does not fit the target")
    got = {wheel.name for wheel in wheels}
    bad += [f"'{pin.name} {pin.version}' was not found" for pin in wanted if pin.name not in got]
    if bad:
        for wheel in wheels:
            if any(f"'{wheel.file}'" in said for said in bad):
                os.unlink(wheel.path)
        raise Refused(f"wheelhouse: {'; '.join(bad)}", "try another index or another version")


def entry(wheel: WheelFile, origin: str = "index", url: str = "") -> Distribution:
    """A manifest's entry for what a wheel will put into a target."""
    ref = WheelRef(file=wheel.file, sha256=wheel.sha256, size=wheel.size, origin=origin, url=url)
    return Distribution(
        name=wheel.name,
        version=wheel.version,
        requires=wheel.requires,
        content=wheel.content,
        files=len(wheel.files),
        bytes=sum(found.size for found in wheel.files.values()),
        executable=wheel.executable,
        wheel=ref,
    )


def _afterwards(
    manifest: Manifest, added: Sequence[Distribution], present: Mapping[str, WheelRef]
) -> Manifest:
    """What the target will have; wheels only where the folder has them, or had them: a hash that
    is known says what was lost."""
    fresh = {dist.name: dist for dist in added}
    stays = [
        replace(dist, wheel=present.get(dist.name))
        for dist in manifest.distributions
        if dist.name not in fresh
    ]
    together = tuple(sorted([*stays, *fresh.values()], key=lambda dist: dist.key))
    still = {(one.subject, one.what) for one in unsatisfied(together, manifest.target.markers)}
    health = [
        one
        for one in manifest.health
        if one.code not in REQUIREMENT_CODES or (one.subject, one.what) in still
    ]
    return replace(manifest, distributions=together, health=tuple(health))
