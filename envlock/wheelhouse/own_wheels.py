"""Wheels that lie in a wheelhouse and that no harvest made: published ones, a vendor's own."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from envlock.adapters.wheelfile import WheelFile, inspect_wheel
from envlock.model.dist import Distribution, WheelRef
from envlock.model.label import same_version
from envlock.model.wheels import parse_wheel_name
from envlock.wheelhouse.folder import sha256_of, wheel_files


class OwnWheels:
    """What to do about wheels that are in the folder already when one was rebuilt.

    Args:
        folder: the wheelhouse.
        written: distributions as the folder's manifest has them.
        known: distributions whose manifest may know a wheel that was never in the folder.
        tags: of the target.
    """

    def __init__(
        self,
        folder: str,
        written: Iterable[Distribution],
        known: Iterable[Distribution],
        tags: Iterable[str],
    ) -> None:
        ours = [dist.wheel for dist in written if dist.wheel is not None]
        others = [dist.wheel for dist in known if dist.wheel is not None]
        self._folder, self._tags = folder, tuple(tags)
        self._rebuilt = {wheel.file: wheel.sha256 for wheel in ours if wheel.origin == "rebuilt"}
        self._by_hash = {wheel.sha256: wheel for wheel in (*others, *ours)}

    def instead(self, dist: Distribution, content: str, made: WheelRef) -> WheelRef | None:
        """The wheel that is there, sound and with the same content as the one made now."""
        for file in self._candidates(dist, made.file):
            path = os.path.join(self._folder, file)
            sha256 = sha256_of(path)
            if file == made.file and sha256 == made.sha256:
                return made
            if self._rebuilt.get(file) == sha256:  # made by a harvest, and now in another way
                continue
            wheel = inspect_wheel(path)
            if not wheel.errors and wheel.content == content:
                return self._ref(wheel)
        return None

    def may_go(self, file: str) -> bool:
        """Whether a file of this name may be written over: only a harvest's own may."""
        return file in self._rebuilt or not os.path.lexists(os.path.join(self._folder, file))

    def _candidates(self, dist: Distribution, first: str) -> Iterator[str]:
        """Names of wheels of the same version that fit the target, that one first."""
        there = wheel_files(self._folder)
        yield from (file for file in there if file == first)
        for file in there:
            try:
                name = parse_wheel_name(file)
            except ValueError:
                continue
            same = name.name == dist.name and same_version(name.version, dist.version)
            if same and file != first and name.fits(self._tags):
                yield file

    def _ref(self, wheel: WheelFile) -> WheelRef:
        known = self._by_hash.get(wheel.sha256)
        if known is not None and known.file == wheel.file:
            return known
        return WheelRef(file=wheel.file, sha256=wheel.sha256, size=wheel.size, origin="file")
