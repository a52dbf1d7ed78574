"""envlock restore."""

from __future__ import annotations

from typing import Annotated

import typer

from envlock.cli import options, wiring

Wheelhouse = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Folder with the wheels; else the one remembered."),
]
Into = Annotated[
    str | None,
    typer.Option(metavar="VENV", help="A new environment instead of the target itself."),
]
Only = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="'protected', or a distribution; may be repeated."),
]
Exact = Annotated[bool, typer.Option("--exact", help="Also remove what the manifest has not.")]
PlanOnly = Annotated[
    bool, typer.Option("--plan", help="Only say what would be done; exit 3 if anything.")
]
Recover = Annotated[
    bool, typer.Option("--recover", help="End a restore that was cut: undo or finish it.")
]
Compile = Annotated[bool, typer.Option("--compile", help="Make the byte code too, after the swap.")]
StackChange = Annotated[
    bool,
    typer.Option(
        "--allow-stack-change", help="Though this machine has another release of the stack."
    ),
]
Managed = Annotated[
    bool,
    typer.Option("--break-system-packages", help="Though somebody else manages the target."),
]
Backend = Annotated[str, typer.Option(metavar="NAME", help="auto, native, uv or pip.")]


def restore(
    wheelhouse: Wheelhouse = None,
    into: Into = None,
    only: Only = None,
    exact: Exact = False,
    plan: PlanOnly = False,
    recover: Recover = False,
    compiled: Compile = False,
    stack_change: StackChange = False,
    managed: Managed = False,
    backend: Backend = "auto",
    python: options.Python = None,
    manifest: options.ManifestFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Put the locked set back: all or nothing, and without network."""
    from envlock.cli import restoring
    from envlock.restore.refusals import Insist

    _refuse_together(
        recover=recover, other=bool(plan or into or only or exact), exact=exact, only=bool(only)
    )
    common = options.common(python, manifest, json=json, quiet=quiet, verbose=verbose)
    target = wiring.open_target(common, unfinished=recover)
    if recover:
        return restoring.recover(common, target)
    insist = Insist(stack_change=stack_change, managed=managed)
    asked = restoring.Asked(
        wheelhouse=wheelhouse, into=into, only=only or [], exact=exact, backend=backend,
        compile=compiled, insist=insist,
    )  # fmt: skip
    if plan:
        return restoring.show_plan(common, target, asked)
    return restoring.restore(common, target, asked)


def _refuse_together(*, recover: bool, other: bool, exact: bool, only: bool) -> None:
    """Options that contradict each other: one of them would be ignored in silence.

    Raises:
        UsageProblem: they were given together.
    """
    from envlock.errors import UsageProblem

    if recover and other:
        raise UsageProblem(
            "command line: '--recover' ends a restore that was cut, and takes no other wishes",
            "give it alone, with --python PATH where the target is not the usual one",
        )
    if exact and only:
        raise UsageProblem(
            "command line: '--exact' looks at everything, '--only' at less", "leave one out"
        )
