"""restore: plan, preflight, stage, compare, swap, commit; and what is done after a kill."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from envlock.adapters.installed import (
    Content,
    Installed,
    Inventory,
    read_contents,
    read_inventory,
    site_folders,
)
from envlock.adapters.installer import Pinned, Stager
from envlock.errors import RestoreFailed, UnusableInput
from envlock.model.facts import Finding, Target
from envlock.model.label import same_version
from envlock.model.manifest import Manifest
from envlock.restore.holding import all_or_nothing, locked, one_interrupt
from envlock.restore.plan import (
    Plan,
    Present,
    make_plan,
    needed_by,
    target_problems,
    unknown_names,
)
from envlock.restore.preflight import look_at_wheels
from envlock.restore.stage import Advance, Beside, compare, unpack
from envlock.restore.transaction import Transaction, open_transaction
from envlock.restore.units import Planner, Swap


def _nothing(count: int, /) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to be restored, and from where.

    Attributes:
        wheelhouse: folder with the wheels.
        only: canonical names, or ``protected``; empty means all.
        exact: remove what the manifest does not have.
    """

    manifest: Manifest
    wheelhouse: str
    only: Collection[str] = ()
    exact: bool = False
    advance: Advance = field(default=_nothing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a restore did."""

    plan: Plan
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A target compared with a manifest.

    Attributes:
        inventory: what is installed.
        contents: of each distribution that the manifest has, by name.
    """

    plan: Plan
    inventory: Inventory
    contents: Mapping[str, Content] = field(default_factory=dict)


def look(target: Target, wish: Wish) -> Seen:
    """Compares the target with the manifest; reads every file that the manifest has.

    Raises:
        UnusableInput: ``only`` names something the manifest does not have.
    """
    unknown = unknown_names(wish.manifest, wish.only)
    if unknown:
        names = ", ".join(f"'{name}'" for name in unknown)
        there = [dist.name for dist in wish.manifest.distributions]
        close = [near for name in unknown for near in get_close_matches(name, there)]
        raise UnusableInput(
            f"--only: {names}: not in the manifest",
            f"it has {', '.join(close)}" if close else "see its 'distributions'",
        )
    inventory = read_inventory(target.layout)
    known = {dist.name for dist in wish.manifest.distributions}
    read = [dist for dist in inventory.distributions if dist.name in known]
    contents = read_contents(read, target.layout, advance=wish.advance)
    by_name = {dist.name: content for dist, content in zip(read, contents, strict=True)}
    requires = {dist.name: dist.metadata.requires for dist in inventory.distributions}
    plan = make_plan(
        wish.manifest,
        _present(inventory, by_name),
        only=wish.only,
        exact=wish.exact,
        own=needed_by("envlock", requires, target.markers),
    )
    plan = replace(plan, leftovers=tuple(_leftovers(target, inventory)))
    return Seen(plan=plan, inventory=inventory, contents=by_name)


def _present(inventory: Inventory, contents: Mapping[str, Content]) -> list[Present]:
    """What is there, each name once."""
    found: dict[str, Present] = {}
    for dist in inventory.distributions:
        content = contents.get(dist.name, Content())
        found[dist.name] = Present(
            name=dist.name,
            version=dist.version,
            content=content.digest,
            executable=content.executable,
            copies=len(inventory.named(dist.name)),
            reason=content.reason,
        )
    return list(found.values())


def look_at_nothing(wish: Wish) -> Plan:
    """The plan for an environment that is not there yet."""
    return make_plan(wish.manifest, [], only=wish.only)


def preflight(plan: Plan, target: Target, wish: Wish) -> list[Pinned]:
    """The wheels that a plan needs, each looked at.

    Raises:
        UnusableInput: something cannot be restored, or a wheel cannot be used; all of it is named.
    """
    pinned, problems = look_at_wheels(plan.wanted, target, wish.wheelhouse, _nothing)
    refuse([*plan.findings, *problems])
    return pinned


def refuse(problems: Sequence[Finding]) -> None:
    """Refuses before anything is touched, with every reason at once.

    Raises:
        UnusableInput: there is at least one error.
    """
    errors = [problem for problem in problems if problem.level == "error"]
    if errors:
        lines = "; ".join(f"'{one.subject}': {one.what}" for one in errors)
        hints = list(dict.fromkeys(one.hint for one in errors if one.hint))
        raise UnusableInput(f"restore: {lines}", hints[0] if hints else "the target is untouched")


def restore(target: Target, wish: Wish, stager: Stager) -> Outcome:
    """Makes the target what the manifest says, or leaves it as it was.

    Raises:
        UnusableInput: refused before anything was touched.
        RestoreFailed: failed; the target is as it was.
        UndoIncomplete: failed, and not everything could be put back; the stash is kept.
        KeyboardInterrupt: interrupted; the target is as it was.
    """
    refuse(target_problems(wish.manifest, target))
    with locked(target) as lock:
        transaction = _fresh(target)
        seen = look(target, wish)
        plan = seen.plan
        pinned = preflight(plan, target, wish)
        if not plan.work:
            return Outcome(plan=plan, findings=plan.findings)
        with all_or_nothing(transaction) as left:
            if pinned:
                unpack(stager, pinned, target, transaction.stage, lock)
                compare(plan.wanted, target, transaction.stage, _beside(seen, wish), wish.advance)
            swap = _plan_swap(target, seen, transaction)
            transaction.write_journal(swap.changes)
            transaction.swap(swap.changes)
            _check(target, plan)
    return Outcome(plan=plan, findings=(*plan.findings, *swap.findings, *map(undeleted, left)))


def _fresh(target: Target) -> Transaction:
    transaction = open_transaction(target.layout.purelib)
    if os.path.lexists(transaction.folder):
        raise UnusableInput(
            f"restore: an earlier restore has not ended: '{transaction.folder}'",
            "end it with 'envlock restore --recover'",
        )
    return transaction


def _leftovers(target: Target, inventory: Inventory) -> list[str]:
    """Folders that interrupted installers left, and that some tools read as the real thing."""
    names = [found.subject for found in inventory.findings if found.code == "dist.leftover"]
    paths = (os.path.join(site, name) for site in site_folders(target.layout) for name in names)
    return [path for path in paths if os.path.lexists(path)]


def _beside(seen: Seen, wish: Wish) -> Beside:
    """What is right already and stays; what is wrong or unknown gives way to what is restored."""
    return Beside(
        files={
            dist.name: {place: file.hex for place, file in seen.contents[dist.name].files.items()}
            for dist in seen.plan.kept
            if dist.name in seen.contents
        },
        overlapping={
            found.subject for found in wish.manifest.health if found.code == "file.two-owners"
        },
    )


def _plan_swap(target: Target, seen: Seen, transaction: Transaction) -> Swap:
    changing = {step.name for step in seen.plan.steps}
    going: list[Installed] = []
    staying: list[Installed] = []
    for dist in seen.inventory.distributions:
        (going if dist.name in changing else staying).append(dist)
    planner = Planner(target.layout, going, staying, transaction.folder)
    return planner.plan(transaction.stage, seen.plan.leftovers)


def _check(target: Target, plan: Plan) -> None:
    """After the swap: each restored name once, whole, and what was removed is gone."""
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


def _has_something(path: str) -> bool:
    return not os.path.isdir(path) or bool(os.listdir(path))


def _gone(there: Sequence[Installed]) -> str:
    return "is still there" if there else ""


def _whole(there: Sequence[Installed], version: str) -> str:
    versions = [dist.version for dist in there]
    if len(versions) != 1 or not same_version(versions[0], version):
        return f"is {', '.join(versions) or 'missing'} after the swap"
    [dist] = there
    lost = [row.path for row in dist.rows or () if not _is_there(dist.site, row.path)]
    return f"has no '{lost[0]}' after the swap" if lost else ""


def _is_there(site: str, path: str) -> bool:
    return os.path.lexists(os.path.normpath(os.path.join(site, path)))


def undeleted(path: str) -> Finding:
    """A path of the transaction that is still there."""
    return Finding(
        code="restore.undeleted",
        subject=path,
        what="could not be deleted",
        hint="'envlock restore --recover' tries again",
    )


def recover(target: Target) -> tuple[str, list[Finding]]:
    """Ends a restore that was cut: undone, or finished when it had been committed.

    Returns:
        ``undone``, ``finished``, or ``nothing`` when there was none; and what could not be deleted.

    Raises:
        UndoIncomplete: something could not be put back; the stash is kept.
        UnusableInput: another restore is running, or the journal cannot be understood.
    """
    with locked(target), one_interrupt() as hold:
        hold()
        transaction = open_transaction(target.layout.purelib)
        if not os.path.lexists(transaction.folder):
            return "nothing", []
        journal = transaction.read()
        committed = journal is not None and journal.committed
        left = transaction.finish() if committed else transaction.undo()
        return "finished" if committed else "undone", [undeleted(path) for path in left]
