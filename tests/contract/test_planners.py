"""pip and uv behind one protocol: the same world, the same plan."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from envlock.adapters.configuration import pip_files, read_toml, uv_files
from envlock.adapters.installer import Ask, Known, Plan, Planner, Stated
from envlock.adapters.interpreter import Named, read_target
from envlock.adapters.pip import PipPlanner, python_of
from envlock.adapters.pip_sync import PipSyncPlanner
from envlock.adapters.uv import UvPlanner, find_uv
from envlock.guard.command import configured, parse
from envlock.guard.settings import Source, Surroundings
from envlock.model.facts import Target
from tests.guard.world import FLASH, TORCH, TRITON, World, make_world
from tests.support.pythons import clean_env

INSTALLED = {"torch": TORCH, "triton": TRITON, "flash-attn": FLASH, "filelock": "3.0"}

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def target(world: World) -> Target:
    return read_target(Named(str(world.target / "bin" / "python"), "--python"), clean_env())


def planner(tool: str, world: World) -> Planner:
    env = {**clean_env(), **world.env()}
    env.pop("UV_NO_CONFIG")
    if tool == "pip":
        return PipPlanner(env=env)
    uv = find_uv(env)
    assert uv
    return UvPlanner(program=uv, asked=uv, env=env)


def ask(tool: str, line: str, world: World | None = None) -> Ask:
    """With what the world's settings say, as the scene of a command has it."""
    words = ["uv", "pip"] if tool == "uv" else ["pip"]
    request = parse([*words, *shlex.split(line)])
    env = world.env() if world else {}
    found = [] if world is None else uv_files(env) if tool == "uv" else pip_files(env, "")
    around = Surroundings(env=env, files=tuple(Source(path=p, text=t) for p, t in found))
    request = configured(request, around, None, list(read_toml(found)) if tool == "uv" else [])
    given, typed = request.given, request.typed
    return Ask(
        before=request.before,
        subcommand=request.subcommand,
        after=request.after,
        installed=INSTALLED,
        elsewhere=bool(request.elsewhere),
        flags=given.flags | given.values.keys(),
        typed=typed.flags | typed.values.keys(),
        constraints=given.value("--constraint"),
        urls=(*given.value("--index-url"), *given.value("--find-links")),
    )


def plan(tool: str, world: World, target: Target, line: str) -> Plan:
    """Without what only pip tells."""
    found = planner(tool, world).plan(ask(tool, line, world), target)
    changes = (replace(c, url="", sha256="", requires=None) for c in found.changes)
    return replace(found, changes=tuple(changes))


@pytest.mark.parametrize(
    "line",
    [
        "install tabulate",
        "install torch",
        "install -U --no-deps torch",
        "install -q -U --no-deps torch tabulate",
        "install xformers",
        "install peft",
        "install --target {folder}/beside peft",
        "install --no-deps torch==2.11.0",
        "install {folder}/index/torch-2.9.1-py3-none-any.whl",
        "install --dry-run --report {folder}/theirs.json tabulate",
    ],
)
def test_the_same_plan(line: str, world: World, target: Target) -> None:
    line = line.format(folder=world.folder)
    uvs = line.replace(f"--report {world.folder}/theirs.json ", "")
    by_pip, by_uv = plan("pip", world, target, line), plan("uv", world, target, uvs)
    assert by_pip == by_uv
    assert by_pip.known is Known.PLANNED
    assert not (world.folder / "theirs.json").exists()


def test_pip_also_tells_where_from_and_who_requires_what(world: World, target: Target) -> None:
    found = planner("pip", world).plan(ask("pip", "install xformers", world), target)
    torch, xformers = (c for c in found.changes if c.name in ("torch", "xformers"))
    assert (torch.old, torch.new) == (TORCH, "2.9.1")
    assert torch.url.endswith("/index/torch-2.9.1-py3-none-any.whl")
    assert len(torch.sha256) == 64
    assert xformers.requires == ("torch==2.9.1",)


@pytest.mark.parametrize("tool", ["pip", "uv"])
@pytest.mark.parametrize("line", ["install --bogus torch", "install no-such-project", "install"])
def test_what_the_tool_rejects(tool: str, line: str, world: World, target: Target) -> None:
    found = planner(tool, world).plan(ask(tool, line, world), target)
    assert found.known is Known.REJECTED
    assert found.said
    assert found.changes == ()


@pytest.mark.parametrize(
    ("line", "believed"),
    [
        ("install torch==9.9", True),
        ("install no-such-project torch==2.11.0", True),
        ("install -r no-such-file.txt torch==2.11.0", True),
        ("install torch==2.10.0 torch==2.11.0", True),
        ("install -c {folder}/bound.txt torch==2.11.0", True),
        # an older pip reads versions that a newer one does not see
        ("install torch===2.1.0_das", False),
        # and the metadata of files otherwise
        ("install xformers torch==2.10.0", False),
    ],
)
def test_what_a_newer_pip_rejects_for_an_older_one(
    line: str, believed: bool, world: World, target: Target
) -> None:
    (world.folder / "bound.txt").write_text("torch<2.11\n")
    asked = ask("pip", line.format(folder=world.folder), world)
    found = planner("pip", world).plan(asked, replace(target, pip="22.0.2"))
    assert found.known is (Known.REJECTED if believed else Known.UNKNOWN)
    assert found.said


@pytest.mark.parametrize("settings", ["person", "named", "none", "typed"])
def test_uv_believes_what_is_stated(
    settings: str, world: World, target: Target, tmp_path: Path
) -> None:
    """Whichever settings it would have read, it still reads."""
    uv = find_uv(clean_env())
    assert uv
    places = f'no-index = true\nfind-links = ["{world.index}"]\n'
    env = {k: v for k, v in clean_env().items() if k != "UV_NO_CONFIG"}
    env |= {"UV_CACHE_DIR": str(world.folder / "uv-cache"), "XDG_CONFIG_HOME": str(tmp_path)}
    line = "install torch"
    if settings == "person":
        (tmp_path / "uv").mkdir()
        (tmp_path / "uv" / "uv.toml").write_text(places)
    elif settings == "none":
        env["UV_NO_CONFIG"] = "1"
        line += f" --no-index -f {world.index}"
    else:
        (tmp_path / "own.toml").write_text(places)
        line += f" --config-file {tmp_path}/own.toml" if settings == "typed" else ""
        env |= {"UV_CONFIG_FILE": str(tmp_path / "own.toml")} if settings == "named" else {}
    made = UvPlanner(program=uv, asked=uv, env=env)
    wanting = Stated(name="torch", version=TORCH, requires=("tabulate", "pytz (>dev)"))
    plain = replace(ask("uv", line), urls=(str(world.index),), flags=frozenset({"--no-index"}))
    assert made.plan(plain, target) == Plan()
    found = made.plan(replace(plain, stated=(wanting,)), target)
    assert [(change.name, change.new) for change in found.changes] == [("tabulate", "0.9")]


def test_pip_believes_what_is_installed(world: World, target: Target) -> None:
    other = replace(ask("pip", "install torch", world), stated=(Stated(name="x", version="1"),))
    assert planner("pip", world).plan(other, target).known is Known.UNKNOWN


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_a_build_that_wants_another_build_is_not_made(
    tool: str, world: World, target: Target
) -> None:
    builds = (("torch", TORCH), ("triton", TRITON))
    asked = replace(ask(tool, "install source-built", world), builds=builds)
    (found,) = planner(tool, world).plan(asked, target).blocked
    assert found.raw.startswith("source-built")
    assert found.requires == {"torch"}
    other = replace(ask(tool, "install source-built-plainly", world), builds=builds)
    assert planner(tool, world).plan(other, target).blocked == ()


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_an_index_that_does_not_answer_is_not_waited_for(
    tool: str, world: World, target: Target
) -> None:
    # nothing listens on port 9 of this machine
    line = "install -i http://127.0.0.1:9/simple torch"
    asked = replace(ask(tool, line))
    made = planner(tool, world)
    env = {**clean_env(), "PIP_CONFIG_FILE": "/dev/null"}
    lonely = replace(made, env=env)  # type: ignore[type-var]
    found = lonely.plan(asked, target)
    assert found.known is Known.UNKNOWN
    assert found.said == "no index can be reached"


def test_the_command_line_that_is_run(world: World, target: Target, tmp_path: Path) -> None:
    builds = [("torch", TORCH), ("triton", "3.6.0"), ("old", "2.1.0+das1.0+git00661e0.abi0")]
    pip, uv = planner("pip", world), planner("uv", world)
    held = pip.held(ask("pip", "install x"), target, builds, str(tmp_path))
    kept = str(tmp_path / "keep.txt")
    assert held == ["-c", kept, "--build-constraint", kept]
    assert Path(kept).read_text() == (
        f"torch=={TORCH}\ntriton===3.6.0\nold===2.1.0+das1.0+git00661e0.abi0\n"
    )
    in_place = ask("pip", "install --no-build-isolation x")
    assert pip.held(in_place, target, builds, str(tmp_path)) == ["-c", kept]
    argv = pip.argv(ask("pip", "--proxy p install -U x"), target, ["-c", "f"])
    assert argv[-8:] == [target.executable, "--proxy", "p", "install", "-c", "f", "-U", "x"]

    held = uv.held(ask("uv", "install x"), target, builds, str(tmp_path))
    assert held == ["-c", kept, "-b", kept]
    assert Path(kept).read_text() == f"torch=={TORCH}\ntriton===3.6.0\n"
    argv = uv.argv(ask("uv", "install -U x"), target, ["-c", "f"])
    assert argv[1:] == ["pip", "install", "--python", target.executable, "-c", "f", "-U", "x"]
    named = ask("uv", "install -p /x/python x")
    assert uv.argv(named, target)[1:] == ["pip", "install", "-p", "/x/python", "x"]


def test_builds_in_isolation_are_held_where_no_option_does(
    world: World, target: Target, tmp_path: Path
) -> None:
    made, kept = planner("pip", world), str(tmp_path / "keep.txt")
    old = replace(target, pip="24.0")
    typed = ask("pip", "install -c mine.txt x")
    assert made.held(typed, old, [("torch", TORCH)], str(tmp_path)) == ["-c", kept]
    held = {"PIP_CONSTRAINT": f"mine.txt {kept}"}
    assert made.variables(typed, old, str(tmp_path)) == held
    in_place = ask("pip", "install --no-build-isolation x")
    assert made.variables(in_place, old, str(tmp_path)) == {}
    newest = replace(target, pip="26.2")
    assert made.variables(typed, newest, str(tmp_path)) == {}
    assert made.held(typed, newest, [], str(tmp_path))[-2:] == ["--build-constraint", kept]
    assert planner("uv", world).variables(ask("uv", "install x"), target, str(tmp_path)) == {}


def test_pip_sync_is_told_the_target_and_the_constraints(target: Target, tmp_path: Path) -> None:
    made, target = PipSyncPlanner(env={}), replace(target, pip="26.3")
    asked = Ask(subcommand="sync", after=("--pip-args", "--pre", "r.txt"))
    held = made.held(asked, target, [("torch", TORCH)], str(tmp_path))
    kept = str(tmp_path / "keep.txt")
    assert made.argv(asked, target, held)[1:] == [
        "-m", "piptools", "sync", "--python-executable", target.executable,
        "--pip-args", f"-c {kept} --pre", "r.txt",
    ]  # fmt: skip
    typed = Ask(program=("/x/pip-sync",), subcommand="sync", after=("r.txt",))
    assert made.argv(typed, target) == ["/x/pip-sync", "r.txt"]
    assert made.plan(asked, target).known is Known.UNKNOWN


def test_an_option_of_uv_does_not_push_the_persons_constraints_out(
    world: World, target: Target, tmp_path: Path
) -> None:
    uv = planner("uv", world)
    mine = replace(uv, env={**uv.env, "UV_CONSTRAINT": "a.txt b.txt"})  # type: ignore[type-var,attr-defined]
    kept = str(tmp_path / "keep.txt")
    held = mine.held(ask("uv", "install x"), target, [("torch", TORCH)], str(tmp_path))
    assert held == ["-c", "a.txt", "-c", "b.txt", "-c", kept, "-b", kept]


def test_the_interpreter_of_a_pip_script(tmp_path: Path) -> None:
    script = tmp_path / "pip"
    script.write_text("#!/opt/v/bin/python3.10\nimport pip\n")
    assert python_of(str(script)) == "/opt/v/bin/python3.10"
    script.write_text("#!/bin/sh\n'''exec' \"/a very/long path/bin/python\" \"$0\" \"$@\"\n' '''\n")
    assert python_of(str(script)) == "/a very/long path/bin/python"
    script.write_bytes(b"\x7fELF")
    assert python_of(str(script)) == str(tmp_path / "python3")
