"""envlock verify."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from envlock.cli import options, wiring
from envlock.cli.show import count

if TYPE_CHECKING:
    from envlock.cli.options import Common
    from envlock.cli.show import Advance, Screen
    from envlock.model.check import CheckResult
    from envlock.model.facts import Target
    from envlock.model.manifest import Manifest
    from envlock.model.profile import Profile
    from envlock.verify.run import Watch


def verify(
    level: Annotated[
        str, typer.Option(metavar="LEVEL", help="static, quick, standard, full or stress.")
    ] = "standard",
    only: Annotated[
        list[str] | None, typer.Option(metavar="PATTERN", help="Only these checks: 'num.*'.")
    ] = None,
    skip: Annotated[
        list[str] | None, typer.Option(metavar="PATTERN", help="Not these checks.")
    ] = None,
    device: Annotated[str, typer.Option(metavar="KIND", help="auto, cpu or cuda.")] = "auto",
    report: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write the report here, after every check."),
    ] = None,
    timeout_scale: Annotated[float, typer.Option(help="Factor on every time limit.")] = 1.0,
    python: options.Python = None,
    manifest: options.ManifestFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Prove that the installed stack computes: files, imports, first kernel, numbers."""
    from envlock.verify.plan import Options, select
    from envlock.verify.run import run_suite

    common = options.common(python, manifest, json=json, quiet=quiet, verbose=verbose)
    wanted = Options(
        level=level,
        only=tuple(only or ()),
        skip=tuple(skip or ()),
        device=device,
        timeout_scale=timeout_scale,
    )
    checks = select(wanted)  # a wrong word is said before anything is read
    target = wiring.open_target(common)
    found = wiring.find_manifest(common, target)
    locked = found.manifest if found else None
    profile = _profile(common, locked, target)
    with common.screen.progress(count(len(checks), "check"), len(checks)) as advance:
        watch = _watch(common.screen, advance, report)
        outcome = run_suite(target, locked, profile, wanted, env=common.env, watch=watch)
    common.screen.findings(outcome.findings)
    common.screen.verdict(outcome.said)
    common.screen.document("verify", outcome.code, outcome.findings, outcome.report)
    return outcome.code


def _profile(common: Common, manifest: Manifest | None, target: Target) -> Profile:
    """The manifest's profile where it is one of ours: a path in a manifest is never followed, since
    a profile names a script to source."""
    from envlock.adapters.profiles import BUNDLED

    known = manifest is not None and manifest.profile in BUNDLED
    return wiring.choose_profile(common, manifest.profile if manifest and known else "auto", target)


def _watch(screen: Screen, advance: Advance, report: str | None) -> Watch:
    from envlock.model.check import Status
    from envlock.verify import report as reports
    from envlock.verify.run import Watch

    def tell(result: CheckResult) -> None:
        advance(1)
        line = f"{result.status.value:10}  {result.id:16}  {result.seconds:7.1f} s"
        why = result.reason.splitlines()[-1] if result.status is Status.SKIPPED else ""
        screen.say(f"{line}  {why}".rstrip())
        for case in result.cases if screen.verbose else ():
            screen.say(f"    {case.status.value:8}  {case.name}  {case.reason}".rstrip())

    if report is None:
        return Watch(on_result=tell)
    return Watch(on_result=tell, on_report=partial(reports.write, report))
