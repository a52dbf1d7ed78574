"""Interpreters, environments and the real wheels that integration tests use."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

from filelock import FileLock

#: The environment before any test changed it: the machine's own pip settings.
MACHINE = dict(os.environ)
ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache"
KEPT = ("PIP_CERT", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")


def clean_env(**more: str) -> dict[str, str]:
    """The environment without any setting of pip or uv but what the network needs to be trusted."""
    env = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PIP_", "UV_", "PYTHON", "VIRTUAL_ENV", "CONDA_", "ENVLOCK_"))
        or key in KEPT
    }
    env |= {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "UV_NO_CONFIG": "1",
    }
    return env | more


def python_for(version: str) -> str | None:
    """Path of ``pythonX.Y`` on this machine, or None."""
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        return os.path.realpath(sys.executable)  # not the venv that the tests run in
    for found in (shutil.which(f"python{version}"), *_pyenv(version)):
        if found and subprocess.run([found, "-c", ""], capture_output=True).returncode == 0:
            return str(found)
    return None


def _pyenv(version: str) -> list[Path]:
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    return sorted(root.glob(f"{version}.*/bin/python"))


def make_venv(path: Path, python: str | None = None) -> Path:
    """A venv without pip; returns its interpreter."""
    if python is None:
        venv.EnvBuilder(symlinks=True, with_pip=False).create(path)
    else:
        subprocess.run([python, "-m", "venv", "--without-pip", str(path)], check=True)
    return path / "bin" / "python"


def pip(python: Path | str, *args: str, env: Mapping[str, str] | None = None) -> str:
    """Runs this environment's pip on another one; returns its output."""
    command = [sys.executable, "-m", "pip", "--python", str(python), *args]
    done = subprocess.run(command, env=env or clean_env(), capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def uv(*args: str, env: Mapping[str, str] | None = None) -> str:
    """Runs uv without its cache; returns its output."""
    tool = Path(sys.executable).with_name("uv")
    command = [str(tool), *args, "--no-cache"]
    done = subprocess.run(command, env=env or clean_env(), capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def cached_wheels(name: str, *requirements: str) -> Path:
    """A folder of real wheels, fetched once with the machine's own pip settings.

    The folder is complete when its mark is there: an interrupted download is done again.
    """
    folder = CACHE / "wheels" / name
    folder.mkdir(parents=True, exist_ok=True)
    done = folder / ".complete"
    with FileLock(f"{folder}.lock"):  # several test workers may want it at once
        if not done.exists():
            command = [sys.executable, "-m", "pip", "download", "-q", "-d", str(folder)]
            subprocess.run([*command, *requirements], check=True, env=MACHINE)
            done.write_text("\n".join(requirements) + "\n")
    return folder


def torch_wheels() -> Path:
    """torch 2.13.0+cpu, triton, numpy and what they need, for this interpreter."""
    return cached_wheels("torch", "torch==2.13.0", "triton", "numpy")
