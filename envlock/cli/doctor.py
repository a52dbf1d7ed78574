"""envlock doctor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from envlock.cli import options

if TYPE_CHECKING:
    from envlock.cli.show import Screen
    from envlock.doctor.report import Report

ProfileName = Annotated[
    str, typer.Option("--profile", metavar="NAME", help="A vendor, auto, or a YAML file.")
]
NoNetwork = Annotated[bool, typer.Option("--no-network", help="Ask no server.")]


def doctor(
    profile: ProfileName = "auto",
    no_network: NoNetwork = False,
    python: options.Python = None,
    manifest: options.ManifestFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Say what this machine and the target are, what is wrong, and what to type."""
    from envlock.cli.examining import PARTS, Asked, examine

    common = options.common(python, manifest, json=json, quiet=quiet, verbose=verbose)
    screen = common.screen
    asked = Asked(profile=profile, network=not no_network)
    about = "the machine, the target" + (" and the network (3 s at most)" * asked.network)
    with screen.progress(f"looking at {about}", PARTS) as advance:
        report = examine(common, asked, advance)
    _show(screen, report)
    screen.findings(report.findings)
    screen.verdict(report.verdict(details=verbose))
    screen.document("doctor", report.exit_code, report.findings, report.data())
    return report.exit_code


def _show(screen: Screen, report: Report) -> None:
    """Everything but the findings; details only for those who asked for them."""
    screen.sections(
        (
            section.title,
            [(row.name, row.value) for row in section.rows if screen.verbose or not row.detail],
        )
        for section in report.sections
    )
