"""What a run leaves behind: report, page and JUnit file, each whole after every check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from envlock.adapters import files
from envlock.verify import report as reports
from envlock.verify.compare import Comparison, compare
from envlock.verify.saved import Report, parse


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be written, and beside what.

    Attributes:
        report, html, junit: files; None for those nobody asked for.
        baseline: an earlier report; None without one.
    """

    report: str | None = None
    html: str | None = None
    junit: str | None = None
    baseline: Report | None = None


class Papers:
    """Writes them at the start, after every check and at the end: a file that cannot be written is
    known before the first check, and a run that is killed leaves all of what it had."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.document: Mapping[str, Any] = {}
        self.comparison: Comparison | None = None

    def keep(self, document: Mapping[str, Any]) -> None:
        """Takes the report as it is now.

        Raises:
            UnusableInput: a file cannot be written.
        """
        report = parse(document)
        if self.wanted.baseline is not None:
            self.comparison = compare(self.wanted.baseline, report)
            document = reports.with_baseline(document, self.wanted.baseline, self.comparison)
            report = parse(document)
        self.document = document
        self._write(report)

    def _write(self, report: Report) -> None:
        wanted = self.wanted
        if wanted.report is not None:
            files.write_asked(wanted.report, "--report", reports.to_text(report.document))
        if wanted.junit is not None:
            from envlock.verify.junit import to_xml

            files.write_asked(wanted.junit, "--junit", to_xml(report))
        if wanted.html is not None:
            from envlock.verify.page import to_html

            files.write_asked(wanted.html, "--html", to_html(report, wanted.baseline))
