"""harvest: wheels from what is installed, on the machine that still has it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from envlock.adapters import files
from envlock.adapters.installed import Installed, read_installed
from envlock.model.dist import Distribution, WheelRef
from envlock.model.facts import Finding, Target
from envlock.model.manifest import Manifest
from envlock.wheelhouse.folder import (
    cannot_write,
    make_folder,
    wheel_files,
    wheels_before,
    write_papers,
)
from envlock.wheelhouse.rebuild import Rebuilt, rebuild

_PART = ".part-"
#: envlock installed into the target is a tool there, and no part of what is kept.
_OWN = "envlock"

Advance = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Harvest:
    """What a harvest did.

    Attributes:
        manifest: as written to ``envlock.yaml``.
        packed: wheels written now.
        kept: wheels that were there already and are right.
        findings: what was not packed, and why; an error among them means the answer is no.
    """

    manifest: Manifest
    packed: tuple[WheelRef, ...]
    kept: tuple[WheelRef, ...]
    findings: tuple[Finding, ...]


def harvest(
    target: Target,
    manifest: Manifest,
    folder: str,
    *,
    in_force: bool = True,
    advance: Advance | None = None,
) -> Harvest:
    """Rebuilds a wheel for every installed distribution but editables and envlock's own.

    Args:
        manifest: what the target should be.
        folder: the wheelhouse; made if it is not there. Wheels in it that are right are kept.
        in_force: the manifest was written before, so its content digests speak for the files on
            the disk. Otherwise it was read off the target just now, and only RECORD can tell that
            a file was changed.
        advance: called with the number of files done since the last call.

    Raises:
        UnusableInput: the folder cannot be written.
    """
    make_folder(folder)
    installed = {dist.name: dist for dist in read_installed(target.layout)}
    before = wheels_before(folder)
    work = _Work(target, folder, in_force, advance or (lambda count: None))
    wanted = [dist for dist in manifest.distributions if dist.name != _OWN]
    try:
        _clear(folder)
        with tempfile.TemporaryDirectory(prefix=_PART, dir=folder) as staging:
            entries = [work.known(d, installed, before, staging) for d in wanted]
            for name in sorted(set(installed) - {dist.name for dist in manifest.distributions}):
                entries += work.new(installed[name], staging)
    except OSError as error:
        raise cannot_write(folder, error) from error
    result = replace(manifest, distributions=tuple(sorted(entries, key=lambda dist: dist.key)))
    write_papers(folder, result)
    return Harvest(
        manifest=result,
        packed=tuple(work.packed),
        kept=tuple(work.kept),
        findings=(*work.findings, *_strangers(folder, result)),
    )


def _clear(folder: str) -> None:
    """Removes what a run that was killed left behind."""
    for left in Path(folder).glob(f"{_PART}*"):
        files.remove_tree(os.fspath(left))


def _strangers(folder: str, manifest: Manifest) -> list[Finding]:
    known = {dist.wheel.file for dist in manifest.distributions if dist.wheel is not None}
    return [
        Finding(
            code="wheelhouse.unknown-wheel",
            subject=name,
            what="is in the folder, but not in its manifest",
            why="'pip install --find-links' takes it all the same",
            hint="remove it if nobody needs it",
        )
        for name in wheel_files(folder)
        if name not in known
    ]


class _Work:
    """One harvest: what it has packed, kept and found so far."""

    def __init__(self, target: Target, folder: str, in_force: bool, advance: Advance) -> None:
        self._target, self._folder = target, folder
        self._in_force, self._advance = in_force, advance
        self.packed: list[WheelRef] = []
        self.kept: list[WheelRef] = []
        self.findings: list[Finding] = []

    def known(
        self,
        dist: Distribution,
        installed: Mapping[str, Installed],
        before: Mapping[str, Distribution],
        staging: str,
    ) -> Distribution:
        """A distribution of the manifest, with its wheel if there is one now."""
        old = before.get(dist.name)
        if old is not None and self._still_right(dist, old):
            assert old.wheel is not None
            self.kept.append(old.wheel)
            self._advance(dist.files)
            return replace(dist, wheel=old.wheel)
        bare = replace(dist, wheel=None)
        there = installed.get(dist.name)
        if dist.editable or (there is not None and there.editable):
            self._find("harvest.editable", dist, "is installed in development mode", level="info")
        elif not dist.content:
            self._not_kept(dist, dist.reason or "the manifest has no content digest for it")
        elif there is None:
            self._find("harvest.not-installed", dist, f"'{dist.version}' is not installed any more")
        elif there.version != dist.version:
            what = f"'{there.version}' is installed, the manifest has '{dist.version}'"
            self._find("harvest.changed", dist, what)
        else:
            made = rebuild(there, self._target, staging, self._advance)
            return replace(dist, wheel=self._judge(dist, made, self._in_force))
        return bare

    def new(self, there: Installed, staging: str) -> list[Distribution]:
        """A distribution that the manifest does not have."""
        if there.editable or there.name == _OWN:
            return []
        made = rebuild(there, self._target, staging, self._advance)
        dist = Distribution(
            name=there.name,
            version=there.version,
            requires=there.metadata.requires,
            content=made.content,
            files=len(made.files),
            bytes=sum(found.size for found in made.files.values()),
            executable=_executable(made.files),
            reason=made.reason,
        )
        wheel = self._judge(dist, made, False)
        if wheel is not None:
            what = f"'{there.version}' is not in the manifest; packed all the same"
            self._find(
                "harvest.new", dist, what, "lock it: envlock snapshot, then harvest", "warning"
            )
        return [replace(dist, wheel=wheel)] if wheel is not None else []

    def _still_right(self, dist: Distribution, old: Distribution) -> bool:
        if old.wheel is None or not dist.content or old.content != dist.content:
            return False
        try:
            found = files.sha256(os.path.join(self._folder, old.wheel.file))
        except OSError:
            return False
        return found == old.wheel.sha256

    def _judge(self, dist: Distribution, made: Rebuilt, locked: bool) -> WheelRef | None:
        """The wheel under its final name, unless its content is not what it should be.

        Args:
            locked: the content digest of ``dist`` was written before the files were read now.
        """
        if made.reason:
            self._not_kept(dist, made.reason)
            return None
        changed = _files(made.mismatched)
        if made.content != dist.content:
            what = f"'{dist.version}' has other bytes than the manifest says"
            self._find(
                "harvest.changed",
                dist,
                f"{what}: {changed} not as RECORD says" if changed else what,
            )
            return None
        if changed and not locked:
            self._find("harvest.record", dist, f"{changed} not what its RECORD says")
            return None
        if changed:
            what = f"{changed} not what its RECORD says; packed, as the manifest has it so"
            self._find("harvest.record", dist, what, level="warning")
        file = os.path.basename(made.path)
        os.replace(made.path, os.path.join(self._folder, file))
        wheel = WheelRef(file=file, sha256=made.sha256, size=made.size, origin="rebuilt")
        self.packed.append(wheel)
        return wheel

    def _not_kept(self, dist: Distribution, reason: str) -> None:
        level = "error" if dist.protected or dist.content else "warning"
        what = f"'{dist.version}' cannot be packed: {reason}"
        self._find("harvest.impossible", dist, what, "keep the vendor's own wheel of it", level)

    def _find(
        self, code: str, dist: Distribution, what: str, hint: str = "", level: str = "error"
    ) -> None:
        advice = {
            "harvest.changed": "put it back with 'envlock restore', or lock the change with "
            "'envlock snapshot --force'",
            "harvest.not-installed": "put it back with 'envlock restore', or take a new snapshot",
            "harvest.record": "lock it as it is with 'envlock snapshot', then harvest",
        }
        self.findings.append(
            Finding(
                code=code,
                subject=dist.name,
                what=what,
                why="" if level != "error" else "not packed",
                hint=hint or (advice.get(code, "") if level == "error" else ""),
                level=level,
            )
        )


def _executable(packed: Mapping[str, files.Hashed]) -> tuple[str, ...]:
    return tuple(sorted(p for p, f in packed.items() if f.executable and not p.startswith("bin/")))


def _files(places: tuple[str, ...]) -> str:
    """``'lib/a.py' and 2 more are``; empty for none."""
    if not places:
        return ""
    more = f" and {len(places) - 1} more are" if len(places) > 1 else " is"
    return f"'{places[0]}'{more}"
