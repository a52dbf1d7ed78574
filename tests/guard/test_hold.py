"""``--hold``, and what the rules see in real environments."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from envlock.cli import main
from tests.guard.world import TORCH, World, make_world, tree
from tests.support.pythons import pip
from tests.support.wheels import make_wheel

pytestmark = pytest.mark.integration
TOOLS = ("pip", "uv pip")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """With projects that fit in one version and do not in another, and that write over torch."""
    world = make_world(tmp_path_factory.mktemp("world"), "", ["triton==3.4.0", "arrays<2"])
    for version, requires in {"1.0": "torch==2.10.0", "2.0": "torch==2.11.0"}.items():
        make_wheel(world.index, "fitting", version, requires=[requires])
    for version in ("1.0", "1.5", "2.0"):
        make_wheel(world.index, "arrays", version)
    make_wheel(world.index, "wants_arrays", "1.0", requires=["arrays>=1"])
    make_wheel(world.index, "wants_arrays", "2.0", requires=["arrays>=2"])
    make_wheel(world.index, "only_new_arrays", "1.0", requires=["arrays>=2"])
    make_wheel(world.index, "evil", "1.0", {"torch.py": "mine = True\n", "evil.py": ""})
    make_wheel(world.index, "same", "1.0", {"torch.py": f"VERSION = {TORCH!r}\n"})
    make_wheel(world.index, "wants_evil", "1.0", requires=["evil"])
    python = world.target / "bin" / "python"
    pip(python, "install", "--no-index", "--no-deps", "-f", str(world.index), "arrays==1.0")
    return world


@pytest.fixture
def python(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("UV_NO_CONFIG", raising=False)
    for name, value in world.env().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "target"))
    monkeypatch.chdir(tmp_path)
    return world.copy(tmp_path / "target")


def guard(capfd: pytest.CaptureFixture[str], line: str) -> tuple[int, dict[str, Any], str]:
    capfd.readouterr()
    code = main(["guard", "--json", *line.split()])
    said = capfd.readouterr()
    return code, json.loads(said.out)["data"], said.err


def version_of(python: Path, name: str) -> str:
    code = f"import importlib.metadata as m; print(m.version({name!r}))"
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def codes(data: dict[str, Any]) -> set[str]:
    return {reason["code"] for reason in data["reasons"]}


@pytest.mark.parametrize("tool", TOOLS)
def test_hold_shows_what_fits_and_installs_it(
    tool: str, python: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, data, _ = guard(capfd, f"{tool} install fitting")
    assert (code, codes(data)) == (3, {"guard.replaced"})
    assert data["instead"] == ["--hold", *f"{tool} install fitting".split()]
    before = tree(python.parents[1])
    code, data, _ = guard(capfd, f"--hold --plan {tool} install fitting")
    assert code == 0
    assert [(c["name"], c["new"]) for c in data["plan"]["changes"]] == [("fitting", "1.0")]
    assert tree(python.parents[1]) == before
    code, data, said = guard(capfd, f"--hold {tool} install fitting")
    assert code == 0
    assert "held: fitting: none -> 1.0" in said
    assert version_of(python, "fitting") == "1.0"
    assert version_of(python, "torch") == TORCH


@pytest.mark.parametrize("tool", TOOLS)
def test_where_nothing_fits_hold_tells_the_chain(
    tool: str, python: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = tree(python.parents[1])
    code, data, _ = guard(capfd, f"--hold {tool} install xformers")
    assert code == 3
    assert codes(data) == {"guard.replaced", "guard.no-fit"}
    why = next(one["why"] for one in data["reasons"] if one["code"] == "guard.no-fit")
    assert "xformers" in why
    assert "torch==2.9.1" in why
    assert len(why) < 600
    assert data["instead"] == [*tool.split(), "install", "--no-deps", "xformers"]
    assert tree(python.parents[1]) == before


@pytest.mark.parametrize("tool", TOOLS)
def test_hold_leaves_to_the_tool_what_it_rejects_anyway(
    tool: str, python: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["guard", "--hold", "--plan", *f"{tool} install no-such-project".split()]) == 2


def test_hold_steps_around_what_the_vendor_asks_for_in_vain(
    python: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """uv finds what fits beside a build whose own metadata nothing meets."""
    (info,) = python.parents[1].glob("lib/python*/site-packages/torch-*.dist-info")
    with (info / "METADATA").open("a") as metadata:
        metadata.write("Requires-Dist: das-runtime==1.0\n")
    code, data, _ = guard(capfd, "uv pip install peft tabulate")
    assert (code, codes(data)) == (0, {"guard.repair"})
    assert version_of(python, "peft") == "0.1"
    code, data, _ = guard(capfd, "uv pip install fitting")
    assert (code, codes(data)) == (3, {"guard.replaced"})
    assert data["instead"] == ["--hold", "uv", "pip", "install", "fitting"]
    code, data, said = guard(capfd, "--hold uv pip install fitting")
    assert (code, codes(data)) == (0, {"guard.repair"})
    assert data["pins"] == ["fitting===1.0"]
    assert "das-runtime==1.0" in said
    assert version_of(python, "fitting") == "1.0"
    assert version_of(python, "torch") == TORCH
    code, data, _ = guard(capfd, "--hold uv pip install xformers")
    assert (code, codes(data)) == (3, {"guard.replaced", "guard.no-fit"})


@pytest.mark.parametrize("tool", TOOLS)
def test_what_a_build_needs_is_held_too(
    tool: str, python: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, data, _ = guard(capfd, f"{tool} install -U arrays")
    assert (code, codes(data)) == (3, {"guard.range"})
    assert data["instead"] == [*tool.split(), "install", "-U", "arrays<2"]
    assert main(["guard", "--plan", *data["instead"]]) == 0
    code, data, _ = guard(capfd, f"{tool} install wants-arrays")
    assert (code, codes(data)) == (3, {"guard.range"})
    assert data["instead"] == [*tool.split(), "install", "wants-arrays", "arrays<2"]
    assert main(["guard", "--plan", *data["instead"]]) == 0
    code, data, _ = guard(capfd, f"{tool} install only-new-arrays")
    assert data["instead"] == [*tool.split(), "install", "--no-deps", "only-new-arrays"]
    code, _, _ = guard(capfd, f"--hold {tool} install wants-arrays")
    assert code == 0
    assert version_of(python, "wants_arrays") == "1.0"
    assert version_of(python, "arrays") == "1.0"


@pytest.mark.parametrize("tool", TOOLS)
def test_files_of_a_build_are_not_written_over(
    tool: str, python: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = tree(python.parents[1])
    code, data, _ = guard(capfd, f"{tool} install evil tabulate")
    assert (code, codes(data)) == (3, {"guard.overlap"})
    assert data["instead"] == [*tool.split(), "install", "tabulate"]
    code, data, _ = guard(capfd, f"{tool} install wants-evil")
    assert (code, codes(data)) == (3, {"guard.overlap"})
    assert main(["guard", "--plan", *data["instead"]]) == 0
    assert tree(python.parents[1]) == before
    # the same bytes twice hurt nobody; taking one of them away does
    code, data, _ = guard(capfd, f"{tool} install same")
    assert (code, codes(data)) == (0, set())
    code, data, _ = guard(capfd, f"{tool} uninstall same {'-y' if tool == 'pip' else ''}")
    assert (code, codes(data)) == (3, {"guard.overlap"})


def source_tree(folder: Path, requires: str, package: str = "ops") -> Path:
    (folder / package).mkdir(parents=True)
    (folder / package / "__init__.py").write_text("")
    (folder / "pyproject.toml").write_text(
        f'[build-system]\nrequires = [{requires}]\nbuild-backend = "x"\n'
        '[project]\nname = "ops"\nversion = "1.0"\n'
    )
    return folder


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("spelled", ["./ops", "-e ./ops", "./ops.zip"])
def test_what_is_built_against_a_build_is_not_built_in_isolation(
    tool: str, spelled: str, python: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = source_tree(tmp_path / "ops", '"setuptools", "torch>=2"')
    with zipfile.ZipFile(tmp_path / "ops.zip", "w") as archive:
        archive.write(folder / "pyproject.toml", "ops-1.0/pyproject.toml")
    code, data, _ = guard(capfd, f"{tool} install {spelled}")
    assert (code, codes(data)) == (3, {"guard.isolated-build"})
    anew = " --no-cache" if tool == "uv pip" else ""
    assert data["instead"] == f"{tool} install --no-build-isolation{anew} {spelled}".split()
    code, data, _ = guard(capfd, f"--plan {' '.join(data['instead'])}")
    assert "guard.isolated-build" not in codes(data) if code == 3 else code in (0, 2)


def test_a_tree_that_brings_the_package_of_a_build(
    python: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source_tree(tmp_path / "mine", '"setuptools"', "torch")
    code, data, _ = guard(capfd, "pip install -e ./mine")
    assert (code, codes(data)) == (3, {"guard.shadowed-source"})


@pytest.mark.parametrize("tool", TOOLS)
def test_an_environment_over_that_of_the_builds(
    tool: str, python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    child = tmp_path / "child"
    subprocess.run([str(python), "-m", "venv", "--without-pip", str(child)], check=True)
    (site,) = child.glob("lib/python*/site-packages")
    (above,) = python.parents[1].glob("lib/python*/site-packages")
    (site / "above.pth").write_text(f"{above}\n")
    monkeypatch.setenv("VIRTUAL_ENV", str(child))
    code, data, _ = guard(capfd, f"{tool} install -U torch")
    assert (code, codes(data)) == (3, {"guard.shadowed-above"})
    code, data, _ = guard(capfd, f"{tool} install tabulate")
    assert code == 0
    assert not list(site.glob("torch*"))
