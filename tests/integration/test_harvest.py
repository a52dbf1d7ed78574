"""harvest of real environments, and of a member that is larger than memory may be."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from envlock.adapters.deflating import NONE
from envlock.adapters.files import sha256
from envlock.adapters.interpreter import Named, read_target
from envlock.adapters.wheelfile import inspect_wheel
from envlock.cli import main
from envlock.model.manifest import Manifest, load
from envlock.model.wheels import encode_hash
from envlock.wheelhouse.harvest import How, harvest
from tests.support.pythons import cached_wheels, clean_env, make_venv, pip, torch_wheels, uv
from tests.support.worlds import take_snapshot

pytestmark = pytest.mark.integration

SMALL = ("numpy", "mpmath", "jinja2", "markupsafe", "filelock", "typing_extensions")
MANY = (
    "torch==2.13.0", "triton", "numpy", "scipy", "peft", "datasets", "matplotlib",
    "scikit-learn", "ipython", "rich", "numba",
)  # fmt: skip


def installed(path: Path, wheels: Sequence[Path], tool: str) -> tuple[Path, Manifest]:
    """A venv with wheels, by one tool; its interpreter, and what is in it."""
    python = make_venv(path)
    files = [str(wheel) for wheel in wheels]
    if tool == "uv":
        uv("pip", "install", "-q", "--offline", "--no-index", "--no-deps", "--link-mode", "copy",
           "--python", str(python), *files)  # fmt: skip
    else:
        pip(python, "install", "-q", "--no-index", "--no-deps", "--no-compile", *files)
    return python, take_snapshot(read_target(Named(str(python), "--python"), clean_env()), "cpu")


def contents(manifest: Manifest) -> dict[str, str]:
    return {dist.name: dist.content for dist in manifest.distributions}


def there_and_back(tmp_path: Path, wheels: Sequence[Path]) -> None:
    """Two prefixes, filled by two tools, give the same wheels; both tools install those with the
    content that the published wheels have."""
    published = {one.name: one.content for one in (inspect_wheel(str(w)) for w in wheels)}
    made = []
    for tool, place in [("uv", "one"), ("pip", "another place, deeper down/" + "x" * 90)]:
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        python, manifest = installed(path, wheels, tool)
        assert contents(manifest) == published
        target = read_target(Named(str(python), "--python"), clean_env())
        folder = tmp_path / f"W-{tool}"
        done = harvest(target, manifest, str(folder))
        assert [f.what for f in done.findings if f.level == "error"] == []
        assert len(done.packed) == len(wheels)
        assert {wheel.origin for wheel in done.packed} == {"rebuilt"}
        made.append({wheel.file: sha256(folder / wheel.file) for wheel in done.packed})
        shutil.rmtree(path)
    assert made[0] == made[1]
    assert not set(made[0].values()) & {sha256(wheel) for wheel in wheels}
    shutil.rmtree(tmp_path / "W-pip")
    assert main(["wheelhouse", "check", str(tmp_path / "W-uv")]) == 0
    for tool in ("pip", "uv"):
        rebuilt = sorted((tmp_path / "W-uv").glob("*.whl"))
        _, manifest = installed(tmp_path / f"again-{tool}", rebuilt, tool)
        assert contents(manifest) == published
        shutil.rmtree(tmp_path / f"again-{tool}")
    shutil.rmtree(tmp_path / "W-uv")


@pytest.mark.torch
def test_a_few_real_distributions(tmp_path: Path) -> None:
    wheels = [w for w in sorted(torch_wheels().glob("*.whl")) if w.name.startswith(SMALL)]
    assert len(wheels) == len(SMALL)
    there_and_back(tmp_path, wheels)


@pytest.mark.long
@pytest.mark.torch
def test_a_real_environment(tmp_path: Path) -> None:
    """torch, triton, scipy and all that a training script needs."""
    wheels = sorted(cached_wheels("many", *MANY).glob("*.whl"))
    assert len(wheels) >= 60
    there_and_back(tmp_path, wheels)


WATCH = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[2:])
with open(sys.argv[1], "w") as file:
    file.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(done.returncode)
"""


def most_memory(folder: Path, *words: str) -> int:
    """Runs envlock; the most memory, in MB, that it or a program it started had at once."""
    answer = folder / "maxrss"
    command = [sys.executable, "-c", WATCH, str(answer), sys.executable, "-m", "envlock", *words]
    env = clean_env(XDG_STATE_HOME=str(folder / "state"))
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return int(answer.read_text()) // 1024


def with_sparse_member(path: Path, size: int) -> Path:
    """A venv with a distribution that has one huge file, which needs no room on the disk."""
    python = make_venv(path)
    site = next(path.glob("lib/python*/site-packages"))
    info = site / "huge-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: huge\nVersion: 1.0\n")
    (info / "WHEEL").write_text("Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    (site / "huge").mkdir()
    with open(site / "huge" / "libhuge.so", "wb") as file:
        file.write(b"\x7fELF no program")
        file.truncate(size)
    rows = [f"huge-1.0.dist-info/{name},," for name in ("METADATA", "WHEEL", "RECORD")]
    digest = encode_hash(sha256(site / "huge" / "libhuge.so"))
    (info / "RECORD").write_text("\n".join([*rows, f"huge/libhuge.so,{digest},{size}"]) + "\n")
    return python


def through_everything(tmp_path: Path, size: int, most: int) -> None:
    """harvest, check and restore of one member.

    Args:
        size: of the member, bytes.
        most: memory that each may use, MB.
    """
    python = with_sparse_member(tmp_path / "venv", size)
    folder = str(tmp_path / "W")
    used = {
        "harvest": most_memory(tmp_path, "wheelhouse", "harvest", folder, "--python", str(python)),
        "check": most_memory(tmp_path, "wheelhouse", "check", folder),
    }
    locked = load((tmp_path / "W" / "envlock.yaml").read_text())
    assert locked.distributions[0].bytes > size
    new = make_venv(tmp_path / "new")
    used["restore"] = most_memory(tmp_path, "restore", "--wheelhouse", folder, "--python", str(new))
    found = next((tmp_path / "new").rglob("libhuge.so"))
    assert found.stat().st_size == size
    shutil.rmtree(tmp_path / "new")
    assert {name: mb for name, mb in used.items() if mb > most} == {}


def test_large_member_passes_in_little_memory(tmp_path: Path) -> None:
    """None of the three holds a file: 300 MB in a third of that."""
    through_everything(tmp_path, 300 << 20, 100)


@pytest.mark.long
def test_five_gigabytes_in_half_of_one(tmp_path: Path) -> None:
    if shutil.disk_usage(tmp_path).free < 16 << 30:
        pytest.skip("no room for 5 GiB, three times")
    through_everything(tmp_path, 5 << 30, 500)


@pytest.mark.long
def test_five_gigabytes_stored(tmp_path: Path) -> None:
    """The 64-bit structures of an archive that really has 5 GiB."""
    if shutil.disk_usage(tmp_path).free < 16 << 30:
        pytest.skip("no room for 5 GiB, three times")
    python = with_sparse_member(tmp_path / "venv", 5 << 30)
    target = read_target(Named(str(python), "--python"), clean_env())
    done = harvest(target, take_snapshot(target), str(tmp_path / "W"), How(compress=NONE.name))
    (packed,) = done.packed
    assert packed.size and packed.size > 5 << 30
    found = inspect_wheel(str(tmp_path / "W" / packed.file))
    assert found.problems == () and found.files["lib/huge/libhuge.so"].size == 5 << 30
    shutil.rmtree(tmp_path / "W")
