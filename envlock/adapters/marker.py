"""The marker of an externally managed environment (PEP 668), as a place where builds are held.

pip from 23.0 on and uv install nothing into a Python that has it, unless told
``--break-system-packages``, and print its text. Both look for it in the standard library of a
Python that is no venv: https://peps.python.org/pep-0668/
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from envlock.adapters.installer import Ask
from envlock.adapters.managed import BEGIN, Edit, find_part, read, to_bytes, to_lines, with_part
from envlock.errors import UnusableInput
from envlock.model.facts import Target

PASS = "--break-system-packages"
_BODY = (
    "[externally-managed]",
    "Error=Vendor builds are installed here that no index can give back.",
    " .",
    " Type 'envlock guard' before the command:",
    " .",
    "     envlock guard pip install ...",
    " .",
    " It runs what costs no build, and says what the rest would cost.",
    " 'envlock guard --status' has more; 'envlock guard --disable' ends this.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """The file; what was in it stands in it as comments."""

    path: str
    name: str = "marker"

    def put(self, _builds: Sequence[tuple[str, str]]) -> Edit:
        """The edit that makes pip and uv refuse."""
        old = read(self.path)
        lines = to_lines(old)
        part = find_part(lines, self.path)
        base = part.rest if part else lines
        created = part.created if part else old is None
        new = with_part(base, _BODY, (0, len(base)), created=created)
        return Edit(path=self.path, old=old, new=to_bytes(new))

    def take(self) -> Edit:
        """The edit that gives it back, or removes it."""
        old = read(self.path)
        part = find_part(to_lines(old), self.path)
        if part is None:
            return Edit(path=self.path, old=old, new=old)
        gone = part.created and not part.rest
        return Edit(path=self.path, old=old, new=None if gone else to_bytes(part.rest))

    def present(self) -> bool:
        """Whether it is envlock's."""
        return any(line.startswith(BEGIN) for line in to_lines(read(self.path)))

    def holds(self, _builds: Sequence[tuple[str, str]]) -> bool:
        """Whether it is whole."""
        return self.present() and not self.put(()).changes


def marker_of(target: Target) -> Marker:
    """Where a target's marker is, or would be."""
    return Marker(path=os.path.join(target.stdlib, "EXTERNALLY-MANAGED"))


def passing(target: Target, ask: Ask) -> list[str]:
    """What guard's own runs need to pass envlock's marker; nothing where there is none, or where
    somebody else's refuses: then that word counts."""
    marker = target.externally_managed
    changing = ask.subcommand in ("install", "uninstall", "sync")
    if marker is None or not changing or PASS in (*ask.flags, *ask.after):
        return []
    try:
        return [PASS] if Marker(path=marker).present() else []
    except UnusableInput:
        return []
