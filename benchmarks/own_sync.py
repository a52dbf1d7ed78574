"""``python -m benchmarks.own_sync FILE …``: envlock, and into FILE the seconds its syncs took.

An installer that syncs is compared with others that leave it to the system: what it takes has a
column of its own, for all of them.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from envlock.adapters import files
from envlock.cli import main


def timed(result: Path, arguments: list[str]) -> int:
    """Exit code of envlock; ``result`` then holds the seconds."""
    plain, spent = files.sync_filesystem, 0.0

    def sync(path: str) -> None:
        nonlocal spent
        started = time.perf_counter()
        plain(path)
        spent += time.perf_counter() - started

    files.sync_filesystem = sync
    try:
        return main(arguments)
    finally:
        result.write_text(str(spent))


if __name__ == "__main__":
    sys.exit(timed(Path(sys.argv[1]), sys.argv[2:]))
