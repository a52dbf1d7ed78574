"""What speaks against a target: another stack, somebody else's Python, no room, no access."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from envlock.adapters.marker import Marker
from envlock.adapters.space import closed, free, nearest, why_no_room
from envlock.cli import main
from envlock.model.facts import Layout
from envlock.model.manifest import Stack, dump
from envlock.restore.plan import Need
from envlock.restore.refusals import Room, layout_problems, room_problems
from tests.support.pythons import ROOT, clean_env
from tests.support.worlds import World, tree

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    ("need", "room", "codes"),
    [
        (Need(bytes=10, files=1), Room(path="/x", bytes=10, files=1), []),
        (Need(bytes=11, files=1), Room(path="/x", bytes=10, files=1), ["target.room"]),
        (Need(bytes=1, files=2), Room(path="/x", bytes=10, files=1), ["target.room"]),
        (Need(bytes=11, files=2), Room(path="/x", bytes=10, files=1), ["target.room"] * 2),
        (Need(bytes=11, files=2), Room(path="/x"), []),
        (Need(bytes=1, files=1), Room(path="/x", bytes=9, refused="Quota"), ["target.room"]),
        (Need(bytes=0, files=0), Room(path="/x", closed={"/y": "no", "/z": "no"}),
         ["target.closed"] * 2),
    ],
)  # fmt: skip
def test_room(need: Need, room: Room, codes: list[str]) -> None:
    assert [found.code for found in room_problems(need, room)] == codes


@pytest.mark.parametrize(
    ("folders", "said"),
    [
        ({}, []),
        ({"headers": "/usr/include/python3.11"}, []),
        ({"headers": "/include"}, ["headers"]),
        ({"purelib": "/usr/lib/python3/site-packages"}, ["purelib"]),
        ({"purelib": "/opt/x", "platlib": "/opt/x", "scripts": "/bin"},
         ["purelib", "platlib", "scripts"]),
    ],
)  # fmt: skip
def test_layout(folders: dict[str, str], said: list[str]) -> None:
    """What is unpacked must not leave the stage, which has the same layout."""
    layout = Layout(
        prefix="/usr/local", purelib="/usr/local/lib/s", platlib="/usr/local/lib/s",
        scripts="/usr/local/bin", headers="/usr/local/include", data="/usr/local",
    )  # fmt: skip
    found = layout_problems(replace(layout, **folders))
    assert [one.what.split()[3] for one in found] == said


def fake_stack(folder: Path, release: str) -> str:
    (folder / "opt/dtk").mkdir(parents=True)
    (folder / "opt/dtk/.dtk_version").write_text(f"{release}\n")
    return str(folder / "opt/dtk")


@pytest.mark.parametrize(
    ("here", "words", "code"),
    [
        ("dtk-26.04-DCC2602-0317", [], 0),
        ("dtk-25.04", [], 4),
        ("dtk-25.04", ["--allow-stack-change"], 0),
    ],
)
def test_other_release_of_the_stack(
    broken: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    here: str,
    words: list[str],
    code: int,
) -> None:
    manifest = broken.manifest
    broken.write(replace(manifest, stack=Stack(tag="dtk2604", release="dtk-26.04-DCC2602-0317")))
    monkeypatch.setenv("DTKROOT", fake_stack(tmp_path, here))
    before = tree(broken.prefix)
    assert broken.restore(*words) == code
    said = capsys.readouterr().err
    if code:
        assert "stack release 'dtk-26.04-DCC2602-0317', this machine has 'dtk-25.04'" in said
        assert "--allow-stack-change" in said
        assert tree(broken.prefix) == before


def test_target_of_somebody_else(
    broken: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """PEP 668, as pip has it; envlock's own marker leads here and is passed."""
    marker = tmp_path / "EXTERNALLY-MANAGED"
    marker.write_text("[externally-managed]\nError=apt\n")
    from envlock.cli import wiring

    real = wiring.open_target
    monkeypatch.setattr(
        wiring,
        "open_target",
        lambda *words, **more: replace(real(*words, **more), externally_managed=str(marker)),
    )
    assert broken.restore("--plan") == 4
    assert broken.restore() == 4
    said = capsys.readouterr().err
    assert f"managed by somebody else: '{marker}'" in said
    assert "--break-system-packages" in said
    assert broken.restore("--into", str(tmp_path / "new")) == 0
    put = Marker(path=str(marker)).put(())
    assert put.new is not None
    marker.write_bytes(put.new)
    assert broken.restore("--plan") == 3
    marker.write_text("[externally-managed]\nError=apt\n")
    assert broken.restore("--break-system-packages") == 0


def test_older_c_library_is_told(broken: World, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = broken.manifest
    tags = ("cp311-cp311-manylinux_2_99_x86_64", *manifest.target.tags)
    first = manifest.target.tags[0].split("-")
    tags = (f"{first[0]}-{first[1]}-manylinux_2_99_x86_64", *manifest.target.tags)
    broken.write(replace(manifest, target=replace(manifest.target, tags=tags)))
    assert broken.restore() == 0
    assert "the builds ran on glibc 2.99" in capsys.readouterr().err


def test_plan_says_what_it_takes(broken: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert broken.restore("--plan") == 3
    said = capsys.readouterr().out
    assert "  takes " in said
    assert " files; " in said
    assert broken.restore("--plan", "--into", str(broken.prefix.parent / "new")) == 3


TMPFS = """
set -e
mkdir -p "$1"
mount -t tmpfs -o "$2" tmpfs "$1"
cp -a "$3/." "$1"
shift 3
exec "$@"
"""


def namespaces() -> None:
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        pytest.skip("mount namespaces are not allowed here")


@pytest.mark.parametrize(
    ("option", "said"), [("size=300k", " MB free, and "), ("nr_inodes=90", "inodes free")]
)
def test_no_room(broken: World, tmp_path: Path, option: str, said: str) -> None:
    """Refused before anything is unpacked: exit 4."""
    namespaces()
    manifest = broken.manifest
    dists = tuple(
        replace(dist, bytes=dist.bytes + 3_000_000, files=dist.files + 300)
        for dist in manifest.distributions
    )
    broken.write(replace(manifest, distributions=dists))
    there = tmp_path / "small"
    config = broken.prefix / "pyvenv.cfg"
    config.write_text(config.read_text().replace(str(broken.prefix), str(there)))
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", TMPFS, "sh", str(there), option, str(broken.prefix),
         sys.executable, "-m", "envlock", "restore", "--wheelhouse", str(broken.wheels),
         "--python", str(there / "bin/python")],
        capture_output=True, text=True, env=clean_env(), cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 4, done.stderr
    assert said in done.stderr


def test_what_a_full_file_system_says(tmp_path: Path) -> None:
    """A quota shows only when room is asked for."""
    namespaces()
    there = tmp_path / "small"
    code = (
        "import sys; from envlock.adapters.space import free, why_no_room as why\n"
        "print(why(sys.argv[1], 10**6), '|', why(sys.argv[1], 10**8), '|', free(sys.argv[1]))"
    )
    (tmp_path / "empty").mkdir()
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", TMPFS, "sh", str(there), "size=4m", str(tmp_path / "empty"),
         sys.executable, "-c", code, str(there)],
        capture_output=True, text=True, env=clean_env(), cwd=ROOT,
    )  # fmt: skip
    assert done.stdout.split("|")[:2] == [" ", " No space left on device "], done.stderr


def test_space_of_an_ordinary_folder(tmp_path: Path) -> None:
    size, _ = free(str(tmp_path))
    assert size is not None
    assert size > 0
    assert why_no_room(str(tmp_path), 1000) == ""
    assert nearest(str(tmp_path / "a/b")) == os.path.realpath(tmp_path)
    assert free("/nothing/there") == (None, None)
    assert closed([str(tmp_path), "/nothing/there"]) == {}


def test_folder_that_is_closed() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    child = os.fork()
    if child == 0:
        os.setgid(65534)
        os.setuid(65534)
        os._exit(0 if closed(["/usr"]) == {"/usr": "Permission denied"} else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_other_bytes_than_remembered_are_named_first(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert world.restore() == 0  # remembers
    manifest = world.manifest
    dists = tuple(
        replace(dist, content="sha256:" + "0" * 64) if dist.name == "torch" else dist
        for dist in manifest.distributions
    )
    other = tmp_path / "other.yaml"
    other.write_text(dump(replace(manifest, distributions=dists)))
    capsys.readouterr()
    code = main(
        ["restore", "--plan", "--manifest", str(other), "--wheelhouse", str(world.wheels),
         "--python", str(world.python)]
    )  # fmt: skip
    said = capsys.readouterr().err
    assert code == 3
    assert said.startswith("warning: torch: ")
    assert "has other bytes than what is remembered" in said
