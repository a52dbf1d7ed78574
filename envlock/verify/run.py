"""Runs the validation suite: one child for each check, and a verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from typing import Any

from envlock import __version__
from envlock.adapters import files
from envlock.adapters.device import find_tool
from envlock.adapters.installed import read_installed
from envlock.adapters.interpreter import probes_folder
from envlock.model.check import BAD, Check, CheckResult, Status, base_id, exit_code
from envlock.model.facts import Finding, Target
from envlock.model.manifest import Manifest
from envlock.model.profile import Profile
from envlock.verify import ahead as aheads
from envlock.verify import plan, report, static
from envlock.verify import spread as spreading
from envlock.verify.activation import Activation, activate
from envlock.verify.child import Runner, summary
from envlock.verify.plan import Options
from envlock.verify.privacy import hidden
from envlock.verify.registry import CANARY, CHECKS, DEVICES, IMPORTS, STATIC_LOCK, WATCHED
from envlock.verify.speed import Meter
from envlock.verify.static_ground import Scene
from envlock.verify.static_suite import STATIC
from envlock.verify.words import findings, verdict


def _ignore(_: Any) -> None:
    """Somebody who does not want to know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Who is told, and when.

    Attributes:
        on_start: before a check.
        on_result: after a check.
        on_files: number of files that static.lock has read since the last call.
        on_report: the whole report, at the start, after every check and at the end.
    """

    on_start: Callable[[Check], None] = _ignore
    on_result: Callable[[CheckResult], None] = _ignore
    on_files: Callable[[int], None] = _ignore
    on_report: Callable[[Mapping[str, Any]], None] = _ignore


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A finished run.

    Attributes:
        results: every check of the run, in order.
        findings: about the environment, and for each check that is not as it should be.
        report: the document of :mod:`envlock.verify.report`.
        code: exit code, 0, 3 or 8.
        said: the verdict in words.
    """

    results: tuple[CheckResult, ...]
    findings: tuple[Finding, ...]
    report: Mapping[str, Any]
    code: int
    said: str


def run_suite(
    target: Target,
    manifest: Manifest | None,
    profile: Profile,
    options: Options,
    *,
    env: Mapping[str, str],
    watch: Watch | None = None,
) -> Outcome:
    """Runs every check that the options select.

    Args:
        target: whose Python runs the checks; it is not changed.
        manifest: what should be installed; without one files are not compared.
        profile: device, stack root and environment script.
        options: level, patterns, device, time limits.
        env: the caller's environment, for the children.
        watch: who is told.

    Raises:
        UsageProblem: the options name no check.
    """
    chosen = plan.select(options)
    # nothing is sourced, and nothing said about a stack, where no check needs its variables
    children = any(check.script or check.id in STATIC for check in chosen)
    activation = activate(profile, env) if children else Activation(env=env)
    installed = read_installed(target.layout)
    ground = plan.stand(options, profile, manifest, (one.name for one in installed))
    scene = Scene(
        target=target, profile=profile, manifest=manifest, installed=installed, env=activation.env
    )
    scripts = options.scripts or probes_folder() / "checks"
    runner = Runner(
        target=target,
        env=activation.env,
        ground=ground,
        level=options.level,
        timeout_scale=options.timeout_scale,
        scripts=scripts,
        grace=options.grace,
        given=scene.given,
        visible=profile.visible,
    )
    count = partial(_count, runner)
    devices = spreading.indices(options.device, ground, chosen, count)
    checks = spreading.spread(chosen, devices)
    head = report.Head(
        tool=f"envlock {__version__}",
        target=target,
        manifest=manifest,
        profile=profile.name,
        device=ground.device,
        config=report.configuration(checks, options.level, options.timeout_scale, scripts),
        findings=activation.findings,
        started=_now(),
        hidden=hidden(target, env),
        indices=tuple(index for index in devices if index is not None),
    )
    return _Run(checks, runner, scene, head, watch or Watch()).to_the_end()


def _count(runner: Runner) -> int:
    found = runner.run(spreading.COUNT).facts.get("count")
    return found if isinstance(found, int) else 0


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class _Run:
    """One run; its results grow check by check."""

    def __init__(
        self,
        checks: Sequence[Check],
        runner: Runner,
        scene: Scene,
        head: report.Head,
        watch: Watch,
    ) -> None:
        self.runner, self.scene = runner, scene
        self.ground = runner.ground
        self.head, self.watch = head, watch
        self.checks = checks
        self.results = {check.id: self._pending(check) for check in checks}
        self.wedged: dict[int | None, str] = {}  # check after which a device answers no longer
        tool = None if self.ground.device == "cpu" else find_tool(scene.profile, runner.env)
        self.meter = Meter(profile=scene.profile, env=runner.env, tool=tool)
        wanted = [check for check in checks if not plan.is_pointless(check, self.ground)]
        beside = partial(_beside, runner)
        self.ahead = aheads.Ahead(beside, runner.run, wanted, self._workers)

    def _workers(self) -> int:
        """How many checks at a time; one on a device that is not known to be idle and large."""
        known = self.results.get(DEVICES)
        if self.ground.device == "cpu" or known is None or known.status is not Status.PASSED:
            return 1
        sizes = [one.get("memory", 0) for one in known.facts.get("devices", ())]
        return aheads.width(files.workers(), int(min(sizes, default=0)) << 20)

    def to_the_end(self) -> Outcome:
        self._tell(None)
        try:
            for check in self.checks:
                self.watch.on_start(check)
                result = self._judged(check, self._one(check))
                self.results[check.id] = result
                self.watch.on_result(result)
                self._tell(None)
        except BaseException:
            self.ahead.stop()
            self._tell(130)
            raise
        self.ahead.stop()
        results = tuple(self.results.values())
        code = exit_code(results)
        document = self._tell(code)
        return Outcome(
            results=results,
            findings=(*self.head.findings, *findings(results)),
            report=document,
            code=code,
            said=document["said"],
        )

    def _tell(self, code: int | None) -> dict[str, Any]:
        results = tuple(self.results.values())
        said = "" if code is None else verdict(results, code, self.scene.manifest is not None)
        ended = "" if code is None else _now()
        document = report.build(self.head, results, code, ended, said)
        self.watch.on_report(document)
        return document

    def _pending(self, check: Check) -> CheckResult:
        return self._judged(check, _without_child(check, Status.NOT_RUN, "not run"))

    def _judged(self, check: Check, result: CheckResult) -> CheckResult:
        return replace(result, required=plan.is_required(check, result.status, self.ground))

    def _one(self, check: Check) -> CheckResult:
        if check.id == STATIC_LOCK:
            return self._static(check)
        if plan.is_pointless(check, self.ground):
            return _without_child(check, Status.SKIPPED, f"'{check.subject}' is not installed")
        if check.id in STATIC:
            return self._on_disk(check)
        bad = [r.id for r in self.results.values() if r.status in BAD]
        blocker = plan.blocker(check, bad, IMPORTS) or self._wedged(check)
        if blocker:
            self.ahead.drop(check)
            return _without_child(check, Status.BLOCKED, f"blocked by {blocker}")
        if check.id.partition(".")[0] in WATCHED:
            self.ahead.wait()
            return self._after(check, self.meter.watched(check, self.runner.run))
        return self._after(check, self.ahead.take(check))

    def _wedged(self, check: Check) -> str:
        if check.id in IMPORTS.values():
            return ""
        if check.index is None:  # of all devices, or there is one
            return next(iter(self.wedged.values()), "")
        return self.wedged.get(check.index, "")

    def _after(self, check: Check, result: CheckResult) -> CheckResult:
        """Is the device still there? One fault is reported once, not by every later check."""
        good = result.status in (Status.PASSED, Status.WARNED)
        silent = base_id(check.id) == CANARY and not good
        if silent or result.status is Status.UNKILLABLE:
            self.wedged[check.index] = check.id
        elif result.status in BAD and check.id not in IMPORTS.values():
            again = self.runner.run(replace(self._canary(), index=check.index))
            if again.status is not Status.PASSED:
                self.wedged[check.index] = check.id
            facts = {**result.facts, "canary": again.status.value}
            return replace(result, facts=facts)
        return result

    def _canary(self) -> Check:
        known = {base_id(check.id): check for check in (*CHECKS, *self.checks)}
        return known[CANARY]

    def _on_disk(self, check: Check) -> CheckResult:
        started = time.monotonic()
        cases = STATIC[check.id](self.scene)
        status, reason = summary(cases)
        seconds = round(time.monotonic() - started, 3)
        return replace(_without_child(check, status, reason), seconds=seconds, cases=cases)

    def _static(self, check: Check) -> CheckResult:
        manifest = self.scene.manifest
        if manifest is None:
            return _without_child(check, Status.SKIPPED, "not compared: there is no manifest")
        started = time.monotonic()
        layout = self.runner.target.layout
        cases = static.compare(manifest, self.scene.installed, layout, self.watch.on_files)
        status, reason = summary(cases)
        return replace(
            _without_child(check, status, reason),
            seconds=round(time.monotonic() - started, 3),
            cases=cases,
            facts={"extra": static.extra(manifest, self.scene.installed)},
        )


def _beside(runner: Runner, workers: int) -> Callable[[Check], CheckResult]:
    """Runs a check beside others: each has its part of the processors."""
    threads = str(max(1, files.workers() // workers))
    return replace(runner, env={"OMP_NUM_THREADS": threads, **runner.env}).run


def _without_child(check: Check, status: Status, reason: str) -> CheckResult:
    return CheckResult(id=check.id, title=check.title, status=status, required=True, reason=reason)
