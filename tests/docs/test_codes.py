"""Every code that envlock can emit has an entry in the troubleshooting page, and no other has."""

from __future__ import annotations

import re

from tests.docs.blocks import read, tables
from tests.docs.codes import all_checks, all_codes, unknown_places

PAGE = read("docs/troubleshooting.md")


def entries() -> dict[str, list[str]]:
    """Rows by each code of their first cell."""
    found: dict[str, list[str]] = {}
    for table in tables(PAGE):
        if table[0][0] in ("code", "check"):
            for row in table[2:]:
                for code in re.findall(r"`([^`]+)`", row[0]):
                    assert code not in found, f"{code} has two entries"
                    found[code] = row
    return found


def test_every_code_has_an_entry() -> None:
    missing = (all_codes() | all_checks()) - set(entries())
    assert not missing, sorted(missing)


def test_every_entry_is_a_code() -> None:
    idle = set(entries()) - all_codes() - all_checks()
    assert not idle, sorted(idle)


def test_every_entry_says_what_it_means_and_what_to_do() -> None:
    assert not [code for code, row in entries().items() if not all(cell for cell in row)]


def test_where_codes_are_made_is_known() -> None:
    """A finding whose code is put together in a new way has to be told to ``codes.py``."""
    assert not unknown_places()


def test_codes_of_other_pages_exist() -> None:
    known = all_codes() | all_checks()
    for page in ("docs/guard-rules.md", "docs/doctor.md", "docs/verify-files.md"):
        first = [cell for table in tables(read(page)) for row in table[2:] for cell in row[:1]]
        codes = {
            code for cell in first for code in re.findall(r"`([a-z]+\.[a-z][a-z0-9-]*)`", cell)
        }
        assert codes
        assert codes <= known, (page, sorted(codes - known))
