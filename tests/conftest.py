"""What all tests share: a clean environment, and a real one to lock."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from filelock import FileLock
from hypothesis import settings

from tests.support.pythons import CACHE, KEPT, make_venv, torch_wheels, uv

# a shared runner may be slow for a moment; what is slow for good shows in --durations
# The usual run tries the same examples each time, so that what is red is what was changed;
# `--hypothesis-profile explore` looks for new ones.
settings.register_profile("envlock", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("envlock")

# whoever starts the tests in the background of a shell hands down that signals are ignored, and
# what the tests start would inherit that
for _number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler)

_CLEARED = ("PIP_", "UV_", "VIRTUAL_ENV", "CONDA_", "ENVLOCK_", "PYTHONPATH", "PYTHONHOME")


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No setting of the person who runs the tests reaches them, and none of theirs gets out."""
    for name in list(os.environ):
        if name.startswith(_CLEARED) and name not in KEPT:
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_DISABLE_PIP_VERSION_CHECK", "1")
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LANGUAGE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if os.environ.get(name, "").startswith("zh"):  # what is tested is what English readers see
            monkeypatch.setenv(name, "C.UTF-8")


def _install(wheels: Path, path: Path) -> Path:
    """A venv with every wheel of a folder, from that folder alone."""
    python = make_venv(path)
    files = sorted(str(wheel) for wheel in wheels.glob("*.whl"))
    uv("pip", "install", "--offline", "--no-index", "--no-deps", "--link-mode", "copy",
       "--python", str(python), *files)  # fmt: skip
    return path


@pytest.fixture(scope="session")
def torch_target() -> Path:
    """A venv with the real torch, triton and numpy; tests only read it.

    Kept between runs, and shared by the workers of one run.
    """
    version = "{}.{}".format(*sys.version_info[:2])
    path = CACHE / "targets" / f"torch-{version}"
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"):
        wheels = torch_wheels()
        done = Path(f"{path}.complete")
        content = "\n".join(sorted(wheel.name for wheel in wheels.glob("*.whl")))
        if not done.exists() or done.read_text() != content:
            done.unlink(missing_ok=True)
            shutil.rmtree(path, ignore_errors=True)
            _install(wheels, path)
            done.write_text(content)
    return path


@pytest.fixture
def torch_copy(torch_target: Path, tmp_path: Path) -> Iterator[Path]:
    """The same, at a place of its own, to be damaged.

    A venv is not moved by copying it: its settings and its scripts hold its path.
    """
    path = tmp_path / "target"
    subprocess.run(["cp", "-a", "--reflink=auto", str(torch_target), str(path)], check=True)
    old, new = os.fsencode(torch_target), os.fsencode(path)
    for file in (path / "pyvenv.cfg", *(path / "bin").iterdir()):
        if file.is_file() and not file.is_symlink() and old in (text := file.read_bytes()):
            file.write_bytes(text.replace(old, new))
    yield path
    shutil.rmtree(path)  # pytest would keep the last three, 2 GB each


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``ca.pem``, which no machine trusts, and ``server.pem``: certificate and key
    that it gave to 127.0.0.1 and ``right.test``."""
    folder = tmp_path_factory.mktemp("tls")
    made = trustme.CA()
    made.cert_pem.write_to_path(folder / "ca.pem")
    given = made.issue_cert("127.0.0.1", "right.test")
    given.private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")
    return folder
