"""Commands that make an environment equal to a list, and those of a project."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envlock.adapters.installer import Ask, Change, Known, Plan
from envlock.adapters.uv import find_uv
from envlock.cli import main
from envlock.guard import sync
from envlock.guard.command import parse
from envlock.guard.decide import Decision, Evidence, Protected, Verdict, decide
from envlock.guard.run import _plan as planned
from tests.guard.world import FLASH, TORCH, TRITON, World, make_world, tree
from tests.support.pythons import clean_env, pip

INSTALLED = {"torch": TORCH, "triton": TRITON, "tqdm": "4.0", "pip": "25.0"}
HELD = tuple(
    Protected(name=name, version=INSTALLED[name], installed=INSTALLED[name])
    for name in ("torch", "triton")
)
SHA = "a" * 64


def judged(line: str, text: str, hashes: dict[str, str] | None = None) -> Decision:
    request = parse(line.split(), {"r.txt": text, "requirements.txt": text}.get)
    plan = sync.from_arguments(request, INSTALLED, hashes or {})
    return sync.told(decide(request, plan, HELD), request)


@pytest.mark.parametrize("line", ["pip-sync", "pip-sync r.txt", "uv pip sync r.txt"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("torch==2.10.0\ntriton==3.4.0\n", {}),
        ("torch==2.10.0\ntriton==3.4.0\ntqdm==4.1\nnew==1\n", {}),
        ("torch==2.11.0\ntriton==3.4.0\n", {"torch": "guard.replaced"}),
        ("torch===2.10.0\ntriton\n", {"torch": "guard.replaced"}),
        ("tqdm==4.0\n", {"torch": "guard.removed", "triton": "guard.removed"}),
        ("", {"torch": "guard.removed", "triton": "guard.removed"}),
        ("torch==2.10.0\n", {"triton": "guard.removed"}),
        ("torch @ https://x/torch-2.11.0-py3-none-any.whl\ntriton==3.4.0\n",
         {"torch": "guard.replaced"}),
    ],
)  # fmt: skip
def test_what_is_not_listed_is_removed(line: str, text: str, expected: dict[str, str]) -> None:
    decision = judged(line, text)
    assert {one.subject: one.code for one in decision.reasons} == expected
    assert (decision.verdict is Verdict.REFUSED) == bool(expected)


def test_pip_sync_knows_what_came_from_a_file_by_its_url() -> None:
    text = "torch==2.10.0\ntriton==3.4.0\n"
    decision = judged("pip-sync r.txt", text, {"torch": SHA})
    assert [one.code for one in decision.reasons] == ["guard.removed"]
    assert judged("uv pip sync r.txt", text, {"torch": SHA}).verdict is Verdict.ALLOWED
    named = f"torch @ file:///w/torch-2.10.0-py3-none-any.whl#sha256={SHA}\ntriton==3.4.0\n"
    assert judged("pip-sync r.txt", named, {"torch": SHA}).verdict is Verdict.ALLOWED


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("pip-sync", "pip install -r requirements.txt"),
        ("pip-sync r.txt", "pip install -r r.txt"),
        ("uv pip sync r.txt", "uv pip install -r r.txt"),
        ("uv pip sync -i https://x r.txt", "uv pip install -i https://x -r r.txt"),
        ("uv sync --extra a", "uv sync --inexact --extra a"),
        ("uv run --exact x.py", "uv run x.py"),
    ],
)
def test_the_nearest_command_removes_nothing(line: str, instead: str) -> None:
    request = parse(line.split(), {"r.txt": "tqdm", "requirements.txt": "tqdm"}.get)
    plan = Plan(changes=(Change(name="torch", old=TORCH),))
    decision = sync.told(decide(sync.stand_in(request), plan, HELD), request)
    assert " ".join(decision.instead) == instead
    assert decision.reasons[0].why.endswith("and everything else goes")


@pytest.mark.parametrize(
    ("line", "instead"),
    [("uv add torch", "uv add --no-sync torch"), ("uv remove -q x", "uv remove --no-sync -q x"),
     ("uv sync", ""), ("uv run x.py", "")],
)  # fmt: skip
def test_what_nobody_can_tell_about_a_project_is_refused(line: str, instead: str) -> None:
    request = parse(line.split())
    found = sync.without_plan(request, Plan(known=Known.UNKNOWN, said="no dry run"))
    assert found
    assert found.verdict is Verdict.REFUSED
    assert found.reasons[0].code == "guard.no-plan"
    assert " ".join(found.instead) == instead
    assert sync.without_plan(request, Plan()) is None
    assert sync.without_plan(parse(["pip", "install", "x"]), Plan(known=Known.UNKNOWN)) is None


PROJECT = """
[project]
name = "p"
version = "0"
requires-python = ">=3.8"
dependencies = [{dependencies}]
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"), "26.3")  # pip-sync needs one there


@pytest.fixture
def project(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose environment is the target."""
    world.copy(tmp_path / ".venv")
    monkeypatch.delenv("UV_NO_CONFIG", raising=False)
    for name, value in world.env().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / ".venv"))
    monkeypatch.setenv("UV_FIND_LINKS", str(world.vendor))
    monkeypatch.chdir(tmp_path)
    _depend(tmp_path, f"torch=={TORCH}", f"triton=={TRITON}", f"flash-attn=={FLASH}")
    return tmp_path


def _depend(project: Path, *dependencies: str) -> None:
    listed = ", ".join(f'"{one}"' for one in dependencies)
    (project / "pyproject.toml").write_text(PROJECT.format(dependencies=listed))


def _guard(line: str, capfd: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    code = main(["guard", "--json", *line.split()])
    said = capfd.readouterr()
    return code, {**json.loads(said.out)["data"], "said": said.err}


def _codes(data: dict[str, Any]) -> set[str]:
    return {reason["code"] for reason in data["reasons"] if reason["level"] == "error"}


LISTED = f"torch=={TORCH}\ntriton=={TRITON}\nflash-attn=={FLASH}\nfilelock==3.0\n"


@pytest.mark.integration
@pytest.mark.parametrize("tool", ["pip-sync", "uv pip sync"])
@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (f"{LISTED}tabulate==0.9\n", set()),
        (LISTED.replace("3.0", "3.1"), set()),
        ("tabulate==0.9\n", {"guard.removed"}),
        (f"torch==2.11.0\ntriton=={TRITON}\nflash-attn=={FLASH}\nfilelock==3.0\n",
         {"guard.replaced"}),
    ],
)  # fmt: skip
def test_lists(
    tool: str, text: str, codes: set[str], project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (project / "r.txt").write_text(text)
    before = tree(project / ".venv")
    code, data = _guard(f"{tool} r.txt", capfd)
    assert _codes(data) == codes
    assert code == (3 if codes else 0), data["said"]
    after = tree(project / ".venv")
    if codes:
        assert after == before
        bare = [find_uv(clean_env()) or "uv", "pip", "sync", "r.txt"]
        if tool != "pip-sync":
            subprocess.run(bare, check=True, capture_output=True)
            assert not any(
                "das.opt1" in path for path in tree(project / ".venv") if "torch-" in path
            )
    else:
        assert any("tabulate-0.9" in path or "filelock-3.1" in path for path in after)
        assert any("das.opt1" in path for path in after)
    if data["instead"]:
        assert data["instead"][-2:] == ["-r", "r.txt"]


@pytest.mark.integration
def test_what_is_offered_instead_of_a_sync_is_allowed(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (project / "r.txt").write_text("tabulate==0.9\n")
    for tool in ("pip-sync", "uv pip sync"):
        _, data = _guard(f"{tool} r.txt", capfd)
        assert main(["guard", "--plan", *data["instead"]]) == 0
        capfd.readouterr()


@pytest.mark.integration
def test_a_project_whose_environment_is_the_target(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, data = _guard("uv sync", capfd)
    assert (code, _codes(data)) == (0, set())
    before = tree(project / ".venv")
    _depend(project, "tabulate")
    code, data = _guard("uv sync --frozen --offline", capfd)
    assert code == 0  # the lock is as it was
    _depend(project, "tabulate")
    code, data = _guard("uv sync", capfd)
    assert (code, _codes(data)) == (3, {"guard.removed"})
    assert data["instead"] == ["uv", "sync", "--inexact"]
    assert main(["guard", "--plan", *data["instead"]]) == 0
    capfd.readouterr()
    _depend(project, "xformers")
    code, data = _guard("uv run python -c pass", capfd)
    assert (code, _codes(data)) == (3, {"guard.replaced"})
    assert _guard("uv run --no-sync python -c pass", capfd)[0] == 0
    code, data = _guard("uv add tabulate", capfd)
    assert (code, _codes(data)) == (3, {"guard.no-plan"})
    assert data["instead"] == ["uv", "add", "--no-sync", "tabulate"]
    assert tree(project / ".venv") == before


@pytest.mark.integration
def test_a_project_with_another_environment_is_let_pass(
    project: Path, world: World, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _depend(project, "tabulate")
    monkeypatch.setenv("UV_PROJECT_ENVIRONMENT", "elsewhere")
    before = tree(project / ".venv")
    assert main(["guard", "-q", "uv", "sync", "-q"]) == 0
    assert (project / "elsewhere" / "bin" / "python").exists()
    monkeypatch.setenv("UV_ACTIVE", "1")
    code, _ = _guard("uv sync --active", capfd)
    assert code == 3
    assert tree(project / ".venv") == before


@pytest.mark.integration
@pytest.mark.parametrize(
    ("name", "value", "line", "codes"),
    [
        ("PIP_UPGRADE", "1", "pip install torch", {"guard.replaced"}),
        ("PIP_UPGRADE", "0", "pip install torch", set()),
        ("PIP_TARGET", "{folder}/beside", "pip install peft", {"guard.shadowed"}),
        ("PIP_PREFIX", "{folder}/beside", "pip install -U torch", {"guard.shadowed"}),
        ("PIP_ROOT", "{folder}/beside", "pip install -U torch", {"guard.shadowed"}),
        ("PIP_FORCE_REINSTALL", "1", "pip install torch", {"guard.replaced"}),
        ("PIP_NO_DEPS", "1", "pip install xformers", set()),
        ("PIP_UPGRADE_STRATEGY", "eager", "pip install -U peft", {"guard.replaced"}),
        ("PIP_REQUIREMENT", "{folder}/pinned.txt", "pip install tabulate", {"guard.replaced"}),
        ("PIP_DRY_RUN", "1", "pip install -U torch", set()),
        ("UV_CONSTRAINT", "{folder}/pinned.txt", "uv pip install accelerate", {"guard.replaced"}),
        ("UV_OVERRIDE", "{folder}/pinned.txt", "uv pip install accelerate", {"guard.replaced"}),
    ],
)
def test_variables_steer(
    name: str, value: str, line: str, codes: set[str], project: Path,
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (project / "pinned.txt").write_text("torch==2.11.0\n")
    monkeypatch.setenv(name, value.format(folder=project))
    monkeypatch.delenv("UV_FIND_LINKS")
    code = main(["guard", "--plan", "--json", *line.split()])
    data = json.loads(capfd.readouterr().out)["data"]
    assert _codes(data) == codes
    assert code == (3 if codes else 0)


@pytest.mark.integration
def test_a_refusal_says_what_steers_and_that_the_shell_may_only_be_not_activated(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    script = project / "stack" / "env.sh"
    script.parent.mkdir()
    script.write_text(f"export LD_LIBRARY_PATH={script.parent}/lib:$LD_LIBRARY_PATH\n")
    monkeypatch.setenv("ROCM_PATH", str(script.parent))
    monkeypatch.setenv("PIP_UPGRADE", "1")
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    assert main(["guard", "pip", "install", "torch"]) == 3
    said = capfd.readouterr().err
    assert "envlock: '--upgrade' is set by PIP_UPGRADE" in said
    assert f"type: source {script}" in said
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{script.parent}/lib:/x")
    assert main(["guard", "pip", "install", "torch"]) == 3
    assert "source " not in capfd.readouterr().err
    monkeypatch.delenv("LD_LIBRARY_PATH")
    monkeypatch.delenv("PIP_UPGRADE")
    assert main(["guard", "pip", "install", "tabulate==7"]) == 1
    assert "source " not in capfd.readouterr().err


@pytest.mark.integration
def test_the_targets_own_configuration_steers(
    project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / ".venv" / "pip.conf").write_text("[install]\nupgrade = yes\n")
    assert main(["guard", "--plan", "pip", "install", "torch"]) == 3
    monkeypatch.setenv("PIP_UPGRADE", "no")
    assert main(["guard", "--plan", "pip", "install", "torch"]) == 0
    capfd.readouterr()


@pytest.mark.integration
def test_pip_sync_needs_a_pip_in_the_target(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    python = project / ".venv" / "bin" / "python"
    pip(python, "uninstall", "-y", "pip")
    (project / "requirements.txt").write_text(f"{LISTED}tabulate==0.9\n")
    assert main(["guard", "pip-sync"]) == 5
    assert "uv pip sync" in capfd.readouterr().err


@pytest.mark.integration
def test_pip_sync_of_wheels_that_came_from_files(
    project: Path, world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    python = project / ".venv" / "bin" / "python"
    (wheel,) = world.vendor.glob("triton-*.whl")
    pip(python, "install", "--no-index", "--no-deps", "--force-reinstall", str(wheel))
    (project / "requirements.txt").write_text(LISTED)
    code, data = _guard("pip-sync", capfd)
    assert (code, _codes(data)) == (3, {"guard.removed"})


@pytest.mark.parametrize("known", [Known.UNKNOWN, Known.REJECTED])
def test_what_nobody_can_tell_about_an_exact_install_is_refused(known: Known) -> None:
    request = parse(["uv", "pip", "install", "--exact", "tqdm"])
    found = sync.without_plan(request, Plan(known=known, said="no answer"))
    assert found
    assert found.verdict is Verdict.REFUSED
    assert " ".join(found.instead) == "uv pip install tqdm"
    assert sync.without_plan(request, Plan()) is None


class _Silent:
    """A planner that never says what it would do."""

    def __init__(self, known: Known) -> None:
        self.known = known

    def plan(self, *_: object) -> Plan:
        return Plan(known=self.known, said="no answer")


@pytest.mark.parametrize("known", [Known.UNKNOWN, Known.REJECTED])
@pytest.mark.parametrize("there", [True, False])
def test_a_list_is_judged_by_itself_where_uv_says_nothing(
    known: Known, there: bool, tmp_path: Path
) -> None:
    listed = tmp_path / "r.txt"
    if there:
        listed.write_text("tqdm==4.0\n")
    request = parse(["uv", "pip", "sync", str(listed)], {str(listed): "tqdm==4.0\n"}.get)
    scene: Any = SimpleNamespace(
        request=request, protected=HELD, intact=HELD, planner=_Silent(known), target=None,
        ask=Ask(installed=INSTALLED), inventory=SimpleNamespace(named=lambda _: ()),
    )  # fmt: skip
    plan = planned(scene, Evidence())
    gone = {change.name for change in plan.changes if change.new is None}
    if there:
        assert plan.known is Known.PLANNED
        assert gone == {"torch", "triton", "pip"}
    else:  # uv cannot read it either, and removes nothing
        assert (plan.known, gone) == (known, set())
