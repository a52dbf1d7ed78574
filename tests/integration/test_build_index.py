"""build on other Pythons against the real index, then the card without a network.

Versions on an index move on: asserted is what must hold whatever they are.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from envlock.adapters.interpreter import Named, read_target
from envlock.adapters.network import default_index, reachable, uses_proxy
from envlock.model.manifest import Manifest, load
from envlock.model.wheels import parse_wheel_name
from tests.support.pythons import MACHINE, ROOT, clean_env, make_venv, python_for
from tests.support.wheels import make_wheel
from tests.support.worlds import install, take_snapshot, tree

pytestmark = [pytest.mark.integration]

TAG = "cp310-cp310-manylinux_2_28_x86_64"
#: Builds as a DTK image has them, with requirements that it leaves unmet on purpose.
BUILDS = {
    "torch": (
        "2.10.0+das.opt1.dtk2604.20260325.g6b060a",
        ["filelock", "networkx", "numpy<2", "triton==3.6.0", "nvidia-cublas-cu12==12.8.4.1",
         "typing-extensions>=4.10.0", "das-runtime==1.0"],
    ),
    "triton": ("3.4.0+git1ef59765", []),
    "flash_attn": ("2.8.3+das.opt1.dtk2604.torch2100.20260330.g3f0061", ["torch", "einops"]),
    "networkx": ("3.4", []),
}  # fmt: skip


@pytest.fixture
def card(tmp_path: Path) -> Path:
    """A Python 3.10 with stubs of the builds; returns its interpreter."""
    base = python_for("3.10")
    if base is None:
        pytest.skip("no Python 3.10 here")
    wheels = [
        make_wheel(
            tmp_path / "vendor", name, version, {f"{name}/__init__.py": f"V = '{version}'\n"},
            requires=requires, tag=TAG if "+" in version else "py3-none-any",
        )
        for name, (version, requires) in BUILDS.items()
    ]  # fmt: skip
    python = make_venv(tmp_path / "card", base)
    install(python, *wheels)
    return python


@pytest.fixture(scope="module", autouse=True)
def _index() -> None:
    if not uses_proxy(MACHINE) and not reachable(default_index()):
        pytest.skip("the index cannot be reached")


def host(tmp_path: Path, version: str) -> Path:
    """A Python with envlock in it."""
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        return Path(sys.executable)
    base = python_for(version)
    if base is None:
        pytest.skip(f"no Python {version} here")
    subprocess.run([base, "-m", "venv", tmp_path / "host"], check=True)
    python = tmp_path / "host" / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    command += ["-e", str(ROOT)]
    subprocess.run(command, check=True, env=MACHINE)
    return python


def envlock(python: Path | str, *words: str, env: dict[str, str], alone: bool = False) -> str:
    command = [str(python), "-m", "envlock", *words]
    done = subprocess.run(
        ["unshare", "-rn", *command] if alone else command,
        env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, f"{words}: {done.stdout[-4000:]}"
    return done.stdout


def snapshot(python: Path) -> Manifest:
    return take_snapshot(read_target(Named(str(python), "--python"), clean_env()))


def loop(tmp_path: Path, card: Path, version: str, *wanted: str) -> Manifest:
    """Snapshot on the card, build elsewhere, restore without a network; what is there then."""
    home = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    online, offline = {**MACHINE, **home}, clean_env(**home)
    lock, folder = str(tmp_path / "card.yaml"), str(tmp_path / "W")
    envlock(sys.executable, "snapshot", "--python", str(card), "-o", lock, env=offline)
    site = card.parents[1] / "lib/python3.10/site-packages"
    before = {name: tree(site / name) for name in ("torch", "triton", "flash_attn")}
    python = host(tmp_path, version)
    envlock(python, "wheelhouse", "build", folder, *wanted, "--manifest", lock, env=online)
    shutil.rmtree(tmp_path / "vendor")
    moved = str(tmp_path / "carried")
    os.rename(folder, moved)
    words = ["restore", "--wheelhouse", moved, "--python", str(card)]
    envlock(sys.executable, *words, env=offline, alone=True)
    assert {name: tree(site / name) for name in before} == before
    made = load(Path(moved, "envlock.yaml").read_text())
    now = snapshot(card)
    assert [plain(d) for d in now.distributions] == [plain(d) for d in made.distributions]
    assert sorted(map(str, now.health)) == sorted(map(str, made.health))
    assert (now.target, now.name) == (made.target, made.name)
    return made


def plain(dist: object) -> object:
    """A distribution without what only a wheelhouse knows."""
    return replace(dist, wheel=None)  # type: ignore[type-var]


def judge(made: Manifest, *expected: str) -> None:
    names = {dist.name for dist in made.distributions}
    assert names >= {*expected, "numpy"}
    assert not [n for n in names if n.startswith(("nvidia-", "cuda-")) or n == "das-runtime"]
    numpy = made.find("numpy")
    assert numpy and numpy.wheel and numpy.version.startswith("1.26.")
    tags = {tag.interpreter for tag in parse_wheel_name(numpy.wheel.file).tags}
    assert tags == {"cp310"}
    for name in ("torch", "triton", "flash_attn"):
        found = made.find(name.replace("_", "-"))
        assert found and found.version == BUILDS[name][0]


def imports(card: Path, *modules: str) -> None:
    code = "; ".join(f"import {module}" for module in modules)
    command = ["unshare", "-rn", str(card), "-I", "-c", code]
    done = subprocess.run(command, env=clean_env(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


can_unshare = pytest.mark.skipif(
    subprocess.run(["unshare", "-rn", "true"], capture_output=True).returncode != 0
    if shutil.which("unshare")
    else True,
    reason="no network namespaces here",
)


@can_unshare
def test_small(tmp_path: Path, card: Path) -> None:
    """numpy, and what only an old Python needs."""
    made = loop(tmp_path, card, f"{sys.version_info[0]}.{sys.version_info[1]}", "anyio", "numpy")
    judge(made, "anyio", "exceptiongroup", "typing-extensions")
    imports(card, "numpy", "anyio", "exceptiongroup", "typing_extensions", "torch", "flash_attn")


@can_unshare
@pytest.mark.long
@pytest.mark.parametrize("version", ["3.11", "3.12"])
def test_peft_and_datasets(tmp_path: Path, card: Path, version: str) -> None:
    made = loop(tmp_path, card, version, "peft", "datasets")
    judge(made, "peft", "datasets", "transformers", "exceptiongroup", "typing-extensions")
    imports(
        card, "datasets", "pyarrow", "pandas", "huggingface_hub", "safetensors", "exceptiongroup",
        "typing_extensions", "importlib.metadata as m; m.version('peft')", "torch", "triton",
    )  # fmt: skip
