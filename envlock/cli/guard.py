"""envlock guard."""

from __future__ import annotations

import shlex
from dataclasses import asdict, replace
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer

from envlock.cli import options, wiring
from envlock.cli.offering import offering
from envlock.cli.surroundings import other_cause, steering
from envlock.errors import EnvlockError, UsageProblem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from envlock.cli.options import Common
    from envlock.guard.run import Judgement, Outcome, Scene
    from envlock.model.facts import Finding

#: What follows the first word belongs to the guarded command.
SETTINGS = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "allow_interspersed_args": False,
}

#: What every judgement imports sooner or later.
_NEEDED = ("envlock.guard.run", "envlock.adapters.state", "envlock.adapters.configuration",
           "envlock.adapters.profiles", "envlock.snapshot")  # fmt: skip

Words = Annotated[
    list[str] | None, typer.Argument(metavar="[--] pip install …", show_default=False)
]
Plan = Annotated[bool, typer.Option("--plan", help="Only decide: 0 allowed, 3 refused.")]
Hold = Annotated[
    bool, typer.Option("--hold", help="Let the tool find versions that keep every build.")
]
Enable = Annotated[
    bool, typer.Option("--enable", help="Hold the builds in plain pip installs too.")
]
Disable = Annotated[
    bool, typer.Option("--disable", help="Undo --enable: every file as it was found.")
]
Status = Annotated[
    bool, typer.Option("--status", help="What is held without envlock, and what is not.")
]
UvUser = Annotated[
    bool, typer.Option("--uv-user", help="Enable for uv too, in all environments of this user.")
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Enable so that plain installs are refused (no venv).")
]


def guard(
    words: Words = None,
    plan: Plan = False,
    hold: Hold = False,
    enable: Enable = False,
    disable: Disable = False,
    status: Status = False,
    uv_user: UvUser = False,
    strict: Strict = False,
    python: options.Python = None,
    manifest: options.ManifestFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Run an install command if no vendor build is lost to it; else say what would be."""
    from envlock.cli import guarding

    common = options.common(python, manifest, json=json, quiet=quiet, verbose=verbose)
    given = {"--plan": plan, "--hold": hold, "--enable": enable, "--disable": disable,
             "--status": status, "--uv-user": uv_user, "--strict": strict}  # fmt: skip
    mode = guarding.mode_of(given, words)
    if mode is not None:
        return guarding.run(common, mode, uv=uv_user, strict=strict)
    return _guard(common, words or [], plan=plan, hold=hold)


def _guard(common: Common, words: Sequence[str], *, plan: bool, hold: bool) -> int:
    """Decides, explains, and then runs the command or refuses."""
    from envlock.adapters.process import while_waiting
    from envlock.guard.command import parse

    request = parse(words, wiring.read_text)
    common = replace(common, env=request.environment(common.env))
    with while_waiting(_loading(request.tool)):
        target = wiring.open_target(common)
    from envlock.guard.decide import lost_already
    from envlock.guard.run import allowed, judge, judge_held, run, watching

    scene = wiring.scene(common, request, target)
    before = watching(scene)
    lost = lost_already(scene.protected)
    common.screen.findings(lost)
    asking = f"asking {request.tool} what it would do"
    saying = common.screen.waiting(asking + (" with every build held" if hold else ""))
    with saying, while_waiting(iter(()) if plan else before.steps()):
        judgement = judge_held(scene) if hold else judge(scene)
    if not allowed(judgement):
        return _refuse(common, scene, judgement, lost)
    if plan:
        return _foretell(common, scene, judgement, lost)
    _introduce(common, scene, judgement)
    if hold:
        _show_changes(common, judgement)
    outcome = run(scene, judgement.decision.pins, quiet=common.screen.json, before=before)
    return _conclude(common, scene, judgement, outcome)


def _loading(tool: str) -> Iterator[None]:
    """Loads what a judgement needs; Python takes as long for it as the target's needs to answer."""
    for name in (*_NEEDED, "envlock.adapters.uv" if tool == "uv" else "envlock.adapters.pip"):
        import_module(name)
        yield


def _refuse(common: Common, scene: Scene, judgement: Judgement, lost: Sequence[Finding]) -> int:
    with common.screen.waiting("looking for a command that keeps every build"):
        judgement = offering(common, scene, judgement)
    decision = judgement.decision
    common.screen.findings(decision.reasons)
    common.screen.note(f"refused, and nothing was changed: {shlex.join(scene.request.words)}")
    subjects = {reason.subject for reason in decision.reasons}
    for note in (*steering(scene, judgement.plan), *other_cause(common, scene, subjects)):
        common.screen.note(note)
    if decision.instead:
        common.screen.note(f"this keeps every build: envlock guard {shlex.join(decision.instead)}")
    elif not any(reason.hint for reason in decision.reasons):
        common.screen.note("no command near to it keeps every build")
    findings = [*lost, *decision.reasons]
    common.screen.document("guard", 3, findings, _data(scene, judgement))
    return 3


def _foretell(common: Common, scene: Scene, judgement: Judgement, lost: Sequence[Finding]) -> int:
    """``--plan`` of what is allowed.

    Raises:
        UsageProblem: the tool itself rejects the command line.
    """
    from envlock.adapters.installer import Known

    request, plan = scene.request, judgement.plan
    unknown = " ".join(request.given.unknown)
    nothing = request.subcommand == "uninstall" and not request.asked
    if plan.known is Known.REJECTED or unknown or (nothing and not request.changes_nothing):
        said = plan.said or (f"it knows no '{unknown}'" if unknown else "it names nothing")
        raise UsageProblem(f"{request.tool}: rejects the command: {said}")
    common.screen.verdict(f"allowed: {shlex.join(request.words)}")
    common.screen.findings(judgement.decision.reasons)
    for pin in judgement.decision.pins or ():
        common.screen.say(f"  {pin}, without its dependencies")
    for change in plan.changes if judgement.decision.pins is None else ():
        common.screen.say(f"  {change.name}: {change.old or 'none'} -> {change.new or 'none'}")
    if plan.known is Known.UNKNOWN:
        common.screen.note(_unforeseen(scene, plan.said))
    findings = [*lost, *judgement.decision.reasons]
    common.screen.document("guard", 0, findings, _data(scene, judgement))
    return 0


def _introduce(common: Common, scene: Scene, judgement: Judgement) -> None:
    from envlock.adapters.installer import Known

    request = scene.request
    if request.changes_nothing:
        return
    common.screen.target(scene.target)
    common.screen.findings(judgement.decision.reasons)
    pins = judgement.decision.pins
    if pins is not None:
        shown = shlex.join(pins) or "nothing: all of it is there"
        common.screen.note(f"installing with --no-deps in place of what was typed: {shown}")
    if request.tool == "pip" and scene.target.pip is None and not request.by_path:
        common.screen.note("the target has no pip: envlock's own works on it")
    if judgement.plan.known is Known.UNKNOWN:
        common.screen.note(_unforeseen(scene, judgement.plan.said))


def _show_changes(common: Common, judgement: Judgement) -> None:
    """What ``--hold`` found, before it is installed."""
    for change in judgement.plan.changes:
        common.screen.note(f"held: {change.name}: {change.old or 'none'} -> {change.new or 'none'}")


def _unforeseen(scene: Scene, said: str) -> str:
    return (
        f"what it would do is not known ({said}); "
        f"constraints keep the {len(scene.intact)} protected builds"
    )


def _conclude(common: Common, scene: Scene, judgement: Judgement, outcome: Outcome) -> int:
    """The tool's own code, unless a protected build had changed."""
    code, findings = outcome.code, [*judgement.decision.reasons, *outcome.changed]
    common.screen.findings(outcome.changed)
    if outcome.changed:
        code = _put_back(common, scene, [finding.subject for finding in outcome.changed])
    elif outcome.code and scene.intact and not scene.request.changes_nothing:
        common.screen.note(
            f"{scene.request.tool} ended with {outcome.code}; these were held: "
            + ", ".join(f"{build.name} {build.version}" for build in scene.intact)
        )
        for note in other_cause(common, scene, set()):
            common.screen.note(note)
    data = {**_data(scene, judgement), "tool_exit": outcome.code}
    common.screen.document("guard", code, findings, data)
    return code


def _put_back(common: Common, scene: Scene, names: list[str]) -> int:
    """3 when every build is back, 7 when one could not be put back."""
    from envlock.cli.restoring import put_back

    try:
        put_back(common, scene.target, names)
    except EnvlockError as error:
        common.screen.note(f"not put back: {', '.join(names)}: {error.message}")
        common.screen.note(error.hint or "put them back with 'envlock restore'")
        return 7
    common.screen.note(f"put back from kept wheels: {', '.join(names)}")
    return 3


def _data(scene: Scene, judgement: Judgement) -> dict[str, Any]:
    plan, decision = judgement.plan, judgement.decision
    return {
        "verdict": decision.verdict.value,
        "command": list(scene.request.words),
        "target": scene.target.layout.prefix,
        "protected": [f"{build.name} {build.version}" for build in scene.intact],
        "plan": {
            "known": plan.known.value,
            "said": plan.said,
            "changes": [asdict(change) for change in plan.changes],
        },
        "reasons": [asdict(finding) for finding in decision.reasons],
        "instead": list(decision.instead),
        "pins": None if decision.pins is None else list(decision.pins),
    }
