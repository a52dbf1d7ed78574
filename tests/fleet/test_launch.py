"""Any launcher: one process on each host, here all on this one."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest

from envlock.cli import main
from envlock.fleet import launch as launching
from tests.fleet.nodes import DELAY
from tests.support.worlds import World, vendor_world

HOST = platform.node().partition(".")[0]
CHECKS = ("--level", "static", "--device", "cpu", "--only", "static.lock")
#: Starts what follows three times at once, as ``mpirun`` would on three hosts.
EACH = 'for i in 1 2 3; do "$@" | sed "s/^/$i: /" & done; wait\n'


@pytest.fixture
def world(tmp_path: Path) -> World:
    return vendor_world(tmp_path)


def launch(world: World, out: Path, script: str, *words: str) -> int:
    path = out.parent / "each.sh"
    path.write_text(script)
    launcher = ("--launcher", f"sh '{path}'")
    manifest = ("--manifest", str(world.wheels / "envlock.yaml"))
    return world.run("fleet", "verify", "--out", str(out), *launcher, *manifest, *CHECKS, *words)


def test_hosts_of_one_name(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three processes on hosts that are called the same: three reports, and the merge wonders."""
    out = tmp_path / "out"
    assert launch(world, out, EACH) == 8
    names = [HOST, f"{HOST}~2", f"{HOST}~3"]
    there = {path.name for path in out.iterdir()}
    assert there == {*(f"{name}.json" for name in names), "nodes.txt"}
    for name in names:
        assert json.loads((out / f"{name}.json").read_text())["verdict"] == "passed"
    assert "3 of 3 nodes done" in capsys.readouterr().out


def test_one_never_answers(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert launch(world, tmp_path / "out", '"$@"\n', "--nodes", f"{HOST},other", "--json") == 8
    nodes = json.loads(capsys.readouterr().out)["data"]["nodes"]
    assert {node["node"]: node["how"] for node in nodes} == {HOST: "ended", "other": "silent"}


def test_who_is_waited_for(
    world: World,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(launching, "_SILENCE", 0.2)
    launch(world, tmp_path / "out", '"$@"; sleep 1\n', "--nodes", f"{HOST},other")
    assert "envlock: waiting for other\n" in capsys.readouterr().err


def test_one_began_and_died(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its report stays at what it had, and it is told apart from those that never began."""
    (world.site / "delay.pth").write_text(DELAY.format(seconds=2))
    report = tmp_path / "out" / f"{HOST}.json"
    script = (
        f'"$@" & child=$!\nwhile [ ! -e "{report}" ]; do sleep 0.01; done\nkill -9 $child\nwait\n'
    )
    slow = ("--level", "quick", "--only", "env.shm")
    assert launch(world, tmp_path / "out", script, *slow) in (3, 8)
    captured = capsys.readouterr()
    assert f"{HOST}  gone: it began, and was not heard of again" in captured.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--launcher", "no-such-launcher"), "no-such-launcher: not found"),
        (("--launcher", "false"), "false: no node answered (exit 1)"),
        (("--launcher", "false", "--nodes", "a,b"), "false: no node answered (exit 1)"),
        (("--launcher", "sh -c 'echo ssh: unknown host >&2'"), "ssh: unknown host"),
    ],
)
def test_launchers_that_start_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    out = tmp_path / "out"
    assert main(["fleet", "verify", "--out", str(out), *words]) == 5
    assert message in capsys.readouterr().err
    assert list(out.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--launcher", "'"), "--launcher: No closing quotation"),
        (("--launcher", ""), "options after '--' are srun's"),
        (("--launcher", "sh", "--", "-N4"), "options after '--' are srun's"),
        (("--nodes", "n[1-4]"), "--nodes: Slurm knows the nodes"),
        (("--level", "ful"), "--level: 'ful' is not known"),
        (("--only", "nosuch.*"), "nosuch.*"),
        (("--kit", "x.kit"), "--kit: sbcast needs an allocation"),
        (("--kit", "x.kit", "--launcher", "sh"), "--kit: sbcast needs an allocation"),
    ],
)
def test_what_contradicts_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    assert main(["fleet", "verify", "--out", str(tmp_path / "out"), *words]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_manifest_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--out", str(tmp_path / "out"), "--manifest", str(tmp_path)]
    assert main(["fleet", "verify", *words]) == 4
    assert "Is a directory" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_without_slurm(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["fleet", "verify", "--out", str(tmp_path / "out")]) == 5
    captured = capsys.readouterr()
    assert "srun: not found" in captured.err
    assert "--launcher" in captured.err
