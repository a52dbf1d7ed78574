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
from envlock.adapters.space import closed, free, why_no_room
from envlock.errors import UnusableInput
from envlock.model.facts import Finding, Target
from envlock.model.manifest import Manifest
from envlock.restore.afterwards import check_swapped
from envlock.restore.holding import all_or_nothing, locked, one_interrupt
from envlock.restore.leftovers import (
    Stamps,
    files_of,
    foreign_records,
    leftovers,
    records_of,
    twins,
)
from envlock.restore.plan import (
    Plan,
    Present,
    make_plan,
    needed_by,
    unknown_names,
)
from envlock.restore.preflight import look_at_wheels
from envlock.restore.refusals import (
    Here,
    Insist,
    Room,
    layout_problems,
    older_glibc,
    room_problems,
    target_problems,
)
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
        here: what the machine and the target say for themselves.
        insist: what is wished for all the same.
    """

    manifest: Manifest
    wheelhouse: str
    only: Collection[str] = ()
    exact: bool = False
    here: Here = field(default_factory=Here)
    insist: Insist = field(default_factory=Insist)
    advance: Advance = field(default=_nothing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a restore did, and what is installed now."""

    plan: Plan
    inventory: Inventory
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A target compared with a manifest.

    Attributes:
        inventory: what is installed.
        contents: of each distribution that the manifest has, by name.
        stamps: how it stood then.
    """

    plan: Plan
    inventory: Inventory
    contents: Mapping[str, Content] = field(default_factory=dict)
    stamps: Stamps = field(default_factory=Stamps)


def look(target: Target, wish: Wish) -> Seen:
    """Compares the target with the manifest; reads every file that the manifest has.

    Raises:
        UnusableInput: ``only`` names something the manifest does not have, or the target's
            folders lie where nothing can be staged for them.
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
    refuse(layout_problems(target.layout))
    records = records_of(target.layout)
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
    plan = replace(
        plan,
        leftovers=tuple(leftovers(target.layout, inventory, known)),
        twins=tuple(twins(inventory, plan.steps)),
    )
    going = _going(plan, inventory)
    stamps = Stamps(metadata=records, files=files_of(going))
    return Seen(plan=plan, inventory=inventory, contents=by_name, stamps=stamps)


def _going(plan: Plan, inventory: Inventory) -> list[Installed]:
    changing = {step.name for step in plan.steps}
    return [dist for dist in inventory.distributions if dist.name in changing]


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


def look_at_nothing(wish: Wish) -> Seen:
    """An environment that is not there yet."""
    plan = make_plan(wish.manifest, [], only=wish.only)
    return Seen(plan=plan, inventory=Inventory(distributions=(), findings=()))


def room_for(plan: Plan, folders: Sequence[str]) -> Room:
    """What the file system has for a plan.

    Args:
        folders: existing ones in which files will be made; the first one's file system holds what
            is unpacked.
    """
    path = os.path.realpath(folders[0])
    size, inodes = free(path)
    return Room(
        path=path,
        bytes=size,
        files=inodes,
        refused=why_no_room(path, plan.need.bytes),
        closed=closed(folders) if plan.work else {},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """What a plan needs, looked at.

    Attributes:
        pinned: the wheels.
        beside: what stays in the target.
        findings: everything that is worth a word and no reason to refuse.
    """

    pinned: Sequence[Pinned]
    beside: Beside
    findings: tuple[Finding, ...]


def preflight(seen: Seen, target: Target, wish: Wish, room: Room) -> Ready:
    """Looks at the wheels that a plan needs, and at the target.

    Raises:
        UnusableInput: something cannot be restored, a wheel cannot be used, or there is no room;
            all of it is named.
    """
    plan, beside = seen.plan, _beside(seen, wish)
    pinned, problems = look_at_wheels(plan.wanted, target, wish.wheelhouse, beside)
    found = (*plan.findings, *problems, *room_problems(plan.need, room))
    refuse(found)
    findings = (
        *found,
        *older_glibc(wish.manifest, target),
        *foreign_records(_going(plan, seen.inventory)),
    )
    return Ready(pinned=pinned, beside=beside, findings=findings)


def refuse_target(target: Target, wish: Wish) -> None:
    """Refuses a target that is not one for this manifest.

    Raises:
        UnusableInput: and every reason.
    """
    refuse(target_problems(wish.manifest, target, wish.here, wish.insist))


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
    refuse_target(target, wish)
    with locked(target) as lock:
        transaction = _fresh(target)
        seen = look(target, wish)
        plan = seen.plan
        ready = preflight(seen, target, wish, room_for(plan, site_folders(target.layout)))
        if not plan.work:
            return Outcome(plan=plan, inventory=seen.inventory, findings=ready.findings)
        with all_or_nothing(transaction) as left:
            staged: list[Installed] = []
            if ready.pinned:
                written = unpack(stager, ready.pinned, target, transaction.stage, lock)
                beside = replace(ready.beside, written=written)
                staged = compare(plan.wanted, target, transaction.stage, beside, wish.advance)
            swap = _plan_swap(target, seen, transaction, staged)
            transaction.write_journal(swap.changes)
            seen.stamps.refuse_changes(target.layout)
            transaction.swap(swap.changes)
            inventory = check_swapped(target, plan)
    findings = (*ready.findings, *swap.findings, *map(undeleted, left))
    return Outcome(plan=plan, inventory=inventory, findings=findings)


def _fresh(target: Target) -> Transaction:
    transaction = open_transaction(target.layout.purelib)
    if os.path.lexists(transaction.folder):
        raise UnusableInput(
            f"restore: an earlier restore has not ended: '{transaction.folder}'",
            "end it with 'envlock restore --recover'",
        )
    return transaction


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
        extra={
            dist.name: {f"lib/{row.path}": row.hash for row in dist.rows or () if row.hash}
            for dist in seen.inventory.distributions
            if dist.name in seen.plan.extra
        },
    )


def _plan_swap(
    target: Target, seen: Seen, transaction: Transaction, staged: Sequence[Installed]
) -> Swap:
    going = _going(seen.plan, seen.inventory)
    staying = [dist for dist in seen.inventory.distributions if dist not in going]
    planner = Planner(target.layout, going, staying, transaction.folder)
    return planner.plan(transaction.stage, staged, seen.plan.leftovers)


def undeleted(path: str) -> Finding:
    """A path of the transaction that is still there."""
    return Finding(
        code="restore.undeleted",
        subject=path,
        what="could not be deleted",
        why="a program may have it open",
        hint="the next restore, or 'envlock restore --recover', tries again",
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
        left = transaction.sweep()
        if not os.path.lexists(transaction.folder):
            return "nothing", [undeleted(path) for path in left]
        journal = transaction.read()
        committed = journal is not None and journal.committed
        left += transaction.finish() if committed else transaction.undo()
        return "finished" if committed else "undone", [undeleted(path) for path in left]
