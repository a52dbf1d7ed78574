"""The servers that people and tools will want, as a section. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from envlock.doctor.report import Row, Section
from envlock.model.triage import Answer, as_data, findings


def network_section(answers: Sequence[Answer] | None) -> Section:
    """What became of the question to each server.

    Args:
        answers: None where nobody was to be asked.
    """
    if answers is None:
        row = Row(name="servers", value="not asked (--no-network)")
        return Section(title="network", rows=(row,), data={"asked": False, "answers": []})
    return Section(
        title="network",
        rows=tuple(Row(name=one.what.value, value=_told(one)) for one in answers),
        findings=findings(answers),
        data={"asked": True, "answers": as_data(answers)},
    )


def _told(answer: Answer) -> str:
    url = f"{answer.url}: " if answer.url else ""
    took = f" in {answer.seconds:.1f} s" if answer.good and answer.seconds else ""
    origin = f"  (from {answer.origin})" if answer.origin not in ("", "default") else ""
    return f"{url}{answer.words}{took}{origin}"
