"""envlock verify."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from envlock.cli import options, wiring
from envlock.cli.show import count

if TYPE_CHECKING:
    from envlock.cli.options import Common
    from envlock.cli.show import Advance, Screen
    from envlock.model.check import CheckResult
    from envlock.model.facts import Finding, Target
    from envlock.model.manifest import Manifest
    from envlock.model.profile import Profile
    from envlock.verify.papers import Papers


Level = Annotated[
    str,
    typer.Option(
        "--level",
        metavar="LEVEL",
        help="static, quick, standard, full or stress.",
        autocompletion=options.one_of("static", "quick", "standard", "full", "stress"),
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="PATTERN", help="Only these checks: 'num.*'."),
]
Skip = Annotated[
    list[str] | None, typer.Option("--skip", metavar="PATTERN", help="Not these checks.")
]
Device = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="WHICH",
        help="auto, cpu, cuda, a number, or all.",
        autocompletion=options.one_of("auto", "cpu", "cuda", "all"),
    ),
]
ReportFile = Annotated[
    str | None,
    typer.Option("--report", metavar="FILE", help="Write the report here, after every check."),
]
HtmlFile = Annotated[
    str | None, typer.Option("--html", metavar="FILE", help="The same as a page with plots.")
]
JunitFile = Annotated[
    str | None, typer.Option("--junit", metavar="FILE", help="The same as JUnit XML.")
]
BaselineFile = Annotated[
    str | None,
    typer.Option(
        "--baseline", metavar="FILE", help="An earlier report: numbers are compared with it."
    ),
]
ProfileName = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        help="A vendor, auto, or a YAML file. Else the manifest's, where envlock has it.",
        show_default=False,
    ),
]
TimeoutScale = Annotated[float, typer.Option("--timeout-scale", help="Factor on every time limit.")]


def verify(
    level: Level = "standard",
    only: Only = None,
    skip: Skip = None,
    device: Device = "auto",
    report: ReportFile = None,
    html: HtmlFile = None,
    junit: JunitFile = None,
    baseline: BaselineFile = None,
    timeout_scale: TimeoutScale = 1.0,
    profile: ProfileName = None,
    python: options.Python = None,
    manifest: options.ManifestFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Prove that the installed stack computes: files, imports, first kernel, numbers."""
    from envlock.verify.papers import Papers, Wanted
    from envlock.verify.plan import Options, select
    from envlock.verify.report import to_text
    from envlock.verify.run import Watch, run_suite
    from envlock.verify.saved import load

    common = options.common(python, manifest, json=json, quiet=quiet, verbose=verbose)
    wanted = Options(
        level=level,
        only=tuple(only or ()),
        skip=tuple(skip or ()),
        device=device,
        timeout_scale=timeout_scale,
    )
    checks = select(wanted)  # a wrong word is said before anything is read
    earlier = load(baseline) if baseline is not None else None
    target = wiring.open_target(common)
    found = wiring.find_manifest(common, target)
    locked = found.manifest if found else None
    vendor = _profile(common, profile, locked, target)
    papers = Papers(Wanted(report=report, html=html, junit=junit, baseline=earlier))
    # on every device a check is called num.gemm_real@1
    id_width = max(len(check.id) for check in checks) + 2 * (device == "all")
    with common.screen.progress(count(len(checks), "check"), len(checks)) as advance:
        watch = Watch(on_result=_teller(common.screen, advance, id_width), on_report=papers.keep)
        outcome = run_suite(target, locked, vendor, wanted, env=common.env, watch=watch)
    remembered = wiring.memory(common, target).remember_report(to_text(papers.document))
    findings = [*outcome.findings, *remembered, *_beside(papers)]
    common.screen.findings(findings)
    common.screen.verdict(papers.document["said"])
    code = int(papers.document["exit"])
    common.screen.document("verify", code, findings, papers.document)
    return code


def _profile(
    common: Common, named: str | None, manifest: Manifest | None, target: Target
) -> Profile:
    """The one that is named, else the manifest's where it is one of ours: a path in a manifest is
    never followed, since a profile names a script to source."""
    from envlock.adapters.profiles import BUNDLED

    known = manifest.profile if manifest and manifest.profile in BUNDLED else "auto"
    return wiring.choose_profile(common, named or known, target)


def _teller(screen: Screen, advance: Advance, id_width: int) -> Callable[[CheckResult], None]:
    """Shows each check as a line of one table: its widths are known before the first."""
    import shutil

    from envlock.verify.words import case_line, row

    # in a file nothing is cut short of what a wide window shows
    width = shutil.get_terminal_size((160, 24)).columns

    def tell(result: CheckResult) -> None:
        advance(1)
        line = row(result)
        status, rest = line.text(id_width, width)
        screen.say(f"{screen.mark(status, line.level)}{rest}")
        for case in result.cases if screen.verbose else ():
            screen.say(case_line(case))

    return tell


def _beside(papers: Papers) -> tuple[Finding, ...]:
    """What the baseline has to say, and how much stands behind it."""
    from envlock.model.facts import Finding
    from envlock.verify.words import compared, comparison_findings

    if papers.comparison is None:
        return ()
    done = Finding(
        code="baseline", subject="baseline", what=compared(papers.comparison), level="info"
    )
    return (*comparison_findings(papers.comparison), done)
