"""The system's own Python, and prefixes of Python that are no venv."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def in_a_copy_of_the_system(script: str, tmp_path: Path) -> str:
    """Runs a script where every change below /usr goes to a layer that is thrown away."""
    mount = tmp_path / "layer"
    mount.mkdir()
    prepare = (
        f"set -e; mount -t tmpfs tmpfs '{mount}'; mkdir '{mount}/upper' '{mount}/work'; "
        f"mount -t overlay overlay "
        f"-o 'lowerdir=/usr,upperdir={mount}/upper,workdir={mount}/work' /usr; "
    )
    own = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    if not shutil.which("unshare") or subprocess.run(
        [*own, "sh", "-c", prepare], capture_output=True
    ).returncode:  # fmt: skip
        pytest.skip("file systems cannot be laid over each other here")
    done = subprocess.run(
        [*own, "sh", "-c", prepare + "set +e; " + script],
        env=dict(os.environ), capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout + done.stderr


def make_prefix(prefix: Path) -> Path:
    """A whole Python that is no venv, as conda makes them: a program of its own, and a standard
    library that links to this one's. Returns its interpreter."""
    version = f"python3.{sys.version_info[1]}"
    library = prefix / "lib" / version
    (library / "site-packages").mkdir(parents=True)
    (prefix / "conda-meta").mkdir()
    (prefix / "conda-meta/history").touch()
    (prefix / "bin").mkdir()
    python = prefix / "bin/python"
    shutil.copy(os.path.realpath(sys.executable), python)
    for entry in Path(os.__file__).parent.iterdir():
        if entry.name not in ("site-packages", "dist-packages", "EXTERNALLY-MANAGED"):
            (library / entry.name).symlink_to(entry)
    asked = "import sysconfig, json, zlib; print(sysconfig.get_path('purelib'))"
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run([python, "-c", asked], capture_output=True, text=True, env=env)
    if done.stdout.strip() != str(library / "site-packages"):
        pytest.skip("this Python cannot be copied")
    return python
