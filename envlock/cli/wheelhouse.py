"""envlock wheelhouse harvest, check, build."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from envlock.cli import building, options, wiring
from envlock.cli.kit import pack, unpack
from envlock.cli.listing import Listed
from envlock.cli.show import count, size

if TYPE_CHECKING:
    from envlock.adapters.resolving import Pin, Question, Resolver
    from envlock.cli.options import Common
    from envlock.cli.show import Screen
    from envlock.model.facts import Finding, Target
    from envlock.model.manifest import Manifest
    from envlock.wheelhouse.resolve import Built

app = typer.Typer(
    name="wheelhouse",
    cls=Listed,
    rich_markup_mode=None,
    help="Keep the wheels: harvest, check, build, pack, unpack.",
)

app.callback(invoke_without_command=True)(options.help_alone)
app.command()(pack)
app.command()(unpack)

Folder = Annotated[str, typer.Argument(metavar="DIR", help="The wheelhouse.")]
Links = Annotated[
    list[str] | None,
    typer.Option("-f", "--find-links", metavar="DIR", help="Wheels at hand; may be repeated."),
]
ResolverName = Annotated[
    str,
    typer.Option(
        "--resolver",
        metavar="NAME",
        help="auto, uv or pip-tools.",
        autocompletion=options.one_of("auto", "uv", "pip-tools"),
    ),
]
Compress = Annotated[
    str | None,
    typer.Option(
        "--compress",
        metavar="HOW",
        help="fast (default), best or none; wheels made another way are made again.",
        show_default=False,
        autocompletion=options.one_of("fast", "best", "none"),
    ),
]
WithUntracked = Annotated[
    bool,
    typer.Option(
        "--with-untracked",
        help="Pack files in a distribution's own folders that no RECORD lists, too.",
    ),
]


@app.command()
def harvest(
    folder: Folder = "wheels",
    python: options.Python = None,
    manifest: options.ManifestFile = None,
    compress: Compress = None,
    with_untracked: WithUntracked = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Rebuild a wheel of everything installed, on the machine that still has it."""
    from envlock.adapters.deflating import COMPRESSORS
    from envlock.errors import UsageProblem
    from envlock.wheelhouse.harvest import How
    from envlock.wheelhouse.harvest import harvest as run

    if compress is not None and compress not in COMPRESSORS:
        known = ", ".join(COMPRESSORS)
        raise UsageProblem(f"--compress: '{compress}' is not known", f"one of {known}")
    common = options.common(python, manifest, json=json, quiet=quiet, verbose=verbose)
    screen = common.screen
    target = wiring.open_target(common)
    screen.target(target)
    locked, in_force = _manifest(common, target, folder)
    how = How(in_force=in_force, compress=compress, untracked=with_untracked)
    total = sum(dist.files for dist in locked.distributions)
    with screen.progress("packing", total) as advance:
        done = run(target, locked, folder, how, advance)
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


def _manifest(common: Common, target: Target, folder: str) -> tuple[Manifest, bool]:
    """The manifest in force; without one, the target as it is now.

    Packing reads every file anyway, and compares it with RECORD: reading them before counts only
    where there are wheels that may be kept.
    """
    from dataclasses import replace

    from envlock.snapshot import take

    found = wiring.find_manifest(common, target)
    if found is not None:
        return found.manifest, True
    common.screen.note("no manifest is in force: packing what is there now")
    fresh = not os.path.exists(os.path.join(folder, "envlock.yaml"))
    request = replace(wiring.snapshot_request(common, target), trust_record=fresh)
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
        report = run(folder, advance, wiring.offline_resolver(common))
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
    links: Links = None,
    resolver: ResolverName = "auto",
    python: options.Python = None,
    manifest: options.ManifestFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Add distributions for the manifest's target, from any machine with an index."""
    from envlock.errors import UsageProblem
    from envlock.wheelhouse.resolve import Asked
    from envlock.wheelhouse.resolve import build as run

    common = options.common(python, manifest, json=json, quiet=quiet, verbose=verbose)
    screen = common.screen
    if not requirements and not files:
        raise UsageProblem(
            "command line: nothing to add", "name it: envlock wheelhouse build DIR peft"
        )
    building.need_files(files or ())
    before = _target_manifest(common, folder)
    tools, settings = building.tools_for(common, before.target, resolver)
    shown = replace(tools, resolver=_Shown(tools.resolver, screen))
    asked = Asked(
        requirements=requirements or [],
        files=files or [],
        links=links or [],
        places=settings.links,
    )
    done = run(folder, before, asked, shown)
    findings = [*building.ignored_settings(settings), *done.findings]
    screen.findings(findings)
    return _tell_built(screen, done, folder, findings)


def _tell_built(screen: Screen, done: Built, folder: str, findings: list[Finding]) -> int:
    code = _code(findings)
    there = len(done.added) - done.new
    kept = f", {there} there already" if there else ""
    screen.verdict(f"{count(done.new, 'wheel')} added{kept}, {size(done.fetched)} into '{folder}'")
    for dist in done.added:
        screen.say(f"  {dist}")
    if done.held:
        screen.say(f"as the target has it: {', '.join(str(dist) for dist in done.held)}")
    data = {
        "folder": os.path.abspath(folder),
        "added": [str(dist) for dist in done.added],
        "held": [str(dist) for dist in done.held],
    }
    screen.document("wheelhouse build", code, findings, data)
    return code


@dataclass(frozen=True, slots=True)
class _Shown:
    """A resolver that people can see at work; downloads have a bar of their own."""

    resolver: Resolver
    screen: Screen

    def resolve(self, question: Question) -> tuple[Pin, ...]:
        with self.screen.progress("resolving"):
            return self.resolver.resolve(question)


def _target_manifest(common: Common, folder: str) -> Manifest:
    """The manifest of the target; no target is needed on this machine where a file names one."""
    from envlock.adapters.state import read_manifest

    inside = os.path.join(folder, "envlock.yaml")
    own = inside if os.path.exists(inside) else None
    for path in (common.named_manifest, own, common.variable_manifest):
        if path:
            return read_manifest(path)
    return wiring.need_manifest(common, wiring.open_target(common)).manifest
