"""Running commands in turn and comparing their medians."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.pythons import clean_env

ENVLOCK = (sys.executable, "-m", "envlock")


@dataclass
class Contest:
    """Contestants that do the same work, run in turn so that they share the machine's weather.

    Attributes:
        title: what is measured.
        runs: rounds; the median counts.
        base: the contestant the ratios are against.
        times: wall seconds of each run.
        work: processor seconds of each run, of all its processes; a busy machine changes them less.
    """

    title: str
    runs: int
    base: str
    entries: dict[str, Callable[[int], None]] = field(default_factory=dict)
    times: dict[str, list[float]] = field(default_factory=dict)
    work: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, work: Callable[[int], None]) -> None:
        """Adds a contestant; its work is called with the number of the round."""
        self.entries[name] = work

    def run(self) -> list[tuple[str, float, float]]:
        """Name, median seconds and ratio to the base, for each contestant."""
        for number in range(self.runs):
            for name, work in self.entries.items():
                started, used = time.perf_counter(), _used()
                work(number)
                self.times.setdefault(name, []).append(time.perf_counter() - started)
                self.work.setdefault(name, []).append(_used() - used)
        medians = {name: statistics.median(found) for name, found in self.times.items()}
        base = medians[self.base]
        return [(name, seconds, seconds / base) for name, seconds in medians.items()]

    def show(self) -> None:
        """Prints the table."""
        print(f"\n## {self.title}\n")
        print(f"| contestant | seconds (median of {self.runs}) | ratio | processor seconds |")
        print("|---|---|---|---|")
        for name, seconds, ratio in self.run():
            used = statistics.median(self.work[name])
            print(f"| {name} | {seconds:.2f} | {ratio:.2f} | {used:.2f} |", flush=True)


def _used() -> float:
    """Processor seconds of this process and of all that have ended below it."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in both)


def command(*words: str | Path, env: Mapping[str, str] | None = None, code: int = 0) -> None:
    """Runs a command quietly; it has to end with this code."""
    done = subprocess.run(
        [str(word) for word in words],
        env=dict(env or clean_env()),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode != code:
        raise SystemExit(f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}")


def envlock(*words: str | Path) -> None:
    """Runs envlock."""
    command(*ENVLOCK, *words)


def drop_page_cache() -> bool:
    """Empties the page cache, where this may be done; says whether it was."""
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3\n")
    except OSError:
        return False
    return True


def shell(script: str, *words: str | Path) -> Sequence[str]:
    """A shell pipeline as a command; ``$1`` and so on are ``words``."""
    return ["sh", "-c", script, "sh", *map(str, words)]
