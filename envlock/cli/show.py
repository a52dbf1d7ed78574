"""The only module that prints.

What a command says goes to standard output, unless ``--json`` puts one document there; notes,
findings, progress and errors go to standard error. Everything printed passes the mask.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from envlock.errors import EnvlockError
from envlock.model.facts import Finding, Target
from envlock.model.masking import mask

SCHEMA = "1.0"
_MARKS = {"error": "error", "warning": "warning", "info": "note"}


class Advance(Protocol):
    """Called with the number of things done since the last call."""

    def __call__(self, count: int, /) -> None: ...


@dataclass(frozen=True, slots=True)
class Screen:
    """Where a command's words go.

    Attributes:
        json: standard output is kept for one JSON document.
        quiet: only findings, errors and the verdict.
        verbose: details too.
        color: whether colours may be used on a terminal (NO_COLOR unset).
    """

    json: bool = False
    quiet: bool = False
    verbose: bool = False
    color: bool = True

    def _write(self, text: str, *, error: bool) -> None:
        stream = sys.stderr if error or self.json else sys.stdout
        print(mask(text), file=stream, flush=True)

    def say(self, text: str) -> None:
        """Something for the person who asked; silent with ``-q``."""
        if not self.quiet:
            self._write(text, error=False)

    def verdict(self, text: str) -> None:
        """The line that answers; shown even with ``-q``."""
        self._write(text, error=False)

    def note(self, text: str) -> None:
        """envlock's own voice beside another tool's output."""
        self._write(f"envlock: {text}", error=True)

    def target(self, target: Target) -> None:
        """Which target is about to be changed."""
        where = f"{target.layout.prefix} (Python {target.python}, from {target.source})"
        if not self.quiet:
            self._write(f"target: {where}", error=True)

    def findings(self, findings: Iterable[Finding]) -> None:
        """One finding a line, its hint below it; notes only when asked for details."""
        for finding in findings:
            if finding.level == "info" and not self.verbose:
                continue
            head = f"{_MARKS[finding.level]}: {finding.subject}: {finding.what}"
            why = f" ({finding.why})" if finding.why else ""
            self._write(f"{self._paint(head, finding.level)}{why} [{finding.code}]", error=True)
            if finding.hint:
                self._write(f"  hint: {finding.hint}", error=True)

    def _paint(self, text: str, level: str) -> str:
        shown = {"error": "31", "warning": "33"}.get(level)
        if shown is None or not (self.color and sys.stderr.isatty()):
            return text
        head, colon, rest = text.partition(":")
        return f"\x1b[{shown}m{head}\x1b[0m{colon}{rest}"

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """Columns, left aligned, two spaces between them."""
        if not rows:
            return
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        for row in rows:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            self.say("  ".join(cells).rstrip())

    @contextmanager
    def progress(self, title: str, total: int | None = None) -> Iterator[Advance]:
        """A bar on a terminal; elsewhere one plain line when the work starts."""
        if self.quiet:
            yield lambda count, /: None
        elif not sys.stderr.isatty():
            self._write(f"{title} …", error=True)
            yield lambda count, /: None
        else:
            with _bar(title, total, self.color) as advance:
                yield advance

    def document(
        self, command: str, code: int, findings: Iterable[Finding], data: Mapping[str, Any]
    ) -> None:
        """The one JSON document of ``--json``; nothing without it."""
        if not self.json:
            return
        document = {
            "schema": SCHEMA,
            "command": command,
            "exit": code,
            "findings": [asdict(finding) for finding in findings],
            "data": data,
        }
        print(mask(json.dumps(document, indent=2, ensure_ascii=False, default=str)))

    def error(self, command: str, error: EnvlockError) -> None:
        """The one form of an error, and its document with ``--json``."""
        print(mask(f"error: {error.message}"), file=sys.stderr)
        if error.hint:
            print(mask(f"hint: {error.hint}"), file=sys.stderr)
        finding = Finding(
            code=type(error).__name__, subject=command, what=error.message, hint=error.hint,
            level="error",
        )  # fmt: skip
        self.document(command, error.exit_code, [finding], {})


@contextmanager
def _bar(title: str, total: int | None, color: bool) -> Iterator[Advance]:
    # rich takes 60 ms to import: only a person in front of a terminal pays for it
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeElapsedColumn as Elapsed

    console = Console(stderr=True, no_color=not color)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Elapsed())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=total)

        def advance(count: int, /) -> None:
            progress.advance(task, count)

        yield advance


def size(count: int) -> str:
    """Bytes for people: ``1.9 GB``, in powers of 1000 as disks are sold."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def count(number: int, noun: str) -> str:
    """``1 wheel``, ``2 wheels``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
