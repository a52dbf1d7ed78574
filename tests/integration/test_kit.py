"""The kit where it is meant for: no network, no pip, no ensurepip, not root, a noexec /tmp."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from envlock.cli import main
from tests.support.pythons import CACHE, clean_env, make_venv, python_for, uv
from tests.support.wheels import make_wheel
from tests.wheelhouse.conftest import vendor_wheel

pytestmark = pytest.mark.integration

NOBODY = 65534


def why_not() -> str:
    """Why no namespace can be made here; empty when it can."""
    if not all(map(shutil.which, ("unshare", "setpriv", "mount"))):
        return "needs unshare, setpriv and mount"
    tried = subprocess.run(["unshare", "-n", "-m", "true"], capture_output=True)
    return "" if tried.returncode == 0 else "needs the right to make namespaces (root)"


def pack(tmp_path: Path, python: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kit of an environment with a vendor build and a plain distribution."""
    # dependencies are fetched once, with the machine's own settings
    monkeypatch.setenv("XDG_CACHE_HOME", str(CACHE))
    monkeypatch.delenv("PIP_CONFIG_FILE")
    venv = make_venv(tmp_path / "source", python)
    wheels = [vendor_wheel(tmp_path / "in"), make_wheel(tmp_path / "in", "plain", "2.0")]
    uv("pip", "install", "--offline", "--no-index", "--no-deps", "--link-mode", "copy",
       "--python", str(venv), *map(str, wheels))  # fmt: skip
    house, kit = tmp_path / "W", tmp_path / "my stack.kit"
    assert main(["wheelhouse", "harvest", str(house), "--python", str(venv)]) == 0
    (tmp_path / "model").mkdir()
    (tmp_path / "model/weights.bin").write_bytes(b"w" * 100_000)
    words = ["--python", str(venv), "--with", str(tmp_path / "model")]
    assert main(["wheelhouse", "pack", str(house), str(kit), *words]) == 0
    return kit


#: $1 prefix of Python, $2 its version, $3 folder with the kit; run as root in namespaces of its own
OUTSIDE = """
set -eu
mount --make-rprivate /
mount -t tmpfs -o mode=755 none /mnt
mkdir /mnt/py "/mnt/my home"
mount --bind "$1" /mnt/py
mount --bind "$3" "/mnt/my home"
for name in lib lib64; do for part in ensurepip site-packages; do
    hidden="/mnt/py/$name/python$2/$part"
    if [ -d "$hidden" ]; then mount -t tmpfs -o mode=755 none "$hidden"; fi
done; done
mount -t tmpfs -o noexec,mode=1777 none /tmp
cd "/mnt/my home"
exec setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs \
    env -i PATH=/usr/bin:/bin LD_LIBRARY_PATH=/mnt/py/lib sh -c "$4" sh "/mnt/py/bin/python$2"
"""
#: $1 the target's Python; run as nobody in the folder of the kit
INSIDE = """
set -eu
umask 077
test "$(id -u)" = 65534 && test -z "${HOME:-}" && echo "ok: nobody, and no home"
"$1" -c 'import venv; print("ok: a Python")'
if "$1" -m pip --version 2>/dev/null || "$1" -m ensurepip --version 2>/dev/null; then exit 9; fi
printf '#!/bin/sh\\n' > /tmp/x; chmod +x /tmp/x
if /tmp/x 2>/dev/null; then exit 9; fi
if "$1" "my stack.kit" /tmp/D 2> /tmp/said; then exit 9; fi
grep -q "runs no programs (noexec)" /tmp/said && test ! -e /tmp/D && echo "ok: nothing into noexec"
"$1" "my stack.kit"
"my stack/envlock/bin/envlock" --version
"$1" -m venv --without-pip "new venv"
export XDG_STATE_HOME="$PWD/state"
"my stack/envlock/bin/envlock" wheelhouse check "my stack/wheels"
"my stack/envlock/bin/envlock" restore --wheelhouse "my stack/wheels" --python "new venv"
"new venv/bin/python" -c 'import plain; print("ok: plain", plain.VERSION)'
test "$("new venv/bin/run")" = run && echo "ok: its script runs"
"my stack/envlock/bin/envlock" verify --level static --only static.lock --python "new venv"
"$1" "my stack.kit" | grep 'already' && echo "ok: run again"
test -f "my stack/wheels/extras/model/weights.bin" && echo "ok: extras"
ls -A
"""


@pytest.mark.parametrize("version", ["3.10"])
def test_the_hard_line(tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    python = python_for(version)
    if python is None:
        pytest.skip(f"needs python{version}")
    if reason := why_not():
        pytest.skip(reason)
    ask = "import sys; print(sys.base_prefix)"
    prefix = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout
    kit = pack(tmp_path, python, monkeypatch)
    home = tmp_path / "home"
    home.mkdir()
    kit.rename(home / kit.name)
    os.chown(home, NOBODY, NOBODY)
    done = subprocess.run(
        ["unshare", "-n", "-m", "sh", "-c", OUTSIDE, "sh", prefix.strip(), version, home, INSIDE],
        env=clean_env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    proven = [line for line in done.stdout.splitlines() if line.startswith("ok: ")]
    assert len(proven) == 7, done.stdout
    assert "envlock 0." in done.stdout
    left = set(done.stdout.splitlines()[-4:])
    assert left == {"my stack", "my stack.kit", "new venv", "state"}, done.stdout
