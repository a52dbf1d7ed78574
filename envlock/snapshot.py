"""snapshot: a target becomes a manifest."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote, urlsplit

from envlock.adapters.installed import (
    Content,
    Installed,
    Inventory,
    names_of,
    read_contents,
    read_inventory,
    site_folders,
)
from envlock.adapters.linked import runtime_library
from envlock.adapters.modules import module_facts
from envlock.errors import UnusableInput
from envlock.model.dist import Distribution, WheelRef
from envlock.model.facts import Finding, Machine, Target
from envlock.model.health import overlaps, unsatisfied
from envlock.model.label import parse_label
from envlock.model.manifest import LockedTarget, Manifest, Stack
from envlock.model.masking import mask, shareable, without_places
from envlock.model.profile import Profile
from envlock.model.wheels import parse_wheel_name

_SHA256 = re.compile(r"[0-9a-fA-F]{64}\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a snapshot is made of besides the target.

    Attributes:
        protect: canonical names to protect beyond the profile's.
        trust_record: take digests from RECORD instead of reading files.
        created: time of the snapshot, UTC, ISO 8601 with ``Z``.
        tool: ``envlock 0.1.0``.
        stack: root and release as found on this machine; the tag comes from the labels.
        noticed: what was noticed while looking at the machine.
        known: the manifest remembered for this target, if any. A build that has its bytes is that
            build, and keeps its signals and its protection: a restore leaves no direct_url.json.
    """

    profile: Profile
    machine: Machine
    stack: Stack
    created: str
    tool: str
    noticed: tuple[Finding, ...] = ()
    protect: tuple[str, ...] = ()
    trust_record: bool = False
    known: Manifest | None = None


def take(
    target: Target, request: Request, advance: Callable[[int], None] | None = None
) -> tuple[Manifest, list[Finding]]:
    """Reads a target.

    Args:
        advance: called with the number of files done since the last call.

    Returns:
        The manifest, and findings for the person: broken distributions, builds that look public.

    Raises:
        UnusableInput: the target's site-packages cannot be read.
    """
    _need_readable(target)
    inventory = read_inventory(target.layout)
    installed = inventory.distributions
    contents = read_contents(
        installed, target.layout, trust_record=request.trust_record, advance=advance
    )
    prefix = target.layout.prefix
    dists = [_entry(i, c, request, prefix) for i, c in zip(installed, contents, strict=True)]
    shadows = shadowed(target, inventory)
    health = [
        *(_shareable(finding, target) for finding in (*inventory.findings, *shadows)),
        *overlaps((d.name, c.files) for d, c in zip(dists, contents, strict=True)),
        *unsatisfied(dists, target.markers),
    ]
    stack = replace(request.stack, tag=_tag(dists, request.profile))
    manifest = Manifest(
        name=f"{stack.tag or request.profile.name}-{target.short}",
        created=request.created,
        tool=request.tool,
        profile=request.profile.name,
        stack=stack,
        target=LockedTarget(
            python=target.python,
            markers=dict(sorted(target.markers.items())),
            tags=target.tags,
            paths=target.layout.relative(),
        ),
        machine=request.machine,
        health=tuple(health),
        distributions=tuple(sorted(dists, key=lambda dist: dist.key)),
    )
    found = [*_broken(dists), *_looks_public(dists, request), *inventory.findings, *shadows]
    seen = [*request.noticed, *found]
    return manifest, seen


def _need_readable(target: Target) -> None:
    for folder in (target.layout.purelib, target.layout.platlib):
        try:
            os.listdir(folder)
        except OSError as error:
            raise UnusableInput(
                f"target: '{folder}' cannot be read: {error.strerror}",
                "name the Python whose packages are to be locked with --python",
            ) from error


def _shareable(finding: Finding, target: Target) -> Finding:
    """A finding as a manifest keeps it: no path says whose machine this was."""
    texts = (finding.what, finding.why, finding.hint)
    what, why, hint = (without_places(text, target.layout.prefix) for text in texts)
    return replace(finding, what=what, why=why, hint=hint)


def _entry(installed: Installed, content: Content, request: Request, prefix: str) -> Distribution:
    known = _known(installed.name, content, request)
    vendor = signals(installed, request.profile)
    if known is not None:
        vendor = tuple(dict.fromkeys((*vendor, *known.vendor)))
    profile = request.profile
    named = installed.name in (*profile.names, *profile.public, *request.protect)
    protected = bool(vendor) or named or (known is not None and known.protected)
    return Distribution(
        name=installed.name,
        version=installed.version,
        vendor=vendor,
        protected=protected,
        requires=tuple(map(mask, installed.metadata.requires)),
        content=content.digest,
        files=len(content.files) if content.digest else 0,
        bytes=content.size if content.digest else 0,
        executable=content.executable if content.digest else (),
        wheel=original_wheel(installed.direct_url),
        module=module_facts(installed, profile.runtime.marks) if protected else (),
        editable=installed.editable,
        reason=without_places(content.reason, prefix),
    )


def _known(name: str, content: Content, request: Request) -> Distribution | None:
    """The remembered entry of the same bytes."""
    known = request.known.find(name) if request.known else None
    same = known is not None and bool(known.content) and known.content == content.digest
    return known if same else None


def signals(installed: Installed, profile: Profile) -> tuple[str, ...]:
    """Why an index cannot give this build back: its label, that it came from a direct URL, or that
    it needs a library of the vendor's runtime."""
    found = []
    if profile.knows_label(installed.version):
        found.append("label")
    if installed.direct_url is not None and not installed.editable:
        found.append("direct-url")
    if runtime_library(installed, profile.runtime.linked):
        found.append("runtime-library")
    return tuple(found)


def original_wheel(direct_url: Mapping[str, Any] | None) -> WheelRef | None:
    """The wheel a distribution was installed from, as direct_url.json (PEP 610) keeps it.

    Only with a sha256; the older ``hash: sha256=…`` form is read too.
    """
    url = (direct_url or {}).get("url")
    archive = (direct_url or {}).get("archive_info")
    if not isinstance(url, str) or not isinstance(archive, Mapping):
        return None
    hashes = archive.get("hashes")
    digest = hashes.get("sha256") if isinstance(hashes, Mapping) else None
    if digest is None and str(archive.get("hash", "")).startswith("sha256="):
        digest = str(archive["hash"]).removeprefix("sha256=")
    parts = urlsplit(url)
    name = os.path.basename(unquote(parts.path))
    if not (isinstance(digest, str) and _SHA256.match(digest) and _is_wheel_name(name)):
        return None
    origin = "file" if parts.scheme == "file" else "url"
    return WheelRef(file=name, sha256=digest.lower(), origin=origin, url=shareable(url))


def _is_wheel_name(name: str) -> bool:
    try:
        parse_wheel_name(name)
    except ValueError:
        return False
    return "\\" not in name


def shadowed(target: Target, inventory: Inventory) -> list[Finding]:
    """Distributions of the target that another copy on ``sys.path`` hides or doubles."""
    own = {os.path.realpath(folder) for folder in site_folders(target.layout)}
    names = {dist.name for dist in inventory.distributions}
    found, before = [], True
    for folder in dict.fromkeys(map(os.path.realpath, target.sys_path)):
        if folder in own:
            before = False
            continue
        for name in names_of(folder):
            if name in names:
                found.append(_shadow(name, folder, before))
    return found


def _shadow(name: str, folder: str, before: bool) -> Finding:
    return Finding(
        code="path.shadowed",
        subject=name,
        what=f"another copy {'comes first' if before else 'comes later'} on sys.path: '{folder}'",
        why="import takes the copy that comes first" if before else "",
        level="warning" if before else "info",
    )


def _tag(dists: Sequence[Distribution], profile: Profile) -> str:
    """The stack that most labels of vendor builds name."""
    named: dict[str, int] = {}
    for dist in dists:
        stack = parse_label(dist.version).stack
        if stack and profile.knows_label(dist.version):
            named[stack] = named.get(stack, 0) + 1
    return max(sorted(named), key=lambda tag: named[tag], default="")


def _broken(dists: Sequence[Distribution]) -> list[Finding]:
    return [
        Finding(
            code="dist.broken",
            subject=dist.name,
            what=f"'{dist.version}' has no content digest: {dist.reason}",
            why="it cannot be kept, checked or put back",
            level="error" if dist.protected else "warning",
        )
        for dist in dists
        if dist.reason and not dist.editable
    ]


def _looks_public(dists: Sequence[Distribution], request: Request) -> list[Finding]:
    return [
        Finding(
            code="stack.looks-public",
            subject=dist.name,
            what=f"'{dist.version}' carries no sign of a vendor build",
            why=f"{request.profile.title} usually ships its own; it may have been replaced already",
            hint="restore an earlier manifest if there is one, or ask whoever made the image",
        )
        for dist in dists
        if dist.name in request.profile.names and not dist.vendor
    ]
