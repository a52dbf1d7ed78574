"""envlock fleet report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from envlock.cli import options
from envlock.cli.show import count

if TYPE_CHECKING:
    from envlock.cli.show import Screen
    from envlock.fleet.results import Merged
    from envlock.fleet.words import Line, Section

_LINES, _WIDTH = 12, 32  # of a section, and of a list of nodes, without -v

Folder = Annotated[
    str, typer.Argument(metavar="DIR", help="A file NODE.json of each node, as --out wrote them.")
]
Nodes = Annotated[
    str | None,
    typer.Option(
        "--nodes",
        metavar="LIST",
        help="Who should have answered: n[001-128,200], or a file of names. "
        "Else what the launcher wrote into DIR.",
        show_default=False,
    ),
]
HtmlFile = Annotated[
    str | None, typer.Option("--html", metavar="FILE", help="The same as a page with plots.")
]
DrainFile = Annotated[
    str | None,
    typer.Option(
        "--drain-list",
        metavar="FILE",
        help="Write the nodes that are not as they should be here, and show the scontrol line.",
    ),
]


def report(
    folder: Folder,
    nodes: Nodes = None,
    html: HtmlFile = None,
    drain_list: DrainFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Merge the reports of many nodes: who failed, who never answered, who is not like the others.

    Exit code 3: a node failed, differs from most, or is slower than its sisters. 8: one did not
    answer, or has no verdict. 0: all passed and are alike.
    """
    from envlock.adapters import files
    from envlock.fleet import document, roll
    from envlock.fleet.merge import merge_reports
    from envlock.fleet.reading import files_in
    from envlock.fleet.words import findings

    common = options.common(None, None, json=json, quiet=quiet, verbose=verbose)
    screen = common.screen
    expected = roll.named(nodes) if nodes is not None else roll.started(folder)
    with screen.progress(f"reading {folder}", len(files_in(folder))) as advance:
        merged = merge_reports(folder, expected, advance)
    show(screen, merged)
    if html is not None:
        from envlock.fleet.page import to_html

        files.write_asked(html, "--html", to_html(merged))
    if drain_list is not None:
        _drain(screen, merged, drain_list)
    code = merged.exit_code
    screen.document("fleet report", code, findings(merged), document.data(merged))
    return code


def show(screen: Screen, merged: Merged) -> None:
    """The merge for a person: the worst first, long lists folded, and the verdict."""
    from envlock.fleet.words import said, sections

    folded = False
    for section in sections(merged):
        if section.level != "info" or screen.verbose:
            folded |= _show(screen, section)
    if folded:
        screen.say("… is folded; all of it with -v, --json or --html")
    screen.verdict(said(merged))


def _show(screen: Screen, section: Section) -> bool:
    """One section; whether something was left out."""
    most = len(section.lines) if screen.verbose else _LINES
    lines, more = section.lines[:most], section.lines[most:]
    rows = [(_nodes(line, screen.verbose), line.what) for line in lines]
    width = max(len(nodes) for nodes, _ in rows)
    if section.title:
        head = screen.mark(count(section.nodes, "node"), _COLOURS[section.level])
        screen.say(f"{head} {section.title}")
    for nodes, what in rows:
        screen.say(f"  {nodes:{width}}  {what}" if nodes else f"  {what}")
    if more:
        screen.say(f"  … and {count(sum(len(line.nodes) for line in more), 'node')} more")
    if section.hint:
        screen.say(f"  hint: {section.hint}")
    return bool(more) or any(nodes.endswith(")") for nodes, _ in rows)


_COLOURS = {"error": "error", "warning": "warning", "info": "quiet"}


def _nodes(line: Line, whole: bool) -> str:
    from envlock.fleet.words import folded

    text = folded(line.nodes)
    if whole or len(text) <= _WIDTH:
        return text
    return f"{text[: _WIDTH - 1]}… ({len(line.nodes)})"


def _drain(screen: Screen, merged: Merged, path: str) -> None:
    """Writes the list; what could be done with it is shown and never done."""
    from envlock.adapters import files
    from envlock.fleet import document

    reasons = document.to_drain(merged)
    files.write_asked(path, "--drain-list", document.drain_list(reasons))
    for line in document.drain_commands(reasons):
        screen.say(line)
    number = sum(map(len, reasons.values()))
    screen.note(f"{count(number, 'node')} in '{path}'; nothing was drained")
