"""Wheels of what the target has already: in the wheelhouse, in folders of downloads, at a URL."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from envlock.adapters.found_wheels import FoundWheel, find_wheels, place
from envlock.adapters.resolving import Downloader, Pin, RemoteFile
from envlock.adapters.wheelfile import WheelFile, inspect_wheel
from envlock.errors import ProgramFailed
from envlock.model.dist import Distribution, WheelRef
from envlock.model.facts import Finding
from envlock.model.label import same_version
from envlock.model.manifest import Manifest
from envlock.wheelhouse.folder import sha256_of, wheels_before


@dataclass(slots=True)
class AtHand:
    """What was found while looking.

    Attributes:
        wheels: every file that is a wheel, as it was found and under its right name.
        present: wheels of the manifest's distributions that the wheelhouse has, by name.
        findings: what was renamed, what is no wheel, what is not what it says.
    """

    wheels: tuple[tuple[FoundWheel, FoundWheel], ...] = ()
    present: dict[str, WheelRef] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def look(folder: str, manifest: Manifest, places: Iterable[str], scratch: str) -> AtHand:
    """Takes in the wheels of the target's own distributions, each judged by its content.

    Args:
        folder: the wheelhouse.
        places: folders, files and URLs that people named; what lies in the wheelhouse itself is
            looked at in any case.
        scratch: a folder, in which every misnamed wheel is afterwards under its right name.

    Raises:
        OSError: a folder cannot be written.
    """
    seen = find_wheels([folder, *places])
    usable = [one for one in seen if one.file]
    named = [replace(one, path=place(one, scratch)) if one.misnamed else one for one in usable]
    found = AtHand(wheels=tuple(zip(usable, named, strict=True)))
    found.present |= present_wheels(folder, manifest)
    found.findings += [_problem(one) for one in seen if one.problem]
    found.findings += [_renamed(one) for one in usable if one.misnamed]
    for dist in manifest.distributions:
        if dist.name not in found.present:
            _take(dist, folder, found)
    return found


def present_wheels(folder: str, manifest: Manifest) -> dict[str, WheelRef]:
    """Wheels of the manifest's distributions that the folder has already, by name."""
    before = wheels_before(folder)
    found = {}
    for dist in manifest.distributions:
        for known in (dist, before.get(dist.name)):
            if known is None or known.wheel is None or known.content != dist.content:
                continue
            if sha256_of(os.path.join(folder, known.wheel.file)) == known.wheel.sha256:
                found[dist.name] = known.wheel
    return found


def _take(dist: Distribution, folder: str, found: AtHand) -> None:
    """Puts the first wheel that holds what the target has into the wheelhouse."""
    for original, one in found.wheels:
        if one.name != dist.name or not same_version(one.version, dist.version):
            continue
        wheel = inspect_wheel(one.path)
        why = unlike(wheel, dist)
        if why:
            found.findings.append(_unlike(original, dist, why))
            continue
        place(one, folder)
        if original.misnamed and os.path.dirname(original.path) == os.path.abspath(folder):
            os.unlink(original.path)
        ref = WheelRef(file=one.file, sha256=wheel.sha256, size=wheel.size, origin="file")
        known = dist.wheel if dist.wheel and dist.wheel.sha256 == wheel.sha256 else None
        found.present[dist.name] = replace(known, file=one.file) if known else ref
        return


def unlike(wheel: WheelFile, dist: Distribution) -> str:
    """Why a wheel does not give a distribution back; empty when it does."""
    if wheel.errors:
        return wheel.errors[0].what
    if dist.content and wheel.content:
        same = wheel.content == dist.content
        return "" if same else "it holds other files than the target has"
    if dist.wheel is not None and dist.wheel.sha256 == wheel.sha256:
        return ""
    return "nothing says that it is the same build"


def fetch_vendor(folder: str, manifest: Manifest, found: AtHand, downloader: Downloader) -> None:
    """Fetches the vendor builds whose manifest knows where their wheel can be had.

    One that is not there any more is no reason to give up: a stub takes its part.

    Raises:
        OSError: the wheelhouse cannot be written.
    """
    for dist in manifest.protected:
        wheel = dist.wheel
        if dist.name in found.present or wheel is None or wheel.origin != "url" or not wheel.url:
            continue
        remote = RemoteFile(
            file=wheel.file, urls=(wheel.url,), sha256=wheel.sha256, size=wheel.size
        )
        pin = Pin(dist.name, dist.version, (wheel.sha256,), (remote,), origin="url")
        try:
            downloader.download([pin], manifest.target, folder)
        except ProgramFailed as error:
            found.findings.append(
                Finding(
                    code="build.vendor-wheel",
                    subject=dist.name,
                    what=f"its wheel cannot be had from its URL: {error.message}",
                    why="the wheelhouse cannot put it back",
                    hint="keep it: envlock wheelhouse harvest, on the machine that has it",
                )
            )
        else:
            found.present[dist.name] = wheel


def _problem(wheel: FoundWheel) -> Finding:
    return Finding(
        code="wheel.unusable",
        subject=os.path.basename(wheel.path),
        what=f"is not used: {wheel.problem}",
        why="no installer takes it under a name that is not its own" if wheel.name else "",
        hint="get it again, or give it the name that its METADATA has" if wheel.name else "",
    )


def _renamed(wheel: FoundWheel) -> Finding:
    return Finding(
        code="wheel.renamed",
        subject=os.path.basename(wheel.path),
        what=f"is '{wheel.file}', by what is in it",
        level="info",
    )


def _unlike(one: FoundWheel, dist: Distribution, why: str) -> Finding:
    return Finding(
        code="build.other-build",
        subject=os.path.basename(one.path),
        what=f"is not taken for '{dist}': {why}",
        why="the wheelhouse would put back something else",
        hint="envlock wheelhouse harvest, on the machine that has it",
    )
