"""Kills restores at random instants, and tells what recovery makes of them.

usage: python -m tests.support.kills KIND BASE WHEELS COUNT SEED

BASE holds ``env``, a venv in which something has to be restored from WHEELS. KIND is ``plain``, or
``overlay`` (needs a mount namespace of its own): then the environment lies in a lower layer, as in
a container image. Prints one JSON document: how often the old and the new environment were found,
and anything else, and in how many cases the recovery itself had been killed before.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tests.support.pythons import clean_env
from tests.support.worlds import tree


class Stage:
    """An environment that can be put back to the state before any restore."""

    def __init__(self, kind: str, base: Path, wheels: Path) -> None:
        self.kind, self.base, self.wheels = kind, base, wheels
        self.env = base / "env"
        self.kept = base / "kept"
        os.rename(self.env, self.kept)

    def reset(self) -> None:
        if self.kind == "overlay":
            subprocess.run(["umount", str(self.env)], capture_output=True)
            for name in ("upper", "work"):
                subprocess.run(["rm", "-rf", str(self.base / name)], check=True)
                (self.base / name).mkdir()
            self.env.mkdir(exist_ok=True)
            layers = f"lowerdir={self.kept},upperdir={self.base}/upper,workdir={self.base}/work"
            subprocess.run(
                ["mount", "-t", "overlay", "overlay", "-o", layers, str(self.env)], check=True
            )
        else:
            subprocess.run(["rm", "-rf", str(self.env)], check=True)
            subprocess.run(["cp", "-a", str(self.kept), str(self.env)], check=True)

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """``envlock restore``, in a process that can be killed."""
        named = [] if words else ["--wheelhouse", str(self.wheels)]
        return subprocess.Popen(
            [sys.executable, "-m", "envlock", "restore", *named, *words,
             "--python", str(self.env / "bin/python")],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=clean_env(),
        )  # fmt: skip

    def state(self) -> Mapping[str, str]:
        return tree(self.env)

    def unfinished(self) -> bool:
        return any(self.env.glob("lib/python*/site-packages/.envlock-txn"))


def killed(child: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether it was still running then."""
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGKILL)
    return child.wait() == -signal.SIGKILL


def killed_in_transaction(stage: Stage, child: subprocess.Popen[bytes], seconds: float) -> None:
    """Kills ``seconds`` after the transaction has begun: most of a small restore is its start."""
    while child.poll() is None and not stage.unfinished():
        time.sleep(0.002)
    killed(child, seconds)


def whole_restore(stage: Stage) -> tuple[float, float]:
    """Seconds of a restore that nobody kills, and of its transaction."""
    begun = time.monotonic()
    child = stage.start()
    while child.poll() is None and not stage.unfinished():
        time.sleep(0.002)
    inside = time.monotonic()
    if child.wait() != 0:
        raise SystemExit("the restore that nobody kills failed")
    return time.monotonic() - begun, time.monotonic() - inside


def recover(stage: Stage, rng: random.Random) -> bool:
    """Ends what was cut; in one case of four that is killed too. Whether it was."""
    again = rng.random() < 0.25 and killed(stage.start("--recover"), rng.uniform(0.2, 0.6))
    deadline = time.monotonic() + 120
    # a backend that outlived its restore still holds the lock: 4 until it has ended
    while (code := stage.start("--recover").wait()) == 4 and time.monotonic() < deadline:
        time.sleep(0.2)
    if code != 0:
        raise SystemExit(f"restore --recover: exit {code}")
    return again


def sweep(stage: Stage, count: int, seed: int) -> dict[str, object]:
    """The whole run."""
    rng = random.Random(seed)
    stage.reset()
    old = stage.state()
    whole, inside = whole_restore(stage)
    new = stage.state()
    found: Counter[str] = Counter(old=0, new=0, mixed=0, cut=0, twice=0)
    for number in range(count):
        stage.reset()
        if number % 2:
            killed(stage.start(), rng.uniform(0.1 * whole, 1.02 * whole))
        else:
            killed_in_transaction(stage, stage.start(), rng.uniform(0, inside))
        if stage.unfinished():
            found["cut"] += 1
            found["twice"] += recover(stage, rng)
        now = stage.state()
        found["old" if now == old else "new" if now == new else "mixed"] += 1
    if old == new or stage.unfinished():
        raise SystemExit("nothing was tried")
    return {**found, "seconds": round(whole, 2)}


if __name__ == "__main__":
    kind, base, wheels, number, start = sys.argv[1:]
    where = Stage(kind, Path(base), Path(wheels))
    print(json.dumps(sweep(where, int(number), int(start))))
