"""How ``envlock restore`` and the put-back of ``envlock guard`` reach the restore."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from packaging.utils import canonicalize_name

from envlock.adapters.environment import new_environment, python_of
from envlock.adapters.installed import Inventory, site_folders
from envlock.adapters.interpreter import Named, read_target
from envlock.adapters.space import nearest
from envlock.cli import wiring
from envlock.cli.options import Common
from envlock.cli.show import count, size
from envlock.errors import UnusableInput
from envlock.model.facts import Finding, Target
from envlock.model.label import same_version
from envlock.model.manifest import Manifest, is_newer_minor
from envlock.restore import run
from envlock.restore.plan import Plan
from envlock.restore.refusals import Here, Insist, Room


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the person asked for.

    Attributes:
        kept: remembered in the place of ``wheelhouse``, where that goes again; empty for nothing.
    """

    wheelhouse: str | None
    kept: str | None = None
    into: str | None = None
    only: Sequence[str] = ()
    exact: bool = False
    backend: str = "auto"
    compile: bool = False
    insist: Insist = field(default_factory=Insist)


def _here(common: Common, target: Target, manifest: Manifest) -> Here:
    """What speaks for or against this target beside its interpreter."""
    from envlock.adapters.machine import find_root, read_release
    from envlock.adapters.marker import Marker
    from envlock.adapters.profiles import bundled_profiles

    profile = next((one for one in bundled_profiles() if one.name == manifest.profile), None)
    release = read_release(profile, find_root(profile, common.env)) if profile else ""
    marker = target.externally_managed
    # envlock's own marker is there to lead people here
    foreign = marker is not None and not Marker(path=marker).present()
    return Here(release=release, managed_by=(marker or "") if foreign else "")


def _wish(common: Common, target: Target, asked: Asked) -> run.Wish:
    folder = asked.wheelhouse or wiring.memory(common, target).wheels()
    if folder is None:
        raise UnusableInput(
            "wheelhouse: none is named, and none is remembered for this target",
            "name it with --wheelhouse DIR",
        )
    if not os.path.isdir(folder):
        raise UnusableInput(f"wheelhouse: '{folder}' is not a folder", "name another one")
    found = wiring.need_manifest(common, target, os.fspath(folder))
    if is_newer_minor(found.manifest):
        common.screen.note(f"'{found.source}' was written by a newer envlock: read as it is known")
    manifest = with_known_wheels(found.manifest, os.fspath(folder))
    common.screen.findings(_not_remembered(common, target, manifest))
    only = tuple(name if name == "protected" else canonicalize_name(name) for name in asked.only)
    here = _here(common, target, manifest)
    return run.Wish(
        manifest=manifest,
        wheelhouse=os.fspath(folder),
        only=only,
        exact=asked.exact,
        # a new environment is nobody's, whoever manages the Python it is made from
        here=replace(here, managed_by="") if asked.into is not None else here,
        insist=asked.insist,
    )


def _not_remembered(common: Common, target: Target, manifest: Manifest) -> list[Finding]:
    """Protected builds that the remembered manifest has with other bytes: said before anything
    else, since a wheelhouse may be of another state, or not one's own."""
    known = wiring.memory(common, target).known()
    found = []
    for kept in known.protected if known else ():
        offered = manifest.find(kept.name)
        if offered is not None and kept.content and offered.content != kept.content:
            what = f"'{offered.version}' here has other bytes than what is remembered"
            if not same_version(offered.version, kept.version):
                what = f"'{offered.version}' here, '{kept.version}' is remembered"
            found.append(
                Finding(
                    code="restore.not-remembered",
                    subject=kept.name,
                    what=what,
                    why="this manifest is not of the state that was locked here",
                    hint="go on only where you know where the wheels come from",
                )
            )
    return found


def with_known_wheels(manifest: Manifest, folder: str) -> Manifest:
    """The manifest with the wheels of the wheelhouse's own where the content is the same: a
    manifest that was written before the harvest knows no wheel."""
    from envlock.adapters.state import read_manifest
    from envlock.model.manifest import with_wheels

    path = os.path.join(folder, "envlock.yaml")
    if not os.path.exists(path):
        return manifest
    inside = {dist.name: dist for dist in read_manifest(path).distributions}
    wheels = {
        dist.name: there.wheel
        for dist in manifest.distributions
        if (there := inside.get(dist.name)) is not None
        and there.wheel is not None
        and there.content == dist.content
    }
    return with_wheels(manifest, wheels)


def _show_steps(common: Common, plan: Plan) -> None:
    for step in plan.steps:
        common.screen.say(f"  {step}")
    for path in plan.twins:
        common.screen.say(f"  {os.path.basename(path)}: second metadata of one name; removed")
    for path in plan.leftovers:
        common.screen.say(f"  {os.path.basename(path)}: left over from a broken install; removed")
    if plan.extra:
        common.screen.say(f"  stays, though not in the manifest: {', '.join(plan.extra)}")


def _amount(plan: Plan, restored: str, removed: str) -> str:
    """What a plan comes to, in a line."""
    right = len(plan.kept)
    if not plan.work:
        return f"nothing to do: {right} are right"
    gone = len(plan.steps) - len(plan.wanted)
    parts = [f"{len(plan.wanted)} {restored}"] if plan.wanted else []
    parts += [f"{gone} {removed}"] if gone else []
    parts += [f"{count(len(plan.leftovers), 'leftover')} {removed}"] if plan.leftovers else []
    return f"{', '.join(parts)}; {right} right already"


def _data(prefix: str, plan: Plan) -> dict[str, object]:
    return {
        "target": prefix,
        "changed": [{"name": step.name, "why": step.why} for step in plan.steps],
        "kept": [str(dist) for dist in plan.kept],
        "extra": list(plan.extra),
        "leftovers": [*plan.leftovers, *plan.twins],
    }


def show_plan(common: Common, target: Target, asked: Asked) -> int:
    """``restore --plan``: 3 when there is work.

    Raises:
        UnusableInput: the restore would be refused, and why.
    """
    wish = _wish(common, target, asked)
    run.refuse_target(target, wish)
    prefix, seen, there = _planned(common, target, wish, asked.into)
    plan = seen.plan
    code = 3 if plan.work else 0
    fresh = there is target and asked.into is not None
    room = run.room_for(plan, [nearest(prefix)] if fresh else site_folders(there.layout))
    common.screen.verdict(_amount(plan, "to restore", "to remove"))
    _show_steps(common, plan)
    _show_room(common, plan, room)
    findings = [
        *run.preflight(seen, there, wish, room).findings,
        *_hidden(there, wish.manifest, seen.inventory),
    ]
    common.screen.findings(findings)
    data = _data(prefix, plan) | {
        "bytes": plan.need.bytes,
        "files": plan.need.files,
        "free": {"bytes": room.bytes, "files": room.files},
    }
    common.screen.document("restore", code, findings, data)
    return code


def _hidden(target: Target, manifest: Manifest, inventory: Inventory) -> list[Finding]:
    """What a restore cannot reach: it writes to the site-packages of the target, and a copy that
    comes before them (a user site, a folder of PYTHONPATH) is imported all the same."""
    from envlock.snapshot import shadowed

    return [
        found
        for found in shadowed(target, inventory)
        if found.level == "warning" and manifest.find(found.subject) is not None
    ]


def _show_room(common: Common, plan: Plan, room: Room) -> None:
    """What the plan takes while the old files are still there, and what there is."""
    if not plan.wanted:
        return
    there = f"; {size(room.bytes)} free" if room.bytes is not None else ""
    there += f", {room.files:,} inodes" if room.files is not None else ""
    common.screen.say(f"  takes {size(plan.need.bytes)} in {plan.need.files:,} files{there}")


def _planned(
    common: Common, target: Target, wish: run.Wish, into: str | None
) -> tuple[str, run.Seen, Target]:
    """What is planned for, what is there, and the environment that wheels have to fit."""
    if into is None:
        return target.layout.prefix, run.look(target, wish), target
    python = python_of(into)
    if not os.path.exists(python):
        return os.path.abspath(into), run.look_at_nothing(wish), target
    there = read_target(Named(python, "--into"), common.env)
    run.refuse_target(there, wish)
    return there.layout.prefix, run.look(there, wish), there


def restore(common: Common, target: Target, asked: Asked) -> int:
    """``restore``: in place, or into a new environment."""
    wish = _wish(common, target, asked)
    if asked.into is None:
        return _restore(common, target, wish, asked)
    run.refuse_target(target, wish)  # before an environment is made
    with new_environment(target.executable, asked.into, common.env) as python:
        fresh = read_target(Named(python, "--into"), common.env)
        return _restore(common, fresh, wish, asked)


def _restore(common: Common, target: Target, wish: run.Wish, asked: Asked) -> int:
    screen = common.screen
    screen.target(target)
    stager = wiring.stager(common, asked.backend)
    with screen.progress("restoring") as advance:
        outcome = run.restore(target, replace(wish, advance=advance), stager)
    compiled = _compiled(common, target, outcome.plan) if asked.compile else []
    findings = [
        *outcome.findings,
        *_hidden(target, wish.manifest, outcome.inventory),
        *compiled,
        *_remember(common, target, wish, wish.wheelhouse if asked.kept is None else asked.kept),
    ]
    screen.findings(findings)
    screen.verdict(_amount(outcome.plan, "restored", "removed"))
    _show_steps(common, outcome.plan)
    named = target.executable if asked.into else common.python
    screen.say(f"prove it: envlock verify{f' --python {shlex.quote(named)}' if named else ''}")
    screen.document("restore", 0, findings, _data(target.layout.prefix, outcome.plan))
    return 0


def _compiled(common: Common, target: Target, plan: Plan) -> list[Finding]:
    from envlock.restore.bytecode import compile_files, sources_of

    paths = sources_of(target, {dist.name for dist in plan.wanted})
    with common.screen.progress("compiling"):
        return compile_files(target, paths, common.env)


def _remember(common: Common, target: Target, wish: run.Wish, kept: str) -> list[Finding]:
    memory = wiring.memory(common, target)
    found = [] if wish.only else memory.remember_restored(wish.manifest)
    return [*found, *(memory.remember_wheels(kept) if kept else [])]


def wheels_wanted(common: Common, target: Target, asked: Asked) -> dict[str, str]:
    """The wheels that a restore needs, and their sha256; none where everything is right already.

    Raises:
        EnvlockError: as the restore would.
    """
    wish = _wish(common, target, asked)
    run.refuse_target(target, wish)
    _, seen, _ = _planned(common, target, wish, asked.into)
    wheels = (dist.wheel for dist in seen.plan.wanted)
    return {wheel.file: wheel.sha256 for wheel in wheels if wheel is not None}


def recover(common: Common, target: Target) -> int:
    """``restore --recover``."""
    common.screen.target(target)
    done, findings = run.recover(target)
    text = {
        "nothing": "there is no unfinished restore",
        "undone": "undone: the target is as it was before the restore that was cut",
        "finished": "finished: the restore that was cut had been committed",
    }
    common.screen.findings(findings)
    common.screen.verdict(text[done])
    common.screen.document("restore", 0, findings, {"recover": done})
    return 0


def put_back(common: Common, target: Target, names: Sequence[str]) -> None:
    """Restores a few distributions from the kept wheels; what guard does when a tool took one.

    Raises:
        EnvlockError: as restore does; nothing was put back then.
    """
    # the tool that changed it was let in already
    insist = Insist(managed=True)
    wish = _wish(common, target, Asked(wheelhouse=None, only=names, insist=insist))
    run.restore(target, wish, wiring.stager(common))
