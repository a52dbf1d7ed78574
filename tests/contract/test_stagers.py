"""What every stager has to do: one suite, each backend."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from envlock.adapters import process
from envlock.adapters.files import sha256
from envlock.adapters.installed import read_contents, read_installed
from envlock.adapters.installer import Pinned, Stager
from envlock.adapters.interpreter import Named, read_target
from envlock.adapters.moving import lock_folder
from envlock.adapters.pip import PipStager
from envlock.adapters.uv import UvStager, find_uv
from envlock.adapters.wheelfile import inspect_wheel
from envlock.errors import ProgramFailed
from envlock.model.facts import Target
from tests.support.pythons import ROOT, clean_env, make_venv
from tests.support.wheels import make_wheel
from tests.support.worlds import tree, vendor_wheels

pytestmark = pytest.mark.integration

#: What a person may have configured, and what must not reach a restore.
SETTINGS = {
    "PIP_INDEX_URL": "https://index.invalid/simple",
    "PIP_FIND_LINKS": "/nothing/there",
    "PIP_PREFIX": "/nothing/there",
    "PIP_CONSTRAINT": "/nothing/there.txt",
    "PIP_NO_BINARY": ":all:",
    "UV_INDEX_URL": "https://index.invalid/simple",
    "UV_CONSTRAINT": "/nothing/there.txt",
    "UV_LINK_MODE": "symlink",
    "UV_COMPILE_BYTECODE": "1",
    "PYTHONPATH": "/nothing/there",
}


def make_stager(name: str, env: Mapping[str, str]) -> Stager:
    if name == "pip":
        return PipStager(env=env)
    program = find_uv(env)
    assert program is not None
    return UvStager(program=program, env=env)


@pytest.fixture(params=["uv", "pip"])
def stager(request: pytest.FixtureRequest) -> Stager:
    return make_stager(request.param, clean_env(**SETTINGS))


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return vendor_wheels(tmp_path_factory.mktemp("W"))


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Target:
    """A venv whose path has a space, and no pip."""
    python = make_venv(tmp_path_factory.mktemp("a target") / "venv")
    return read_target(Named(str(python), "test"), clean_env())


@pytest.fixture
def stage(tmp_path: Path) -> Path:
    folder = tmp_path / "the stage"
    folder.mkdir()
    return folder


def pinned(*wheels: Path) -> list[Pinned]:
    found = []
    for path in wheels:
        wheel = inspect_wheel(str(path))
        found.append(Pinned(wheel.name, wheel.version, wheel.sha256, str(path)))
    return found


def in_library(places: Sequence[str]) -> set[str]:
    """Without scripts: uv gives each an exec bit, pip only those whose wheel has one."""
    return {place for place in places if not place.startswith("bin/")}


def names_in(stage: Path) -> set[str]:
    """Files but those that only one of the installers writes for itself."""
    own = ("uv_cache.json", ".lock")
    return {name for name in tree(stage) if not name.endswith(own)}


def test_content_is_that_of_the_wheels(
    stager: Stager, wheels: Sequence[Path], target: Target, stage: Path
) -> None:
    stager.stage(pinned(*wheels), target, str(stage), None)
    layout = target.layout.moved(str(stage))
    staged = read_installed(layout)
    found = dict(zip((d.name for d in staged), read_contents(staged, layout), strict=True))
    assert len(found) == len(wheels)
    for path in wheels:
        wheel = inspect_wheel(str(path))
        assert found[wheel.name].digest == wheel.content
        assert in_library(found[wheel.name].executable) == in_library(wheel.executable)
    assert all(dist.direct_url is None for dist in staged)


def test_scripts_are_for_the_target(
    stager: Stager, wheels: Sequence[Path], target: Target, stage: Path
) -> None:
    """The stage is moved later: nothing in it may know its own place."""
    stager.stage(pinned(*wheels), target, str(stage), None)
    for name in ("torchrun", "torchrun-vendor"):
        text = (stage / "bin" / name).read_text()
        assert target.executable in text
    place = os.fsencode(stage)
    for path in stage.rglob("*"):
        assert not path.is_file() or place not in path.read_bytes(), path
    assert not list(stage.rglob("*.pyc"))
    assert all(path.stat().st_nlink == 1 for path in stage.rglob("*") if path.is_file())


def test_both_write_the_same(wheels: Sequence[Path], target: Target, tmp_path: Path) -> None:
    found = {}
    for name in ("uv", "pip"):
        folder = tmp_path / name
        folder.mkdir()
        make_stager(name, clean_env()).stage(pinned(*wheels), target, str(folder), None)
        found[name] = names_in(folder)
    assert found["uv"] == found["pip"]


def test_target_and_wheels_are_only_read(
    stager: Stager, wheels: Sequence[Path], target: Target, stage: Path
) -> None:
    prefix = Path(target.layout.prefix)
    before = tree(prefix, leave_out=()), tree(wheels[0].parent)
    stager.stage(pinned(*wheels), target, str(stage), None)
    assert (tree(prefix, leave_out=()), tree(wheels[0].parent)) == before


def test_no_home_is_needed(
    stager: Stager, wheels: Sequence[Path], target: Target, stage: Path, tmp_path: Path
) -> None:
    """No cache, no settings: with a home that cannot be written it works all the same."""
    home = tmp_path / "home"
    home.mkdir()
    quiet = make_stager(stager.name, {"PATH": "/usr/bin:/bin", "HOME": str(home)})
    quiet.stage(pinned(*wheels), target, str(stage), None)
    assert list(home.iterdir()) == []


SCRIPT = """
import pickle, sys
stager, wheels, target, stage = pickle.load(open(sys.argv[1], "rb"))
stager.stage(wheels, target, stage, None)
"""


def test_without_network(
    stager: Stager, wheels: Sequence[Path], target: Target, stage: Path, tmp_path: Path
) -> None:
    if subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode != 0:
        pytest.skip("network namespaces are not allowed here")
    case = tmp_path / "case"
    case.write_bytes(pickle.dumps((stager, pinned(*wheels), target, str(stage))))
    subprocess.run(
        ["unshare", "-n", sys.executable, "-c", SCRIPT, str(case)],
        check=True, cwd=ROOT, env=clean_env(), timeout=60,
    )  # fmt: skip
    assert len(read_installed(target.layout.moved(str(stage)))) == len(wheels)


def test_lock_is_inherited(
    stager: Stager,
    wheels: Sequence[Path],
    target: Target,
    stage: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An orphan that still unpacks must still hold the target."""
    seen: list[Sequence[int]] = []
    real = process.run

    def run(argv: Sequence[str], **more: object) -> process.Finished:
        seen.append(more.get("pass_fds"))  # type: ignore[arg-type]
        return real(argv, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(process, "run", run)
    lock = lock_folder(target.layout.purelib)
    assert lock is not None
    try:
        stager.stage(pinned(*wheels), target, str(stage), lock)
    finally:
        os.close(lock)
    assert seen == [(lock,)]


def test_another_file_is_refused(
    stager: Stager, target: Target, stage: Path, tmp_path: Path
) -> None:
    """The file changed after it was looked at."""
    wheel = make_wheel(tmp_path, "pkg", "1.0")
    listed = pinned(wheel)
    make_wheel(tmp_path, "pkg", "1.0", {"pkg.py": "other\n"})
    assert sha256(wheel) != listed[0].sha256
    with pytest.raises(ProgramFailed, match=r"^(uv|pip): exit") as caught:
        stager.stage(listed, target, str(stage), None)
    assert "--backend" in caught.value.hint


SPELLED = [
    ("Z.z", "2.1.0+DAS.dtk23.04.1"),
    ("z-z", "1.0.0"),
    ("zz", "01.0"),
    ("zz", "1.0.post1+das.opt1.dtk2604"),
    ("zz", "1.0a0+17540c5"),
]


@pytest.mark.parametrize(("name", "version"), SPELLED)
def test_versions_as_vendors_spell_them(
    stager: Stager, target: Target, stage: Path, tmp_path: Path, name: str, version: str
) -> None:
    wheel = make_wheel(tmp_path, name, version, {"z/__init__.py": ""})
    stager.stage(pinned(wheel), target, str(stage), None)
    [dist] = read_installed(target.layout.moved(str(stage)))
    assert dist.version == version
