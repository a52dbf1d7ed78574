"""envlock demo."""

from __future__ import annotations

from typing import Annotated

import typer

from envlock.cli import options


def demo(
    folder: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Scratch folder; default: a new temporary one."),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """The whole loop on this machine, in a scratch folder, with no device and no network."""
    from envlock.cli import demonstration

    common = options.common(None, None, json=json, quiet=quiet)
    return demonstration.run(common, folder)
