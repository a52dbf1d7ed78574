"""Whose files are whose: files of two distributions, and files of none in the folders of one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from envlock.adapters.installed import Installed, content_paths, recorded_digests
from envlock.model.facts import Layout
from envlock.model.record import installed_place, is_content


class Owners:
    """The files of every installed distribution of a target, as their RECORDs list them."""

    def __init__(self, dists: Iterable[Installed], layout: Layout) -> None:
        self._layout = layout
        self._dists = {dist.name: dist for dist in dists}
        self._files: dict[str, set[str]] = {}
        self._folders: dict[str, set[str]] = {}
        for dist in self._dists.values():
            for place in content_paths(dist, layout)[0]:
                self._files.setdefault(place, set()).add(dist.name)
                end = place.rfind("/")
                while end > 0:
                    names = self._folders.setdefault(place[:end], set())
                    if dist.name in names:
                        break  # so are all above it
                    names.add(dist.name)
                    end = place.rfind("/", 0, end)

    def writers(self, place: str, name: str, hexa: str) -> list[str]:
        """Further distributions that own a file and whose RECORD has these bytes (sha256)."""
        return sorted(
            other
            for other in self._files.get(place, set()) - {name}
            if recorded_digests(self._dists[other], self._layout).get(place) == hexa
        )

    def untracked(self, dist: Installed) -> dict[str, str]:
        """Files in the folders of one distribution alone that no RECORD lists.

        Left out is what comes by itself: byte code and what else is cached beside it, and what
        installers write.

        Returns:
            Absolute path by place, in order.
        """
        found: dict[str, str] = {}
        for folder in self._own_folders(dist):
            for path in _walk(os.path.join(dist.site, folder.removeprefix("lib/"))):
                place = installed_place(path, self._layout, dist.name)
                if place is None or place in self._files:
                    continue
                if is_content(place, dist.dist_info, dist.name, dist.scripts):
                    found[place] = path
        return dict(sorted(found.items()))

    def _own_folders(self, dist: Installed) -> Iterator[str]:
        """The topmost folders below ``lib`` in which nobody else has a file."""
        for folder, names in self._folders.items():
            above = folder.rpartition("/")[0]
            if names == {dist.name} and above and self._shared(above):
                yield folder

    def _shared(self, folder: str) -> bool:
        """Whether a folder below ``lib`` (or itself) may hold what belongs to nobody here."""
        if not (folder == "lib" or folder.startswith("lib/")):
            return False
        return folder == "lib" or len(self._folders[folder]) > 1


def _walk(folder: str) -> Iterator[str]:
    """Every file below a folder. Links to folders are not followed: they may lead anywhere."""
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            yield os.path.join(root, name)
