"""A collective over three nodes, all on this machine: one of them rests in every round of pairs."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from envlock.adapters.interpreter import probes_folder
from envlock.adapters.process import Finished
from envlock.fleet.links import judged
from envlock.model.pairs import rounds
from tests.support.pythons import clean_env
from tests.support.slurm import free_ports

pytestmark = [pytest.mark.torch, pytest.mark.integration]

NAMES = ("n1", "n2", "n3")
REDUCE = "        dist.all_reduce(mine, group=group)\n"
#: What a broken library does to what the second and the third node compute together.
WRONG = REDUCE + "        mine[-1] += int(sorted(ranks) == [1, 2] and dist.get_rank() == 2)\n"
SIZES = "SIZES = (4, 4 << 10, 1 << 20, 16 << 20, 256 << 20)\n"


def run(python: Path, folder: Path, instead: str) -> list[dict[str, Any]]:
    """The answers of three nodes, with another line in the worker."""
    checks = folder / "checks"
    shutil.copytree(probes_folder() / "checks", checks)
    worker = checks / "_link_worker.py"
    text = worker.read_text()
    assert REDUCE in text
    assert SIZES in text
    worker.write_text(text.replace(REDUCE, instead).replace(SIZES, "SIZES = (4, 1 << 20)\n"))
    place = {name: number for number, name in enumerate(NAMES)}
    pairs = [[[place[a], place[b]] for a, b in one] for one in rounds(NAMES)]
    [port] = free_ports(1)
    children = []
    for number in range(3):
        own = folder / str(number)
        own.mkdir()
        env = clean_env(
            ENVLOCK_FOLDER=str(own), ENVLOCK_BACKEND="gloo", ENVLOCK_ROUNDS=json.dumps(pairs),
            GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1",
        )  # fmt: skip
        command = [
            python, "-s", "-m", "torch.distributed.run", "--nnodes", "3", "--node-rank", number,
            "--nproc-per-node", "1", "--master-addr", "127.0.0.1", "--master-port", port,
            "--local-addr", "127.0.0.1", "--max-restarts", "0", worker,
        ]  # fmt: skip
        with (own / "said").open("w") as said:
            children.append(
                subprocess.Popen(list(map(str, command)), env=env, stdout=said, stderr=said)
            )
    codes = [child.wait(150) for child in children]
    assert codes == [0, 0, 0], "".join((folder / str(n) / "said").read_text() for n in range(3))
    return [json.loads((folder / str(number) / "0.json").read_text()) for number in range(3)]


@pytest.mark.parametrize(
    ("instead", "whys"),
    [
        (WRONG, ["", "", "with n2: 2 wrong elements at 4 B, 2 wrong elements at 1 MiB"]),
        pytest.param(REDUCE, ["", "", ""], marks=pytest.mark.long),
    ],
    ids=["wrong", "right"],
)
def test_three_nodes(torch_target: Path, tmp_path: Path, instead: str, whys: list[str]) -> None:
    answers = run(torch_target / "bin" / "python", tmp_path, instead)
    parts = [judged(Finished(code=0, output=""), [one], NAMES) for one in answers]
    assert [part.why for part in parts] == whys
    for name, part in zip(NAMES, parts, strict=True):
        assert set(part.met) == {*NAMES, "all"} - {name}
