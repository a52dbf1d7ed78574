"""Runs the validation suite: one child for each check, and a verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

from envlock import __version__
from envlock.adapters.installed import Installed, read_installed
from envlock.adapters.interpreter import probes_folder
from envlock.model.check import BAD, Check, CheckResult, Status, exit_code
from envlock.model.facts import Finding, Target
from envlock.model.manifest import Manifest
from envlock.model.profile import Profile
from envlock.verify import plan, report, static
from envlock.verify.activation import Activation, activate
from envlock.verify.child import Runner, summary
from envlock.verify.plan import Options
from envlock.verify.registry import CANARY, CHECKS, IMPORTS, STATIC_LOCK
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
    checks = plan.select(options)
    # nothing is sourced, and nothing said about a stack, where no check starts a child
    children = any(check.script for check in checks)
    activation = activate(profile, env) if children else Activation(env=env)
    installed = read_installed(target.layout)
    ground = plan.stand(options, profile, manifest, (one.name for one in installed))
    scripts = options.scripts or probes_folder() / "checks"
    head = report.Head(
        tool=f"envlock {__version__}",
        target=target,
        manifest=manifest,
        profile=profile.name,
        device=ground.device,
        config=report.configuration(checks, options.level, options.timeout_scale, scripts),
        findings=activation.findings,
        started=_now(),
    )
    runner = Runner(
        target=target,
        env=activation.env,
        ground=ground,
        level=options.level,
        timeout_scale=options.timeout_scale,
        scripts=scripts,
        grace=options.grace,
    )
    return _Run(checks, runner, _Lock(manifest, installed), head, watch or Watch()).to_the_end()


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True)
class _Lock:
    """What should be installed, and what is."""

    manifest: Manifest | None
    installed: Sequence[Installed]


class _Run:
    """One run; its results grow check by check."""

    def __init__(
        self,
        checks: Sequence[Check],
        runner: Runner,
        lock: _Lock,
        head: report.Head,
        watch: Watch,
    ) -> None:
        self.runner, self.lock = runner, lock
        self.ground = runner.ground
        self.head, self.watch = head, watch
        self.checks = checks
        self.results = {check.id: self._pending(check) for check in checks}
        self.wedged = ""  # id of the check after which the device no longer answered

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
            self._tell(130)
            raise
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
        said = "" if code is None else verdict(results, code, self.lock.manifest is not None)
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
        bad = [r.id for r in self.results.values() if r.status in BAD]
        blocker = plan.blocker(check, bad, IMPORTS) or self._wedged(check)
        if blocker:
            return _without_child(check, Status.BLOCKED, f"blocked by {blocker}")
        return self._after(check, self.runner.run(check))

    def _wedged(self, check: Check) -> str:
        return "" if check.id in IMPORTS.values() else self.wedged

    def _after(self, check: Check, result: CheckResult) -> CheckResult:
        """Is the device still there? One fault is reported once, not by every later check."""
        if result.status is Status.UNKILLABLE:
            self.wedged = check.id
        elif check.id == CANARY and result.status not in (Status.PASSED, Status.WARNED):
            self.wedged = CANARY
        elif result.status in BAD and check.id not in IMPORTS.values():
            again = self.runner.run(self._canary())
            if again.status is not Status.PASSED:
                self.wedged = check.id
            facts = {**result.facts, "canary": again.status.value}
            return replace(result, facts=facts)
        return result

    def _canary(self) -> Check:
        known = {check.id: check for check in (*CHECKS, *self.checks)}
        return known[CANARY]

    def _static(self, check: Check) -> CheckResult:
        manifest = self.lock.manifest
        if manifest is None:
            return _without_child(check, Status.SKIPPED, "not compared: there is no manifest")
        started = time.monotonic()
        layout = self.runner.target.layout
        cases = static.compare(manifest, self.lock.installed, layout, self.watch.on_files)
        status, reason = summary(cases)
        return replace(
            _without_child(check, status, reason),
            seconds=round(time.monotonic() - started, 3),
            cases=cases,
            facts={"extra": static.extra(manifest, self.lock.installed)},
        )


def _without_child(check: Check, status: Status, reason: str) -> CheckResult:
    return CheckResult(id=check.id, title=check.title, status=status, required=True, reason=reason)
