"""What starts a kit, on every Python that may meet it: with an envlock that only notes its call."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from envlock.model.manifest import LockedTarget
from envlock.wheelhouse.kit import Wanted, open_house, pack
from envlock.wheelhouse.kit_tool import Tool
from tests.support.kits import make_house
from tests.support.pythons import clean_env, python_for
from tests.support.wheels import make_wheel, record_hash

HERE = "{}.{}".format(*sys.version_info[:2])
MACHINE = os.uname().machine
#: An envlock that makes the wheelhouse and says how it was called.
NOTING = """
import os, sys
import helper
os.mkdir(sys.argv[-1])
with open(os.path.join(sys.argv[-1], "called"), "w") as file:
    file.write(repr((sys.argv[1:3], sys.flags.isolated, sys.executable, helper.__file__)))
"""
CLI = "import sys\ndef main():\n    print('envlock', sys.argv[1:], sys.executable)\n    return 7\n"


def runner(version: str = HERE, machine: str = MACHINE) -> LockedTarget:
    tags = (f"cp{version.replace('.', '')}-none-linux_{machine}",)
    markers = {"platform_machine": machine}
    return LockedTarget(python=f"{version}.1", markers=markers, tags=tags, paths={})


def make_kit(
    folder: Path, wheels: Sequence[Path] = (), *, on: LockedTarget | None = None, main: str = NOTING
) -> Path:
    """A kit with an envlock of two wheels."""
    files: dict[str, bytes | str] = {
        "envlock/__init__.py": "",
        "envlock/__main__.py": main,
        "envlock/cli/__init__.py": CLI,
        ".data/scripts/tool": b"\x7fELF",
        ".data/scripts/script": "#!python\nimport helper\nprint('script', helper.__file__)\n",
        ".data/platlib/helper.py": "",
        ".data/data/share/x.txt": "x",
        ".data/headers/x.h": "",
    }
    own = make_wheel(folder / "tool", "envlock", "0", files, executable=["envlock/__init__.py"])
    house = open_house(str(make_house(folder / "W")))
    tool = Tool(tuple(map(str, (own, *wheels))), "made by the test")
    kit = folder / "my stack.kit"
    pack(house, str(kit), tool, Wanted(runner=on or runner()))
    return kit


def start(
    kit: Path, *words: str | Path, python: str = sys.executable, umask: int = -1
) -> tuple[int, str]:
    """``python3 KIT``, in a folder of its own, with a temporary folder that must stay empty."""
    away = kit.parent / "away"
    away.mkdir(exist_ok=True)
    env = clean_env(TMPDIR=str(away), PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run(
        [python, str(kit), *map(str, words)], cwd=away, env=env, text=True, umask=umask,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert list(away.iterdir()) == []
    return done.returncode, done.stdout


def test_it_sets_up_envlock(tmp_path: Path) -> None:
    """Beside the kit, in a folder named like it, under any umask; the program works from anywhere,
    through a link, and after the folder was moved."""
    kit = make_kit(tmp_path)
    code, said = start(kit, umask=0o077)
    folder = tmp_path / "my stack"
    assert code == 0, said
    assert f"unpacking into {folder}" in said
    assert f"'{folder}/envlock/bin/envlock' restore --wheelhouse '{folder}/wheels'" in said
    called = (folder / "wheels/called").read_text()
    python = f"{folder}/envlock/bin/python"
    site = f"{folder}/envlock/lib/python{HERE}/site-packages"
    assert called == repr((["wheelhouse", "unpack"], 1, python, f"{site}/helper.py"))
    prefix = folder / "envlock"
    assert (prefix / "share/x.txt").exists() and (prefix / "include/x.h").exists()
    assert os.access(prefix / "bin/tool", os.X_OK)
    assert {path.stat().st_mode & 0o077 for path in prefix.rglob("*") if not path.is_symlink()} == {
        0
    }
    record = next(Path(site).glob("*.dist-info/RECORD")).read_text().splitlines()
    assert all((Path(site) / line.split(",")[0]).exists() for line in record)
    assert "../../../bin/tool,," in record

    moved = folder.rename(tmp_path / "moved away")
    (tmp_path / "link").symlink_to(moved / "envlock/bin/envlock")
    done = subprocess.run([tmp_path / "link", "a b"], capture_output=True, text=True, cwd="/")
    assert done.stdout == f"envlock ['a b'] {moved}/envlock/bin/python\n" and done.returncode == 7
    script = subprocess.run([moved / "envlock/bin/script"], capture_output=True, text=True)
    assert script.stdout.startswith("script ")


def test_run_again(tmp_path: Path) -> None:
    """envlock's environment stays; one of another kit, and what a killed run left, is replaced."""
    kit = make_kit(tmp_path)
    folder = tmp_path / "D"
    assert start(kit, folder)[0] == 0
    mark = folder / "envlock/mark"
    mark.write_text("")
    (folder / ".envlock.part/bin").mkdir(parents=True)
    (folder / "wheels/called").unlink()
    (folder / "wheels").rmdir()
    assert start(kit, folder)[0] == 0
    assert mark.exists() and not (folder / ".envlock.part").exists()
    (folder / "wheels/called").unlink()
    (folder / "wheels").rmdir()
    other = make_kit(tmp_path / "other", main=NOTING + "# another\n")
    assert start(other, folder)[0] == 0
    assert not mark.exists() and sorted(os.listdir(folder)) == ["envlock", "wheels"]


@pytest.mark.parametrize("part", ["envlock/envlock-0", "kit.json", "start.py"])
def test_a_flipped_byte(tmp_path: Path, part: str) -> None:
    """Before anything is set up; nothing stays."""
    kit = make_kit(tmp_path)
    with zipfile.ZipFile(kit) as archive:
        info = next(one for one in archive.infolist() if one.filename.startswith(part))
        at = info.header_offset + 30 + len(info.filename) + info.file_size // 2
    data = bytearray(kit.read_bytes())
    data[at] ^= 1
    kit.write_bytes(data)
    code, said = start(kit)
    assert code == 4, said
    assert "error: kit: '" in said and "is damaged" in said and "hint: copy the kit again" in said
    assert not (tmp_path / "my stack").exists()


def test_a_failed_unpacking(tmp_path: Path) -> None:
    """Its words are envlock's own; what this run made goes, what was there stays."""
    kit = make_kit(tmp_path, main="import sys; sys.exit('no room')")
    code, said = start(kit)
    assert code == 1 and "no room" in said and not (tmp_path / "my stack").exists()
    (tmp_path / "D").mkdir()
    (tmp_path / "D/mine").write_text("")
    assert start(kit, tmp_path / "D")[0] == 1
    assert os.listdir(tmp_path / "D") == ["mine"]


@pytest.mark.parametrize("end", ["sys.exit(5)", "os.kill(os.getppid(), 2); time.sleep(60)"])
def test_a_failed_run_keeps_the_envlock_of_before(tmp_path: Path, end: str) -> None:
    """Another kit into the same folder: what worked before works afterwards."""
    folder = tmp_path / "D"
    assert start(make_kit(tmp_path), folder)[0] == 0
    (folder / "envlock/mark").write_text("of before")
    other = make_kit(tmp_path / "other", main=f"import os, sys, time\n{end}\n")
    assert start(other, folder)[0] == (5 if "exit" in end else 130)
    assert sorted(os.listdir(folder)) == ["envlock", "wheels"]
    assert (folder / "envlock/mark").read_text() == "of before"
    assert subprocess.run([folder / "envlock/bin/envlock"], capture_output=True).returncode == 7


@pytest.mark.parametrize("place", ["none", "of the killed run"])
def test_a_killed_run_keeps_the_envlock_of_before(tmp_path: Path, place: str) -> None:
    """Killed between two renames, or while it unpacked; the next run fails, too."""
    folder = tmp_path / "D"
    assert start(make_kit(tmp_path), folder)[0] == 0
    (folder / "envlock/mark").write_text("of before")
    (folder / "envlock").rename(folder / ".envlock.old")
    if place != "none":
        (folder / "envlock").mkdir()
    other = make_kit(tmp_path / "other", main="import sys; sys.exit(5)")
    assert start(other, folder)[0] == 5
    assert sorted(os.listdir(folder)) == ["envlock", "wheels"]
    assert (folder / "envlock/mark").read_text() == "of before"


def test_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    kit = make_kit(tmp_path)
    (tmp_path / "file").write_text("")
    code, said = start(kit, tmp_path / "file")
    assert code == 4 and "cannot be made" in said and "hint: name another folder" in said
    (tmp_path / "D/envlock").mkdir(parents=True)
    (tmp_path / "D/envlock/mine").write_text("")
    code, said = start(kit, tmp_path / "D")
    assert code == 4 and "is there already, and is not envlock's" in said
    assert os.listdir(tmp_path / "D/envlock") == ["mine"]


def test_two_at_once(tmp_path: Path) -> None:
    kit = make_kit(tmp_path)
    (tmp_path / "D").mkdir()
    held = os.open(tmp_path / "D", os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        code, said = start(kit, tmp_path / "D")
    finally:
        os.close(held)
    assert code == 4 and "another run is unpacking" in said and not os.listdir(tmp_path / "D")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted(tmp_path: Path, number: signal.Signals) -> None:
    """130, the child is stopped, and nothing stays."""
    waiting = "import sys, time\nopen(sys.argv[-1] + '.here', 'w').close()\ntime.sleep(60)\n"
    kit = make_kit(tmp_path, main=waiting)
    (tmp_path / "D").mkdir()
    child = subprocess.Popen([sys.executable, kit, tmp_path / "D"], stderr=subprocess.DEVNULL)
    while not (tmp_path / "D/wheels.here").exists():
        assert child.poll() is None
        time.sleep(0.02)
    child.send_signal(number)
    assert child.wait() == 130
    assert os.listdir(tmp_path / "D") == ["wheels.here"]


def test_another_python(tmp_path: Path) -> None:
    """Says which one, and what to type."""
    other = "3.10" if HERE != "3.10" else "3.11"
    code, said = start(make_kit(tmp_path, on=runner(other)))
    assert code == 4 and f"the envlock inside is for Python {other}, and this is CPython" in said
    assert f"python{other} '{tmp_path}/my stack.kit'" in said
    code, said = start(make_kit(tmp_path / "2", on=runner(machine="riscv64")))
    assert code == 4 and f"is for riscv64, and this is {MACHINE}" in said


@pytest.mark.parametrize("version", ["3.8", "3.9"])
def test_an_old_python(tmp_path: Path, version: str) -> None:
    """What envlock does not run on still says so."""
    python = python_for(version)
    if python is None:
        pytest.skip(f"needs python{version}")
    code, said = start(make_kit(tmp_path), python=python)
    assert code == 4 and f"and this is CPython {version}" in said


def test_help(tmp_path: Path) -> None:
    kit = make_kit(tmp_path)
    code, said = start(kit, "--help")
    assert code == 0 and "DIR/wheels    the wheelhouse" in said and "my stack" in said
    assert start(kit, "a", "b")[0] == start(kit, "--bad")[0] == 2
    assert not (tmp_path / "my stack").exists()


@pytest.mark.parametrize("member", ["../evil.py", "a/../../evil.py", "/evil.py", "C:evil", "a//b"])
def test_an_unsafe_wheel(tmp_path: Path, member: str) -> None:
    bad = make_wheel(tmp_path / "bad", "bad", "1", {member: "x"})
    code, said = start(make_kit(tmp_path, [bad]), tmp_path / "D")
    assert code == 4 and "has no safe path" in said
    assert not (tmp_path / "D").exists() and not list(tmp_path.rglob("evil*"))


def test_a_wheel_that_is_not_what_record_says(tmp_path: Path) -> None:
    bad = make_wheel(
        tmp_path / "bad", "bad", "1", {"bad.py": "x"}, extra_record={"bad.py": record_hash(b"y")}
    )
    code, said = start(make_kit(tmp_path, [bad]), tmp_path / "D")
    assert code == 4 and "'bad.py' is not what RECORD says" in said
    assert not (tmp_path / "D").exists()
