"""envlock diff."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from envlock.cli import options

if TYPE_CHECKING:
    from envlock.cli.comparing import Side
    from envlock.cli.show import Screen
    from envlock.model.diff import Differences
    from envlock.model.diff_words import Files
    from envlock.model.manifest import Manifest
    from envlock.verify.compare import Comparison

First = Annotated[
    str | None,
    typer.Argument(
        metavar="[A]",
        help="A manifest, a wheelhouse, a report, or 'env' for the target. Else the manifest "
        "remembered for it.",
        show_default=False,
    ),
]
Second = Annotated[
    str | None,
    typer.Argument(
        metavar="[B]",
        help="What to compare with it. Else the target; of a report, the target's last one.",
        show_default=False,
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="'protected', or a distribution; may be repeated."),
]
TrustRecord = Annotated[
    bool,
    typer.Option("--trust-record", help="Of the target, take digests from RECORD; read no file."),
]


def diff(
    old: First = None,
    new: Second = None,
    only: Only = None,
    trust_record: TrustRecord = False,
    python: options.Python = None,
    manifest: options.ManifestFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Show what differs between two manifests, wheelhouses, reports, or one and the target."""
    from envlock.cli.comparing import sides
    from envlock.errors import UsageProblem

    common = options.common(python, manifest, json=json, quiet=quiet, verbose=verbose)
    both = sides(common, (old, new), trust_record)
    if both[0].report is None or both[1].report is None:
        return _manifests(common.screen, both, only or [])
    if only:
        raise UsageProblem("command line: '--only' is for manifests", "leave it out")
    return _reports(common.screen, both)


# --- manifests ------------------------------------------------------------------------------


def _manifests(screen: Screen, both: list[Side], only: list[str]) -> int:
    from envlock.cli.comparing import files_of
    from envlock.model import diff_words as words
    from envlock.model.diff import compare
    from envlock.model.manifest import is_newer_minor

    old, new = (side.manifest for side in both)
    assert old is not None and new is not None
    for side in both:
        if side.manifest is not None and is_newer_minor(side.manifest):
            screen.note(f"{side}: of a newer envlock; what this one does not know is left out")
    live = next((key for key, s in zip(("old", "new"), both, strict=True) if s.target), "")
    wheels = both[0].kind == both[1].kind
    found = compare(old, new, live, wheels=wheels).only(_known([old, new], only))
    files = {} if screen.quiet and not screen.json else files_of(found, both)
    _show(screen, both, found, files)
    code = 3 if found.count else 0
    heads = {"a": both[0].head(), "b": both[1].head()}
    findings = [
        *(words.finding_of(change, files.get(change.name)) for change in found.changes),
        *found.appeared,
    ]
    data = {**heads, "only": only, **words.to_data(found, files)}
    screen.document("diff", code, findings, data)
    return code


def _known(manifests: list[Manifest], only: list[str]) -> set[str]:
    """The names of ``--only``, canonical.

    Raises:
        UnusableInput: neither side has one of them.
    """
    from packaging.utils import canonicalize_name

    from envlock.errors import UnusableInput

    names = {str(canonicalize_name(name)) for name in only}
    dists = [dist for one in manifests for dist in one.distributions]
    known = {dist.name for dist in dists}
    if any(dist.protected for dist in dists):
        known.add("protected")
    if unknown := sorted(names - known):
        listed = ", ".join(f"'{name}'" for name in unknown)
        raise UnusableInput(f"--only: {listed}: on neither side", "see 'distributions' of both")
    return names


def _show(screen: Screen, both: list[Side], found: Differences, files: Mapping[str, Files]) -> None:
    from envlock.model import diff_words as words

    screen.say(f"A: {both[0].told()}")
    screen.say(f"B: {both[1].told()}")
    rows = [("", "what", "A", "B", "")]
    rows += [words.row(change, files.get(change.name)) for change in found.changes]
    rows += [words.fact_row(fact) for fact in found.facts]
    if len(rows) > 1:
        screen.table(rows)
    for word, findings in (("only in A", found.gone), ("only in B", found.appeared)):
        for one in findings:
            screen.say(f"{word}: {one.subject}: {one.what} [{one.code}]")
    screen.verdict(words.verdict(found))


# --- reports --------------------------------------------------------------------------------


def _reports(screen: Screen, both: list[Side]) -> int:
    from envlock.verify.compare import compare
    from envlock.verify.report import comparison_data
    from envlock.verify.words import comparison_findings

    old, new = (side.report for side in both)
    assert old is not None and new is not None
    found = compare(old, new)
    code = 3 if found.differences else 0
    _show_reports(screen, found)
    screen.document("diff", code, comparison_findings(found), comparison_data(found))
    return code


def _show_reports(screen: Screen, found: Comparison) -> None:
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
