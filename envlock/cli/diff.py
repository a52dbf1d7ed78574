"""envlock diff."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from envlock.cli import options

if TYPE_CHECKING:
    from envlock.cli.show import Screen
    from envlock.verify.compare import Comparison


def diff(
    old: Annotated[str, typer.Argument(metavar="A", help="A report of 'envlock verify'.")],
    new: Annotated[str, typer.Argument(metavar="B", help="The one to compare with it.")],
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Show what differs between two reports: numbers beyond the noise, facts, configuration."""
    from envlock.verify.compare import compare
    from envlock.verify.report import comparison_data
    from envlock.verify.saved import load
    from envlock.verify.words import comparison_findings

    common = options.common(None, None, json=json, quiet=quiet, verbose=verbose)
    found = compare(load(old), load(new))
    code = 3 if found.differences else 0
    _show(common.screen, found)
    common.screen.document("diff", code, comparison_findings(found), comparison_data(found))
    return code


def _show(screen: Screen, found: Comparison) -> None:
    from envlock.verify.words import change, compared, shown, told

    rows = [("", "what", "A", "B", "change")]
    for one in found.differences:
        lists = isinstance(one.old, list) and isinstance(one.new, list)
        values = (told(one), "") if lists else (shown(one, one.old), shown(one, one.new))
        rows.append((one.kind.value, one.subject, *values, change(one)))
    if len(rows) > 1:
        screen.table(rows)
    if not found.same_configuration:
        screen.note("the configuration is not the same: numbers are compared all the same")
    number = len(found.differences)
    said = f"{number} difference{'' if number == 1 else 's'}" if number else "no difference"
    screen.verdict(f"{said}; {compared(found)}")
