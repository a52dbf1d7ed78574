"""envlock guard --enable, --disable and --status: what plain pip and plain uv then do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from envlock.cli import main
from tests.guard.world import FLASH, TORCH, TRITON, World, make_world, protected_part, tree
from tests.support.pythons import clean_env, make_venv, pip
from tests.support.systems import in_a_copy_of_the_system

pytestmark = pytest.mark.integration

SYSTEM = "/usr/bin/python3"
TORCH_WHEEL = "torch-2.11.0-py3-none-any.whl"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture
def settings(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Variables that are the person's own, and know the index: nothing of this machine's."""
    found = {
        "HOME": str(tmp_path / "home"),
        "XDG_CONFIG_HOME": str(tmp_path / "home" / "config"),
        "XDG_CONFIG_DIRS": str(tmp_path / "none"),
        "PIP_CONFIG_FILE": str(world.pip_conf),
        "UV_CACHE_DIR": str(tmp_path / "uv-cache"),
    }
    uv = tmp_path / "home" / "config" / "uv"
    uv.mkdir(parents=True)
    shutil.copy(world.uv_toml, uv / "uv.toml")
    monkeypatch.delenv("UV_NO_CONFIG")
    for name, value in found.items():
        monkeypatch.setenv(name, value)
    return found


@pytest.fixture
def python(world: World, settings: dict[str, str], tmp_path: Path) -> Path:
    """A target of one's own, at a path that has to be written as a URL."""
    return world.copy(tmp_path / "ta rgé#t")


def plain(settings: dict[str, str], *command: str | Path) -> int:
    """Somebody types a command without envlock."""
    env = clean_env(**settings)
    del env["UV_NO_CONFIG"]
    done = subprocess.run([str(word) for word in command], env=env, capture_output=True)
    return done.returncode


def guard(python: Path, *words: str) -> int:
    return main(["guard", "--python", str(python), *words])


@pytest.mark.parametrize("number", ["22.0.2", "24.0", version("pip")])
def test_plain_pip_keeps_the_builds(
    number: str, settings: dict[str, str], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    world = make_world(tmp_path_factory.mktemp("world"), number)
    settings["PIP_CONFIG_FILE"] = str(world.pip_conf)
    python = world.copy(tmp_path / "ta rgé#t")
    assert guard(python, "--enable") == 0
    before = protected_part(tree(python.parents[1]))
    install = (python, "-m", "pip", "install")
    isolated = ("--no-index", "-f", world.index)
    assert plain(settings, *install, "-U", "torch") == 0
    assert plain(settings, *install, "torch==2.11.0") != 0
    assert plain(settings, *install, "xformers") != 0
    assert plain(settings, *install, "--isolated", *isolated, "torch==2.11.0") != 0
    assert plain(settings, *install, "--no-deps", world.index / TORCH_WHEEL) != 0
    assert plain(settings, *install, "--target", tmp_path / "beside", "torch==2.11.0") != 0
    assert plain(settings, *install, "tabulate", "peft") == 0
    assert plain(settings, *install, "--force-reinstall", "--no-deps", "tabulate") == 0
    assert protected_part(tree(python.parents[1])) == before
    assert guard(python, "--status") == 0
    assert guard(python, "--disable") == 0
    assert plain(settings, *install, "torch==2.11.0") == 0


def test_plain_uv_keeps_the_builds(python: Path, settings: dict[str, str]) -> None:
    toml = Path(settings["XDG_CONFIG_HOME"], "uv", "uv.toml")
    found = toml.read_bytes()
    assert guard(python, "--enable", "--uv-user") == 0
    before = protected_part(tree(python.parents[1]))
    uv = Path(sys.executable).with_name("uv")
    install = (uv, "pip", "install", "--python", python)
    assert plain(settings, *install, "-U", "torch") == 0
    assert plain(settings, *install, "torch==2.11.0") != 0
    assert plain(settings, *install, "xformers") != 0
    assert plain(settings, *install, "tabulate", "peft") == 0
    assert protected_part(tree(python.parents[1])) == before
    assert guard(python, "--disable") == 0
    assert toml.read_bytes() == found
    assert plain(settings, *install, "torch==2.11.0") == 0


def test_guard_itself_works_as_before(python: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The reasons are guard's own, and not the conflict with what is held."""
    assert guard(python, "--enable", "--uv-user") == 0
    before = protected_part(tree(python.parents[1]))
    for tool in (["pip"], ["uv", "pip"]):
        assert guard(python, *tool, "install", "tabulate") == 0
        capfd.readouterr()
        assert guard(python, *tool, "install", "xformers") == 3
        assert f"torch: '{TORCH}' would be replaced by '2.9.1'" in capfd.readouterr().err
    assert protected_part(tree(python.parents[1])) == before


def test_the_environment_is_given_back(python: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = tree(python.parents[1])
    for words in (["--enable"], ["--enable"], ["--disable"], ["--disable"]):
        assert guard(python, *words) == 0
    assert tree(python.parents[1]) == before
    said = capfd.readouterr().out
    assert said.count("3 builds held: ") == 2
    assert said.count("wrote ") == 2
    assert said.count("removed ") == 2
    assert "nothing was held" in said


def test_uv_is_told_of_one_target(
    python: Path, world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    other = python.parents[2] / "other"
    assert guard(python, "--enable", "--uv-user") == 0
    assert "holds for all environments of this user" in capfd.readouterr().out
    assert guard(world.copy(other), "--enable", "--uv-user") == 3
    assert f"holds the builds of '{python.parents[1]}'" in capfd.readouterr().err
    assert not (other / "pip.conf").exists()


def test_status_is_a_document(
    python: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def status() -> tuple[int, list[str], list[str]]:
        code = guard(python, "--status", "--json")
        document = json.loads(capfd.readouterr().out)
        assert document["exit"] == code
        data = document["data"]
        assert any("uninstall" in line for line in data["open"])
        return code, [finding["code"] for finding in document["findings"]], data["held"]

    builds = [f"flash-attn {FLASH}", f"torch {TORCH}", f"triton {TRITON}"]
    assert status() == (3, ["always.off"], [])
    guard(python, "--enable")
    capfd.readouterr()
    assert status() == (0, [], builds)
    (python.parents[1] / "envlock-constraints.txt").unlink()
    assert status() == (3, ["always.missing"], [])
    guard(python, "--enable")
    monkeypatch.setenv("PIP_CONSTRAINT", "/dev/null")
    capfd.readouterr()
    assert status() == (3, ["always.overruled"], [])


def test_the_manifest_in_force_says_what_is_held(
    python: Path, world: World, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    manifest = str(tmp_path / "m.yaml")
    words = ["--protect", "filelock", "--python", str(python)]
    assert main(["snapshot", "-o", manifest, *words]) == 0
    pip(python, "install", "--no-index", "-f", str(world.index), "--no-deps", "torch==2.11.0")
    capfd.readouterr()
    assert guard(python, "--enable") == 0
    said = capfd.readouterr()
    assert f"torch: '{TORCH}' is lost already" in said.err
    assert "3 builds held: filelock 3.0, flash-attn" in said.out
    assert "torch" not in (python.parents[1] / "pip.conf").read_text()
    assert guard(python, "--status") == 0


def test_without_a_vendor_build_there_is_nothing_to_hold(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    python = make_venv(tmp_path / "plain")
    assert guard(python, "--enable") == 4
    assert "has no vendor build to hold" in capfd.readouterr().err
    assert guard(python, "--disable") == 0


@pytest.mark.parametrize(
    "line",
    ["--enable pip install x", "--status pip list", "--disable --enable", "--status --enable",
     "--plan --enable", "--uv-user", "--strict pip install x", "--disable --uv-user",
     "--uv-user pip install x"],
)  # fmt: skip
def test_they_stand_alone(line: str, python: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = tree(python.parents[1])
    assert guard(python, *line.split()) == 2
    assert capfd.readouterr().err.startswith("error: command line: ")
    assert tree(python.parents[1]) == before


def test_a_venv_has_no_marker(python: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = tree(python.parents[1])
    assert guard(python, "--enable", "--strict") == 4
    assert "it is a venv" in capfd.readouterr().err
    assert tree(python.parents[1]) == before


def test_a_folder_that_cannot_be_written(
    python: Path, settings: dict[str, str], tmp_path: Path
) -> None:
    """Root may write everywhere but into what is marked immutable."""
    folder = python.parents[1]
    before = tree(folder)
    command = [sys.executable, "-m", "envlock", "guard", "--python", str(python), "--enable"]
    if os.geteuid() == 0:
        if not shutil.which("chattr") or subprocess.run(
            ["chattr", "+i", str(folder)], capture_output=True
        ).returncode:  # fmt: skip
            pytest.skip("no folder here is closed to root")
    else:
        folder.chmod(0o555)
    try:
        env = clean_env(**settings, XDG_STATE_HOME=str(tmp_path / "state"))
        done = subprocess.run(command, env=env, capture_output=True, text=True)
    finally:
        if os.geteuid() == 0:
            subprocess.run(["chattr", "-i", str(folder)], check=True)
        else:
            folder.chmod(0o755)
    assert done.returncode == 4, done.stderr
    assert "cannot be written: " in done.stderr
    assert "nothing was changed" in done.stderr
    assert tree(folder) == before


def _pip_of_the_system() -> bool:
    asked = [SYSTEM, "-m", "pip", "--version"]
    return os.path.exists(SYSTEM) and not subprocess.run(asked, capture_output=True).returncode


@pytest.mark.skipif(not _pip_of_the_system(), reason="the system's Python has no pip")
def test_the_systems_own_python(world: World, settings: dict[str, str], tmp_path: Path) -> None:
    """Debian: ``sys.prefix`` is /usr, what is installed goes to /usr/local, and there is a marker
    already."""
    asked = "import sysconfig; print(sysconfig.get_path('stdlib'))"
    stdlib = subprocess.run([SYSTEM, "-c", asked], capture_output=True, text=True).stdout.strip()
    marker = f"{stdlib}/EXTERNALLY-MANAGED"
    guard = f"'{sys.executable}' -m envlock guard --python {SYSTEM}"
    plain = f"{SYSTEM} -m pip install --root-user-action=ignore"
    uv = f"'{Path(sys.executable).with_name('uv')}' pip install --python {SYSTEM}"
    script = f"""
        cp {marker} '{tmp_path}/marker'
        {sys.executable} -m pip --python {SYSTEM} install -q --break-system-packages --no-deps \
            -f '{world.vendor}' torch=={TORCH} triton=={TRITON}
        step() {{ echo "== $1"; shift; eval "$@"; echo "-- $?"; }}
        step enable {guard} --enable
        step held {plain} --break-system-packages torch==2.11.0
        step same {plain} --break-system-packages -U torch
        step strict {guard} --enable --strict
        step refused {plain} tabulate
        step refused-uv {uv} tabulate
        step passes {guard} pip install tabulate
        step passes-uv {guard} uv pip install accelerate
        step status {guard} --status
        step disable {guard} --disable
        ls /usr/pip.conf /usr/envlock-constraints.txt
        if [ -e '{tmp_path}/marker' ]; then cmp {marker} '{tmp_path}/marker' && echo same marker
        else [ ! -e {marker} ] && echo same marker; fi
        """
    output = in_a_copy_of_the_system(script, tmp_path)
    codes = {}
    for part in output.split("== ")[1:]:
        codes[part.split()[0]] = part.partition("\n-- ")[2].split("\n")[0]
    assert codes == {
        "enable": "0", "held": "1", "same": "0", "strict": "0", "refused": "1", "refused-uv": "2",
        "passes": "0", "passes-uv": "0", "status": "0", "disable": "0",
    }, output  # fmt: skip
    assert "envlock guard pip install" in output.partition("== refused")[2]
    assert "same marker" in output
    assert output.count("No such file or directory") == 2 + (not os.path.exists(marker))
    assert not os.path.exists("/usr/envlock-constraints.txt")
