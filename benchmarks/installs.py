"""A whole environment into an empty one: envlock, uv and pip, and what the steps cost alone."""

from __future__ import annotations

import hashlib
import os
import statistics
import subprocess
import sys
import time
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.measure import drop_page_cache
from envlock.adapters.zipmember import read_at, read_member
from tests.support.pythons import clean_env, make_venv

_COLUMNS = (
    "seconds without sync", "ratio", "sync", "ratio with it", "processor seconds",
    "largest process, MB",
)  # fmt: skip
_OWN_SYNC = "own-sync.txt"


@dataclass(frozen=True)
class Cost:
    """What one run took: seconds without its own syncs, processor seconds of all its processes,
    seconds of its own syncs and of one of everything afterwards, and the peak memory of its largest
    process in bytes."""

    wall: float
    used: float
    sync: float
    memory: float


@dataclass
class Installs:
    """Installers that fill empty environments from one wheelhouse.

    uv's cache is new in each run and on the same file system, so that it may link from it.
    """

    scratch: Path
    wheels: Path
    cold: bool
    costs: dict[str, list[Cost]] = field(default_factory=dict)

    def words(self, name: str, python: Path, folder: Path) -> Sequence[str]:
        hashed = ["--require-hashes", "--no-index", "--find-links", str(self.wheels)]
        listed = str(self.wheels / "requirements.txt")
        if name == "uv pip sync":
            uv = str(Path(sys.executable).with_name("uv"))
            return [uv, "pip", "sync", "-q", "--python", str(python), *hashed, "--cache-dir",
                    str(folder / "cache"), listed]  # fmt: skip
        if name == "pip install --require-hashes":
            return [sys.executable, "-m", "pip", "--python", str(python), "install", "-q",
                    "--no-deps", *hashed, "-r", listed]  # fmt: skip
        backend = name.rpartition(" ")[2] if "--backend" in name else "auto"
        timed = [sys.executable, "-m", "benchmarks.own_sync", str(folder / _OWN_SYNC)]
        return [*timed, "restore", "-q", "--wheelhouse", str(self.wheels), "--python",
                str(python), "--backend", backend]  # fmt: skip

    def run(self, name: str, number: int) -> None:
        folder = self.scratch / f"{name.replace(' ', '')}-{number}"
        words = self.words(name, make_venv(folder / "venv"), folder)
        if self.cold:
            drop_page_cache()
        os.sync()
        started = time.perf_counter()
        child = subprocess.Popen(words, env=clean_env(), stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - started
        if status:
            raise SystemExit(f"{words}: {status}")
        child.returncode = 0
        os.sync()
        sync = time.perf_counter() - started - wall
        if (folder / _OWN_SYNC).exists():
            own = float((folder / _OWN_SYNC).read_text())
            wall, sync = wall - own, sync + own
        used = usage.ru_utime + usage.ru_stime
        self.costs.setdefault(name, []).append(Cost(wall, used, sync, usage.ru_maxrss * 1024))

    def show(self, runs: int) -> None:
        """All installers in turn, and the table."""
        names = ("uv pip sync", "pip install --require-hashes", "envlock restore",
                 "envlock restore --backend uv")  # fmt: skip
        for number in range(runs):
            for name in names:
                self.run(name, number)
        print(f"\n## into an empty environment, page cache {'cold' if self.cold else 'warm'}\n")
        print(f"| median of {runs} | {' | '.join(_COLUMNS)} |\n|{'---|' * (len(_COLUMNS) + 1)}")
        first = self.medians(names[0])
        for name in names:
            own = self.medians(name)
            shown = (
                f"{own.wall:.2f}", f"{own.wall / first.wall:.2f}", f"{own.sync:.2f}",
                f"{(own.wall + own.sync) / (first.wall + first.sync):.2f}", f"{own.used:.2f}",
                f"{own.memory / 1e6:.0f}",
            )  # fmt: skip
            print(f"| {name} | {' | '.join(shown)} |", flush=True)

    def medians(self, name: str) -> Cost:
        """The median of each cost by itself."""
        found = self.costs[name]
        return Cost(
            wall=statistics.median(cost.wall for cost in found),
            used=statistics.median(cost.used for cost in found),
            sync=statistics.median(cost.sync for cost in found),
            memory=statistics.median(cost.memory for cost in found),
        )


def steps(wheels: Path, scratch: Path) -> None:
    """Where the time of one worker goes: each step is done with those before it, and what is
    printed is the difference in processor seconds."""
    done: dict[str, float] = {}
    scratch.mkdir()
    for number, step in enumerate(("read", "inflate", "hash", "write")):
        started = time.process_time()
        for wheel in sorted(wheels.glob("*.whl")):
            _unpack(wheel, number, scratch / f"{wheel.stem}-{number}")
        done[step] = time.process_time() - started
    started = time.perf_counter()
    os.rename(scratch, scratch.with_name(f"{scratch.name}-renamed"))
    renamed = time.perf_counter()
    os.sync()
    synced = time.perf_counter()
    print("\n## what one worker does\n\n| step | seconds |\n|---|---|")
    before = 0.0
    for step, seconds in done.items():
        print(f"| {step} | {seconds - before:.2f} |")
        before = seconds
    print(f"| rename | {renamed - started:.2f} |\n| sync | {synced - renamed:.2f} |", flush=True)


def _unpack(wheel: Path, steps: int, folder: Path) -> None:
    """Reads the members of a wheel; from 1 on inflates, from 2 on hashes, from 3 on writes."""
    folder.mkdir()
    with wheel.open("rb") as file, zipfile.ZipFile(wheel) as archive:
        for index, info in enumerate(archive.infolist()):
            if steps == 0:
                read_at(file.fileno(), info.compress_size, info.header_offset)
                continue
            total = hashlib.sha256()
            target = os.open(folder / str(index), os.O_WRONLY | os.O_CREAT) if steps > 2 else -1
            for piece in read_member(file.fileno(), info):
                if steps > 1:
                    total.update(piece)
                if steps > 2:
                    os.write(target, piece)
            if steps > 2:
                os.close(target)
