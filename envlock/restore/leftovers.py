"""What broken installers left, and what another program changes while a restore is at work."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from envlock.adapters.files import seal
from envlock.adapters.installed import Installed, Inventory, site_folders
from envlock.errors import RestoreFailed
from envlock.model.facts import Finding, Layout
from envlock.model.label import same_version
from envlock.restore.plan import Step


def leftovers(layout: Layout, inventory: Inventory, known: Collection[str]) -> list[str]:
    """Absolute paths that interrupted installers left: they go, whatever is restored.

    ``~orch…``, which some tools read as the real thing, and metadata folders with neither METADATA
    nor RECORD: pip writes both last and removes both with the rest. Of a name in ``known`` such a
    folder is replaced with the distribution.
    """
    names = [found.subject for found in inventory.findings if found.code == "dist.leftover"]
    paths = [os.path.join(site, name) for site in site_folders(layout) for name in names]
    shells = [
        dist.path for dist in inventory.distributions if dist.name not in known and _is_shell(dist)
    ]
    return [path for path in (*paths, *shells) if os.path.lexists(path)]


def _is_shell(dist: Installed) -> bool:
    return dist.dist_info.endswith(".dist-info") and not any(
        os.path.lexists(os.path.join(dist.path, name)) for name in ("METADATA", "RECORD")
    )


def twins(inventory: Inventory, steps: Iterable[Step]) -> list[str]:
    """Absolute paths of metadata that a distribution has beside the one that it will have."""
    found = []
    for step in steps:
        there = inventory.named(step.name)
        if len(there) > 1:
            wanted = step.wanted.version if step.wanted else ""
            others = [one.path for one in there if not same_version(one.version, wanted)]
            found += others or [one.path for one in there[1:]]
    return found


def foreign_records(going: Sequence[Installed]) -> list[Finding]:
    """A word for what conda installed: it keeps lists of its own, which nobody else may write."""
    names = [dist.name for dist in going if _installer(dist) == "conda"]
    if not names:
        return []
    return [
        Finding(
            code="restore.conda",
            subject=", ".join(dict.fromkeys(names)),
            what="was installed by conda, whose own records are not updated",
            why="'conda list' goes on naming the old version, and 'conda update' may bring it back",
            hint="'conda update --freeze-installed' leaves it alone; envlock verify says what is",
        )
    ]


def _installer(dist: Installed) -> str:
    try:
        return Path(dist.path, "INSTALLER").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamps:
    """How things stood when the plan was made.

    Attributes:
        metadata: seal of each distribution's RECORD by its metadata's path; () without one. pip
            and uv move it away first and write it last, so that it tells of any of their runs.
        files: seals of what goes; () where nothing is.
    """

    metadata: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    files: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def refuse_changes(self, layout: Layout) -> None:
        """Asks once more before the swap.

        Raises:
            RestoreFailed: something is not as it was when the plan was made.
        """
        now = records_of(layout)
        moved = [path for path in sorted(now.keys() | self.metadata.keys())
                 if now.get(path) != self.metadata.get(path)]  # fmt: skip
        moved += [path for path, stamp in self.files.items() if _stamp(path) != stamp]
        if moved:
            more = f" and {len(moved) - 1} more" if len(moved) > 1 else ""
            raise RestoreFailed(
                f"restore: '{moved[0]}'{more} changed while the wheels were unpacked; "
                "the target is as it was",
                "let the other program end, and run it again",
            )


def records_of(layout: Layout) -> dict[str, tuple[int, ...]]:
    """Seal of the RECORD in each metadata folder of a target, by that folder's path."""
    return {
        os.path.join(site, name): _stamp(os.path.join(site, name, "RECORD"))
        for site in site_folders(layout)
        for name in (os.listdir(site) if os.path.isdir(site) else ())
        if name.endswith((".dist-info", ".egg-info"))
    }


def files_of(dists: Iterable[Installed]) -> dict[str, tuple[int, ...]]:
    """Seals of the files that RECORD names."""
    paths = (
        f"{dist.site}{os.sep}{row.path}"
        for dist in dists
        for row in dist.rows or ()
        if not row.path.endswith(".pyc")  # a program that runs may write these
    )
    return {path: _stamp(path) for path in paths}


def _stamp(path: str) -> tuple[int, ...]:
    try:
        status = os.lstat(path)
    except (OSError, ValueError):  # not there; a NUL in it
        return ()
    # a RECORD may name the very folder that the transaction is in
    return () if stat.S_ISDIR(status.st_mode) else seal(status)
