"""A request is judged, run as it was typed, and what must not be lost is looked at afterwards."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import unquote

from envlock.adapters import files, process
from envlock.adapters.installed import Inventory
from envlock.adapters.installer import Ask, Change, Known, Plan, Planner
from envlock.adapters.watch import Watching, changes
from envlock.guard import sync
from envlock.guard.command import Asked, Request, requirement_files
from envlock.guard.decide import Decision, Evidence, Protected, Verdict, decide
from envlock.guard.evidence import first_evidence, full_evidence
from envlock.guard.hold import around, decided, held_options, no_fit, resolve_held, told
from envlock.guard.options import PIP_COMMANDS, UV_COMMANDS, only_options, without
from envlock.model.facts import Finding, Target
from envlock.model.label import same_version

#: Seconds that an index gets where the arguments alone are enough to refuse: its answer could
#: only tell more.
_PATIENCE = 0.25
#: How ``python -m`` names a tool.
_MODULES = {"pip": ("-m", "pip"), "uv": ("-m", "uv"), "pip-sync": ("-m", "piptools", "sync")}
#: Options that say what is wanted; pins say it otherwise.
_NAMING = ("--requirement", "--requirements", "--editable", "--no-deps", "--extra", "--all-extras",
           "--no-all-extras")  # fmt: skip
#: Options that name where distributions come from.
_INDEXES = ("--index-url", "--extra-index-url", "--default-index", "--index", "--find-links",
            "--requirement", "--requirements", "--constraint", "--constraints")  # fmt: skip
#: Those that nobody asks with ``--no-index``.
_TURNED_OFF = ("--index-url", "--extra-index-url", "--default-index", "--index")


def _urls(request: Request) -> Iterator[str]:
    """Indexes and sources that a request names, wherever it names them."""
    off = _TURNED_OFF if request.given.has("--no-index") else ()
    for option in _INDEXES:
        if option not in off:
            yield from request.given.value(option)
    for asked in request.asked:
        yield asked.source


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
        above: protected builds of an environment that shows through in the target.
        healthy: names and raw versions of the manifest; empty without one.
    """

    request: Request
    target: Target
    planner: Planner
    inventory: Inventory
    protected: tuple[Protected, ...]
    env: Mapping[str, str]
    above: tuple[Protected, ...] = ()
    healthy: Mapping[str, str] = field(default_factory=dict)

    @property
    def intact(self) -> tuple[Protected, ...]:
        """Protected builds that are there to be lost."""
        return tuple(build for build in self.protected if build.intact)

    @property
    def ask(self) -> Ask:
        """The request as the tool is asked about it."""
        request = self.request
        given = request.given
        module = _MODULES[request.tool] if request.module else ()
        head = [request.program, *request.python_options, *module]
        return Ask(
            program=tuple(head) if request.by_path else (),
            python_options=request.python_options,
            before=request.before,
            subcommand=request.subcommand,
            after=request.after,
            words=request.typed.words,
            installed={dist.name: dist.version for dist in self.inventory.distributions},
            elsewhere=bool(request.elsewhere),
            flags=given.flags | given.values.keys(),
            typed=request.typed.flags | request.typed.values.keys(),
            constraints=given.value("--constraint") + given.value("--constraints"),
            urls=tuple(_urls(request)),
            builds=tuple(sorted({b.name: b.version for b in (*self.above, *self.intact)}.items())),
            unsaid=request.unsaid,
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
    request = sync.stand_in(scene.request)
    if scene.request.changes_nothing or not (scene.intact or scene.above):
        return Judgement(plan=Plan(), decision=Decision(verdict=Verdict.ALLOWED))
    evidence = first_evidence(scene)
    # a dry run builds what it is given, so that what must not be built is seen before
    early = decide(request, Plan(), scene.protected, evidence)
    if early.verdict is Verdict.REFUSED:
        return Judgement(plan=Plan(), decision=sync.told(early, scene.request))
    plan = _plan(scene, evidence)
    unplanned = sync.without_plan(scene.request, plan)
    if unplanned is not None:
        return Judgement(plan=plan, decision=unplanned)
    first, evidence = evidence, full_evidence(scene, plan, evidence)
    decision = sync.told(decide(request, plan, scene.protected, evidence), scene.request)
    plan, decision = around(scene, plan, decision, first)
    return Judgement(plan=plan, decision=told(scene, plan, decision, evidence))


def _plan(scene: Scene, evidence: Evidence) -> Plan:
    """What would happen, as far as anybody can tell."""
    request, ask = scene.request, scene.ask
    if request.subcommand == "uninstall":
        return _removal(request, ask.installed)
    if request.tool == "pip-sync":
        return _with_local_files(_listed(scene), request, ask.installed)
    blind = Plan(known=Known.UNKNOWN)
    if decide(sync.stand_in(request), blind, scene.protected, evidence).verdict is Verdict.REFUSED:
        ask = replace(ask, patience=_PATIENCE)
    plan = scene.planner.plan(ask, scene.target)
    if plan.known is not Known.PLANNED and sync.is_list(request) and _readable(request):
        plan = _listed(scene)
    return _with_local_files(plan, request, ask.installed)


def _readable(request: Request) -> bool:
    """Whether the list can be had at all; where a file is missing, the tool ends before it
    removes anything."""
    files_ = (file.removeprefix("file://") for file in requirement_files(request, request.given))
    return all("://" in file or file == "-" or os.path.exists(unquote(file)) for file in files_)


def _listed(scene: Scene) -> Plan:
    hashes = {
        dist.name: build.sha256
        for build in scene.intact
        for dist in scene.inventory.named(build.name)
        if build.sha256 and "archive_info" in (dist.direct_url or {})
    }
    return sync.from_arguments(scene.request, scene.ask.installed, hashes)


def judge_held(scene: Scene) -> Judgement:
    """Decides about the versions that the tool finds with the protected set held.

    Where there are none, the refusal has the chain of requirements that conflicts; where the
    tool rejects the command with or without, or only the vendor's metadata is in the way, the
    command is judged as it was typed.

    Raises:
        ProgramFailed: the tool cannot be started.
    """
    request = scene.request
    if request.changes_nothing or not scene.intact or request.subcommand != "install":
        return judge(scene)
    evidence = first_evidence(scene)
    early = decide(request, Plan(), scene.protected, evidence)
    if early.verdict is Verdict.REFUSED:
        return Judgement(plan=Plan(), decision=early)
    held = resolve_held(scene)
    plan = _with_local_files(held.plan, request, scene.ask.installed)
    if plan.known is Known.PLANNED:
        evidence = full_evidence(scene, plan, evidence)
        return Judgement(plan=plan, decision=decided(scene, replace(held, plan=plan), evidence))
    typed = judge(scene)
    if typed.decision.verdict is Verdict.ALLOWED or plan.known is Known.UNKNOWN:
        return typed
    reasons = (*typed.decision.reasons, no_fit(scene, plan))
    return replace(typed, decision=replace(typed.decision, reasons=reasons))


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


def watching(scene: Scene) -> Watching:
    """Notes how the protected builds are before the command runs."""
    names = {build.name for build in scene.intact}
    dists = [dist for dist in scene.inventory.distributions if dist.name in names]
    return Watching(dists, scene.target.layout)


def run(
    scene: Scene,
    pins: tuple[str, ...] | None = None,
    *,
    quiet: bool = False,
    before: Watching | None = None,
) -> Outcome:
    """Runs the command as it was typed, under constraints that hold the protected set.

    Output, colours, progress and exit code are the tool's own. The set is looked at afterwards,
    whatever the tool said, also when somebody interrupts it.

    Args:
        pins: installed without dependencies in place of what was typed; see
            :class:`envlock.guard.decide.Decision`.
        quiet: the tool's standard output goes to standard error: the caller's is a document.
        before: of :func:`watching`, where somebody began with that earlier.

    Raises:
        ProgramFailed: the tool cannot be started.
    """
    request = scene.request
    if request.changes_nothing:
        return Outcome(code=_run(scene, scene.ask, [], quiet))
    if pins == ():
        return Outcome(code=0)
    known = (before or watching(scene)).result()
    with tempfile.TemporaryDirectory(prefix="envlock-guard-") as folder:
        ask = scene.ask if pins is None else _pinned(scene, pins)
        held = held_options(scene, folder)
        more = scene.planner.variables(ask, scene.target, folder) if held else {}
        code = _run(replace(scene, env={**scene.env, **more}), ask, held, quiet)
    return Outcome(code=code, changed=tuple(changes(known, scene.target.layout)))


def _pinned(scene: Scene, pins: tuple[str, ...]) -> Ask:
    """The request's own options, and pins in place of what it asked for."""
    tables = UV_COMMANDS if scene.request.tool == "uv" else PIP_COMMANDS
    table = tables[scene.request.subcommand]
    kept = without(only_options(scene.request.after, table), table, _NAMING)
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
