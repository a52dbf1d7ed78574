"""``envlock diff`` with a live target."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from envlock.model.manifest import Manifest
from tests.support.fake_report import device_report
from tests.support.wheels import make_wheel
from tests.support.worlds import World, install, vendor_world

pytestmark = pytest.mark.integration
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> World:
    """A target with a remembered manifest, ``a.yaml``."""
    world = vendor_world(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert world.run("snapshot", "-o", "a.yaml") == 0
    capsys.readouterr()
    return world


def harm(world: World, tmp_path: Path) -> None:
    """A public torch, one broken file, something new."""
    (world.site / "triton/__init__.py").write_text("broken\n")
    public = [make_wheel(tmp_path / "P", name, "2.11.0") for name in ("torch", "tqdm")]
    install(world.python, *public)


@pytest.mark.parametrize("words", [["a.yaml"], ["a.yaml", "env"], ["env", "a.yaml"], []])
def test_nothing_changed(world: World, capsys: Capture, words: list[str]) -> None:
    assert world.run("diff", *words) == 0
    said = capsys.readouterr()
    assert said.out.splitlines()[-1] == "no difference; 3 distributions compared"
    assert f"the target {world.prefix}" in said.out


def test_what_changed(world: World, tmp_path: Path, capsys: Capture) -> None:
    harm(world, tmp_path)
    assert world.run("diff") == 3
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    torch, triton, tqdm = lines[3:6]
    assert torch.startswith("replaced torch 2.10.0+das")
    assert "protected; dtk2604 vendor build -> public build" in torch
    assert triton.startswith("other bytes triton")
    assert "; not as its own RECORD says: 'lib/triton/__init__.py'" in triton
    assert tqdm == "added tqdm 2.11.0 public build"
    assert lines[-1].startswith("4 differences, 2 protected builds among them: ")


def test_trusted_records(world: World, capsys: Capture) -> None:
    """No file is read: other bytes are seen only where their number is another."""
    broken = world.site / "triton/__init__.py"
    broken.write_text(broken.read_text().replace("'", '"'))
    assert world.run("diff", "a.yaml", "--trust-record") == 0
    assert world.run("diff", "a.yaml") == 3
    broken.write_text("broken\n")
    assert world.run("diff", "a.yaml", "--trust-record") == 3
    assert "; bytes: " in capsys.readouterr().out


def test_a_wheelhouse_names_the_files(world: World, tmp_path: Path, capsys: Capture) -> None:
    """Wheels and installed files are both read: another build of the same version."""
    other = make_wheel(tmp_path / "P", "filelock", "3.0.0", {"filelock.py": "", "more.py": ""})
    install(world.python, other)
    assert world.run("diff", str(world.wheels), "--only", "filelock", "--json") == 3
    (change,) = json.loads(capsys.readouterr().out)["data"]["distributions"]
    assert change["kind"] == "other bytes"
    assert change["files"]["changed"] == ["lib/filelock.py"]
    assert change["files"]["added"] == ["lib/more.py"]
    assert change["files"]["damaged"] == []


def test_a_restored_target_is_the_manifest(world: World, tmp_path: Path, capsys: Capture) -> None:
    harm(world, tmp_path)
    assert world.restore("--exact") == 0
    assert world.run("diff", "a.yaml") == 0


def test_a_report_beside_the_last_one(world: World, capsys: Capture) -> None:
    Path("base").write_text(json.dumps(device_report()))
    assert world.run("diff", "base") == 4
    assert "none is remembered" in capsys.readouterr().err
    state = next(Path(os.environ["XDG_STATE_HOME"]).glob("envlock/*"))
    (state / "verify-report.json").write_text(json.dumps(device_report(speed=0.5)))
    assert world.run("diff", "base") == 3
    assert "rate" in capsys.readouterr().out


def test_no_manifest_at_all(world: World, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", os.path.abspath("nothing"))
    assert world.run("diff") == 4
    assert "none is remembered for this target" in capsys.readouterr().err
    assert world.run("diff", "--manifest", "a.yaml") == 0


def test_one_that_cannot_be_read(world: World, capsys: Capture) -> None:
    next(world.site.glob("triton-*.dist-info/RECORD")).unlink()
    assert world.run("diff", "a.yaml") == 3
    assert "cannot be read any more: no RECORD" in capsys.readouterr().out


def test_a_target_of_another_state_keeps_its_manifest(world: World, tmp_path: Path) -> None:
    """Looking changes nothing: neither the target nor what is remembered of it."""
    before: Manifest = world.manifest
    state = {p: p.read_bytes() for p in Path(os.environ["XDG_STATE_HOME"]).rglob("*.yaml")}
    harm(world, tmp_path)
    assert world.run("diff") == 3
    assert world.manifest == before
    assert {p: p.read_bytes() for p in state} == state
