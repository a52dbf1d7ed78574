"""Where targets live: what a restore does there, with the default backend and samples of others."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from envlock.adapters.files import plain_mode
from tests.support.pythons import cached_wheels, clean_env, make_venv
from tests.support.systems import in_a_copy_of_the_system, make_prefix
from tests.support.wheels import make_wheel
from tests.support.worlds import World, install, lock, take_snapshot, tree, vendor_wheels

pytestmark = pytest.mark.integration

SYSTEM = "/usr/bin/python3"
#: pip takes seconds where the others take one: its rows are for the whole sweep.
BACKENDS = ["native", "uv", pytest.param("pip", marks=pytest.mark.long)]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheelhouse that was locked in an ordinary venv."""
    folder = tmp_path_factory.mktemp("locked")
    made = vendor_wheels(folder / "W")
    python = make_venv(folder / "venv")
    install(python, *made)
    lock(python, folder / "W")
    return folder / "W"


def contents(world: World) -> Mapping[str, str]:
    found = take_snapshot(world.target).distributions
    names = {dist.name for dist in world.manifest.distributions}
    return {dist.name: dist.content for dist in found if dist.name in names}


def locked(world: World) -> Mapping[str, str]:
    return {dist.name: dist.content for dist in world.manifest.distributions}


def script(world: World) -> Path:
    """The vendor's script in the target."""
    return Path(world.target.layout.scripts, "torchrun-vendor")


def prove(world: World, *words: str, runs: bool = True) -> None:
    """Restores into a target that has nothing, then what was damaged; looking changes nothing."""
    assert world.restore("--plan", *words) == 3
    assert world.restore(*words) == 0
    assert contents(world) == locked(world)
    assert world.restore("--plan", *words) == 0
    (world.site / "torch/__init__.py").write_text("broken\n")
    shutil.rmtree(world.site / "triton")
    script(world).unlink()
    before = tree(world.prefix, leave_out=())
    assert world.restore("--plan", *words) == 3
    assert tree(world.prefix, leave_out=()) == before
    assert world.restore(*words) == 0
    assert contents(world) == locked(world)
    assert world.restore("--plan", *words) == 0
    assert not list(world.site.glob(".envlock*"))
    if runs:
        said = subprocess.run([script(world)], capture_output=True, text=True, env=clean_env())
        assert said.stdout == "run\n", said.stderr


LONG = "l" * 100


@pytest.mark.parametrize(
    ("folder", "backend"),
    [
        ("plain", "native"),
        ("with spaces", "native"),
        ("with spaces", "uv"),
        ("ünïcode 环境", "native"),
        ("ünïcode 环境", "pip"),
        (f"{LONG}/{LONG}", "native"),
        (f"{LONG}/{LONG}", "uv"),
        pytest.param(f"{LONG}/{LONG}", "pip", marks=pytest.mark.long),
    ],
)
def test_paths(wheels: Path, tmp_path: Path, folder: str, backend: str) -> None:
    """A first line holds 127 bytes and no space: others go through ``/bin/sh``, but for pip's,
    which writes a wheel's own scripts as if it did not know."""
    place = tmp_path / folder / "venv"
    place.parent.mkdir(parents=True)
    world = World(make_venv(place), wheels)
    prove(world, "--backend", backend, runs=backend != "pip")


@pytest.mark.parametrize("backend", BACKENDS)
def test_site_packages_through_a_link(wheels: Path, tmp_path: Path, backend: str) -> None:
    world = World(make_venv(tmp_path / "venv"), wheels)
    site = world.site
    shutil.move(site, tmp_path / "elsewhere")
    site.symlink_to(tmp_path / "elsewhere")
    prove(world, "--backend", backend)
    assert site.is_symlink()


@pytest.mark.parametrize("number", ["22.0.2", ""])
@pytest.mark.parametrize("backend", BACKENDS)
def test_pip_of_the_target(wheels: Path, tmp_path: Path, number: str, backend: str) -> None:
    """Old, or none: no backend needs it, and it stays as it is."""
    world = World(make_venv(tmp_path / "venv"), wheels)
    if number:
        install(world.python, next(cached_wheels(f"pip-{number}", f"pip=={number}").glob("*.whl")))
    own = {k: v for k, v in tree(world.prefix).items() if "/pip" in k}
    prove(world, "--backend", backend)
    assert world.target.pip == (number or None)
    assert {k: v for k, v in tree(world.prefix).items() if "/pip" in k} == own


@pytest.mark.parametrize("backend", BACKENDS)
def test_conda_prefix(
    wheels: Path, tmp_path: Path, backend: str, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World(make_prefix(tmp_path / "conda"), wheels)
    assert not world.target.venv
    prove(world, "--backend", backend)
    assert "conda" not in capsys.readouterr().err.replace(str(world.prefix), "")
    next(world.site.glob("torch-*.dist-info")).joinpath("INSTALLER").write_text("conda\n")
    (world.site / "torch/__init__.py").write_text("broken\n")
    assert world.restore("--plan") == 3
    assert "torch: was installed by conda, whose own records are not" in capsys.readouterr().err
    assert world.restore() == 0
    assert "torch: was installed by conda, whose own records are not" in capsys.readouterr().err
    assert world.restore("--plan") == 0


@pytest.mark.parametrize("backend", ["native", "uv"])
def test_venv_with_system_site_packages(wheels: Path, tmp_path: Path, backend: str) -> None:
    """What the system has is no part of the target, and is not touched."""
    system = make_prefix(tmp_path / "system")
    public = make_wheel(tmp_path / "public", "torch", "2.11.0", {"torch/__init__.py": ""})
    install(system, public)
    before = tree(system.parents[1])
    command = [str(system), "-m", "venv", "--without-pip", "--system-site-packages"]
    subprocess.run([*command, str(tmp_path / "venv")], check=True, env=clean_env())
    world = World(tmp_path / "venv/bin/python", wheels)
    assert str(tmp_path / "system") in " ".join(world.target.sys_path)
    prove(world, "--backend", backend)
    assert tree(system.parents[1]) == before


def test_user_site_that_comes_first(
    wheels: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A restore writes to the site-packages of the target: what hides them is named."""
    world = World(make_prefix(tmp_path / "python"), wheels)
    site = tmp_path / f"user/lib/{world.site.parent.name}/site-packages"
    (site / "torch-2.11.0.dist-info").mkdir(parents=True)
    (site / "torch").mkdir()
    monkeypatch.setenv("PYTHONUSERBASE", str(tmp_path / "user"))
    before = tree(tmp_path / "user")
    assert world.restore() == 0
    assert f"torch: another copy comes first on sys.path: '{site}'" in capsys.readouterr().err
    assert world.restore("--plan") == 0
    assert f"torch: another copy comes first on sys.path: '{site}'" in capsys.readouterr().err
    assert tree(tmp_path / "user") == before
    assert contents(world) == locked(world)


def test_hard_links_of_a_cache(wheels: Path, tmp_path: Path) -> None:
    """What uv keeps for other environments stays as it was."""
    cache = tmp_path / "cache"
    world = World(make_venv(tmp_path / "venv"), wheels)
    uv = Path(sys.executable).with_name("uv")
    command = [str(uv), "pip", "install", "-q", "--offline", "--no-index", "--no-deps", "--python",
               str(world.python), "--link-mode", "hardlink",
               *map(str, wheels.glob("*.whl"))]  # fmt: skip
    subprocess.run(command, check=True, env=clean_env(UV_CACHE_DIR=str(cache)))
    assert (world.site / "torch/bin/protoc").stat().st_nlink > 1

    def kept() -> Mapping[Path, tuple[bytes, int, int]]:
        files = [path for path in cache.rglob("*") if path.is_file() and not path.is_symlink()]
        return {path: (path.read_bytes(), path.stat().st_mode, path.stat().st_mtime_ns)
                for path in files}  # fmt: skip

    before = kept()
    for name in ("torch", "triton"):
        damaged = world.site / name / "__init__.py"
        damaged.unlink()
        damaged.write_text("broken\n")
    (world.site / "torch/mine.py").write_text("so that files are swapped one by one\n")
    assert world.restore() == 0
    assert world.restore("--plan") == 0
    assert contents(world) == locked(world)
    assert kept() == before


@dataclass(frozen=True)
class Look:
    """Owner, group and mode."""

    uid: int
    gid: int
    mode: int


def looks(folder: Path) -> Mapping[str, Look]:
    found = {}
    for path in folder.rglob("*"):
        status = path.lstat()
        if not stat.S_ISLNK(status.st_mode):
            found[str(path.relative_to(folder))] = Look(
                status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)
            )
    return found


@pytest.fixture(params=[0o022, 0o077], ids=["umask 022", "umask 077"])
def umask(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def with_umask(umask: int, work: Callable[[], int]) -> int:
    before = os.umask(umask)
    try:
        assert plain_mode() == 0o666 & ~umask
        return work()
    finally:
        os.umask(before)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("owner", [(0, 0), (12345, 23456)], ids=["own", "another's"])
def test_new_files_are_the_targets(
    wheels: Path, tmp_path: Path, umask: int, backend: str, owner: tuple[int, int]
) -> None:
    """Root restores another user's target: every new file is that user's, and can be read."""
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    world = World(make_venv(tmp_path / "venv"), wheels)
    (world.site / "torch").mkdir()
    (world.site / "torch/mine.py").write_text("so that folders are shared\n")
    for path in (world.prefix, *world.prefix.rglob("*")):
        os.lchown(path, *owner)
    there = set(looks(world.prefix))
    assert with_umask(umask, lambda: world.restore("--backend", backend, "--compile")) == 0
    found = looks(world.prefix)
    assert {(look.uid, look.gid) for look in found.values()} == {owner}
    new = {path: look for path, look in found.items() if path not in there}
    assert len(new) > 20
    for name, look in new.items():
        runs = (world.prefix / name).is_dir() or name.startswith("bin/") or name.endswith("protoc")
        assert look.mode == (0o755 if runs else 0o644), name
    assert contents(world) == locked(world)


def _system_version() -> str:
    if not os.path.exists(SYSTEM):
        return ""
    asked = "import sys; print('{}.{}'.format(*sys.version_info[:2]))"
    return subprocess.run([SYSTEM, "-c", asked], capture_output=True, text=True).stdout.strip()


@pytest.mark.skipif(not _system_version(), reason="the system has no Python")
def test_the_systems_own_python(tmp_path: Path) -> None:
    """Debian: what is installed goes to /usr/local, and somebody else manages it."""
    folder = tmp_path / "locked"
    made = vendor_wheels(folder / "W")
    venv = make_venv(folder / "venv", SYSTEM)
    install(venv, *made)
    lock(venv, folder / "W")
    asked = "import sysconfig as s; print(s.get_path('stdlib'), s.get_path('purelib'))"
    said = subprocess.run([SYSTEM, "-c", asked], capture_output=True, text=True).stdout
    stdlib, purelib = said.split()
    restore = (f"'{sys.executable}' -m envlock restore --python {SYSTEM} "
               f"--wheelhouse '{folder / 'W'}'")  # fmt: skip
    steps = {
        "managed": f"{restore} --plan",
        "managed-too": restore,
        "plan": f"{restore} --plan --break-system-packages",
    }
    expected = {"managed": "4", "managed-too": "4", "plan": "3"}
    for backend in ("native", "uv", "pip"):
        insist = f"{restore} --break-system-packages --backend {backend}"
        steps |= {
            f"damage-{backend}": f"mkdir -p {purelib}/torch; echo no > {purelib}/torch/__init__.py",
            f"restore-{backend}": insist,
            f"right-{backend}": f"{insist} --plan",
            f"import-{backend}": f"{SYSTEM} -c 'import torch; print(torch.__version__)'",
        }
        expected |= {f"{step}-{backend}": "0" for step in ("damage", "restore", "right", "import")}
    script = f"cd '{tmp_path}'; echo '[externally-managed]' > {stdlib}/EXTERNALLY-MANAGED\n"
    script += "".join(f"echo '== {name}'; {step}; echo \"-- $?\"\n" for name, step in steps.items())
    output = in_a_copy_of_the_system(script, tmp_path)
    codes = {
        part.split()[0]: part.partition("\n-- ")[2].split("\n")[0]
        for part in output.split("== ")[1:]
    }
    assert codes == expected, output
    assert "managed by somebody else" in output
