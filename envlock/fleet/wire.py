"""What nodes tell the launching host, through the output of whatever started them.

Launchers put a name before a line, mix the lines of all nodes and cut long ones: so a message is
cut into short lines that say where they belong, and other lines are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from envlock.fleet.job import pack, unpack

_PIECE = 600  # letters; pipes are written whole up to 4096, and srun's buffer has 1024
_LINE = re.compile(r"@envlock ([0-9a-f]{8,32}) (\d{1,7}) (\d{1,7}) ([A-Za-z0-9_-]+)(?: |$)")
#: From the shell of a node on which no envlock could be started: node, what, exit code.
_SHELL = re.compile(r"@envlock-sh (\S+) (\w+) (\d+)")


def lines_of(message: Mapping[str, Any], sender: str) -> Iterator[str]:
    """The lines of a message.

    Args:
        sender: hexadecimal digits that no other message has.
    """
    word = pack(message)
    pieces = [word[at : at + _PIECE] for at in range(0, len(word), _PIECE)]
    for number, piece in enumerate(pieces):
        yield f"@envlock {sender} {number} {len(pieces)} {piece}"


class Collector:
    """Puts messages together again, from lines in any order of senders."""

    def __init__(self) -> None:
        self._rest = b""
        self._parts: dict[tuple[str, int], dict[int, str]] = {}

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """Messages that are whole now.

        Args:
            data: what came since the last call; the last line may go on.
        """
        *lines, self._rest = (self._rest + data).split(b"\n")
        yield from self._messages(line.decode("utf-8", "replace") for line in lines)

    def end(self) -> Iterator[dict[str, Any]]:
        """What a last line without an end holds."""
        yield from self._messages([self._rest.decode("utf-8", "replace")])
        self._rest = b""

    def _messages(self, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
        for line in lines:
            if found := _SHELL.search(line):
                yield {"kind": "shell", "node": found[1], "what": found[2], "code": int(found[3])}
            elif (found := _LINE.search(line)) and (whole := self._added(found)) is not None:
                yield whole

    def _added(self, line: re.Match[str]) -> dict[str, Any] | None:
        sender, number, total = line[1], int(line[2]), int(line[3])
        parts = self._parts.setdefault((sender, total), {})
        parts[number] = line[4]
        if len(parts) < total:
            return None
        del self._parts[sender, total]
        try:
            found = unpack("".join(parts[at] for at in range(total)))
        except (ValueError, KeyError):
            return None
        return found if isinstance(found, dict) else None
