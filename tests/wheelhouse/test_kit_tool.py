"""What a kit carries to run envlock: complete, for the right Python, from where it can be had."""

from __future__ import annotations

import ast
import importlib.metadata
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

import envlock
from envlock.adapters.interpreter import Named, read_target
from envlock.adapters.resolving import Downloader, Pin, Question, Resolver
from envlock.adapters.wheelfile import inspect_wheel
from envlock.errors import ProgramFailed
from envlock.model.facts import Target
from envlock.model.health import parse_requirement
from envlock.model.kit import runner_of
from envlock.model.manifest import LockedTarget
from envlock.wheelhouse import kit_tool
from envlock.wheelhouse.kit_tool import Sources, own_wheel, requirements, tool_wheels
from tests.support.pythons import clean_env
from tests.support.wheels import make_wheel

OWN = Path(envlock.__file__).parent


@pytest.fixture(scope="module")
def own() -> Target:
    return read_target(Named(sys.executable, "the tests"), clean_env())


def locked(target: Target) -> LockedTarget:
    """What a manifest of this Python would say."""
    return LockedTarget(python=target.python, markers=target.markers, tags=target.tags, paths={})


class Index:
    """A resolver and a downloader of one wheel; the questions it was asked."""

    def __init__(self, wheel: Path, broken: bool = False) -> None:
        self.wheel, self.broken = wheel, broken
        self.questions: list[Question] = []

    def resolve(self, question: Question) -> tuple[Pin, ...]:
        self.questions.append(question)
        if self.broken:
            raise ProgramFailed("uv: no index can be reached")
        return (Pin("dep", "1.0"),)

    def download(self, wanted: Sequence[Pin], target: LockedTarget, folder: str) -> tuple[str, ...]:
        assert [pin.name for pin in wanted] == ["dep"]
        Path(folder, self.wheel.name).write_bytes(self.wheel.read_bytes())
        return (self.wheel.name,)

    def tools(self, runner: LockedTarget) -> tuple[Resolver, Downloader]:
        return self, self


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def test_what_is_imported_is_required() -> None:
    """A kit carries what the metadata names: an import of anything else fails on the device, and
    only there."""
    modules = {
        name
        for path in OWN.rglob("*.py")
        if "probes" not in path.parts
        for name in imported(ast.parse(path.read_text(encoding="utf-8")))
    } - {"envlock", *sys.stdlib_module_names}
    found = {one.name for raw in requirements() if (one := parse_requirement(raw)) is not None}
    named = {canonicalize_name(name) for name in found}
    owners = importlib.metadata.packages_distributions()
    missing = {
        name
        for name in modules
        if not named & {canonicalize_name(owner) for owner in owners.get(name, [name])}
    }
    assert missing == set()


def test_own_wheel(tmp_path: Path) -> None:
    """Everything of the package, installed or editable, and the same bytes each time."""
    paths = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        paths.append(Path(own_wheel(str(tmp_path / name))))
    assert paths[0].read_bytes() == paths[1].read_bytes()
    wheel = inspect_wheel(str(paths[0]))
    assert wheel.problems == () and (wheel.name, wheel.version) == ("envlock", envlock.__version__)
    assert set(wheel.requires) == set(requirements())
    with zipfile.ZipFile(paths[0]) as archive:
        names = set(archive.namelist())
    there = {
        f"envlock/{path.relative_to(OWN).as_posix()}"
        for path in OWN.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert there <= names
    assert {"envlock/profiles/dtk.yaml", "envlock/probes/kit.py"} <= names
    assert any(name.endswith(".dist-info/entry_points.txt") for name in names)


def test_what_is_installed_here(own: Target, tmp_path: Path) -> None:
    """For this very Python no network is needed: the closure of envlock, rebuilt."""
    index = Index(tmp_path / "none")
    tool = tool_wheels(locked(own), Sources(own=own, cache=str(tmp_path / "c"), resolving=index.tools), str(tmp_path))  # fmt: skip  # noqa: E501
    assert tool.origin == "as installed here" and index.questions == []
    wheels = [inspect_wheel(path) for path in tool.wheels]
    assert [wheel.errors for wheel in wheels] == [()] * len(wheels)
    names = {wheel.name for wheel in wheels}
    assert names >= {"envlock", "typer", "uv", "zstandard", "pyyaml", "markdown-it-py"}
    assert not names & {"pytest", "ruff", "mypy", "hypothesis", "tomli"}


def test_another_python_is_fetched_once(own: Target, tmp_path: Path) -> None:
    """Asked for the runner's markers and tags, and kept for the next pack; what was damaged in
    the cache is fetched again."""
    index = Index(make_wheel(tmp_path / "in", "dep", "1.0"))
    sources = Sources(own=own, cache=str(tmp_path / "cache"), resolving=index.tools)
    other = (3, 10) if sys.version_info[:2] != (3, 10) else (3, 11)
    runner = runner_of(locked(own), other)
    origins = []
    for number in range(3):
        staging = tmp_path / str(number)
        staging.mkdir()
        tool = tool_wheels(runner, sources, str(staging))
        origins.append(tool.origin)
        assert [Path(path).name.split("-")[0] for path in tool.wheels] == ["envlock", "dep"]
        if number == 1:
            Path(tool.wheels[1]).write_bytes(b"damaged")
    assert origins == ["downloaded", "kept from an earlier pack", "downloaded"]
    question = index.questions[0]
    assert question.target == runner and question.held == ()
    assert set(question.requirements) == set(requirements())


def test_offline_for_another_python(own: Target, tmp_path: Path) -> None:
    index = Index(tmp_path / "none", broken=True)
    sources = Sources(own=own, cache=str(tmp_path / "cache"), resolving=index.tools)
    other = (3, 10) if sys.version_info[:2] != (3, 10) else (3, 11)
    with pytest.raises(ProgramFailed) as caught:
        tool_wheels(runner_of(locked(own), other), sources, str(tmp_path))
    assert "no index can be reached" in caught.value.message
    assert f"here: Python {own.python}" in caught.value.hint


def test_what_does_not_fit_is_not_taken(
    own: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wheels of another platform, and an environment with something missing."""
    runner = replace(locked(own), tags=tuple(tag.replace("x86_64", "riscv64") for tag in own.tags))
    assert kit_tool.rebuilt_here(runner, own, str(tmp_path))[1].endswith("is for another Python")
    monkeypatch.setattr(kit_tool, "requirements", lambda: ("not-there-at-all",))
    assert kit_tool.rebuilt_here(locked(own), own, str(tmp_path)) == (
        [],
        "'not-there-at-all' is not installed beside it",
    )
