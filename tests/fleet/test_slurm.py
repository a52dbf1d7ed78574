"""envlock fleet on a real Slurm: four nodes, and what can become of one."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from envlock.model.manifest import load
from tests.fleet.nodes import Fleet, document, wait_for
from tests.support.slurm import NAMES, Cluster

pytestmark = pytest.mark.integration

CHECKS = ("--level", "quick", "--device", "cpu", "--only", "static.lock", "--only", "env.shm")


def test_verify_everywhere(fleet: Fleet, tmp_path: Path) -> None:
    done = fleet.run("verify", "--out", "out", "--manifest", fleet.manifest, "--json", *CHECKS)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert [node["node"] for node in said["data"]["nodes"]] == list(NAMES)
    assert {node["how"] for node in said["data"]["nodes"]} == {"ended"}
    out = tmp_path / "out"
    assert sorted(path.name for path in out.iterdir()) == [
        *(f"{name}.json" for name in NAMES), "nodes.txt",
    ]  # fmt: skip
    assert {document(out, name)["verdict"] for name in NAMES} == {"passed"}


def test_each_is_named_for_what_it_is(fleet: Fleet, tmp_path: Path) -> None:
    """One node is damaged, one dies in the middle, one is slow; the fourth knows nothing of it."""
    fleet.damage("n2")
    fleet.delay("n3", 60)
    fleet.delay("n4", 12)
    out = tmp_path / "out"
    run = fleet.start("verify", "--out", "out", "--manifest", fleet.manifest, *CHECKS)
    try:
        wait_for(lambda: "static.lock" in _passed(out, "n3"))
        fleet.cluster.kill_node("n3")
        said, _ = run.communicate(timeout=100)
    finally:
        run.kill()
        run.wait()
        fleet.cluster.start_node("n3")
    assert run.returncode == 3, said
    assert document(out, "n1")["verdict"] == document(out, "n4")["verdict"] == "passed"
    assert document(out, "n2")["verdict"] == "failed"
    assert document(out, "n3")["verdict"] == "running"
    lines = said.splitlines()
    assert any(line.startswith("n2  failed (3)") for line in lines), said
    assert any("n2  static.lock failed: torch" in line for line in lines), said
    assert any(line.startswith("n3  gone: it began") for line in lines), said
    assert any(line.split()[:1] == ["n4"] and "env.shm" in line for line in lines), said


def _passed(out: Path, node: str) -> list[str]:
    """Checks that a node has passed so far."""
    if not (out / f"{node}.json").exists():
        return []
    return [check["id"] for check in document(out, node)["checks"] if check["status"] == "passed"]


def test_restore_everywhere(fleet: Fleet, tmp_path: Path) -> None:
    """Each node copies what it needs; what is right already needs nothing, and nothing is left."""
    for name in NAMES[1:]:
        fleet.damage(name)
    scratch = fleet.cluster.root / "scratch"
    scratch.mkdir(exist_ok=True)
    words = ("--wheelhouse", str(fleet.wheels), "--scratch", str(scratch))
    done = fleet.run("restore", "--out", "out", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    out = tmp_path / "out"
    changed = {name: document(out, name)["data"]["changed"] for name in NAMES}
    assert changed["n1"] == []
    assert [one["name"] for one in changed["n3"]] == ["torch"]
    assert list(scratch.iterdir()) == []
    again = fleet.run("verify", "--out", "proof", "--manifest", fleet.manifest, *CHECKS)
    assert again.returncode == 0, again.stdout + again.stderr


def test_what_one_node_cannot(fleet: Fleet, private: Cluster, tmp_path: Path) -> None:
    """A full scratch, no envlock, and a folder of reports that a node does not see."""
    for name in NAMES:
        fleet.damage(name)
        (private.disk(name) / "scratch").mkdir(exist_ok=True)
    scratch = private.local / "scratch"
    full = f"mount -t tmpfs -o size=16k tmpfs {scratch} && head -c 16384 /dev/zero >{scratch}/full"
    hidden = f"mount -t tmpfs tmpfs {tmp_path / 'apart'}"
    (tmp_path / "apart").mkdir()
    private.restart_node("n2", f"{full}; true")
    private.restart_node("n3", f"mount -t tmpfs tmpfs {Path(sys.executable).parent}")
    private.restart_node("n4", hidden)
    try:
        words = ("--wheelhouse", str(fleet.wheels), "--scratch", str(scratch))
        done = fleet.run("restore", "--out", "apart/out", *words)
    finally:
        for name in NAMES[1:]:
            private.restart_node(name, wait=name == "n4")
    assert done.returncode == 4, done.stdout + done.stderr
    out = tmp_path / "apart" / "out"
    for name in ("n1", "n4"):
        assert [one["name"] for one in document(out, name)["data"]["changed"]] == ["torch"]
    lines = done.stdout.splitlines()
    assert any(line.startswith("n2  could not (4)") and "scratch: " in line for line in lines)
    assert "n3  not started: there is no envlock on this node" in lines
    assert not (private.disk("n2") / "target" / ".envlock-txn").exists()


def test_one_folder_is_shared(fleet: Fleet, private: Cluster, kit: Path, tmp_path: Path) -> None:
    """A kit was unpacked there: envlock, wheels and reports are in it, and homes are elsewhere."""
    shared = private.root / "shared"
    try:
        subprocess.run([sys.executable, kit, shared], check=True, env=private.env())
        hide = (
            f"mount -t tmpfs tmpfs {tmp_path} && mount -t tmpfs tmpfs {Path(sys.executable).parent}"
        )
        for name in NAMES:
            fleet.damage(name)
            private.restart_node(name, hide, wait=name == "n4")
        own = [shared / "envlock/bin/envlock", "fleet", "restore", "--python", fleet.python]
        words = ["--wheelhouse", shared / "wheels", "--out", shared / "out", "--", "-N4"]
        done = subprocess.run(
            list(map(str, [*own, *words])), env=private.env(), capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        for name in NAMES:
            assert [one["name"] for one in document(shared / "out", name)["data"]["changed"]] == [
                "torch"
            ]
    finally:
        for name in NAMES:
            private.restart_node(name, wait=name == "n4")
        shutil.rmtree(shared)


def test_snapshots_of_equal_nodes_are_equal(fleet: Fleet, tmp_path: Path) -> None:
    done = fleet.run("snapshot", "--out", "out", "--profile", "dtk", "--trust-record")
    assert done.returncode == 0, done.stdout + done.stderr
    locked = {load((tmp_path / "out" / f"{name}.yaml").read_text()).distributions for name in NAMES}
    assert len(locked) == 1


def test_a_node_has_its_own_limit(fleet: Fleet, tmp_path: Path) -> None:
    fleet.delay("n2", 30)
    words = ("--manifest", fleet.manifest, "--node-timeout", "6", *CHECKS)
    done = fleet.run("verify", "--out", "out", *words, srun=("-w", "n[1-2]"))
    assert done.returncode == 8, done.stdout + done.stderr
    assert "n2  incomplete (8)" in done.stdout
    assert "no end after" in done.stdout
    assert (tmp_path / "out" / "nodes.txt").read_text() == "n[1-2]\n"


def test_ctrl_c_ends_all_of_it(fleet: Fleet, tmp_path: Path) -> None:
    for name in NAMES:
        fleet.delay(name, 60)
    run = fleet.start("verify", "--out", "out", "--manifest", fleet.manifest, *CHECKS)
    out = tmp_path / "out"
    wait_for(lambda: all("static.lock" in _passed(out, name) for name in NAMES))
    run.send_signal(signal.SIGINT)
    said, _ = run.communicate(timeout=60)
    assert run.returncode == 130, said
    assert {document(out, name)["verdict"] for name in NAMES} == {"interrupted"}  # not cut off
    assert sorted(path.name for path in out.iterdir() if not path.name.endswith(".json")) == [
        "nodes.txt"
    ]
    wait_for(lambda: fleet.cluster.processes() == [])
    fleet.cluster.wait_idle()


def test_a_folder_with_reports_is_refused(fleet: Fleet, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "n1.json").write_text("{}")
    done = fleet.run("verify", "--out", "out", *CHECKS)
    assert done.returncode == 4
    assert "there are reports in it already" in done.stderr


def test_what_slurm_refuses_is_told(fleet: Fleet) -> None:
    done = fleet.run("verify", "--out", "out", *CHECKS, srun=("-p", "nowhere"))
    assert done.returncode == 5
    assert "no node answered" in done.stderr
    assert "invalid partition" in done.stderr


@pytest.mark.long
@pytest.mark.torch
def test_a_node_without_torch_is_left_out(
    private: Cluster, torch_target: Path, tmp_path: Path
) -> None:
    """It cannot take part; the others are exact without it, and no link is blamed."""
    site = next(torch_target.glob("lib/python*/site-packages"))
    private.restart_node("n3", f"mount -t tmpfs tmpfs {site / 'torch'}")
    try:
        fleet = Fleet(cluster=private, folder=tmp_path, wheels=tmp_path, target=str(torch_target))
        words = ("--level", "quick", "--device", "cpu", "--only", "imp.torch", "--collective")
        done = fleet.run("verify", "--out", "out", *words, seconds=500)
    finally:
        private.restart_node("n3")
    assert done.returncode == 3, done.stdout + done.stderr
    links = json.loads((tmp_path / "out" / "links.json").read_text())["data"]
    assert list(links["alone"]) == ["n3"], done.stderr
    assert links["all"] | {"gbps": 0} == {"nodes": ["n1", "n2", "n4"], "why": "", "gbps": 0}
    assert [one["why"] for one in links["pairs"]] == ["", "", ""]
    assert "error: n3: no answer (exit 1)" in done.stderr
