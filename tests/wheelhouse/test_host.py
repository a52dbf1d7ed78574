"""The laptop may be a Mac or a Windows machine: nothing that only POSIX has is needed there."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from envlock.model.manifest import dump
from tests.support.pythons import clean_env
from tests.support.wheels import make_wheel
from tests.wheelhouse.test_check import manifest_of
from tests.wheelhouse.test_resolve import SYMPY, TORCH, health

#: Takes away what other systems do not have, then runs envlock's own command lines.
ELSEWHERE = """
import os, shutil, signal, subprocess, sys, tempfile
for name in ("fcntl", "pwd", "grp", "resource", "termios", "tty", "pty", "syslog"):
    sys.modules[name] = None
for name in ("getuid", "geteuid", "getgid", "getegid", "getgroups", "sched_getaffinity", "killpg",
             "getpgid", "setsid", "set_blocking", "pread", "preadv", "readv", "pwrite", "sync",
             "chown", "lchown", "fchown", "fchmod", "link", "mkfifo", "posix_fallocate",
             "copy_file_range", "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK",
             "O_TMPFILE", "O_SYNC", "ST_RDONLY"):
    if hasattr(os, name):
        delattr(os, name)
del signal.SIGHUP
from envlock.cli import main
for line in sys.argv[1].split("\\n"):
    code = main(line.split("\\t"))
    if code:
        sys.exit(code)
"""


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """An index in a folder, a renamed vendor wheel, and the manifest of a card."""
    index = tmp_path / "index"
    make_wheel(
        index, "peft", "0.9", {"peft.py": "X = 1\n", ".data/scripts/peft": "#!python\nprint()\n"},
        requires=["torch", "numpy"], executable=[".data/scripts/peft"],
    )  # fmt: skip
    make_wheel(index, "numpy", "2.2.6", tag="cp310-cp310-manylinux_2_17_x86_64")
    make_wheel(tmp_path / "downloads", "mine", "1.0+cu1", file_name="mine (1).whl")
    (tmp_path / "card.yaml").write_text(dump(manifest_of(TORCH, SYMPY, health=health())))
    return tmp_path


def run(world: Path, folder: str, script: str) -> str:
    lines = [
        [
            "wheelhouse",
            "build",
            folder,
            "peft",
            "mine",
            "-f",
            "downloads",
            "--manifest",
            "card.yaml",
        ],
        ["wheelhouse", "build", folder, "peft", "--resolver", "pip-tools"],
    ]
    text = "\n".join("\t".join(line) for line in lines)
    done = subprocess.run(
        [sys.executable, "-c", script, text],
        cwd=world,
        env=clean_env(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(world / "index")),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def bytes_of(folder: Path) -> dict[str, tuple[str, int]]:
    return {
        path.name: (
            hashlib.sha256(path.read_bytes()).hexdigest(),
            stat.S_IMODE(path.stat().st_mode),
        )
        for path in folder.iterdir()
    }


@pytest.mark.integration
def test_build_without_what_only_posix_has(world: Path) -> None:
    """The same files come out, to the last byte and mode."""
    run(world, "there", ELSEWHERE)
    run(world, "here", "import sys\n" + ELSEWHERE[ELSEWHERE.index("from envlock") :])
    there, here = bytes_of(world / "there"), bytes_of(world / "here")
    assert there == here
    assert {"envlock.yaml", "pylock.toml", "requirements.txt", "SHA256SUMS"} < set(there)
    assert "mine-1.0+cu1-py3-none-any.whl" in there
    for name in ("envlock.yaml", "pylock.toml", "requirements.txt", "SHA256SUMS"):
        assert b"\r" not in (world / "there" / name).read_bytes()


CHECK = """
from envlock.wheelhouse import kit
from envlock.wheelhouse.check import check
found = check(sys.argv[1])
print(sorted({f.code for f in found.findings if f.level == "error"}), len(found.wheels))
"""


@pytest.mark.integration
def test_check_without_what_only_posix_has(world: Path) -> None:
    run(world, "W", ELSEWHERE)
    script = ELSEWHERE[: ELSEWHERE.index("from envlock.cli")] + CHECK
    done = subprocess.run(
        [sys.executable, "-c", script, "W"], cwd=world, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["['wheelhouse.no-wheel']", "3"]


def test_no_line_end_of_the_host(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written is bytes: a host whose text files end their lines otherwise changes none."""
    from envlock.wheelhouse.folder import write_papers

    monkeypatch.setattr(os, "linesep", "\r\n")
    folder = world / "papers"
    folder.mkdir()
    write_papers(str(folder), manifest_of(TORCH, SYMPY))
    assert all(b"\r" not in path.read_bytes() for path in folder.iterdir())
