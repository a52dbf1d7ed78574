"""The real command killed at any moment: never a wrong file under a final name, and it goes on."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from envlock.model.manifest import dump
from tests.support.loopback import Loopback, Turn, loopback, serve_wheels
from tests.support.pythons import clean_env
from tests.support.wheels import make_wheel
from tests.wheelhouse.test_check import manifest_of

pytestmark = pytest.mark.integration

NAMES = ("alpha", "beta", "gamma", "delta")
SIZE = 400_000


@pytest.fixture
def server() -> Iterator[Loopback]:
    with loopback() as running:
        yield running


class Build:
    """``envlock wheelhouse build`` from a server on this machine."""

    def __init__(self, scratch: Path, server: Loopback, *, slow: float = 0.0) -> None:
        self.folder = scratch / "W"
        wheels = scratch / "index"
        noise = random.Random(7)
        for name in NAMES:
            make_wheel(wheels, name, "1.0", {f"{name}.bin": noise.randbytes(SIZE)})
        self.index = serve_wheels(server, wheels, slow=slow)
        self.wanted = {path.name: path.read_bytes() for path in wheels.glob("*.whl")}
        self.manifest = scratch / "m.yaml"
        self.manifest.write_text(dump(manifest_of()))
        self.env = clean_env(
            PIP_INDEX_URL=self.index,
            PIP_TIMEOUT="30",
            HOME=str(scratch),
            XDG_CACHE_HOME=str(scratch / "cache"),
        )

    def start(self) -> subprocess.Popen[str]:
        command = [
            sys.executable, "-m", "envlock", "wheelhouse", "build", str(self.folder), *NAMES,
            "--manifest", str(self.manifest),
        ]  # fmt: skip
        return subprocess.Popen(
            command, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
        )  # fmt: skip

    def run(self) -> str:
        with self.start() as child:
            said, _ = child.communicate(timeout=120)
        assert child.returncode == 0, said
        return said

    def kill(self, child: subprocess.Popen[str]) -> None:
        with child:
            os.killpg(child.pid, signal.SIGKILL)

    def whole(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.folder.glob("*.whl")}

    def parts(self, file: str = "") -> list[Path]:
        return sorted(self.folder.glob(f"{file}*.part")) if self.folder.exists() else []


def until(ready: Callable[[], bool], seconds: float = 60) -> None:
    """Waits for something that another process does."""
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


def test_goes_on_after_a_kill(tmp_path: Path, server: Loopback) -> None:
    """What came before the kill is not asked for again."""
    build = Build(tmp_path, server)
    build.run()
    shutil.rmtree(build.folder)
    file = next(iter(build.wanted))
    server.add(f"/files/{file}", Turn(data=build.wanted[file], hang=SIZE // 2))
    child = build.start()
    until(lambda: any(part.stat().st_size >= SIZE // 2 for part in build.parts(file)))
    build.kill(child)
    kept = SIZE // 2
    assert [part.stat().st_size for part in build.parts(file)] == [kept]
    server.add(f"/files/{file}", Turn(data=build.wanted[file]))
    server.asked.clear()
    build.run()
    assert server.ranges(f"/files/{file}") == [f"bytes={kept}-"]
    assert build.whole() == build.wanted
    assert build.parts() == []


@pytest.mark.parametrize(
    "moments", [5, pytest.param(50, marks=pytest.mark.long)], ids=["a few", "many"]
)
def test_killed_at_random_moments(tmp_path: Path, server: Loopback, moments: int) -> None:
    build = Build(tmp_path, server, slow=0.005)
    started = time.monotonic()
    build.run()
    lasts = time.monotonic() - started
    chance = random.Random()  # another sample each time
    for _ in range(moments):
        if build.folder.exists() and (build.whole() == build.wanted or chance.random() < 0.2):
            shutil.rmtree(build.folder)
        child = build.start()
        time.sleep(chance.uniform(0.2, lasts))
        build.kill(child)
        for name, data in build.whole().items():
            assert hashlib.sha256(data).digest() == hashlib.sha256(build.wanted[name]).digest()
    build.run()
    assert build.whole() == build.wanted
    assert build.parts() == []
