"""After the swap: what is there is what was meant to be there."""

from __future__ import annotations

import os
from collections.abc import Sequence

from envlock.adapters.files import names_in
from envlock.adapters.installed import Installed, Inventory, read_inventory
from envlock.errors import RestoreFailed
from envlock.model.facts import Target
from envlock.model.label import same_version
from envlock.restore.owned import is_plain
from envlock.restore.plan import Plan


def check_swapped(target: Target, plan: Plan) -> Inventory:
    """After the swap: each restored name once, whole, and what was removed is gone.

    Returns:
        What is installed now.

    Raises:
        RestoreFailed: it is not so.
    """
    found = read_inventory(target.layout)
    wrong = []
    for step in plan.steps:
        # folders that were emptied file by file go after the commit
        there = [dist for dist in found.named(step.name) if _has_something(dist.path)]
        problem = _gone(there) if step.wanted is None else _whole(there, step.wanted.version)
        if problem:
            wrong.append(f"'{step.name}' {problem}")
    if wrong:
        raise RestoreFailed(f"restore: {'; '.join(wrong)}; the target is as it was")
    return found


def _has_something(path: str) -> bool:
    return not os.path.isdir(path) or bool(os.listdir(path))


def _gone(there: Sequence[Installed]) -> str:
    return "is still there" if there else ""


def _whole(there: Sequence[Installed], version: str) -> str:
    versions = [dist.version for dist in there]
    if len(versions) != 1 or not same_version(versions[0], version):
        return f"is {', '.join(versions) or 'missing'} after the swap"
    [dist] = there
    lost = _lost(dist)
    return f"has no '{lost}' after the swap" if lost else ""


def _lost(dist: Installed) -> str:
    """The first path of RECORD that is not there; folders are read once, and not file by file."""
    names: dict[str, set[str]] = {}
    for row in dist.rows or ():
        if not is_plain(row.path):
            if not os.path.lexists(os.path.normpath(os.path.join(dist.site, row.path))):
                return row.path
            continue
        folder, _, name = row.path.rpartition("/")
        there = names.get(folder)
        if there is None:
            there = names[folder] = set(names_in(os.path.join(dist.site, folder)))
        if name not in there:
            return row.path
    return ""
