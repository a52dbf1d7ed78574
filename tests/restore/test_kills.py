"""SIGKILL at random instants, on real compiled distributions: the old state or the new one."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from envlock.adapters.installed import read_installed
from tests.support.pythons import ROOT, cached_wheels, clean_env, make_venv, torch_wheels
from tests.support.worlds import install, lock

pytestmark = pytest.mark.integration


def damaged(base: Path, wheels: Path, names: Iterable[str]) -> Path:
    """A locked venv in which distributions are not what they were; the wheels of all of them."""
    kept = base / "W"
    shutil.copytree(wheels, kept)
    python = make_venv(base / "env")
    install(python, *sorted(kept.glob("*.whl")))
    world = lock(python, kept, "cpu")
    assert world.restore("--plan") == 0
    for dist in read_installed(world.target.layout):
        if dist.name in names:
            library = next(row.path for row in dist.rows or () if row.path.endswith(".so"))
            Path(dist.site, library).write_bytes(b"broken")
    return kept


def run(kind: str, base: Path, kept: Path, count: int, seed: int) -> dict[str, float]:
    namespace = ["unshare", "-m"] if kind == "overlay" else []
    done = subprocess.run(
        [*namespace, sys.executable, "-m", "tests.support.kills", kind, str(base), str(kept),
         str(count), str(seed)],
        capture_output=True, text=True, cwd=ROOT, env=clean_env(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def namespaces(kind: str) -> None:
    tried = ["unshare", "-m", "true"]
    if kind == "overlay" and subprocess.run(tried, capture_output=True).returncode != 0:
        pytest.skip("mount namespaces are not allowed here")


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("plain", 4),
        ("overlay", 2),
        pytest.param("plain", 300, marks=pytest.mark.long),
        pytest.param("overlay", 60, marks=pytest.mark.long),
    ],
)
def test_three_small_distributions(
    tmp_path: Path, kind: str, count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    namespaces(kind)
    wheels = cached_wheels("small", "MarkupSafe==3.0.3", "PyYAML==6.0.3", "wrapt==2.0.1")
    kept = damaged(tmp_path, wheels, ["markupsafe", "pyyaml", "wrapt"])
    found = run(kind, tmp_path, kept, count, 1)
    with capsys.disabled():
        print(f"\nkilled, {kind}: {found}")
    assert found["mixed"] == 0
    assert found["old"] + found["new"] == count
    assert count < 50 or found["cut"] > count / 10


@pytest.mark.long
@pytest.mark.torch
def test_torch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Twenty times, at instants all over a restore of the real torch."""
    kept = damaged(tmp_path, torch_wheels(), ["torch"])
    found = run("plain", tmp_path, kept, 20, 2)
    with capsys.disabled():
        print(f"\nkilled, torch: {found}")
    assert found["mixed"] == 0
    assert found["old"] + found["new"] == 20
    assert found["cut"] > 2
