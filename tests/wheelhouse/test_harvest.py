"""harvest: what was installed comes back, from every installer and every prefix."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from envlock.adapters.interpreter import Named, read_target
from envlock.adapters.wheelfile import inspect_wheel
from envlock.cli import main
from envlock.errors import UnusableInput
from envlock.model.manifest import Manifest, load
from envlock.wheelhouse import rebuild as rebuild_module
from envlock.wheelhouse.check import check
from envlock.wheelhouse.harvest import Harvest, How, harvest
from tests.support.pythons import clean_env, make_venv, pip, torch_wheels, uv
from tests.support.wheels import make_wheel
from tests.support.worlds import take_snapshot
from tests.wheelhouse.conftest import LABEL, Place, described, place, vendor_wheel

pytestmark = pytest.mark.integration

Damage = Callable[[Place, str, "bytes | None"], None]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def texts(done: Harvest) -> list[str]:
    return [f"{f.level} {f.code} {f.subject}: {f.what}" for f in done.findings]


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_same_content_as_the_vendors_wheel(tmp_path: Path, tool: str) -> None:
    wheel = vendor_wheel(tmp_path / "in")
    here = place(tmp_path / "venv", [wheel], tool)
    done = harvest(here.target, here.manifest, str(tmp_path / "W"))
    assert texts(done) == []
    original = inspect_wheel(str(wheel))
    (packed,) = done.packed
    again = inspect_wheel(str(tmp_path / "W" / packed.file))
    assert packed.file == f"vend_or-{LABEL}-cp36.cp37-abi3-manylinux_2_17_x86_64.whl"
    assert again.problems == ()
    assert again.content == original.content == here.manifest.distributions[0].content
    assert set(again.files) == set(original.files)
    assert again.executable == original.executable
    assert {p for p in again.executable if p.startswith("lib/")} == {"lib/vendor/bin/ptxas"}
    with zipfile.ZipFile(tmp_path / "W" / packed.file) as archive:
        names = {name for name in archive.namelist() if "dist-info" not in name}
        data = f"Vend_Or-{LABEL}.data"
        assert f"{data}/scripts/run" in names and f"{data}/scripts/vend" not in names
        assert archive.read(f"{data}/scripts/run").startswith(b"#!python\n")
        assert archive.read(f"{data}/scripts/shell") == b"#!/bin/sh\necho\n"
        assert f"{data}/data/bin/helper.txt" in names
        assert f"{data}/headers/vendor.h" in names
        assert f"{data}/purelib/vendor.data/not_a_scheme.txt" in names
        infos = {name.rpartition("/")[2] for name in archive.namelist() if "dist-info" in name}
        assert infos == {"METADATA", "WHEEL", "RECORD", "entry_points.txt"}


def test_same_bytes_from_two_prefixes(tmp_path: Path) -> None:
    """Also where the interpreter's path is so long that scripts get a trampoline."""
    wheel = vendor_wheel(tmp_path / "in")
    long = tmp_path / ("long folder " + "x" * 120)
    found = []
    for number, path in enumerate((tmp_path / "a", long)):
        here = place(path / "venv", [wheel])
        harvest(here.target, here.manifest, str(tmp_path / f"W{number}"))
        found.append(contents(tmp_path / f"W{number}"))
    for name in ("envlock.yaml", "SHA256SUMS"):  # paths of a venv and its manifest are its own
        del found[0][name], found[1][name]
    assert found[0] == found[1]


def test_twice(two: Place, tmp_path: Path) -> None:
    first = harvest(two.target, two.manifest, str(tmp_path / "W"))
    before = contents(tmp_path / "W")
    second = harvest(two.target, two.manifest, str(tmp_path / "W"))
    assert (len(first.packed), len(first.kept)) == (2, 0)
    assert (len(second.packed), len(second.kept)) == (0, 2)
    assert contents(tmp_path / "W") == before
    harvest(two.target, two.manifest, str(tmp_path / "W2"))
    assert contents(tmp_path / "W2") == before


def test_folder_is_whole(two: Place, tmp_path: Path) -> None:
    folder = tmp_path / "W"
    done = harvest(two.target, two.manifest, str(folder))
    subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=folder, check=True)
    assert load((folder / "envlock.yaml").read_text()) == done.manifest
    assert {d.wheel.origin for d in done.manifest.distributions if d.wheel} == {"rebuilt"}
    assert check(str(folder)).findings == ()
    assert not list(folder.glob(".*"))


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_installs_elsewhere(two: Place, tmp_path: Path, tool: str) -> None:
    folder = tmp_path / "W"
    done = harvest(two.target, two.manifest, str(folder))
    python = make_venv(tmp_path / "new")
    words = ["--no-index", "--require-hashes", "-r", str(folder / "requirements.txt")]
    if tool == "pip":
        pip(python, "install", "--find-links", str(folder), *words)
    else:
        uv("pip", "install", "--python", str(python), "--find-links", str(folder), *words)
    run = subprocess.run([tmp_path / "new" / "bin" / "run"], capture_output=True, text=True)
    assert run.stdout == "run\n"
    assert os.access(tmp_path / "new/bin/shell", os.X_OK)
    tools = list((tmp_path / "new").rglob("ptxas"))
    assert len(tools) == 1 and os.access(tools[0], os.X_OK)
    digests = {dist.name: dist.content for dist in done.manifest.distributions}
    assert {d.name: d.content for d in described(python).manifest.distributions} == digests


def test_changed_file_is_not_packed(two: Place, tmp_path: Path, damage: Damage) -> None:
    damage(two, "plain.py", b"VERSION = 'evil'\n")
    done = harvest(two.target, two.manifest, str(tmp_path / "W"))
    assert texts(done) == [
        (
            "error harvest.changed plain: '2.0' has other bytes than the manifest says: "
            "'lib/plain.py' is not as RECORD says"
        )
    ]
    assert [wheel.file.split("-")[0] for wheel in done.packed] == ["vend_or"]
    assert not list((tmp_path / "W").glob("plain*"))
    plain = done.manifest.find("plain")
    assert plain is not None and plain.wheel is None


def test_changed_file_without_a_manifest(two: Place, tmp_path: Path, damage: Damage) -> None:
    """Only RECORD can tell; the manifest was read off the changed files."""
    damage(two, "plain.py", b"VERSION = 'evil'\n")
    now = take_snapshot(two.target)
    done = harvest(two.target, now, str(tmp_path / "W"), How(in_force=False))
    assert texts(done) == ["error harvest.record plain: 'lib/plain.py' is not what its RECORD says"]
    assert not list((tmp_path / "W").glob("plain*"))


def test_change_that_the_manifest_knows(two: Place, tmp_path: Path, damage: Damage) -> None:
    """An image may be healthy with a patched file: what was locked is packed, and said."""
    damage(two, "plain.py", b"VERSION = 'patched'\n")
    done = harvest(two.target, take_snapshot(two.target), str(tmp_path / "W"))
    assert texts(done) == [
        (
            "warning harvest.record plain: 'lib/plain.py' is not what its RECORD says; packed, "
            "as the manifest has it so"
        )
    ]
    assert len(done.packed) == 2
    assert check(str(tmp_path / "W")).findings == ()


def test_missing_file(two: Place, tmp_path: Path, damage: Damage) -> None:
    damage(two, "plain.py", None)
    done = harvest(two.target, two.manifest, str(tmp_path / "W"))
    assert texts(done) == [
        (
            "error harvest.impossible plain: '2.0' cannot be packed: 'lib/plain.py': "
            "No such file or directory"
        )
    ]


def test_kept_wheel_outlives_the_damage(two: Place, tmp_path: Path, damage: Damage) -> None:
    harvest(two.target, two.manifest, str(tmp_path / "W"))
    damage(two, "plain.py", None)
    done = harvest(two.target, two.manifest, str(tmp_path / "W"))
    assert (texts(done), len(done.kept)) == ([], 2)


def test_broken_kept_wheel_is_made_again(two: Place, tmp_path: Path) -> None:
    first = harvest(two.target, two.manifest, str(tmp_path / "W"))
    wheel = tmp_path / "W" / first.packed[0].file
    good = wheel.read_bytes()
    wheel.write_bytes(good[:-1])
    done = harvest(two.target, two.manifest, str(tmp_path / "W"))
    assert len(done.packed) == 1 and wheel.read_bytes() == good


def test_other_version_and_gone(two: Place, tmp_path: Path) -> None:
    newer = make_wheel(tmp_path / "in", "plain", "3.0")
    uv("pip", "install", "--no-index", "--python", str(two.python), str(newer))
    uv("pip", "uninstall", "--python", str(two.python), "vend-or")
    done = harvest(two.target, two.manifest, str(tmp_path / "W"))
    assert texts(done) == [
        "error harvest.changed plain: '3.0' is installed, the manifest has '2.0'",
        f"error harvest.not-installed vend-or: '{LABEL}' is not installed any more",
    ]


def test_new_distribution_is_packed(two: Place, tmp_path: Path) -> None:
    extra = make_wheel(tmp_path / "in", "extra", "1.0", requires=["plain"])
    uv("pip", "install", "--no-index", "--no-deps", "--python", str(two.python), str(extra))
    done = harvest(two.target, two.manifest, str(tmp_path / "W"))
    assert texts(done) == [
        "warning harvest.new extra: '1.0' is not in the manifest; packed all the same"
    ]
    found = done.manifest.find("extra")
    assert found is not None and found.wheel is not None and found.requires == ("plain",)
    assert check(str(tmp_path / "W")).findings == ()


def test_new_distribution_with_a_changed_file(two: Place, tmp_path: Path, damage: Damage) -> None:
    extra = make_wheel(tmp_path / "in", "extra", "1.0")
    uv("pip", "install", "--no-index", "--no-deps", "--python", str(two.python), str(extra))
    damage(two, "extra.py", b"evil")
    done = harvest(two.target, two.manifest, str(tmp_path / "W"))
    assert texts(done) == ["error harvest.record extra: 'lib/extra.py' is not what its RECORD says"]
    assert done.manifest.find("extra") is None


def test_editable_and_own_are_left_out(two: Place, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    info = two.site / "edit-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: edit\nVersion: 1.0\n")
    (info / "WHEEL").write_text("Wheel-Version: 1.0\nTag: py3-none-any\n")
    (info / "RECORD").write_text("edit-1.0.dist-info/METADATA,,\n")
    (info / "direct_url.json").write_text(
        f'{{"url": "file://{project}", "dir_info": {{"editable": true}}}}'
    )
    own = make_wheel(tmp_path / "in", "envlock", "9.9")
    uv("pip", "install", "--no-index", "--no-deps", "--python", str(two.python), str(own))
    done = harvest(two.target, two.manifest, str(tmp_path / "W"))
    assert texts(done) == []
    assert {dist.name for dist in done.manifest.distributions} == {"plain", "vend-or"}


@pytest.mark.parametrize(
    ("data", "tags"), [("x = 1\n", "py3-none-any"), (b"\x7fELF", "cp{0}{1}-cp{0}{1}-linux")]
)
def test_wheel_without_tags(tmp_path: Path, data: bytes | str, tags: str) -> None:
    here = place(tmp_path / "venv", [make_wheel(tmp_path / "in", "plain", "2.0", {"p/t": data})])
    wheel_file = here.site / "plain-2.0.dist-info" / "WHEEL"
    text = wheel_file.read_text().replace("Tag: py3-none-any\n", "Build: 7\n")
    wheel_file.unlink()
    wheel_file.write_text(text)
    done = harvest(here.target, take_snapshot(here.target), str(tmp_path / "W"))
    major, minor = here.target.python.split(".")[:2]
    (wheel,) = done.packed
    assert wheel.file.startswith(f"plain-2.0-7-{tags.format(major, minor)}")
    assert "manylinux" not in wheel.file


def test_no_wheel_file(two: Place, tmp_path: Path) -> None:
    (two.site / "plain-2.0.dist-info" / "WHEEL").unlink()
    done = harvest(two.target, two.manifest, str(tmp_path / "W"))
    assert texts(done) == ["error harvest.impossible plain: '2.0' cannot be packed: no WHEEL file"]


def test_unknown_wheels_are_named(two: Place, tmp_path: Path) -> None:
    make_wheel(tmp_path / "W", "stranger", "1.0")
    done = harvest(two.target, two.manifest, str(tmp_path / "W"))
    assert texts(done) == [
        (
            "warning wheelhouse.unknown-wheel stranger-1.0-py3-none-any.whl: is in the folder, "
            "but not in its manifest"
        )
    ]


def test_full_disk(two: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing half-done stays, and what was there before is still right."""
    folder = tmp_path / "W"
    good = harvest(two.target, two.manifest, str(folder))
    before = contents(folder)

    def full(*_args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(rebuild_module, "write_wheel", full)
    (folder / good.packed[0].file).unlink()
    with pytest.raises(UnusableInput, match="No space left on device"):
        harvest(two.target, two.manifest, str(folder))
    del before[good.packed[0].file]
    assert contents(folder) == before


def test_leftovers_of_a_killed_run_go(two: Place, tmp_path: Path) -> None:
    left = tmp_path / "W" / ".part-abc"
    left.mkdir(parents=True)
    (left / "half.whl").write_text("half")
    harvest(two.target, two.manifest, str(tmp_path / "W"))
    assert not left.exists()


def test_command(two: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["wheelhouse", "harvest", str(tmp_path / "W"), "--python", str(two.python)]
    assert main(words) == 0
    said = capsys.readouterr()
    assert "2 wheels packed, 0 kept" in said.out and "no manifest is in force" in said.err
    (two.site / "plain.py").unlink()
    (tmp_path / "W" / "plain-2.0-py3-none-any.whl").unlink()
    assert main([*words, "--manifest", str(tmp_path / "W" / "envlock.yaml")]) == 3
    assert "error: plain:" in capsys.readouterr().err


@pytest.mark.torch
def test_real_torch(torch_target: Path, tmp_path: Path) -> None:
    """Every rebuilt wheel has the content of the published one, and bytes that do not change."""
    target = read_target(Named(str(torch_target / "bin" / "python"), "--python"), clean_env())
    manifest: Manifest = take_snapshot(target, "cpu")
    done = harvest(target, manifest, str(tmp_path / "W"))
    assert texts(done) == []
    published = {
        w.name: w.content for w in map(inspect_wheel, map(str, torch_wheels().glob("*.whl")))
    }
    assert {dist.name: dist.content for dist in done.manifest.distributions} == published
    assert check(str(tmp_path / "W")).sound
    harvest(target, manifest, str(tmp_path / "W2"))
    sums = [(tmp_path / name / "SHA256SUMS").read_text() for name in ("W", "W2")]
    assert sums[0] == sums[1]
    for name in ("W", "W2"):
        shutil.rmtree(tmp_path / name)
