"""docs/fleet.md: every command in it, on a real Slurm."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fleet.nodes import Fleet, document
from tests.support.pythons import CACHE, ROOT
from tests.support.slurm import NAMES, Cluster

pytestmark = pytest.mark.integration

PAGE = (ROOT / "docs" / "fleet.md").read_text(encoding="utf-8")
#: Takes the place of mpirun, and starts what follows its options on two hosts.
MPIRUN = """\
#!/bin/sh
[ "$1 $2 $3" = "--npernode 1 --hostfile" ] && test -r "$4" || exit 2
shift 4
for host in n1 n2; do
    unshare -u sh -c 'echo "$0" >/proc/sys/kernel/hostname; exec "$@"' $host "$@" &
done
wait
"""


def blocks(heading: str) -> list[str]:
    """The commands below a heading."""
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    assert found is not None
    return re.findall(r"^```sh\n(.*?)^```", found[1], re.M | re.S)


@pytest.fixture
def ill(fleet: Fleet) -> Fleet:
    """Four nodes, one of them damaged, and nothing locked yet."""
    fleet.damage("n3")
    return fleet


def run(fleet: Fleet, script: str, target: str = "", **env: str) -> tuple[int, str]:
    """A block as a person types it; the exit code of its last line, and all that was said."""
    tools = f"{Path(sys.executable).parent}:{fleet.folder}/bin"
    known = fleet.cluster.env(XDG_CACHE_HOME=str(CACHE), TARGET=target or fleet.python, **env)
    done = subprocess.run(
        ["bash", "-c", script], env={**known, "PATH": f"{tools}:{known['PATH']}"}, text=True,
        cwd=fleet.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=180,
    )  # fmt: skip
    return done.returncode, done.stdout


def lock(fleet: Fleet) -> None:
    [locking] = blocks("Lock a healthy node")
    code, said = run(fleet, locking, str(fleet.place("n1")))
    assert code == 0, said


def test_from_a_manifest_to_a_proven_cluster(ill: Fleet) -> None:
    lock(ill)
    look, report = blocks("Look at all of them")
    restore, prove = blocks("Put it right")
    cheap = (
        " --level static --only static.lock --python"  # its other checks have tests of their own
    )
    code, said = run(ill, look.replace(" --python", cheap))
    assert code == 3, said
    assert "n3  static.lock failed" in said
    code, said = run(ill, report)
    assert code == 3, said
    assert (ill.folder / "drain.txt").read_text().split()[0] == "n3"
    assert (ill.folder / "first.html").exists()
    code, said = run(ill, restore)
    assert code == 0, said
    code, said = run(ill, prove.replace(" --python", cheap))
    assert code == 0, said


def test_the_batch_script(fleet: Fleet) -> None:
    lock(fleet)
    [script] = blocks("As a batch script")
    (fleet.folder / "fleet.sh").write_text(
        script.replace("verify --manifest", "verify --level static --only static.lock --manifest")
    )
    code, said = run(fleet, "sbatch --wait fleet.sh")
    [output] = fleet.folder.glob("envlock-*.out")
    assert code == 0, said + output.read_text()
    [out] = [
        path for path in fleet.folder.glob("fleet-*") if path.name.endswith(tuple("0123456789"))
    ]
    assert {document(out, name)["verdict"] for name in NAMES} == {"passed"}
    assert out.with_suffix(".html").exists()


def test_nothing_is_shared(ill: Fleet, private: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kit is all that nodes get, and what they print all that comes back; one has no room."""
    monkeypatch.delenv("PIP_CONFIG_FILE")
    lock(ill)
    [script] = blocks("What has to be shared")
    pack, carry = script.replace("/tmp", str(private.local / "scratch")).splitlines()
    code, said = run(ill, pack, str(ill.place("n1")))
    assert code == 0, said
    hide = " && ".join(
        f"mount -t tmpfs tmpfs {folder}" for folder in (ill.folder, Path(sys.executable).parent)
    )
    for name in NAMES:
        (private.disk(name) / "scratch").mkdir(exist_ok=True)
        small = f" && mount -t tmpfs -o size=1m tmpfs {private.local}/scratch"
        private.restart_node(name, hide + (small if name == "n2" else ""), wait=name == "n4")
    try:
        restored = run(ill, carry)
        check = "fleet verify --level static --only static.lock"
        proof = run(ill, carry.replace("fleet restore", check).replace("carried", "proof"))
    finally:
        for name in NAMES:
            private.restart_node(name, wait=name == "n4")
    changed = document(ill.folder / "carried", "n3")["data"]["changed"]
    assert [one["name"] for one in changed] == ["torch"]
    for name in ("n1", "n3", "n4"):
        assert document(ill.folder / "proof", name)["verdict"] == "passed"
        assert list((private.disk(name) / "scratch").iterdir()) == []
    for code, said in (restored, proof):
        assert "n2  not started: there is no room for the kit in its scratch" in said
        assert code == (4 if said is restored[1] else 8), said


def test_without_slurm(fleet: Fleet, private: Cluster) -> None:
    lock(fleet)
    (fleet.folder / "bin").mkdir()
    tool = fleet.folder / "bin" / "mpirun"
    tool.write_text(MPIRUN)
    tool.chmod(0o755)
    (fleet.folder / "hosts.txt").write_text("n1\nn2\n")
    [script] = blocks("Without Slurm")
    cheap = " --level static --only static.lock --python"
    code, said = run(fleet, script.replace(" --python", cheap))
    assert code == 0, said
    assert sorted(os.listdir(fleet.folder / "hosts")) == ["n1.json", "n2.json", "nodes.txt"]


def test_snapshots_and_doctor(fleet: Fleet) -> None:
    [script] = blocks("Facts and manifests of every node")
    snapshot, doctor = script.splitlines()
    code, said = run(fleet, snapshot)
    assert code == 0, said
    names = {path.name for path in (fleet.folder / "manifests").iterdir()}
    assert {f"{name}.yaml" for name in NAMES} <= names
    code, said = run(fleet, doctor)
    assert code in (0, 3), said  # 3: doctor has found something on this machine
    assert {document(fleet.folder / "doctor", name)["command"] for name in NAMES} == {"doctor"}


@pytest.mark.torch
def test_the_nodes_together(cluster: Cluster, torch_target: Path, tmp_path: Path) -> None:
    """Every pair, then all four nodes, with the real torch and gloo."""
    fleet = Fleet(cluster=cluster, folder=tmp_path, wheels=tmp_path)
    [script] = blocks("The nodes together")
    on_cpu = script.replace("--collective", "--collective --device cpu --level quick")
    code, said = run(fleet, on_cpu, str(torch_target))
    assert code == 0, said
    links = json.loads((tmp_path / "together" / "links.json").read_text())["data"]
    assert len(links["pairs"]) == 6
    assert links["all"]["nodes"] == list(NAMES)
    assert {one["why"] for one in (*links["pairs"], links["all"])} == {""}
    assert all(one["gbps"] > 0 for one in (*links["pairs"], links["all"]))
    assert "collective: 6 of 6 pairs exact" in said


def test_every_block_is_run() -> None:
    """Those of the headings above are all there are."""
    named = set(re.findall(r'blocks\("([^"]+)"\)', Path(__file__).read_text(encoding="utf-8")))
    with_commands = {heading for heading in re.findall(r"^## (.+)$", PAGE, re.M) if blocks(heading)}
    assert with_commands == named
