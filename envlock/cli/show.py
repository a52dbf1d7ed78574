"""The only module that prints.

What a command says goes to standard output, unless ``--json`` puts one document there; notes,
findings, progress and errors go to standard error. Everything printed passes the mask. Sentences
are English until they are printed here; the document of ``--json`` stays so.
"""

from __future__ import annotations

import json
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from io import TextIOWrapper
from typing import Any, Protocol

from envlock.errors import EnvlockError
from envlock.model.facts import Finding, Target
from envlock.model.masking import mask

SCHEMA = "1.0"
_LONG = 50_000_000  # bytes from which on a transfer is worth a line now and then
_MARKS = {"error": "error", "warning": "warning", "info": "note"}


def _same(text: str) -> str:
    return text


_said: Callable[[str], str] = _same


def speak(translate: Callable[[str], str] | None) -> None:
    """Makes everything that is shown from now on pass through ``translate``; None is English.

    A terminal that has no letters for a language shows question marks, and nothing ends for it.
    """
    global _said
    _said = translate or _same
    if translate is not None and isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


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
            self._write(_said(text), error=False)

    def verdict(self, text: str) -> None:
        """The line that answers; shown even with ``-q``."""
        self._write(_said(text), error=False)

    def paper(self, text: str) -> None:
        """A file for another tool: every byte of it as that tool reads it, in no language."""
        self._write(text.rstrip("\n"), error=False)

    def note(self, text: str) -> None:
        """envlock's own voice beside another tool's output."""
        self._write(f"envlock: {_said(text)}", error=True)

    def target(self, target: Target) -> None:
        """Which target is about to be changed."""
        where = f"{target.layout.prefix} (Python {target.python}, from {target.source})"
        if not self.quiet:
            self._write(_said(f"target: {where}"), error=True)

    def findings(self, findings: Iterable[Finding]) -> None:
        """One finding a line, its hint below it; notes only when asked for details."""
        for finding in findings:
            if finding.level == "info" and not self.verbose:
                continue
            mark = _said(_MARKS[finding.level])
            head = f"{mark}: {_said(finding.subject)}: {_said(finding.what)}"
            why = f" ({_said(finding.why)})" if finding.why else ""
            text = _between_words(f"{head}{why} [{finding.code}]")
            self._write(self._paint(text, finding.level), error=True)
            if finding.hint:
                self._write(f"  {_said('hint')}: {_said(finding.hint)}", error=True)

    def _paint(self, text: str, level: str) -> str:
        shown = {"error": "31", "warning": "33"}.get(level)
        if shown is None or not (self.color and sys.stderr.isatty()):
            return text
        head, colon, rest = text.partition(":")
        return f"\x1b[{shown}m{head}\x1b[0m{colon}{rest}"

    def mark(self, text: str, level: str) -> str:
        """A word for :meth:`say` in the colour of its level, where that goes to a terminal."""
        stream = sys.stderr if self.json else sys.stdout
        colors = {"good": "32", "warning": "33", "error": "31", "quiet": "2", "head": "1"}
        shown = colors.get(level)
        if shown is None or not (self.color and stream.isatty()):
            return text
        return f"\x1b[{shown}m{text}\x1b[0m"

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """Columns, left aligned, two spaces between them."""
        if not rows:
            return
        said = [[_said(cell) for cell in row] for row in rows]
        widths = [max(columns(row[i]) for row in said) for i in range(len(rows[0]))]
        for row in said if not self.quiet else ():
            cells = (
                cell + " " * (width - columns(cell))
                for cell, width in zip(row, widths, strict=True)
            )
            self._write("  ".join(cells).rstrip(), error=False)

    def sections(self, found: Iterable[tuple[str, Sequence[tuple[str, str]]]]) -> None:
        """Titles with names and values below them, all names in one column.

        A value goes on below itself where the window ends; in a file no line ends early.
        """
        stream = sys.stderr if self.json else sys.stdout
        width = shutil.get_terminal_size().columns if stream.isatty() else 0
        said = [
            (_said(title), [(_said(name), _said(value)) for name, value in rows])
            for title, rows in found
            if rows
        ]
        room = 4 + max((columns(name) for _, rows in said for name, _ in rows), default=0)
        for number, (title, rows) in enumerate(said if not self.quiet else ()):
            lines = [self.mark(title, "head")]
            for name, value in rows:
                start = f"  {name}" + " " * (room - 2 - columns(name))
                lines.append(f"\n{' ' * room}".join(_wrapped(start, value, width, room)))
            self._write("\n".join([*[""] * bool(number), *lines]), error=False)

    @contextmanager
    def progress(self, title: str, total: int | None = None) -> Iterator[Advance]:
        """A bar on a terminal; elsewhere one plain line when the work starts."""
        if self.quiet:
            yield lambda count, /: None
        elif not sys.stderr.isatty():
            self._write(f"{_said(title)} …", error=True)
            yield lambda count, /: None
        else:
            with _bar(_said(title), total, self.color) as advance:
                yield advance

    @contextmanager
    def transfer(self, title: str, total: int | None = None) -> Iterator[Advance]:
        """Like :meth:`progress`, in bytes; elsewhere than on a terminal a line for every tenth."""
        if self.quiet:
            yield lambda count, /: None
        elif sys.stderr.isatty():
            with _bar(_said(title), total, self.color, in_bytes=True) as advance:
                yield advance
        else:
            known = f", {size(total)}" if total else ""
            self._write(f"{_said(title)}{known} …", error=True)
            yield _Tenths(self, total).advance

    @contextmanager
    def waiting(self, what: str, seconds: float = 1.0) -> Iterator[None]:
        """Says on a terminal what takes so long, once it does; the line goes when the wait ends."""
        if self.quiet or not sys.stderr.isatty():
            yield
            return
        line = _Line(f"envlock: {_said(what)} …")
        timer = threading.Timer(seconds, line.show)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            line.clear()

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
        print(mask(f"{_said('error')}: {_said(error.message)}"), file=sys.stderr)
        if error.hint:
            print(mask(f"{_said('hint')}: {_said(error.hint)}"), file=sys.stderr)
        finding = Finding(
            code=type(error).__name__, subject=command, what=error.message, hint=error.hint,
            level="error",
        )  # fmt: skip
        self.document(command, error.exit_code, [finding], {})


class _Line:
    """A line on a terminal that another thread shows; gone before anything else is written."""

    def __init__(self, text: str) -> None:
        self._text, self._lock = text, threading.Lock()
        self._shown = self._over = False

    def show(self) -> None:
        with self._lock:
            if not self._over:
                self._shown = True
                print(mask(self._text), end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        with self._lock:
            self._over = True
            if self._shown:
                print("\r\x1b[2K", end="", file=sys.stderr, flush=True)


@dataclass(slots=True)
class _Tenths:
    """A plain line for every tenth of a long transfer."""

    screen: Screen
    total: int | None
    done: int = 0
    said: int = 0

    def advance(self, count: int, /) -> None:
        self.done += count
        if self.total and self.total >= _LONG and self.done * 10 // self.total > self.said:
            self.said = self.done * 10 // self.total
            done = f"  {size(self.done)} of {size(self.total)}"
            self.screen._write(_said(done), error=True)


@contextmanager
def _bar(
    title: str, total: int | None, color: bool, *, in_bytes: bool = False
) -> Iterator[Advance]:
    # rich takes 60 ms to import: only a person in front of a terminal pays for it
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.progress import TimeElapsedColumn as Elapsed

    console = Console(stderr=True, no_color=not color)
    count = MofNCompleteColumn()
    ends = (DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    last = ends if in_bytes else (count, Elapsed())
    columns = (TextColumn("{task.description}"), BarColumn(), *last)
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=total)

        def advance(count: int, /) -> None:
            progress.advance(task, count)

        yield advance


def _between_words(text: str) -> str:
    """A sentence as standard error's terminal shows it: it ends lines in the middle of words.

    Hints stay one line each, since they are copied; so do languages without spaces.
    """
    if not sys.stderr.isatty() or columns(text) != len(text):
        return text
    from textwrap import fill

    width = max(20, shutil.get_terminal_size().columns)
    return fill(text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _wrapped(start: str, value: str, width: int, room: int) -> list[str]:
    """A line, and what of it has to go on below; 0 is a window without an end."""
    if not width or columns(value) <= width - room:
        return [f"{start}{value}".rstrip()]
    from textwrap import wrap

    first, *rest = wrap(
        value, max(20, width - room), break_long_words=False, break_on_hyphens=False
    )
    return [f"{start}{first}", *rest]


def columns(text: str) -> int:
    """How wide a terminal shows a text."""
    if text.isascii():
        return len(text)
    from unicodedata import east_asian_width

    return sum(1 + (east_asian_width(letter) in "WF") for letter in text)


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
