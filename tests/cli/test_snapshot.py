"""envlock snapshot, as people type it."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from envlock.cli import main
from envlock.model.manifest import Manifest, load
from tests.support.fake_manifest import put_dist
from tests.support.pythons import make_venv, python_for
from tests.support.wheels import make_wheel
from tests.support.worlds import VENDOR, World, install, vendor_world

pytestmark = pytest.mark.integration


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A target, and a working folder of its own."""
    world = vendor_world(tmp_path)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return world


def read(path: str | Path) -> Manifest:
    return load(Path(path).read_text(encoding="utf-8"))


def document(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The one document on standard output."""
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_default_file(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    name = f"manifests/dtk2604-{world.target.short}.yaml"
    assert world.run("snapshot") == 0
    said = capsys.readouterr()
    assert f"protected: torch {VENDOR} (label)" in said.out
    last = f"envlock wheelhouse harvest --python {shlex.quote(str(world.python))}"
    assert said.out.splitlines()[-1].endswith(last)
    assert "3 distributions" in said.out
    assert read(name).profile == "dtk"
    assert "triton: '3.4.0+git1ef59765' carries no sign" in said.err


def test_two_runs_differ_in_created_only(world: World) -> None:
    assert world.run("snapshot", "-o", "one.yaml") == 0
    assert world.run("snapshot", "-o", "two.yaml") == 0
    one, two = (Path(name).read_text().splitlines() for name in ("one.yaml", "two.yaml"))
    assert [
        a for a, b in zip(one, two, strict=True) if a != b and not a.startswith("created")
    ] == []


def test_json_is_one_document(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert world.run("snapshot", "-o", "a.yaml", "--json") == 0
    found = document(capsys)
    assert (found["command"], found["exit"]) == ("snapshot", 0)
    assert found["data"]["manifest"] == os.path.abspath("a.yaml")
    assert [finding["code"] for finding in found["findings"]] == ["stack.looks-public"]
    install(world.python, make_wheel(Path("public"), "torch", "2.11.0"))
    assert world.run("snapshot", "-o", "a.yaml", "--json") == 3
    found = document(capsys)
    assert found["exit"] == 3
    assert VENDOR in found["findings"][0]["what"]


def test_a_broken_state_never_overwrites(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert world.run("snapshot", "-o", "a.yaml") == 0
    good = Path("a.yaml").read_text()
    install(world.python, make_wheel(Path("public"), "torch", "2.11.0"))
    assert world.run("snapshot", "-o", "a.yaml") == 3
    said = capsys.readouterr().err
    assert f"'torch': '{VENDOR}' is now '2.11.0', no vendor build" in said
    assert "--force" in said
    assert Path("a.yaml").read_text() == good
    assert world.run("snapshot", "-o", "b.yaml") == 3  # what is remembered is no worse
    assert not Path("b.yaml").exists()
    assert world.run("snapshot", "-o", "a.yaml", "--force") == 0
    assert "2.11.0" in Path("a.yaml").read_text()


def test_protect(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["snapshot", "-o", "a.yaml", "--protect", "FileLock", "--protect", "not.There"]
    assert world.run(*words) == 0
    said = capsys.readouterr()
    assert "protected: filelock 3.0.0 (by name)" in said.out
    assert "'not-there' is to be protected, but is not installed" in said.err
    assert world.run("snapshot", "-o", "a.yaml") == 0  # said once, it is remembered
    assert [dist.name for dist in read("a.yaml").protected] == ["filelock", "torch", "triton"]
    assert world.run("snapshot", "-o", "a.yaml", "--force") == 0
    assert [dist.name for dist in read("a.yaml").protected] == ["torch", "triton"]


def test_a_restored_build_stays_protected(world: World, tmp_path: Path) -> None:
    """Installed by hand, protected for that; a restore leaves no direct_url.json behind."""
    info = next(world.site.glob("filelock-*.dist-info"))
    (info / "direct_url.json").write_text('{"url": "file:///x.whl", "archive_info": {}}')
    assert world.run("snapshot", "-o", "a.yaml") == 0
    (world.site / "filelock.py").write_text("broken\n")
    assert world.restore("--manifest", "a.yaml") == 0
    assert not (info / "direct_url.json").exists()
    assert world.run("snapshot", "-o", "a.yaml") == 0
    assert read("a.yaml").find("filelock") == read("a.yaml").protected[0]


def test_state_folder_that_cannot_be_written(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", os.path.abspath("file"))
    assert world.run("snapshot", "-o", "a.yaml", "--json") == 0
    codes = [finding["code"] for finding in document(capsys)["findings"]]
    assert codes == ["stack.looks-public", "state.unwritable"]
    assert read("a.yaml").find("torch")
    (world.site / "triton/__init__.py").write_text("broken\n")
    assert world.restore() == 0
    assert "cannot be written" in capsys.readouterr().err


def test_no_home(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is put below the working folder."""
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", lambda _: (_ for _ in ()).throw(KeyError()))
    monkeypatch.setattr("envlock.adapters.state.Memory._write", lambda *_: [])
    monkeypatch.delenv("XDG_STATE_HOME")
    assert world.run("snapshot", "-o", "a.yaml") == 0
    assert os.listdir(".") == ["a.yaml"]


def test_folder_that_cannot_be_written(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    Path("file").touch()
    assert world.run("snapshot", "-o", "file/a.yaml") == 4
    assert "hint: name another file with -o" in capsys.readouterr().err


def test_editable_ones_are_named(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    info = next(world.site.glob("filelock-*.dist-info"))
    (info / "direct_url.json").write_text('{"url": "file:///x", "dir_info": {"editable": true}}')
    assert world.run("snapshot", "-o", "a.yaml") == 0
    assert "not kept, since installed in development mode: filelock" in capsys.readouterr().out


def test_profile(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert world.run("snapshot", "--profile", "cpu", "-o", "a.yaml") == 0
    assert read("a.yaml").profile == "cpu"
    assert world.run("snapshot", "--profile", "hygon") == 4
    assert "dtk, rocm, cuda, ascend, cpu, auto" in capsys.readouterr().err
    assert world.run("snapshot", "--profile", "./none.yaml") == 4


def test_profile_auto_looks_at_labels_then_at_roots(tmp_path: Path) -> None:
    python = make_venv(tmp_path / "venv")
    install(python, make_wheel(tmp_path / "W", "torch", "2.13.0+cpu"))
    path = tmp_path / "a.yaml"
    assert main(["snapshot", "--python", str(python), "-o", str(path)]) == 0
    assert read(path).profile == "cpu"
    assert read(path).stack.tag == "cpu"


def test_stack_of_a_machine(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opt = tmp_path / "opt"
    (opt / "dtk-26.04").mkdir(parents=True)
    (opt / "dtk-26.04/.dtk_version").write_text("dtk-26.04-DCC2602-0317\n")
    (opt / "dtk").symlink_to("dtk-26.04")
    profile = tmp_path / "fake.yaml"
    profile.write_text(
        f"name: fake\ntitle: Fake\nlabels: [dtk]\nnames: []\ndevice: cuda\nroots: [{opt}/dtk]\n"
        "root_variables: [FAKE_ROOT]\nrelease_files: [.dtk_version]\n"
    )
    assert world.run("snapshot", "--profile", str(profile), "-o", "a.yaml") == 0
    stack = read("a.yaml").stack
    assert (stack.tag, stack.root) == ("dtk2604", f"{opt}/dtk")
    assert stack.release == "dtk-26.04-DCC2602-0317"


@pytest.mark.parametrize("minor", range(8, 14))
def test_every_python(minor: int, tmp_path: Path) -> None:
    python = python_for(f"3.{minor}")
    if python is None:
        pytest.skip(f"no Python 3.{minor} on this machine")
    target = make_venv(tmp_path / "venv", python)
    site = tmp_path / f"venv/lib/python3.{minor}/site-packages"
    put_dist(site, "torch", VENDOR, {"torch.py": ""})
    path = tmp_path / "a.yaml"
    assert main(["snapshot", "--python", str(target), "-o", str(path)]) == 0
    found = read(path)
    assert found.name == f"dtk2604-cp3{minor}"
    assert found.target.tags[0].startswith(f"cp3{minor}-cp3{minor}-")
    assert found.target.markers["python_version"] == f"3.{minor}"
    torch = found.find("torch")
    assert torch is not None and torch.content
