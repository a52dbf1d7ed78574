"""envlock restore."""

from __future__ import annotations

from typing import Annotated

import typer

from envlock.cli import options, wiring


def restore(
    wheelhouse: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Folder with the wheels; else the one remembered."),
    ] = None,
    into: Annotated[
        str | None,
        typer.Option(metavar="VENV", help="A new environment instead of the target itself."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="'protected', or a distribution; may be repeated."),
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Also remove what the manifest does not have.")
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Only say what would be done; exit 3 if anything.")
    ] = False,
    recover: Annotated[
        bool, typer.Option("--recover", help="End a restore that was cut: undo or finish it.")
    ] = False,
    backend: Annotated[str, typer.Option(metavar="NAME", help="auto, uv or pip.")] = "auto",
    python: options.Python = None,
    manifest: options.ManifestFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Put the locked set back: all or nothing, and without network."""
    from envlock.cli import restoring

    _refuse_together(
        recover=recover, other=bool(plan or into or only or exact), exact=exact, only=bool(only)
    )
    common = options.common(python, manifest, json=json, quiet=quiet, verbose=verbose)
    target = wiring.open_target(common, unfinished=recover)
    if recover:
        return restoring.recover(common, target)
    asked = restoring.Asked(
        wheelhouse=wheelhouse, into=into, only=only or [], exact=exact, backend=backend
    )
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
