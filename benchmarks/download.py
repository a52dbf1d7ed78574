"""``wheelhouse build`` beside ``pip download``: a large wheel, whole and after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import ENVLOCK, Contest, command, envlock
from tests.support.loopback import Loopback, Turn, loopback, serve_wheels
from tests.support.pythons import clean_env, make_venv
from tests.support.wheels import make_wheel

_BYTES = 200_000_000
_PIECE = 1024 * 1024
#: Seconds between two pieces: no more than 20 MB/s, a good line.
_SLOW = 0.05


class Downloads:
    """A server on this machine that has one large wheel, and two who fetch it."""

    def __init__(self, scratch: Path, server: Loopback) -> None:
        self.scratch, self.server = scratch, server
        wheel = make_wheel(
            scratch / "index", "large", "1.0", {"large.bin": os.urandom(_BYTES)},
            stored=["large.bin"],
        )  # fmt: skip
        self.path = f"/files/{wheel.name}"
        self.env = clean_env(PIP_INDEX_URL=serve_wheels(server, wheel.parent), HOME=str(scratch))
        self.data = wheel.read_bytes()
        self.manifest = scratch / "target.yaml"
        empty = make_venv(scratch / "empty")
        envlock("snapshot", "--python", empty, "--profile", "cpu", "-q", "-o", self.manifest)

    def pip(self, folder: str) -> Sequence[str]:
        return [sys.executable, "-m", "pip", "download", "-q", "-d", str(self.scratch / folder),
                "large"]  # fmt: skip

    def envlock(self, folder: str) -> Sequence[str]:
        return [*ENVLOCK, "wheelhouse", "build", str(self.scratch / folder), "large", "-q",
                "--manifest", str(self.manifest)]  # fmt: skip

    def run(self, words: Sequence[str], slow: float) -> None:
        self.server.add(self.path, Turn(data=self.data, piece=_PIECE, slow=slow))
        command(*words, env=self.env)

    def kill(self, words: Sequence[str]) -> None:
        """Ends a run when nine tenths have come."""
        stop = _BYTES * 9 // 10
        self.server.add(self.path, Turn(data=self.data, piece=_PIECE, hang=stop))
        self.server.hanging.clear()
        child = subprocess.Popen(
            words, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        with child:
            if not self.server.hanging.wait(120):
                raise SystemExit(f"{words}: asked for nothing")
            os.killpg(child.pid, signal.SIGKILL)


def download(scratch: Path, runs: int) -> None:
    """Prints both tables."""
    with loopback() as server:
        bench = Downloads(scratch, server)
        contest = Contest("download of 200 MB, no slower than the machine", runs, "pip download")
        contest.add("pip download", lambda n: bench.run(bench.pip(f"pip-{n}"), 0))
        contest.add("envlock wheelhouse build", lambda n: bench.run(bench.envlock(f"own-{n}"), 0))
        contest.show()
        title = "the same at 20 MB/s, run again after a kill at 90 %"
        contest = Contest(title, runs, "pip download")
        for number in range(runs):
            bench.kill(bench.pip(f"killed-pip-{number}"))
            bench.kill(bench.envlock(f"killed-own-{number}"))
        contest.add("pip download", lambda n: bench.run(bench.pip(f"killed-pip-{n}"), _SLOW))
        contest.add(
            "envlock wheelhouse build",
            lambda n: bench.run(bench.envlock(f"killed-own-{n}"), _SLOW),
        )
        contest.show()
