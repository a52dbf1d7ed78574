"""envlock wheelhouse harvest, check, build."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from envlock.cli import options, wiring
from envlock.cli.show import count, size

if TYPE_CHECKING:
    from envlock.cli.options import Common
    from envlock.model.facts import Finding, Target
    from envlock.model.manifest import Manifest

app = typer.Typer(
    name="wheelhouse",
    rich_markup_mode=None,
    help="Keep the wheels: harvest, check, build.",
)

app.callback(invoke_without_command=True)(options.help_alone)

Folder = Annotated[str, typer.Argument(metavar="DIR", help="The wheelhouse.")]


@app.command()
def harvest(
    folder: Folder = "wheels",
    python: options.Python = None,
    manifest: options.ManifestFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Rebuild a wheel of everything installed, on the machine that still has it."""
    from envlock.wheelhouse.harvest import harvest as run

    common = options.common(python, manifest, json=json, quiet=quiet, verbose=verbose)
    screen = common.screen
    target = wiring.open_target(common)
    screen.target(target)
    locked, in_force = _manifest(common, target)
    total = sum(dist.files for dist in locked.distributions)
    with screen.progress("packing", total) as advance:
        done = run(target, locked, folder, in_force=in_force, advance=advance)
    findings = [*done.findings, *wiring.memory(common, target).remember_wheels(folder)]
    screen.findings(findings)
    code = _code(findings)
    wheels = [dist.wheel for dist in done.manifest.distributions if dist.wheel]
    screen.verdict(
        f"{count(len(done.packed), 'wheel')} packed, {len(done.kept)} kept, "
        f"{size(sum(wheel.size or 0 for wheel in wheels))} in '{folder}'"
    )
    if code == 0:
        screen.say("carry the folder away from here; put it back with: envlock restore")
    data = {
        "folder": os.path.abspath(folder),
        "packed": [wheel.file for wheel in done.packed],
        "kept": [wheel.file for wheel in done.kept],
    }
    screen.document("wheelhouse harvest", code, findings, data)
    return code


def _manifest(common: Common, target: Target) -> tuple[Manifest, bool]:
    """The manifest in force; without one, the target as it is now."""
    from envlock.snapshot import take

    found = wiring.find_manifest(common, target)
    if found is not None:
        return found.manifest, True
    common.screen.note("no manifest is in force: packing what is there now")
    request = wiring.snapshot_request(common, target)
    return take(target, request)[0], False


def _code(findings: Iterable[Finding]) -> int:
    return 3 if any(finding.level == "error" for finding in findings) else 0


@app.command()
def check(
    folder: Folder = "wheels",
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Are all wheels there, whole, fitting and enough; every problem in one run."""
    from envlock.wheelhouse.check import check as run

    common = options.common(None, None, json=json, quiet=quiet, verbose=verbose)
    screen = common.screen
    with screen.progress(f"reading {folder}") as advance:
        report = run(folder, advance)
    screen.findings(report.findings)
    code = _code(report.findings)
    faults = sum(finding.level == "error" for finding in report.findings)
    wheels = (
        f"{count(len(report.wheels), 'wheel')}, {size(sum(wheel.size for wheel in report.wheels))}"
    )
    screen.verdict(f"{wheels}: {count(faults, 'fault') if faults else 'whole and enough'}")
    data = {
        "folder": os.path.abspath(folder),
        "wheels": [wheel.file for wheel in report.wheels],
        "without_wheel": list(report.without_wheel),
        "unknown": list(report.unknown),
    }
    screen.document("wheelhouse check", code, report.findings, data)
    return code


@app.command()
def build(
    folder: Folder = "wheels",
    requirements: Annotated[
        list[str] | None, typer.Argument(metavar="REQ…", help="What to add, as for pip install.")
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Option("-r", "--requirement", metavar="FILE", help="Requirements; may be repeated."),
    ] = None,
    python: options.Python = None,
    manifest: options.ManifestFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Add distributions for the manifest's target, from any machine with an index."""
    from envlock.errors import UsageProblem
    from envlock.wheelhouse.resolve import build as run

    common = options.common(python, manifest, json=json, quiet=quiet, verbose=verbose)
    screen = common.screen
    if not requirements and not files:
        raise UsageProblem(
            "command line: nothing to add", "name it: envlock wheelhouse build DIR peft"
        )
    before = _target_manifest(common, folder)
    resolver, downloader = wiring.resolving(common)
    with screen.progress(f"resolving for {before.name} and downloading"):
        done = run(folder, before, (requirements or [], files or []), resolver, downloader)
    screen.findings(done.findings)
    code = _code(done.findings)
    fetched = sum(dist.wheel.size or 0 for dist in done.added if dist.wheel)
    screen.verdict(f"{count(len(done.added), 'wheel')} added, {size(fetched)} in '{folder}'")
    for dist in done.added:
        screen.say(f"  {dist}")
    if done.held:
        screen.say(f"as the target has it: {', '.join(str(dist) for dist in done.held)}")
    data = {
        "folder": os.path.abspath(folder),
        "added": [str(dist) for dist in done.added],
        "held": [str(dist) for dist in done.held],
    }
    screen.document("wheelhouse build", code, done.findings, data)
    return code


def _target_manifest(common: Common, folder: str) -> Manifest:
    """The manifest of the target; no target is needed on this machine where a file names one."""
    from envlock.adapters.state import read_manifest

    inside = os.path.join(folder, "envlock.yaml")
    own = inside if os.path.exists(inside) else None
    for path in (common.named_manifest, own, common.variable_manifest):
        if path:
            return read_manifest(path)
    return wiring.need_manifest(common, wiring.open_target(common)).manifest
