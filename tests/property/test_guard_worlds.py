"""Random small worlds: guard's verdict beside what the tool really does to a copy.

"Never a wrong yes; never a needless no": a command is refused exactly when the bare one would
cost a protected build, or move what it needs out of its range; and what runs keeps every build.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from tests.guard.world import protected_part, satisfied, tree
from tests.support.pythons import clean_env, make_venv
from tests.support.wheels import make_wheel

pytestmark = pytest.mark.integration

BUILDS = ("torch", "triton")
PLAIN = ("alpha", "beta", "gamma", "delta")
VERSIONS = ("1.0", "1.5", "2.0")
LABELLED = ("1.0+das.opt1", "1.5+das.opt10", "2.0.dev1+das.opt1", "1.5a0+das.opt2")

specs = st.builds(
    "{}{}".format, st.sampled_from(["==", ">=", "<=", "!=", ">", "<", "~="]),
    st.sampled_from(VERSIONS),
) | st.just("")  # fmt: skip


def needs(names: tuple[str, ...], most: int) -> st.SearchStrategy[tuple[str, ...]]:
    """Requirements of some of these projects, each at most once."""
    one = st.dictionaries(st.sampled_from(names), specs, max_size=most)
    return one.map(lambda found: tuple(f"{name}{spec}" for name, spec in sorted(found.items())))


@dataclass(frozen=True)
class Dist:
    name: str
    version: str
    requires: tuple[str, ...]

    def wheel(self, folder: Path, text: str) -> Path:
        files = {f"{self.name}.py": f"{text} {self.version}\n"}
        return make_wheel(folder, self.name, self.version, files, requires=self.requires)


@dataclass(frozen=True)
class Drawn:
    """A world: what an index has, what is installed, and what is asked for."""

    index: tuple[Dist, ...]
    builds: tuple[Dist, ...]
    beside: tuple[Dist, ...]
    words: tuple[str, ...]


@st.composite
def worlds(draw: st.DrawFn) -> Drawn:
    names = (*BUILDS, *draw(st.sampled_from([PLAIN[:1], PLAIN[:2], PLAIN])))
    index = tuple(
        Dist(name, version, draw(needs(tuple(n for n in names if n != name), 2)))
        for name in names
        for version in sorted(draw(st.frozensets(st.sampled_from(VERSIONS), min_size=1)))
    )
    builds = tuple(
        Dist(name, draw(st.sampled_from(LABELLED)), draw(needs(names[2:], 1)))
        for name in draw(st.sampled_from([BUILDS, BUILDS[:1]]))
    )
    chosen = draw(st.frozensets(st.sampled_from(names[2:]), max_size=2))
    beside = tuple({one.name: one for one in index if one.name in chosen}.values())
    options = draw(st.sampled_from([[], [], ["-U"], ["--no-deps"], ["--force-reinstall"]]))
    asked = draw(needs(names, 2).filter(bool))
    removal = ("uninstall", draw(st.sampled_from([*names])))
    words = draw(st.sampled_from([("install", *options, *asked)] * 5 + [removal]))
    return Drawn(index=index, builds=builds, beside=beside, words=words)


class Stage:
    """A drawn world on disk."""

    def __init__(self, world: Drawn, folder: Path, empty: Path) -> None:
        self.world, self.folder = world, folder
        for dist in world.index:
            dist.wheel(folder / "index", "public")
        shutil.copytree(empty, folder / "model", symlinks=True)
        site = next((folder / "model" / "lib").glob("python*/site-packages"))
        wheels = [one.wheel(folder / "vendor", "vendor") for one in world.builds]
        wheels += [one.wheel(folder / "index", "public") for one in world.beside]
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(site)
        (folder / "pip.conf").write_text(
            f"[global]\nno-index = true\nfind-links = {folder}/index\n"
        )
        (folder / "uv.toml").write_text(f'no-index = true\nfind-links = ["{folder}/index"]\n')

    def run(self, name: str, *words: str) -> tuple[subprocess.CompletedProcess[str], Path]:
        """Runs a command on a copy of the target."""
        target = self.folder / name
        shutil.copytree(self.folder / "model", target, symlinks=True)
        env = clean_env(
            PIP_CONFIG_FILE=f"{self.folder}/pip.conf",
            UV_CONFIG_FILE=f"{self.folder}/uv.toml",
            UV_CACHE_DIR=f"{self.folder}/cache",
            VIRTUAL_ENV=str(target),
            XDG_STATE_HOME=f"{self.folder}/state",
        )
        del env["UV_NO_CONFIG"]
        done = subprocess.run(
            words, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        return done, target

    def bare(self, tool: str, words: tuple[str, ...]) -> tuple[int, Path]:
        """The tool itself, with nobody in between."""
        own = {
            "uv": [str(Path(sys.executable).with_name("uv")), "pip"],
            "pip": [sys.executable, "-m", "pip", "--python", str(self.folder / "bare")],
        }[tool]
        done, target = self.run("bare", *own, *words)
        return done.returncode, target

    def guarded(self, tool: str, words: tuple[str, ...]) -> tuple[int, dict[str, Any], Path]:
        """With guard: exit code, its document's data, and the target."""
        own = ["uv", "pip"] if tool == "uv" else ["pip"]
        command = [sys.executable, "-m", "envlock", "guard", "--json", *own, *words]
        done, target = self.run("guarded", *command)
        assert done.stdout.startswith("{"), done.stderr
        return done.returncode, json.loads(done.stdout)["data"], target


def kept(world: Drawn, target: Path) -> dict[str, str]:
    """The files of the vendor builds."""
    return protected_part(tree(target), [build.name for build in world.builds])


def needs_met(world: Drawn, target: Path) -> set[str]:
    """Requirements of the vendor builds that what is installed meets."""
    builds = tuple((one.name, one.version, one.requires) for one in world.builds)
    return satisfied(builds, tree(target))


def compare(world: Drawn, tool: str, empty: Path) -> None:
    """One world, with guard and without."""
    words = (*world.words[:1], *(["-y"] if world.words[0] == "uninstall" and tool == "pip" else []))
    words += world.words[1:]
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(world, Path(folder), empty)
        model = stage.folder / "model"
        before, met = kept(world, model), needs_met(world, model)
        bare_code, bare = stage.bare(tool, words)
        lost = kept(world, bare) != before
        moved = bool(met - needs_met(world, bare))
        code, data, target = stage.guarded(tool, words)
        note(f"{tool}: bare {bare_code}, lost {lost}, moved {moved}; guard {code}: {data}")
        refused = data["verdict"] == "refused"
        assert kept(world, target) == before
        if lost or moved:
            assert refused or data["pins"] is not None, "a wrong yes"
        else:
            assert not refused, "a needless no"
            assert code == bare_code, "it ended otherwise than the bare command"


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A venv to copy."""
    path = tmp_path_factory.mktemp("empty") / "venv"
    make_venv(path)
    return path


SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@pytest.mark.parametrize("tool", ["pip", "uv"])
@settings(
    max_examples=6, derandomize=True, database=None, phases=[Phase.generate],
    suppress_health_check=SLOW,
)  # fmt: skip
@given(world=worlds())
def test_a_few_worlds(tool: str, empty: Path, world: Drawn) -> None:
    compare(world, tool, empty)


@pytest.mark.long
@pytest.mark.parametrize("tool", ["pip", "uv"])
@settings(
    max_examples=int(os.environ.get("GUARD_WORLDS", "60")), derandomize=False,
    database=None,
    suppress_health_check=SLOW,
)  # fmt: skip
@given(world=worlds())
def test_many_worlds(tool: str, empty: Path, world: Drawn) -> None:
    compare(world, tool, empty)
