"""How ``envlock restore`` and the put-back of ``envlock guard`` reach the restore."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from packaging.utils import canonicalize_name

from envlock.adapters.environment import new_environment, python_of
from envlock.adapters.interpreter import Named, read_target
from envlock.cli import wiring
from envlock.cli.options import Common
from envlock.cli.show import count
from envlock.errors import UnusableInput
from envlock.model.facts import Finding, Target
from envlock.model.manifest import Manifest, is_newer_minor
from envlock.restore import run
from envlock.restore.plan import Plan, target_problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the person asked for."""

    wheelhouse: str | None
    into: str | None = None
    only: Sequence[str] = ()
    exact: bool = False
    backend: str = "auto"


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
    manifest = _with_known_wheels(found.manifest, os.fspath(folder))
    only = tuple(name if name == "protected" else canonicalize_name(name) for name in asked.only)
    return run.Wish(manifest=manifest, wheelhouse=os.fspath(folder), only=only, exact=asked.exact)


def _with_known_wheels(manifest: Manifest, folder: str) -> Manifest:
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
        "leftovers": list(plan.leftovers),
    }


def show_plan(common: Common, target: Target, asked: Asked) -> int:
    """``restore --plan``: 3 when there is work.

    Raises:
        UnusableInput: the restore would be refused, and why.
    """
    wish = _wish(common, target, asked)
    run.refuse(target_problems(wish.manifest, target))
    prefix, plan, there = _planned(common, target, wish, asked.into)
    code = 3 if plan.work else 0
    common.screen.findings(plan.findings)
    common.screen.verdict(_amount(plan, "to restore", "to remove"))
    _show_steps(common, plan)
    run.preflight(plan, there, wish)
    common.screen.document("restore", code, plan.findings, _data(prefix, plan))
    return code


def _planned(
    common: Common, target: Target, wish: run.Wish, into: str | None
) -> tuple[str, Plan, Target]:
    """What is planned for, the plan, and the environment that wheels have to fit."""
    if into is None:
        return target.layout.prefix, run.look(target, wish).plan, target
    python = python_of(into)
    if not os.path.exists(python):
        return os.path.abspath(into), run.look_at_nothing(wish), target
    there = read_target(Named(python, "--into"), common.env)
    run.refuse(target_problems(wish.manifest, there))
    return there.layout.prefix, run.look(there, wish).plan, there


def restore(common: Common, target: Target, asked: Asked) -> int:
    """``restore``: in place, or into a new environment."""
    wish = _wish(common, target, asked)
    if asked.into is None:
        return _restore(common, target, wish, asked)
    run.refuse(target_problems(wish.manifest, target))  # before an environment is made
    with new_environment(target.executable, asked.into, common.env) as python:
        fresh = read_target(Named(python, "--into"), common.env)
        return _restore(common, fresh, wish, asked)


def _restore(common: Common, target: Target, wish: run.Wish, asked: Asked) -> int:
    screen = common.screen
    screen.target(target)
    stager = wiring.stager(common, asked.backend)
    with screen.progress("restoring") as advance:
        outcome = run.restore(target, replace(wish, advance=advance), stager)
    findings = [*outcome.findings, *_remember(common, target, wish)]
    screen.findings(findings)
    screen.verdict(_amount(outcome.plan, "restored", "removed"))
    _show_steps(common, outcome.plan)
    named = target.executable if asked.into else common.python
    screen.say(f"prove it: envlock verify{f' --python {shlex.quote(named)}' if named else ''}")
    screen.document("restore", 0, findings, _data(target.layout.prefix, outcome.plan))
    return 0


def _remember(common: Common, target: Target, wish: run.Wish) -> list[Finding]:
    memory = wiring.memory(common, target)
    found = [] if wish.only else memory.remember_restored(wish.manifest)
    return [*found, *memory.remember_wheels(wish.wheelhouse)]


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
    wish = _wish(common, target, Asked(wheelhouse=None, only=names))
    run.restore(target, wish, wiring.stager(common))
