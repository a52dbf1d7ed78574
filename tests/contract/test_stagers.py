"""What every stager has to do: one suite, each backend."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from envlock.adapters import process
from envlock.adapters.files import Hashed, sha256
from envlock.adapters.installed import read_contents, read_installed
from envlock.adapters.installer import Pinned, Stager
from envlock.adapters.interpreter import Named, read_target
from envlock.adapters.locking import lock_folder
from envlock.adapters.native import NativeStager
from envlock.adapters.pip import PipStager
from envlock.adapters.uv import UvStager, find_uv
from envlock.adapters.wheelfile import inspect_wheel
from envlock.errors import ProgramFailed
from envlock.model.facts import Target
from envlock.model.record import HEAD_BYTES, script_head
from tests.support.hard_wheels import HARD
from tests.support.pythons import ROOT, clean_env, make_venv
from tests.support.wheels import make_wheel, record_hash
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
    if name == "native":
        return NativeStager()
    if name == "pip":
        return PipStager(env=env)
    program = find_uv(env)
    assert program is not None
    return UvStager(program=program, env=env)


@pytest.fixture(params=["native", "uv", "pip"])
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


def test_another_build_of_the_version_beside_it(
    stager: Stager, target: Target, stage: Path, tmp_path: Path
) -> None:
    """A version without a label is not that of a build with one, which lies there too."""
    right = make_wheel(tmp_path, "filelock", "3.0.0")
    make_wheel(tmp_path, "filelock", "3.0.0+other")
    stager.stage(pinned(right), target, str(stage), None)
    assert [d.version for d in read_installed(target.layout.moved(str(stage)))] == ["3.0.0"]


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


@dataclass(frozen=True)
class Three:
    """The hard wheels as each backend put them on the disk, for one shape of the target's path."""

    target: Target
    stages: Mapping[str, Path]
    answers: Mapping[str, Mapping[str, Hashed]]

    def files(self, backend: str) -> dict[str, Path]:
        """Every file by its path in the stage, but for what an installer writes for itself."""
        stage = self.stages[backend]
        found = {name: stage / name for name in names_in(stage)}
        return {name: path for name, path in found.items() if path.is_file()}

    def is_own(self, name: str) -> bool:
        """Whether each installer has its own words for it: launchers, its name, the list."""
        launchers = ("Hard.Nested", "hard-extra", "hard-run", "hard-window", "odd-run", "odd%run")
        return name.endswith(("/INSTALLER", "/RECORD")) or name.startswith(
            tuple(f"bin/{launcher}" for launcher in launchers)
        )


#: Parts of the target's path: ordinary, one that a first line cannot hold, one that is too long.
SHAPES = {"plain": "t", "space": "a target", "long": "t" * 130}


@pytest.fixture(scope="module", params=SHAPES)
def three(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Three:
    folder = tmp_path_factory.mktemp("three")
    python = make_venv(folder / SHAPES[request.param] / "venv")
    target = read_target(Named(str(python), "test"), clean_env())
    wheels = pinned(*(make(folder / "wheels") for make in HARD.values()))
    stages, answers = {}, {}
    for backend in ("native", "uv", "pip"):
        stages[backend] = folder / backend
        stages[backend].mkdir()
        stager = make_stager(backend, clean_env())
        answers[backend] = stager.stage(wheels, target, str(stages[backend]), None)
    return Three(target, stages, answers)


def test_all_write_the_same_files(three: Three) -> None:
    native, uv, pip = (three.files(backend) for backend in ("native", "uv", "pip"))
    assert native.keys() == uv.keys() == pip.keys()
    for name in native.keys() - {name for name in native if three.is_own(name)}:
        found = native[name].read_bytes()
        others = [uv[name].read_bytes(), pip[name].read_bytes()]
        if name.startswith("bin/"):  # pip writes a first line that no kernel reads; see below
            assert as_content(found) in map(as_content, others), name
        else:
            assert others == [found, found], name


def as_content(script: bytes) -> bytes:
    shown, length = script_head(script[:HEAD_BYTES])
    return shown + script[length:]


def test_all_give_the_same_modes(three: Three) -> None:
    """uv gives each script an exec bit, pip only those whose wheel has one."""
    native, uv, pip = (three.files(backend) for backend in ("native", "uv", "pip"))
    for name, path in native.items():
        assert path.stat().st_mode == uv[name].stat().st_mode, name
        assert name.startswith("bin/") or path.stat().st_mode == pip[name].stat().st_mode, name


def test_all_have_the_same_content(three: Three) -> None:
    digests = {}
    for backend, stage in three.stages.items():
        layout = three.target.layout.moved(str(stage))
        staged = read_installed(layout)
        assert len(staged) == len(HARD)
        digests[backend] = [one.digest for one in read_contents(staged, layout)]
        assert all(digests[backend])
    assert digests["native"] == digests["uv"] == digests["pip"]


def test_record_is_what_is_there(three: Three) -> None:
    """Every file is in RECORD once with its hash and size; nothing else is."""
    stage = three.stages["native"]
    site = Path(three.target.layout.moved(str(stage)).purelib)
    listed = []
    for dist in read_installed(three.target.layout.moved(str(stage))):
        assert dist.rows is not None
        for row in dist.rows:
            path = (site / row.path).resolve()
            listed.append(path)
            if path.name != "RECORD":
                data = path.read_bytes()
                assert (row.hash, row.size) == (record_hash(data), len(data)), row.path
            else:
                assert (row.hash, row.size) == ("", None)
    assert sorted(listed) == sorted(path for path in stage.resolve().rglob("*") if path.is_file())


def test_answers_are_what_reading_gives(three: Three) -> None:
    """A backend that hashes what it writes says the same as who reads it."""
    assert three.answers["uv"] == three.answers["pip"] == {}
    stage = three.stages["native"]
    layout = three.target.layout.moved(str(stage))
    answers, found = three.answers["native"], 0
    for content in read_contents(read_installed(layout), layout):
        for place, path in content.paths.items():
            if not place.startswith("bin/"):  # of which content sees another first line
                assert answers[path] == content.files[place], place
                found += 1
    assert found > 40


@pytest.mark.parametrize("script", ["hard-run", "Hard.Nested", "hard-extra", "plain", "options"])
def test_scripts_run(three: Three, script: str) -> None:
    stage = three.stages["native"]
    site = three.target.layout.moved(str(stage)).purelib
    done = subprocess.run(
        [stage / "bin" / script], env=clean_env(PYTHONPATH=site), capture_output=True, text=True
    )
    said = script if script in ("plain", "options") else "ran"
    assert (done.returncode, done.stdout) == (0, f"{said}\n"), done.stderr


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_umask_counts(target: Target, stage: Path, tmp_path: Path, mask: int) -> None:
    listed = pinned(HARD["modes"](tmp_path), HARD["scripts"](tmp_path))
    before = os.umask(mask)
    try:
        make_stager("native", {}).stage(listed, target, str(stage), None)
    finally:
        os.umask(before)
    modes = {path.stat().st_mode & 0o7777 for path in stage.rglob("*") if path.is_file()}
    assert modes == {0o666 & ~mask, 0o777 & ~mask}


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
    """An orphan that still unpacks must still hold the target; threads are no orphans."""
    seen: list[Sequence[int]] = []
    real = process.run

    def run(argv: Sequence[str], **more: object) -> process.Finished:
        seen.append(more.get("pass_fds"))  # type: ignore[arg-type]
        return real(argv, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(process, "run", run)
    before = set(threading.enumerate())
    lock = lock_folder(target.layout.purelib)
    try:
        stager.stage(pinned(*wheels), target, str(stage), lock.descriptor)
    finally:
        lock.release()
    assert seen == ([] if stager.name == "native" else [(lock.descriptor,)])
    assert set(threading.enumerate()) <= before


def test_another_file_is_refused(
    stager: Stager, target: Target, stage: Path, tmp_path: Path
) -> None:
    """The file changed after it was looked at."""
    wheel = make_wheel(tmp_path, "pkg", "1.0")
    listed = pinned(wheel)
    make_wheel(tmp_path, "pkg", "1.0", {"pkg.py": "other\n"})
    assert sha256(wheel) != listed[0].sha256
    with pytest.raises(
        ProgramFailed, match=r"^((uv|pip): exit|native: .* has another sha256)"
    ) as caught:
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
