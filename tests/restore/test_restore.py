"""restore, end to end on small builds."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from envlock.model.manifest import dump
from tests.support.wheels import make_wheel
from tests.support.worlds import VENDOR, World, install, take_snapshot, tree

pytestmark = pytest.mark.integration


def contents(world: World) -> dict[str, str]:
    return {dist.name: dist.content for dist in take_snapshot(world.target).distributions}


def test_nothing_to_do_changes_nothing(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    before = tree(world.prefix, leave_out=())
    assert world.restore() == 0
    assert "nothing to do: 3 are right" in capsys.readouterr().out
    assert tree(world.prefix, leave_out=()) == before


def damage(world: World) -> None:
    (world.site / "torch/lib/libtorch.so").unlink()
    (world.site / "triton/__init__.py").write_text("__version__ = '3.4.O'\n")
    (world.prefix / "bin/torchrun-vendor").write_text("#!/bin/sh\n")
    (world.site / "torch/__pycache__").mkdir(exist_ok=True)
    (world.site / "torch/__pycache__/__init__.cpython-311.pyc").write_bytes(b"stale")


@pytest.mark.parametrize("backend", ["uv", "pip"])
def test_damage_is_put_back(world: World, backend: str) -> None:
    healthy, locked = tree(world.prefix), contents(world)
    damage(world)
    assert contents(world) != locked
    assert world.restore("--backend", backend) == 0
    assert contents(world) == locked
    after = tree(world.prefix)
    # what each backend writes in its own way is no content: INSTALLER, RECORD, generated scripts
    own = ("RECORD", "INSTALLER", "REQUESTED", "uv_cache.json", "bin/torchrun", ".lock")
    ignored = {k for k in healthy if k.endswith(own)}
    assert {k: v for k, v in after.items() if k not in ignored} == {
        k: v for k, v in healthy.items() if k not in ignored
    }
    assert not (world.site / "torch/__pycache__/__init__.cpython-311.pyc").exists()
    assert not (world.site / ".envlock-txn").exists()


def test_replaced_build_is_put_back(world: World, tmp_path: Path) -> None:
    public = make_wheel(
        tmp_path / "public", "torch", "2.11.0",
        {"torch/__init__.py": "__version__ = '2.11.0'\n", "torch/only_public.py": "X = 1\n"},
    )  # fmt: skip
    locked = contents(world)
    install(world.python, public)
    assert world.versions()["torch"] == "2.11.0"
    assert world.restore() == 0
    assert contents(world) == locked
    assert not (world.site / "torch/only_public.py").exists()
    assert not list(world.site.glob("torch-2.11*"))


def test_two_metadata_folders_become_one(world: World) -> None:
    info = next(world.site.glob("torch-*.dist-info"))
    shutil.copytree(info, world.site / "torch-2.9.0.dist-info")
    (world.site / "~orch-2.9.0.dist-info").mkdir()
    assert world.restore() == 0
    assert [path.name for path in world.site.glob("*orch-*")] == [info.name]


def test_missing_record(world: World) -> None:
    next(world.site.glob("torch-*.dist-info")).joinpath("RECORD").unlink()
    locked = {d.name: d.content for d in world.manifest.distributions}
    assert world.restore() == 0
    assert contents(world) == locked


def test_files_of_nobody_stay(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    mine = world.site / "torch/my_patch.py"
    mine.write_text("mine\n")
    damage(world)
    assert world.restore("-v") == 0
    assert mine.read_text() == "mine\n"
    assert "torch/my_patch.py" in capsys.readouterr().err
    assert contents(world) == {d.name: d.content for d in world.manifest.distributions}


def test_extra_stays_unless_exact(world: World, tmp_path: Path) -> None:
    install(world.python, make_wheel(tmp_path / "more", "tabulate", "0.9.0"))
    assert world.restore() == 0
    assert "tabulate" in world.versions()
    assert world.restore("--exact") == 0
    assert "tabulate" not in world.versions()
    assert not (world.site / "tabulate.py").exists()


def test_plan_only_looks(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert world.restore("--plan") == 0
    damage(world)
    broken = tree(world.prefix, leave_out=())
    assert world.restore("--plan") == 3
    assert "triton 3.4.0+git1ef59765: other bytes" in capsys.readouterr().out
    assert tree(world.prefix, leave_out=()) == broken


def test_only(world: World) -> None:
    damage(world)
    assert world.restore("--only", "triton") == 0
    assert not (world.site / "torch/lib/libtorch.so").exists()
    assert world.restore("--only", "protected") == 0
    assert world.restore("--plan") == 0
    assert world.restore("--only", "nothing-such") == 4


def test_into_a_new_environment(world: World, tmp_path: Path) -> None:
    fresh = tmp_path / "fresh venv"
    before = tree(world.prefix)
    assert world.restore("--into", str(fresh)) == 0
    assert tree(world.prefix) == before
    new = World(fresh / "bin/python", world.wheels)
    assert contents(new) == contents(world)
    said = subprocess.run([fresh / "bin/python", "-c", "import torch; print(torch.__version__)"],
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert said.stdout.strip() == VENDOR


def test_into_something_else_is_refused(world: World, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    assert world.restore("--into", str(tmp_path / "full")) == 4
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["file"]


def test_failed_into_leaves_nothing(world: World, tmp_path: Path) -> None:
    next(world.wheels.glob("triton-*.whl")).unlink()
    assert world.restore("--into", str(tmp_path / "fresh")) == 4
    assert not (tmp_path / "fresh").exists()


def test_manifest_without_wheels_uses_the_wheelhouse(world: World, tmp_path: Path) -> None:
    plain = tmp_path / "plain.yaml"
    plain.write_text(dump(take_snapshot(world.target)))
    damage(world)
    assert world.restore("--manifest", str(plain)) == 0
    assert world.restore("--plan") == 0


def test_remembered_wheelhouse(world: World) -> None:
    assert world.restore() == 0
    damage(world)
    assert world.run("restore") == 0
    assert world.run("restore", "--plan") == 0
