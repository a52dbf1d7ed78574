"""What doctor found: sections of rows for people, the same as values, and findings. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from envlock.model.facts import Finding

#: In the order in which they are shown.
TITLES = (
    "machine", "limits", "devices", "stack", "python", "configuration", "envlock", "disk",
    "network",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a section.

    Attributes:
        name: what it is; empty where the line above goes on.
        value: one line of text.
        detail: shown only to those who ask for details.
    """

    name: str
    value: str
    detail: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One part of the machine or of the target.

    Attributes:
        title: one of :data:`TITLES`.
        rows: for people.
        findings: what is not as it should be.
        data: the same as plain values, for programs.
    """

    title: str
    rows: tuple[Row, ...] = ()
    findings: tuple[Finding, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything, in the order of :data:`TITLES`."""

    sections: tuple[Section, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The worst first; each once, whoever found it."""
        rank = {"error": 0, "warning": 1, "info": 2}
        found = dict.fromkeys(f for section in self.sections for f in section.findings)
        return tuple(sorted(found, key=lambda finding: rank[finding.level]))

    @property
    def exit_code(self) -> int:
        """3 when something is an error."""
        return 3 if any(finding.level == "error" for finding in self.findings) else 0

    def verdict(self, *, details: bool = False) -> str:
        """The line that answers.

        Args:
            details: notes are shown too.
        """
        levels = [finding.level for finding in self.findings]
        said = [
            f"{count} {noun}{'' if count == 1 else 's'}"
            for noun, count in ((level, levels.count(level)) for level in ("error", "warning"))
            if count
        ]
        notes = 0 if details else levels.count("info")
        more = f"; {notes} note{'' if notes == 1 else 's'} with -v" if notes else ""
        if not said:
            return f"nothing is wrong{more}"
        return f"found: {' and '.join(said)}{more}"

    def data(self) -> dict[str, Any]:
        """Sections by title: the rows as they are shown, and the values behind them."""
        return {
            section.title: {
                "rows": [{"name": row.name, "value": row.value} for row in section.rows],
                **section.data,
            }
            for section in self.sections
        }


def rows(pairs: Iterable[tuple[str, str]], *, detail: bool = False) -> tuple[Row, ...]:
    """Rows out of names and values; one without a value is left out."""
    return tuple(Row(name=name, value=value, detail=detail) for name, value in pairs if value)


def listed(names: Sequence[str], most: int = 6) -> str:
    """``a, b, c and 4 more``."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"
