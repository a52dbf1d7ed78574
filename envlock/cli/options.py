"""Options that every command takes, and the only place where environment variables are read."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Annotated

import typer

from envlock.cli.show import Screen

#: Where the facts of the machine are read; tests put recorded machines elsewhere.
ROOT = "/"


def one_of(*words: str) -> Callable[[str], list[str]]:
    """What a shell offers where the value of an option is being typed."""

    def offered(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return offered


Python = Annotated[
    str | None,
    typer.Option(
        "--python",
        metavar="PATH",
        help="The target's Python or environment. "
        "Else $VIRTUAL_ENV, $CONDA_PREFIX, the first python3 on PATH.",
        show_default=False,
    ),
]
ManifestFile = Annotated[
    str | None,
    typer.Option(
        "--manifest",
        metavar="FILE",
        help="The manifest. Else $ENVLOCK_MANIFEST, else the one remembered for the target.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Only findings and the verdict.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="More detail.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """What every command knows: where the words go, which target was named, the environment, and
    where the machine's files are."""

    screen: Screen
    python: str | None = None
    manifest: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    root: str = "/"

    @property
    def named_manifest(self) -> str | None:
        """``--manifest``; the variable comes after a wheelhouse's own manifest."""
        return self.manifest

    @property
    def variable_manifest(self) -> str | None:
        """``$ENVLOCK_MANIFEST``."""
        return self.env.get("ENVLOCK_MANIFEST") or None


def common(
    python: str | None,
    manifest: str | None,
    *,
    json: bool,
    quiet: bool = False,
    verbose: bool = False,
) -> Common:
    """The shared options of one run."""
    env = dict(os.environ)
    screen = Screen(json=json, quiet=quiet, verbose=verbose, color="NO_COLOR" not in env)
    return Common(screen=screen, python=python, manifest=manifest, env=env, root=ROOT)


def now() -> str:
    """UTC, to the second: ``2026-11-30T08:00:00Z``."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def help_alone(context: typer.Context) -> int:
    """The code of a group that was named without a command: its help, and 2."""
    if context.invoked_subcommand is not None:
        return 0
    typer.echo(context.get_help())
    return 2
