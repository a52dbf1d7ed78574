"""A request is judged, run as it was typed, and what must not be lost is looked at afterwards."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import unquote

from envlock.adapters import files, process
from envlock.adapters.installed import Inventory
from envlock.adapters.installer import Ask, Change, Known, Plan, Planner
from envlock.adapters.watch import changes, watch
from envlock.guard.advice import UNTOLD
from envlock.guard.command import Asked, Request
from envlock.guard.decide import Decision, Protected, Verdict, decide
from envlock.guard.options import PIP_COMMANDS, only_options, without
from envlock.model.facts import Finding, Target
from envlock.model.label import same_version


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Everything a judgement is made of.

    Attributes:
        request: the command line.
        target: the environment it would change.
        planner: the tool that was typed.
        inventory: what is installed.
        protected: what must not be lost.
        env: the person's environment, as the tool gets it.
    """

    request: Request
    target: Target
    planner: Planner
    inventory: Inventory
    protected: tuple[Protected, ...]
    env: Mapping[str, str]

    @property
    def intact(self) -> tuple[Protected, ...]:
        """Protected builds that are there to be lost."""
        return tuple(build for build in self.protected if build.intact)

    @property
    def ask(self) -> Ask:
        """The request as the tool is asked about it."""
        request = self.request
        given = request.given
        head = [
            request.program,
            *request.python_options,
            *(["-m", "pip"] if request.module else []),
        ]
        return Ask(
            program=tuple(head) if request.by_path else (),
            python_options=request.python_options,
            before=request.before,
            subcommand=request.subcommand,
            after=request.after,
            installed={dist.name: dist.version for dist in self.inventory.distributions},
            elsewhere=bool(request.elsewhere),
            flags=given.flags | given.values.keys(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What would happen, and whether it may."""

    plan: Plan
    decision: Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What did happen.

    Attributes:
        code: the tool's own exit code; 130 when it was interrupted.
        changed: a finding for each protected build that is not as it was.
    """

    code: int
    changed: tuple[Finding, ...] = ()


def judge(scene: Scene) -> Judgement:
    """Decides. The tool is asked only where there is something to lose.

    Raises:
        ProgramFailed: the tool cannot be started.
    """
    request = scene.request
    if request.changes_nothing or not scene.intact:
        plan = Plan()
    elif request.subcommand == "uninstall":
        plan = _removal(request, scene.ask.installed)
    else:
        plan = scene.planner.plan(scene.ask, scene.target)
        plan = _with_local_files(plan, request, scene.ask.installed)
    decision = decide(request, plan, scene.protected)
    return Judgement(plan=plan, decision=_told(scene, decision))


def _told(scene: Scene, decision: Decision) -> Decision:
    """The decision with more to say, where the plan told no reason: asked again with the builds
    held, the tool finds versions that fit, or says why there are none."""
    if decision.verdict is Verdict.ALLOWED or all(r.why != UNTOLD for r in decision.reasons):
        return decision
    ask = scene.ask
    with tempfile.TemporaryDirectory(prefix="envlock-guard-") as folder:
        held = _held(scene, folder)
        plan = scene.planner.plan(replace(ask, after=(*held, *ask.after)), scene.target)
    named = [c for c in plan.changes if c.new and c.name in scene.request.names]
    fits = " ".join(f"{change.name}=={change.new}" for change in named)
    reasons = (_with_more(reason, plan.said, fits) for reason in decision.reasons)
    return replace(decision, reasons=tuple(reasons))


def _with_more(reason: Finding, why: str, fits: str) -> Finding:
    if reason.why != UNTOLD:
        return reason
    hint = f"versions that keep it exist: {fits}" if fits else reason.hint
    return replace(reason, why=why or reason.why, hint=hint)


def _removal(request: Request, installed: Mapping[str, str]) -> Plan:
    """What uninstall does is what its arguments say: it asks no index and follows no tree."""
    names = sorted(name for name in request.names if name in installed)
    return Plan(changes=tuple(Change(name=name, old=installed[name]) for name in names))


def _with_local_files(plan: Plan, request: Request, installed: Mapping[str, str]) -> Plan:
    """The plan with what wheels on this machine, named in the request, say about it.

    uv does not say where a build comes from: a file that is named is where. Where nobody could
    be asked, a named file is a plan by itself.
    """
    found = {change.name: change for change in plan.changes}
    for asked in request.asked:
        path = _local_wheel(asked)
        change = found.get(asked.name)
        if path and change is None and plan.known is Known.UNKNOWN:
            old = installed.get(asked.name)
            change = Change(name=asked.name, old=old, new=asked.version)
            if old and same_version(old, asked.version) and _leaves_alone(request):
                continue
        if path and change is not None and not change.sha256:
            url = f"file://{path}"
            found[asked.name] = replace(change, url=url, sha256=files.sha256(path))
    return replace(plan, changes=tuple(found[name] for name in sorted(found)))


def _leaves_alone(request: Request) -> bool:
    """pip does nothing when the version of a named file is installed; uv installs it again."""
    return request.tool == "pip" and not request.reinstalls


def _local_wheel(asked: Asked) -> str:
    """Absolute path of a wheel on this machine; empty for anything else."""
    if not (asked.source and asked.version):
        return ""
    path = os.path.abspath(os.path.expanduser(unquote(asked.source.removeprefix("file://"))))
    return path if os.path.isfile(path) else ""


def run(scene: Scene, pins: tuple[str, ...] | None = None, *, quiet: bool = False) -> Outcome:
    """Runs the command as it was typed, under constraints that hold the protected set.

    Output, colours, progress and exit code are the tool's own. The set is looked at afterwards,
    whatever the tool said, also when somebody interrupts it.

    Args:
        pins: installed without dependencies in place of what was typed; see
            :class:`envlock.guard.decide.Decision`.
        quiet: the tool's standard output goes to standard error: the caller's is a document.

    Raises:
        ProgramFailed: the tool cannot be started.
    """
    request = scene.request
    if request.changes_nothing:
        return Outcome(code=_run(scene, scene.ask, [], quiet))
    if pins == ():
        return Outcome(code=0)
    names = {build.name for build in scene.intact}
    dists = [dist for dist in scene.inventory.distributions if dist.name in names]
    before = watch(dists, scene.target.layout)
    with tempfile.TemporaryDirectory(prefix="envlock-guard-") as folder:
        ask = scene.ask if pins is None else _pinned(scene, pins)
        code = _run(scene, ask, _held(scene, folder), quiet)
    return Outcome(code=code, changed=tuple(changes(before, scene.target.layout)))


def _held(scene: Scene, folder: str) -> list[str]:
    if scene.request.subcommand != "install" or not scene.intact:
        return []
    builds = [(build.name, build.version) for build in scene.intact]
    return scene.planner.held(scene.ask, scene.target, builds, folder)


def _pinned(scene: Scene, pins: tuple[str, ...]) -> Ask:
    """The request's own options, and pins in place of what it asked for."""
    table = PIP_COMMANDS[scene.request.subcommand]
    kept = only_options(scene.request.after, table)
    kept = without(kept, table, ["--requirement", "--editable", "--no-deps"])
    return replace(scene.ask, after=(*kept, "--no-deps", *pins))


def _run(scene: Scene, ask: Ask, held: list[str], quiet: bool) -> int:
    argv = scene.planner.argv(ask, scene.target, held)
    try:
        return process.run_as_typed(argv, env=scene.env, to_stderr=quiet)
    except KeyboardInterrupt:
        return 130


def allowed(judgement: Judgement) -> bool:
    """Whether the command may run."""
    return judgement.decision.verdict is Verdict.ALLOWED
