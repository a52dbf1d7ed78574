"""harvest: wheels from what is installed, on the machine that still has it."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from envlock.adapters import files
from envlock.adapters.deflating import COMPRESSORS, FAST, Compressor
from envlock.adapters.installed import Installed, read_installed
from envlock.errors import EnvlockError
from envlock.model.diff import losses, vanished
from envlock.model.dist import Distribution, WheelRef
from envlock.model.facts import Finding, Target
from envlock.model.manifest import Manifest
from envlock.wheelhouse.folder import (
    cannot_write,
    make_folder,
    refuse_losses,
    scratch,
    sha256_of,
    strangers,
    wheels_before,
    write_papers,
)
from envlock.wheelhouse.own_wheels import OwnWheels
from envlock.wheelhouse.owners import Owners
from envlock.wheelhouse.rebuild import Packing, Rebuilt, rebuild

#: envlock installed into the target is a tool there, and no part of what is kept.
_OWN = "envlock"

Advance = Callable[[int], None]
#: Judges a distribution once its wheel was read back.
Later: TypeAlias = Callable[[], "Distribution | None"]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """What people may want of a harvest.

    Attributes:
        in_force: the manifest was written before, so its content digests speak for the files on
            the disk. Otherwise it was read off the target just now, and only RECORD can tell that
            a file was changed.
        compress: name of a compressor; wheels that another one made are made again. None: the
            default one, and wheels that are there stay.
        untracked: pack the files in a distribution's own folders that no RECORD lists.
    """

    in_force: bool = True
    compress: str | None = None
    untracked: bool = False

    @property
    def compressor(self) -> Compressor:
        """What makes the wheels."""
        return COMPRESSORS[self.compress] if self.compress else FAST


def harvest(
    target: Target,
    manifest: Manifest,
    folder: str,
    how: How | None = None,
    advance: Advance | None = None,
) -> Harvest:
    """Rebuilds a wheel for every installed distribution but editables and envlock's own.

    Args:
        manifest: what the target should be.
        folder: the wheelhouse; made if it is not there. Wheels in it that are right are kept.
        advance: called with the number of files done since the last call.

    Raises:
        Refused: the folder's own manifest protects a build that would be lost.
        UnusableInput: the folder cannot be written; what is finished is kept.
    """
    how = how or How()
    # what a person locked may have another build of the same; what is there by chance may not
    refuse_losses(folder, manifest, vanished if how.in_force else losses)
    make_folder(folder)
    installed = {dist.name: dist for dist in read_installed(target.layout)}
    try:
        with (
            scratch(folder) as staging,
            ThreadPoolExecutor(1) as reader,
        ):
            packing = Packing(
                target=target, staging=staging, compressor=how.compressor, advance=advance
            )
            owners = Owners(installed.values(), target.layout)
            work = _Work(packing, folder, how, owners, reader, manifest)
            try:
                work.run(installed)
            except BaseException:  # an interrupt, too: what is finished stays
                work.keep_finished()
                raise
    except OSError as error:
        raise cannot_write(folder, error) from error
    result = replace(manifest, distributions=_sorted(work.entries))
    write_papers(folder, result)
    return Harvest(
        manifest=result,
        packed=tuple(work.packed),
        kept=tuple(work.kept),
        findings=(*work.findings, *strangers(folder, result)),
    )


def _sorted(entries: Iterable[Distribution]) -> tuple[Distribution, ...]:
    return tuple(sorted(entries, key=lambda dist: dist.key))


class _Work:
    """One harvest: what it has packed, kept and found so far."""

    def __init__(
        self,
        packing: Packing,
        folder: str,
        how: How,
        owners: Owners,
        reader: Executor,
        manifest: Manifest,
    ) -> None:
        self._packing, self._folder, self._how = packing, folder, how
        self._owners, self._reader, self._manifest = owners, reader, manifest
        self._before = wheels_before(folder)
        self._own = OwnWheels(
            folder, self._before.values(), manifest.distributions, packing.target.tags
        )
        self._waiting: deque[Later] = deque()
        self._reading: deque[Future[Rebuilt]] = deque()
        self.entries: list[Distribution] = []
        self.packed: list[WheelRef] = []
        self.kept: list[WheelRef] = []
        self.findings: list[Finding] = []

    def run(self, installed: Mapping[str, Installed]) -> None:
        """Packs everything; a wheel is read back while the next one is packed, and is in the
        folder as soon as it was judged."""
        for dist in self._manifest.distributions:
            if dist.name != _OWN:
                self._waiting.append(self.known(dist, installed))
                self._judge_ready()
        known = {dist.name for dist in self._manifest.distributions}
        for name in sorted(set(installed) - known):
            self._waiting.extend(self.new(installed[name]))
            self._judge_ready()
        while self._waiting:
            self._judge_next()

    def _judge_ready(self) -> None:
        """Judges the oldest ones, as long as none is still being read."""
        while self._waiting and (not self._reading or self._reading[0].done()):
            self._judge_next()

    def _judge_next(self) -> None:
        found = self._waiting.popleft()()
        if found is not None:
            self.entries.append(found)

    def keep_finished(self) -> None:
        """Ends a run that failed: every wheel that was packed is in the folder and its papers."""
        with suppress(OSError, EnvlockError):
            while self._waiting:
                self._judge_next()
        if not self.packed:
            return
        bare = {dist.name: replace(dist, wheel=None) for dist in self._manifest.distributions}
        done = {dist.name: dist for dist in self.entries if dist.wheel is not None}
        together = {**bare, **self._before, **done}
        with suppress(EnvlockError):  # the disk may be full; the first error is the one to tell
            write_papers(
                self._folder, replace(self._manifest, distributions=_sorted(together.values()))
            )

    def known(self, dist: Distribution, installed: Mapping[str, Installed]) -> Later:
        """A distribution of the manifest, with its wheel if there is one now."""
        old, there = self._before.get(dist.name), installed.get(dist.name)
        more = self._owners.untracked(there) if there is not None and not there.reason else {}
        if old is not None and self._still_right(dist, old) and not (more and self._how.untracked):
            if self._packing.advance:
                self._packing.advance(dist.files)
            return partial(self._keep, dist, old)
        bare = replace(dist, wheel=None)
        if there is None or dist.editable or there.editable or not dist.content:
            return partial(self._without, bare, there)
        if there.version != dist.version:
            return partial(self._without, bare, there)
        made = self._pack(there, more)
        return lambda: self._judge(bare, made(), self._how.in_force)

    def _keep(self, dist: Distribution, old: Distribution) -> Distribution:
        assert old.wheel is not None
        self.kept.append(old.wheel)
        return replace(dist, wheel=old.wheel)

    def _without(self, dist: Distribution, there: Installed | None) -> Distribution:
        if dist.editable or (there is not None and there.editable):
            self._find("harvest.editable", dist, "is installed in development mode", level="info")
        elif not dist.content:
            self._not_kept(dist, dist.reason or "the manifest has no content digest for it")
        elif there is None:
            self._find("harvest.not-installed", dist, f"'{dist.version}' is not installed any more")
        else:
            what = f"'{there.version}' is installed, the manifest has '{dist.version}'"
            self._find("harvest.changed", dist, what)
        return dist

    def _pack(self, there: Installed, more: Mapping[str, str]) -> Callable[[], Rebuilt]:
        """Writes the wheel now; the result is judged in the background."""
        judge = rebuild(there, self._packing, more if self._how.untracked else None)
        made = self._reader.submit(judge)
        self._reading.append(made)

        def wait() -> Rebuilt:
            self._reading.popleft()  # they are judged in this order
            if more:
                self._tell_untracked(there, list(more))
            return made.result()

        return wait

    def _tell_untracked(self, there: Installed, places: Sequence[str]) -> None:
        told = "packed" if self._how.untracked else "not packed"
        self.findings.append(
            Finding(
                code="harvest.untracked",
                subject=there.name,
                what=f"{told}: {_named(places)} in its folders, and no RECORD lists it",
                why="" if self._how.untracked else "no installer put it there",
                hint="" if self._how.untracked else "pack it, too: --with-untracked",
                level="info" if self._how.untracked else "warning",
            )
        )

    def new(self, there: Installed) -> list[Later]:
        """A distribution that the manifest does not have."""
        if there.editable or there.name == _OWN:
            return []
        made = self._pack(there, self._owners.untracked(there) if not there.reason else {})
        return [lambda: self._judge_new(there, made())]

    def _judge_new(self, there: Installed, made: Rebuilt) -> Distribution | None:
        dist = Distribution(
            name=there.name,
            version=there.version,
            requires=there.metadata.requires,
            reason=made.reason,
        )
        found = self._judge(dist, made, False)
        if found.wheel is None:
            return None
        what = f"'{there.version}' is not in the manifest; packed all the same"
        self._find("harvest.new", dist, what, "lock it: envlock snapshot, then harvest", "warning")
        return found

    def _still_right(self, dist: Distribution, old: Distribution) -> bool:
        if old.wheel is None or not dist.content or old.content != dist.content:
            return False
        # nobody can make a published wheel again: it stays however it was compressed
        chosen = self._how.compress and old.wheel.origin == "rebuilt"
        if chosen and old.wheel.compressor != self._packing.compressor.version:
            return False
        return sha256_of(os.path.join(self._folder, old.wheel.file)) == old.wheel.sha256

    def _judge(self, dist: Distribution, made: Rebuilt, locked: bool) -> Distribution:
        """The distribution with its wheel, which now has its final name; without one when its
        content is not what it should be.

        Args:
            locked: the content digest of ``dist`` was written before the files were read now.
        """
        if made.reason or made.wheel is None:
            self._not_kept(dist, made.reason)
            return dist
        writers = {
            place: self._owners.writers(place, dist.name, made.files[place].hex)
            for place in made.mismatched
        }
        changed = _changed([place for place, names in writers.items() if not names])
        if locked and made.tracked != dist.content:
            what = f"'{dist.version}' has other bytes than the manifest says"
            told = _changed(made.mismatched)
            told = f"{what}: {told} not as RECORD says" if told else what
            self._find("harvest.changed", dist, told)
            return dist
        if changed and not locked:
            self._find("harvest.record", dist, f"{changed} not what its RECORD says")
            return replace(dist, content=made.tracked)
        if changed:
            what = f"{changed} not what its RECORD says; packed, as the manifest has it so"
            self._find("harvest.record", dist, what, level="warning")
        for place, names in writers.items():
            if names:
                what = f"'{place}' is as '{names[0]}' wrote it, which owns it, too; packed so"
                self._find("harvest.two-owners", dist, what, level="warning")
        wheel = self._place(dist, made)
        if wheel is None or made.content == dist.content:
            return replace(dist, wheel=wheel)
        return replace(  # RECORD alone was read before, or more was packed
            dist,
            wheel=wheel,
            content=made.content,
            files=len(made.files),
            bytes=sum(found.size for found in made.files.values()),
            executable=tuple(sorted({*dist.executable, *_executable(made.files)})),
        )

    def _place(self, dist: Distribution, made: Rebuilt) -> WheelRef | None:
        """Puts the wheel into the folder, unless one is there that no harvest made.

        Returns:
            The wheel that gives the distribution back; None where what is there does not.
        """
        assert made.wheel is not None
        there = self._own.instead(dist, made.content, made.wheel)
        if there is not None:
            self.kept.append(there)
            return there
        if self._own.may_go(made.wheel.file):
            os.replace(made.path, os.path.join(self._folder, made.wheel.file))
            self.packed.append(made.wheel)
            return made.wheel
        what = f"'{made.wheel.file}' is there, is not what is installed, and no harvest made it"
        self._find("harvest.other-wheel", dist, what)
        old = self._before.get(dist.name)
        same = old is not None and old.version == dist.version and old.content == dist.content
        return old.wheel if old is not None and same else None

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
            "harvest.other-wheel": "move that file to another folder, then harvest again",
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


def _named(places: Sequence[str]) -> str:
    """``'lib/a.py'``, or ``'lib/a.py' and 2 more``."""
    more = f" and {len(places) - 1} more" if len(places) > 1 else ""
    return f"'{places[0]}'{more}"


def _executable(packed: Mapping[str, files.Hashed]) -> tuple[str, ...]:
    return tuple(sorted(p for p, f in packed.items() if f.executable and not p.startswith("bin/")))


def _changed(places: Sequence[str]) -> str:
    """``'lib/a.py' and 2 more are``; empty for none."""
    return f"{_named(places)} {'are' if len(places) > 1 else 'is'}" if places else ""
