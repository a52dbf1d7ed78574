"""envlock fleet verify, restore, doctor, snapshot."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from envlock.cli import options
from envlock.cli.doctor import NoNetwork
from envlock.cli.doctor import ProfileName as DoctorProfile
from envlock.cli.fleet_node import link, node, pull
from envlock.cli.fleet_report import report
from envlock.cli.listing import Listed
from envlock.cli.restore import Backend, Exact, Managed, Only, StackChange, Wheelhouse
from envlock.cli.snapshot import ProfileName, TrustRecord
from envlock.cli.verify import BaselineFile, Device, Level, Skip, TimeoutScale
from envlock.cli.verify import Only as OnlyChecks

app = typer.Typer(
    name="fleet",
    cls=Listed,
    rich_markup_mode=None,
    help="The same on every node of a cluster: verify, restore, doctor, snapshot, report.",
)
app.callback(invoke_without_command=True)(options.help_alone)
app.command()(report)
app.command(hidden=True)(node)
app.command(hidden=True)(pull)
app.command(hidden=True)(link)

Out = Annotated[
    str, typer.Option("--out", metavar="DIR", help="New folder: a report NODE.json for each node.")
]
SrunOptions = Annotated[
    list[str] | None,
    typer.Argument(metavar="[-- SRUN OPTIONS]", help="For srun: -- -N 4 -p PARTITION"),
]
LauncherWords = Annotated[
    str | None,
    typer.Option(
        "--launcher",
        metavar="CMD",
        help="Not srun, but this, which starts one process on each host: 'mpirun --npernode 1'.",
    ),
]
Nodes = Annotated[
    str | None,
    typer.Option(
        "--nodes", metavar="LIST", help="With --launcher: who has to answer, n[001-128] or a file."
    ),
]
Limit = Annotated[
    float,
    typer.Option("--node-timeout", metavar="SECONDS", help="Each node's own limit; 0 for none."),
]
NodePython = Annotated[
    str | None,
    typer.Option(
        "--python",
        metavar="PATH",
        help="The target's Python or environment on each node; {node} is the node's name.",
    ),
]
Scratch = Annotated[
    str | None,
    typer.Option(
        "--scratch",
        metavar="DIR",
        help="Folder on each node's own disk, for the copy; default: the node's $TMPDIR, or /tmp.",
    ),
]
Collective = Annotated[
    bool,
    typer.Option(
        "--collective", help="Then sums over pairs of nodes, and over all: exact, 4 B to 256 MiB."
    ),
]
Kit = Annotated[
    str | None,
    typer.Option(
        "--kit",
        metavar="KIT",
        help="Nodes share nothing: broadcast this kit to their --scratch, use the envlock inside.",
    ),
]
NodeInto = Annotated[
    str | None,
    typer.Option("--into", metavar="VENV", help="A new environment; {node} is the node's name."),
]


@app.command()
def verify(
    out: Out,
    srun_options: SrunOptions = None,
    launcher: LauncherWords = None,
    nodes: Nodes = None,
    node_timeout: Limit = 0.0,
    kit: Kit = None,
    scratch: Scratch = None,
    level: Level = "standard",
    only: OnlyChecks = None,
    skip: Skip = None,
    device: Device = "all",
    baseline: BaselineFile = None,
    timeout_scale: TimeoutScale = 1.0,
    collective: Collective = False,
    python: NodePython = None,
    manifest: options.ManifestFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Prove the stack on every node: verify, one task a node, all its devices."""
    from envlock.cli import launching
    from envlock.verify.plan import Options, select

    # a wrong word is said before anything is started
    select(Options(level=level, only=tuple(only or ()), skip=tuple(skip or ()), device=device))
    words = ["verify", "--level", level, "--device", device]
    words += [word for pattern in only or () for word in ("--only", pattern)]
    words += [word for pattern in skip or () for word in ("--skip", pattern)]
    words += ["--timeout-scale", str(timeout_scale)] if timeout_scale != 1.0 else []
    words += ["--baseline", os.path.abspath(baseline)] if baseline else []
    common = options.common(None, manifest, json=json, quiet=quiet, verbose=verbose)
    asked = launching.Asked(
        words=words, out=out, python=python, launcher=launcher, nodes=nodes,
        srun_options=srun_options or [], seconds=node_timeout, kit=kit, scratch=scratch,
    )  # fmt: skip
    return launching.verify(common, asked, device if collective else "")


@app.command()
def restore(
    out: Out,
    srun_options: SrunOptions = None,
    launcher: LauncherWords = None,
    nodes: Nodes = None,
    node_timeout: Limit = 0.0,
    kit: Kit = None,
    wheelhouse: Wheelhouse = None,
    scratch: Scratch = None,
    into: NodeInto = None,
    only: Only = None,
    exact: Exact = False,
    stack_change: StackChange = False,
    managed: Managed = False,
    backend: Backend = "auto",
    python: NodePython = None,
    manifest: options.ManifestFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Put the locked set back on every node; each copies what it needs once, to its own disk."""
    from envlock.cli import launching

    words = [word for name in only or () for word in ("--only", name)]
    words += ["--into", into] if into else []
    switches = {
        "--exact": exact, "--allow-stack-change": stack_change, "--break-system-packages": managed,
    }  # fmt: skip
    words += [switch for switch, given in switches.items() if given]
    words += ["--backend", backend] if backend != "auto" else []
    common = options.common(None, manifest, json=json, quiet=quiet, verbose=verbose)
    asked = launching.Asked(
        words=launching.restoring_words(wheelhouse, scratch, kit, words), out=out, python=python,
        launcher=launcher, nodes=nodes, srun_options=srun_options or [], seconds=node_timeout,
        kit=kit, scratch=scratch,
    )  # fmt: skip
    return launching.other(common, "fleet restore", asked)


@app.command()
def snapshot(
    out: Out,
    srun_options: SrunOptions = None,
    launcher: LauncherWords = None,
    nodes: Nodes = None,
    node_timeout: Limit = 0.0,
    kit: Kit = None,
    scratch: Scratch = None,
    trust_record: TrustRecord = False,
    profile: ProfileName = "auto",
    python: NodePython = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Lock what is installed on every node: NODE.yaml for each; they should be the same."""
    from envlock.cli import launching

    words = ["snapshot", "-o", "{report}.yaml", "--profile", profile]
    words += ["--trust-record"] if trust_record else []
    common = options.common(None, None, json=json, quiet=quiet, verbose=verbose)
    asked = launching.Asked(
        words=words, out=out, python=python, launcher=launcher, nodes=nodes, beside=".yaml",
        srun_options=srun_options or [], seconds=node_timeout, kit=kit, scratch=scratch,
    )  # fmt: skip
    return launching.other(common, "fleet snapshot", asked)


@app.command()
def doctor(
    out: Out,
    srun_options: SrunOptions = None,
    launcher: LauncherWords = None,
    nodes: Nodes = None,
    node_timeout: Limit = 0.0,
    kit: Kit = None,
    scratch: Scratch = None,
    profile: DoctorProfile = "auto",
    no_network: NoNetwork = False,
    python: NodePython = None,
    manifest: options.ManifestFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Facts and hints of every node: limits, activation, devices, network."""
    from envlock.cli import launching

    words = ["doctor", "--profile", profile, *(["--no-network"] if no_network else [])]
    common = options.common(None, manifest, json=json, quiet=quiet, verbose=verbose)
    asked = launching.Asked(
        words=words, out=out, python=python, launcher=launcher, nodes=nodes,
        srun_options=srun_options or [], seconds=node_timeout, kit=kit, scratch=scratch,
    )  # fmt: skip
    return launching.other(common, "fleet doctor", asked)
