"""Targets on the nodes of a cluster, and envlock started on its launching host."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.pythons import make_venv
from tests.support.slurm import NAMES, Cluster
from tests.support.worlds import install

#: Delays one check of a target: Python reads such lines before it starts the script.
DELAY = "import sys, time; time.sleep({seconds} if 'env_shm.py' in str(sys.orig_argv) else 0)\n"


@dataclass(frozen=True)
class Fleet:
    """A vendor's stack on every node, each on its own disk, and the wheelhouse that gives it back.

    Attributes:
        folder: the working folder.
        wheels: a wheelhouse of the stack.
        target: the same for all nodes, in the place of their own.
    """

    cluster: Cluster
    folder: Path
    wheels: Path
    target: str = ""

    @property
    def python(self) -> str:
        return self.target or str(self.cluster.disk("{node}") / "target")

    @property
    def manifest(self) -> str:
        return str(self.wheels / "envlock.yaml")

    def place(self, node: str) -> Path:
        return self.cluster.disk(node) / "target"

    def site(self, node: str) -> Path:
        return next(self.place(node).glob("lib/python*/site-packages"))

    def damage(self, node: str) -> None:
        """Other bytes in a protected build."""
        path = self.site(node) / "torch" / "__init__.py"
        path.write_bytes(path.read_bytes() + b"\n# damaged\n")

    def delay(self, node: str, seconds: int) -> None:
        """One check takes longer."""
        (self.site(node) / "delay.pth").write_text(DELAY.format(seconds=seconds))

    def words(self, command: str, *words: str, srun: Sequence[str] = ("-N4",)) -> list[str]:
        own = [sys.executable, "-m", "envlock", "fleet", command, "--python", self.python]
        return [*own, *words, *(["--", *srun] if srun else [])]

    def run(
        self, command: str, *words: str, srun: Sequence[str] = ("-N4",), seconds: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """``envlock fleet COMMAND``, to its end."""
        return subprocess.run(
            self.words(command, *words, srun=srun), env=self.cluster.env(),
            capture_output=True, text=True, timeout=seconds, cwd=self.folder,
        )  # fmt: skip

    def start(self, command: str, *words: str) -> subprocess.Popen[str]:
        """The same, and somebody else waits for it."""
        return subprocess.Popen(
            self.words(command, *words), env=self.cluster.env(), text=True, cwd=self.folder,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip


def provide(cluster: Cluster, wheels: Path) -> None:
    """A healthy target on every node; a copy is kept beside it, to start from again."""
    for name in NAMES:
        target, kept = cluster.disk(name) / "target", cluster.disk(name) / "kept"
        shutil.rmtree(target, ignore_errors=True)
        if not kept.exists():
            install(make_venv(target), *sorted(wheels.glob("*.whl")))
            target.rename(kept)
        shutil.copytree(kept, target, symlinks=True)


def document(folder: Path, node: str) -> Any:
    """A node's report."""
    return json.loads((folder / f"{node}.json").read_text())


def wait_for(found: Any, seconds: float = 60.0) -> None:
    """Until a function says so."""
    deadline = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.05)
