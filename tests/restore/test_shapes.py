"""Environments as people really have them: links, shared files, strange metadata, other shapes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from envlock.adapters import moving
from envlock.model.facts import Finding
from envlock.restore import units
from tests.support.pythons import ROOT, clean_env, make_venv
from tests.support.wheels import make_wheel
from tests.support.worlds import World, install, lock, take_snapshot, tree, vendor_wheels

pytestmark = pytest.mark.integration


def locked(world: World) -> Mapping[str, str]:
    return {dist.name: dist.content for dist in world.manifest.distributions}


def contents(world: World) -> Mapping[str, str]:
    return {dist.name: dist.content for dist in take_snapshot(world.target).distributions}


def replace_torch(world: World, files: Mapping[str, bytes | str]) -> None:
    install(world.python, make_wheel(world.prefix.parent / "public", "torch", "2.11.0", files))


@pytest.fixture(params=["rename", "copy"])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Folders that can be renamed, and ones that cannot, as in a container image."""
    if request.param == "copy":
        monkeypatch.setattr(units, "can_rename_folder", lambda *_: False)
    return str(request.param)


@pytest.mark.usefixtures("mode")
def test_file_that_has_to_become_a_folder(world: World) -> None:
    replace_torch(world, {"torch/lib": "a file\n", "shared/torch": "a file\n"})
    assert world.restore() == 0
    assert contents(world) == locked(world)


@pytest.mark.usefixtures("mode")
def test_folder_that_has_to_become_a_file(world: World) -> None:
    replace_torch(world, {"torch/lib/libtorch.so/a/b.txt": "", "torch/bin/protoc/c.txt": ""})
    (world.site / "torch/lib/mine.so").write_text("mine, so that no folder is replaced whole")
    assert world.restore() == 0
    assert contents(world) == locked(world)


def test_folder_of_others_is_not_taken_for_a_file(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    replace_torch(world, {"torch/lib/libtorch.so/a.txt": ""})
    (world.site / "torch/lib/libtorch.so/mine.txt").write_text("mine\n")
    before = tree(world.prefix)
    assert world.restore() == 6
    assert "libtorch.so' has to become a file, and holds files of others" in capsys.readouterr().err
    assert tree(world.prefix) == before


def test_file_of_others_is_not_taken_for_a_folder(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    replace_torch(world, {"torch/__init__.py": ""})
    shutil.rmtree(world.site / "torch/lib", ignore_errors=True)
    (world.site / "torch/lib").write_text("mine\n")
    before = tree(world.prefix)
    assert world.restore() == 6
    assert "torch/lib' has to become a folder, and is a file of others" in capsys.readouterr().err
    assert tree(world.prefix) == before


@pytest.mark.usefixtures("mode")
def test_what_another_distribution_owns_too_stays(world: World, tmp_path: Path) -> None:
    """The classic of uninstalling: the file goes with the first of its two owners."""
    install(world.python, make_wheel(tmp_path / "more", "other", "1.0", {"torch/extra.py": "1\n"}))
    replace_torch(world, {"torch/__init__.py": "", "torch/extra.py": "1\n"})
    assert world.restore() == 0
    assert (world.site / "torch/extra.py").read_text() == "1\n"
    assert contents(world)["torch"] == locked(world)["torch"]


def test_what_is_right_already_is_not_broken(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two builds of the manifest with one path and other bytes: restoring one breaks the other."""
    vendor = world.manifest
    wheel = make_wheel(world.wheels, "mine", "1.0", {"torch/__init__.py": "mine\n"})
    install(world.python, wheel)
    mine = lock(world.python, world.wheels).manifest.find("mine")
    assert mine is not None
    both = replace(vendor, distributions=(*vendor.distributions, mine))
    world.write(both)
    before = tree(world.prefix)
    assert world.restore("--plan") == 4
    assert world.restore() == 4
    assert "'lib/torch/__init__.py' is owned by 'mine' too" in capsys.readouterr().err
    assert tree(world.prefix) == before
    healthy = Finding(code="file.two-owners", subject="mine", what="recorded in a healthy image")
    world.write(replace(both, health=(healthy,)))
    assert world.restore() == 0
    assert contents(world)["torch"] == locked(world)["torch"]


def test_lib64_that_is_a_link(tmp_path: Path) -> None:
    """As on the images of the RHEL family: platlib is spelled lib64, and is the same folder."""
    wheels = vendor_wheels(tmp_path / "W")
    python = make_venv(tmp_path / "venv")
    install(python, *wheels)
    world = lock(python, tmp_path / "W")
    info = next(world.site.glob("torch-*.dist-info"))
    record = info / "RECORD"
    through = f"../../../lib64/{world.site.parent.name}/site-packages/torch/lib/"
    record.write_text(record.read_text().replace("torch/lib/", through))
    (world.site / "torch/lib/libtorch.so").write_text("broken\n")
    assert world.restore() == 0
    assert contents(world) == locked(world)


def test_package_folder_that_is_a_link(world: World, tmp_path: Path) -> None:
    """Moved to a larger disk by hand: the link is replaced, what it led to is not touched."""
    elsewhere = tmp_path / "large disk"
    shutil.move(world.site / "torch", elsewhere)
    (world.site / "torch").symlink_to(elsewhere)
    (elsewhere / "lib/libtorch.so").write_text("broken\n")
    before = tree(elsewhere, leave_out=())
    assert world.restore() == 0
    assert contents(world) == locked(world)
    assert tree(elsewhere, leave_out=()) == before


def test_link_with_files_of_nobody_behind_it_is_kept(world: World, tmp_path: Path) -> None:
    elsewhere = tmp_path / "large disk"
    shutil.move(world.site / "torch", elsewhere)
    (world.site / "torch").symlink_to(elsewhere)
    (elsewhere / "mine.py").write_text("mine\n")
    (elsewhere / "lib/libtorch.so").write_text("broken\n")
    assert world.restore() == 0
    assert contents(world) == locked(world)
    assert (world.site / "torch/mine.py").read_text() == "mine\n"


def test_link_to_nowhere(world: World) -> None:
    """The large disk is gone."""
    shutil.rmtree(world.site / "torch")
    (world.site / "torch").symlink_to("/nothing/there")
    assert world.restore() == 0
    assert contents(world) == locked(world)


def test_link_inside_a_package(world: World) -> None:
    (world.site / "torch/lib").rename(world.site / "torch/lib.real")
    (world.site / "torch/lib").symlink_to("lib.real")
    (world.site / "torch/__init__.py").write_text("broken\n")
    assert world.restore() == 0
    assert contents(world) == locked(world)


def test_site_packages_that_is_a_link(world: World, tmp_path: Path) -> None:
    real = tmp_path / "real"
    site = world.site
    shutil.move(site, real)
    site.symlink_to(real)
    (site / "torch/lib/libtorch.so").write_text("broken\n")
    shutil.rmtree(site / "triton")
    replace_torch(world, {"torch/only/public.py": "", "gone/x.py": ""})
    assert world.restore() == 0
    assert contents(world) == locked(world)
    assert site.is_symlink()
    assert not (site / "gone").exists()
    assert not (real / ".envlock-txn").exists()


BAD_ROWS = [
    "./",
    ".",
    "..",
    "../../../bin/python",
    "../../../bin/python3",
    "../../../pyvenv.cfg",
    "../../../lib64",
    "../../../../outside.txt",
    "../os.py",
    "torch/./__init__.py",
    "torch//lib/libtorch.so",
    "torch/",
    "{absolute}",
]


@pytest.mark.usefixtures("mode")
def test_record_is_not_believed(world: World, tmp_path: Path) -> None:
    """A RECORD that names the interpreter, the environment itself or something outside."""
    replace_torch(world, {"torch/__init__.py": "", "torch/more.py": ""})
    (tmp_path / "outside.txt").write_text("outside\n")
    (tmp_path / "absolute.txt").write_text("outside\n")
    (world.site.parent / "os.py").write_text("the standard library\n")
    record = next(world.site.glob("torch-2.11*")) / "RECORD"
    rows = [row.format(absolute=tmp_path / "absolute.txt") for row in BAD_ROWS]
    record.write_text(record.read_text() + "".join(f"{row},,\n" for row in rows))
    others = {k: v for k, v in tree(world.prefix).items() if "site-packages" not in k}
    assert world.restore() == 0
    assert contents(world) == locked(world)
    assert not (world.site / "torch/more.py").exists()
    assert (tmp_path / "outside.txt").read_text() == "outside\n"
    assert (tmp_path / "absolute.txt").read_text() == "outside\n"
    assert (world.site.parent / "os.py").exists()
    after = tree(world.prefix)
    own = [k for k in others if not k.startswith(("bin/torchrun", "share", "include"))]
    assert {k: after.get(k) for k in own} == {k: others[k] for k in own}


@pytest.mark.usefixtures("mode")
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_old_metadata_of_an_egg(world: World, kind: str) -> None:
    shutil.rmtree(next(world.site.glob("triton-*.dist-info")))
    egg = world.site / "triton-3.4.0-py3.11.egg-info"
    text = "Metadata-Version: 1.1\nName: triton\nVersion: 3.4.0\n"
    if kind == "file":
        egg.write_text(text)
    else:
        egg.mkdir()
        (egg / "PKG-INFO").write_text(text)
        (egg / "top_level.txt").write_text("triton\n")
    assert world.restore() == 0
    assert contents(world) == locked(world)
    assert not egg.exists()


def test_byte_code_that_record_does_not_name(world: World, tmp_path: Path) -> None:
    """Some of a cache in RECORD, some not, in a folder that is swapped file by file."""
    replace_torch(world, {"torch/__init__.py": "", "torch/a.py": "", "torch/z.py": ""})
    cache = world.site / "torch/__pycache__"
    cache.mkdir(exist_ok=True)
    for name in ("a", "z", "__init__", "mine"):
        (cache / f"{name}.cpython-311.pyc").write_bytes(b"stale")
    (world.site / "torch/mine.py").write_text("mine\n")
    record = next(world.site.glob("torch-2.11*")) / "RECORD"
    record.write_text(record.read_text() + "torch/__pycache__/a.cpython-311.pyc,,\n")
    assert world.restore() == 0
    assert contents(world) == locked(world)
    assert [path.name for path in cache.iterdir()] == ["mine.cpython-311.pyc"]


@pytest.mark.usefixtures("mode")
def test_leftovers_are_cleared_and_told(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    (world.site / "~orch/lib").mkdir(parents=True)
    (world.site / "~orch/lib/x.so").write_text("x")
    (world.site / "~riton-3.dist-info/empty").mkdir(parents=True)
    (world.site / "~file.py").write_text("")
    assert world.restore("--plan") == 3
    assert world.restore() == 0
    assert "~orch: left over" in capsys.readouterr().out
    assert not list(world.site.glob("~*"))
    assert world.restore("--plan") == 0


@pytest.mark.usefixtures("mode")
def test_folders_that_were_emptied_go(world: World) -> None:
    replace_torch(world, {"gone/deep/x.py": "", "torch/a/b/c.py": "", ".data/data/etc/t/x": ""})
    (world.site / "torch/mine.py").write_text("mine\n")
    assert world.restore() == 0
    for path in (world.site / "gone", world.site / "torch/a", world.prefix / "etc"):
        assert not path.exists()
    assert (world.prefix / "bin").is_dir()


def test_new_folders_look_like_site_packages(world: World) -> None:
    """A restore by root under umask 077 must not leave what others cannot read."""
    (world.site / "torch/mine.py").write_text("")
    for name in ("share", "include"):
        shutil.rmtree(world.prefix / name)
    shutil.rmtree(world.site / "torch/lib")
    world.site.chmod(0o755)
    before = os.umask(0o077)
    try:
        assert world.restore() == 0
    finally:
        os.umask(before)
    for path in ("share", "share/torch", "share/torch/notice.txt", "include/site"):
        assert (world.prefix / path).stat().st_mode & 0o044 == 0o044
    assert (world.site / "torch/lib/libtorch.so").stat().st_mode & 0o777 == 0o644


def test_two_wheels_of_one_version(world: World) -> None:
    """A wheelhouse may hold another build of the same version, which installers prefer."""
    tag = world.target.tags[0]
    make_wheel(world.wheels, "triton", "3.4.0+git1ef59765", {"triton/x.py": "other\n"}, tag=tag)
    (world.site / "triton/__init__.py").write_text("broken\n")
    for backend in ("uv", "pip"):
        assert world.restore("--backend", backend) == 0
        assert contents(world) == locked(world)
        (world.site / "triton/__init__.py").write_text("broken\n")


def test_file_system_of_its_own(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """``bin`` on another file system: files are copied, and an undo leaves no half of a copy."""
    import errno

    real = os.rename
    bin_folder = str(world.prefix / "bin")

    def rename(source: str, target: str) -> None:
        if source.startswith(bin_folder) != target.startswith(bin_folder):
            raise OSError(errno.EXDEV, "Invalid cross-device link", source)
        real(source, target)

    monkeypatch.setattr(os, "rename", rename)
    (world.prefix / "bin/torchrun-vendor").write_text("broken\n")
    before = tree(world.prefix)
    copy = shutil.copy2

    def full(source: str, target: str, **more: bool) -> None:
        Path(target).write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device", target)

    monkeypatch.setattr(shutil, "copy2", full)
    assert world.restore() == 6
    assert tree(world.prefix) == before
    monkeypatch.setattr(shutil, "copy2", copy)
    assert world.restore() == 0
    assert contents(world) == locked(world)
    assert moving.part_of("x") == "x.envlock-part"
    assert not list(world.prefix.rglob("*.envlock-part"))


def test_metadata_folder_of_another_spelling(world: World) -> None:
    """``Flash.Attn-2.0.dist-info`` and ``flash_attn-2.0.dist-info`` are one distribution."""
    info = next(world.site.glob("triton-*.dist-info"))
    info.rename(world.site / info.name.replace("triton", "Triton"))
    record = world.site / info.name.replace("triton", "Triton") / "RECORD"
    record.write_text(record.read_text().replace("triton-", "Triton-"))
    (world.site / "triton/__init__.py").write_text("broken\n")
    assert world.restore() == 0
    assert contents(world) == locked(world)
    assert [path.name for path in world.site.glob("?riton-*")] == [info.name]


READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"'


def test_read_only_site_packages(world: World) -> None:
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        pytest.skip("mount namespaces are not allowed here")
    (world.site / "triton/__init__.py").write_text("broken\n")
    before = tree(world.prefix)
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", READ_ONLY, "sh", str(world.site), sys.executable,
         "-m", "envlock", "restore", "--wheelhouse", str(world.wheels),
         "--python", str(world.python)],
        capture_output=True, text=True, env=clean_env(), cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 4
    assert "cannot be written: Read-only file system" in done.stderr
    assert tree(world.prefix) == before
