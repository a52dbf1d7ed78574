"""envlock export."""

from __future__ import annotations

import os
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from envlock.cli import options

if TYPE_CHECKING:
    from envlock.adapters.exports import Export
    from envlock.model.manifest import Manifest


class Format(str, Enum):
    """Whose file it is."""

    PYLOCK = "pylock"
    REQUIREMENTS = "requirements"
    CONSTRAINTS = "constraints"


FormatName = Annotated[
    Format,
    typer.Option("--format", help="What to write, for pip and uv.", show_default=False),
]
Only = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="'protected', or a distribution; may be repeated."),
]
Output = Annotated[
    str | None,
    typer.Option("-o", "--output", metavar="FILE", help="Default: standard output."),
]
Wheelhouse = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        help="Where the wheels are. Else beside the manifest, else the remembered folder.",
        show_default=False,
    ),
]
NoHashes = Annotated[
    bool, typer.Option("--no-hashes", help="Requirements without the hashes of wheels.")
]


def export(
    format: FormatName,  # noqa: A002 - the option's name
    only: Only = None,
    output: Output = None,
    wheelhouse: Wheelhouse = None,
    no_hashes: NoHashes = False,
    python: options.Python = None,
    manifest: options.ManifestFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Write the manifest for other tools: a lock, requirements, or constraints."""
    from packaging.utils import canonicalize_name

    from envlock.adapters.exports import Wanted
    from envlock.adapters.exports import export as write

    common = options.common(python, manifest, json=json, quiet=quiet, verbose=verbose)
    found, folder = _manifest(common, wheelhouse)
    wanted = Wanted(
        format=format.value,
        names=frozenset(str(canonicalize_name(name)) for name in only or ()),
        folder=folder,
        output=os.path.dirname(output or "") or ".",
        hashes=not no_hashes,
    )
    made = write(found, wanted)
    _keep(common, made, output, wanted.format)
    code = 3 if made.incomplete else 0
    data = {
        "format": wanted.format,
        "output": os.path.abspath(output) if output else None,
        "distributions": [str(dist) for dist in made.written],
        "text": None if output else made.text,
    }
    common.screen.document("export", code, made.findings, data)
    return code


def _manifest(common: options.Common, wheelhouse: str | None) -> tuple[Manifest, str]:
    """The manifest in force with the wheels that are known of it, and their folder."""
    from envlock.adapters.state import read_manifest
    from envlock.cli import wiring
    from envlock.cli.restoring import with_known_wheels
    from envlock.model.manifest import is_newer_minor

    own = os.path.join(wheelhouse, "envlock.yaml") if wheelhouse else ""
    beside = own if own and os.path.exists(own) else None
    named = common.named_manifest or beside or common.variable_manifest
    if named:  # a target is needed by nobody then
        found, source = read_manifest(named), named
        inside = os.path.basename(named) == "envlock.yaml"
        folder = wheelhouse or (os.path.dirname(named) or "." if inside else "")
    else:
        target = wiring.open_target(common)
        known = wiring.need_manifest(common, target)
        found, source = known.manifest, known.source
        folder = wheelhouse or os.fspath(wiring.memory(common, target).wheels() or "")
    if is_newer_minor(found):
        common.screen.note(f"'{source}' was written by a newer envlock: read as it is known")
    return (with_known_wheels(found, folder) if folder else found), folder


def _keep(common: options.Common, made: Export, output: str | None, format_name: str) -> None:
    """Writes the file, or shows it; what is missing in it is said first."""
    from envlock.adapters import files
    from envlock.adapters.configuration import is_lock
    from envlock.cli.show import count
    from envlock.errors import UnusableInput

    screen = common.screen
    screen.findings(made.findings)
    if output is None:
        if not screen.json:
            screen.paper(made.text)
        return
    try:
        files.write_whole(output, made.text)
    except OSError as error:
        raise UnusableInput(
            f"{output}: cannot be written: {error.strerror}", "name another file with -o"
        ) from error
    screen.verdict(f"wrote {count(len(made.written), 'distribution')} as {format_name}: '{output}'")
    if format_name == "pylock" and not is_lock(output):
        screen.note("pip and uv take a file for a lock by its name: pylock.toml, pylock.NAME.toml")
