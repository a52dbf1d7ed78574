"""The golden command lines: guard's answer, what then really happens, and what would have.

What is allowed is run, and the protected builds stay byte for byte. What is refused is run as
well, without guard and on a target of its own, and the harm is there. Every line, for every pip
and for uv: ``pytest -n 2 -m integration tests/golden``; the default is a fixed sample.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from envlock.cli import main
from tests.guard.world import (
    FLASH,
    KINDS,
    PUBLIC,
    TORCH,
    TRITON,
    Source,
    World,
    make_world,
    protected_part,
    satisfied,
    tree,
)

Row = dict[str, Any]
Worlds = Callable[[str, str], World]

ROWS: list[Row] = yaml.safe_load(Path(__file__).with_name("guard.yaml").read_text(encoding="utf-8"))
NEWEST = "pip"
OLD = ("pip 22.0.2", "pip 23.0.1", "pip 24.0", "pip 25.3")
TOOLS = (NEWEST, "uv", "pip-sync 26.3", *OLD)
#: How a tool is spelled where a line does not say.
SPELLED = {"uv": "uv pip", "pip-sync": "pip-sync"}
#: Exit 2, with the list of what is understood.
UNKNOWN = "not understood"
#: Allowed: only metadata of what is installed already stands in the way, and is stepped around.
REPAIR = "guard.repair"
#: One line in so many belongs to the sample, and the first one of every answer.
EVERY = 5

#: One package, from the index's folder; the braces that are left are filled in for each stage.
LOCK = """lock-version = "1.0"
created-by = "tests"
[[packages]]
name = "{0}"
version = "{1}"
[[packages.wheels]]
name = "{0}-{1}-py3-none-any.whl"
url = "file://{{index}}/{0}-{1}-py3-none-any.whl"
hashes = {{{{sha256 = "{{{0}_sha256}}"}}}}
"""
FILES = {
    "harmless.txt": "tabulate  # a comment\n",
    "loose.txt": "tabulate\npeft\n",
    "pinned.txt": "tabulate\ntorch==2.11.0 ; python_version > '3'\n",
    "nested.txt": "tabulate\n-r pinned.txt\n",
    "sub/deep.txt": "-r ../nested.txt\n",
    "continued.txt": "tabulate\ntorch \\\n  ==2.11.0\n",
    "marked.txt": "tabulate\ntorch==2.11.0 ; sys_platform == 'win32'\n",
    "links.txt": "--find-links {other}\n--no-index\ntorch==2.10.0+das.opt11\n",
    "url.txt": "tabulate\ntorch @ file://{index}/torch-2.9.1-py3-none-any.whl\n",
    "bare-path.txt": "{index}/torch-2.9.1-py3-none-any.whl\n",
    "editable.txt": "-e ./app-pinned\n",
    "hashed.txt": "tabulate==0.9 --hash=sha256:" + "0" * 64 + "\n",
    "constrained.txt": "-c old.txt\npeft\n",
    "constrained-hard.txt": "-c old.txt\ntorch\n",
    "old.txt": "torch==2.9.1\n",
    "kept.txt": "torch==2.10.0+das.opt1.dtk2604.20260325.g6b060a\n",
    "new.txt": "tabulate<0.9\n",
    "named.txt": "tabulate\n${{WANTED}}\n",
    "clobbered.txt": "-f {index}\n--no-index\nclobber\n",
    "options.txt": "-c kept.txt\n--pre\n-r sub/linked.txt\n",
    "sub/linked.txt": "-f {other}\n--no-index\n-r wanted.txt\n",
    "sub/wanted.txt": "torch==2.10.0+das.opt11\n",
    "sub/held.txt": "-c ../bounds.txt\ntorch\n",
    "bounds.txt": "-f {other}\ntorch==2.10.0+das.opt11\n",
    "all.txt": f"torch=={TORCH}\ntriton=={TRITON}\nflash-attn=={FLASH}\nfilelock==3.0\n"
    "tabulate==0.9\n",
    "most.txt": f"torch=={TORCH}\ntriton=={TRITON}\nfilelock==3.0\n",
    "newer.txt": f"torch==2.11.0\ntriton=={TRITON}\nflash-attn=={FLASH}\nfilelock==3.0\n",
    "pylock.toml": LOCK.format("tabulate", "0.9"),
    "pylock.torch.toml": LOCK.format("torch", "2.10.0"),
    "groups/pyproject.toml": "[project]\nname = 'p'\nversion = '1'\n"
    "dependencies = ['xformers']\n[dependency-groups]\ndev = ['torch==2.11.0']\n",
    "override.txt": "torch==2.9.1\n",
    "override-kept.txt": "torch==2.10.0+das.opt1.dtk2604.20260325.g6b060a\n",
}
TREES = (
    Source("app-plain", requires=("tabulate",)),
    Source("app-pinned", requires=("torch==2.9.1",)),
    Source("app-loose", requires=("torch>=2",)),
    Source("app-built", build=("torch",)),
    Source("torch", version="2.12.0"),
    Source("app-extra", requires=("torch==2.9.1 ; extra == 'gpu'\nProvides-Extra: gpu",)),
    Source("app-torch", packages=("torch",)),
)
#: Stands for the index where there is no network: nobody listens on the discard port.
DEAD = "http://127.0.0.1:9/simple"


@dataclass(frozen=True)
class Stage:
    """A folder with a target, requirement files and settings, and a command line for it."""

    folder: Path
    python: Path
    env: dict[str, str]
    words: tuple[str, ...]

    @property
    def files(self) -> dict[str, str]:
        return tree(self.folder)


def set_up(world: World, tool: str, row: Row, folder: Path, *, dead: bool = False) -> Stage:
    """A stage of its own for one run of one line."""
    folder.mkdir()
    python = world.copy(folder / "target")
    places: dict[str, Path | str] = {
        "index": world.index, "vendor": world.vendor, "other": world.other, "folder": folder,
    }  # fmt: skip
    for wheel in ("tabulate-0.9", "torch-2.10.0"):
        data = (world.index / f"{wheel}-py3-none-any.whl").read_bytes()
        places[f"{wheel.partition('-')[0]}_sha256"] = hashlib.sha256(data).hexdigest()
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.format(**places))
    for source in TREES:
        source.tree(folder)
    if row.get("needs") == "git":
        _commit(folder / "app-pinned")
    pip_index = f"index-url = {DEAD}" if dead else f"no-index = true\nfind-links = {world.index}"
    uv_index = (
        f'index-url = "{DEAD}"' if dead else f'no-index = true\nfind-links = ["{world.index}"]'
    )
    settings = row.get("settings", {})
    (folder / "pip.conf").write_text(
        f"[global]\n{pip_index}\n" + settings.get("pip", "").format(**places)
    )
    (folder / "uv.toml").write_text(f"{uv_index}\n" + settings.get("uv", "").format(**places))
    env = {
        "PIP_CONFIG_FILE": str(folder / "pip.conf"),
        "UV_CONFIG_FILE": str(folder / "uv.toml"),
        "UV_CACHE_DIR": str(world.folder / "uv-cache"),
        "PYTHONUSERBASE": str(folder / "user"),
        "VIRTUAL_ENV": str(folder / "target"),
        **{name: str(value).format(**places) for name, value in row.get("env", {}).items()},
    }
    spelled = row.get("spelled") or SPELLED.get(tool.split()[0], "pip")
    words = shlex.split(f"{spelled} {row['line'].format(**places)}")
    return Stage(folder=folder, python=python, env=env, words=tuple(words))


def run_bare(stage: Stage, tool: str) -> int:
    """The command as the person typed it, with nobody in between; gives its exit code."""
    start = next(i for i, word in enumerate(stage.words) if re.match(r"(pip|uv|-mpip)", word))
    before = stage.words[:start] if stage.words[0] == "env" else ()
    after = stage.words[start + 1 :]
    if tool == "uv":
        command = [str(Path(sys.executable).with_name("uv")), *after]
    elif tool.startswith("pip-sync"):
        after = after[1:] if after[:1] == ("sync",) else after
        own = [sys.executable, "-m", "piptools", "sync", "--python-executable", str(stage.python)]
        command = [*own, *after]
    else:
        own = [sys.executable, "-m", "pip", "--python", str(stage.python)]
        command = [*(own if tool == NEWEST else [str(stage.python), "-m", "pip"]), *after]
    command = [*before, *command]
    env = {k: v for k, v in os.environ.items() if k != "UV_NO_CONFIG"} | stage.env
    # what guard's own plans built is not this one's
    env["UV_CACHE_DIR"] = str(stage.folder.with_name("bare-cache"))
    done = subprocess.run(
        command, env=env, cwd=stage.folder, stdin=subprocess.DEVNULL, capture_output=True
    )
    return done.returncode


def answer_for(row: Row, tool: str) -> str | None:
    """The answer for a tool; one for a single version goes before one for all of them."""
    found = row.get("by", {}).get(tool, row.get(tool.split()[0]))
    return None if found is None else str(found)


def sample() -> set[int]:
    """Positions of the lines that are asked by default."""
    chosen = set(range(0, len(ROWS), EVERY))
    seen: set[str | None] = set()
    for position, row in enumerate(ROWS):
        answers = {answer_for(row, NEWEST), answer_for(row, "uv")}
        if answers - seen:
            chosen.add(position)
        seen |= answers
    return chosen


def cases() -> list[Any]:
    """Each line for each tool; what is not in the sample only where the matrix is asked for."""
    found, chosen = [], sample()
    for position, row in enumerate(ROWS):
        for tool in TOOLS:
            if answer_for(row, tool) is not None:
                short = tool not in OLD and position in chosen
                marks = [] if short else [pytest.mark.long]
                name = f"{tool}: {row.get('world', 'das')}: {row['line']}"
                found.append(pytest.param(tool, row, id=f"{position} {name}", marks=marks))
    return found


@pytest.fixture(scope="session")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Worlds:
    """The world of each tool and kind, made once."""
    made: dict[tuple[str, str], World] = {}

    def world(tool: str, kind: str) -> World:
        key = (tool.partition(" ")[2], kind)
        if key not in made:
            folder = tmp_path_factory.mktemp("w")
            made[key] = make_world(folder, key[0], builds=KINDS[kind], child=kind == "child")
        return made[key]

    return world


@pytest.mark.integration
@pytest.mark.parametrize(("tool", "row"), cases())
def test_line(
    tool: str,
    row: Row,
    worlds: Worlds,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    if row.get("needs") and not shutil.which(row["needs"]):
        pytest.skip(f"there is no {row['needs']} here")
    world = worlds(tool, row.get("world", "das"))
    stage = set_up(world, tool, row, tmp_path / "guarded", dead=row.get("offline", False))
    _enter(stage, monkeypatch)
    before = stage.files

    code = main(["guard", "--python", str(stage.python), "--json", *stage.words])

    said = capfd.readouterr()
    answer, after = answer_for(row, tool), stage.files
    if answer == UNKNOWN:
        assert code == 2
        assert "pip install, pip uninstall, " in said.err
        assert after == before
        return
    data = json.loads(said.out)["data"]
    told = {finding["code"] for finding in data["reasons"]}
    reasons = {finding["code"] for finding in data["reasons"] if finding["level"] == "error"}
    if answer in ("allowed", REPAIR):
        assert reasons == set(), said.err
        assert (REPAIR in told) == (answer == REPAIR), said.err
        assert code == row.get("codes", {}).get(tool, row.get("code", 0)), said.err
        assert vendor_part(row, after) == vendor_part(row, before)
    else:
        assert reasons == {answer}, said.err
        assert code == 3
        assert after == before
        if tool not in OLD:
            _keeps_every_build(data["instead"], stage.python, capfd)
    if answer != "allowed":
        bare = set_up(world, tool, row, tmp_path / "bare")
        before = bare.files
        run_bare(bare, tool)
        assert harm(row, before, bare), "the bare command does no harm"


def vendor_part(row: Row, files: dict[str, str]) -> dict[str, str]:
    """The files of the builds that the row's world has."""
    return protected_part(files, [name for name, _, _ in KINDS[row.get("world", "das")]])


def harm(row: Row, before: dict[str, str], bare: Stage) -> bool:
    """Whether a build was lost, what it needs was moved, or something was built against another."""
    after = bare.files
    builds = KINDS[row.get("world", "das")]
    built = {path.read_text() for path in bare.folder.rglob("*_built_with.txt")}
    return (
        vendor_part(row, after) != vendor_part(row, before)
        or bool(satisfied(builds, before) - satisfied(builds, after))
        or bool(built & set(PUBLIC["torch"][0]))
        or _hidden(bare, before)
    )


def _hidden(bare: Stage, before: dict[str, str]) -> bool:
    """Whether ``import torch`` finds another one than what was installed in the target."""
    code = "import torch; print(torch.__file__)"
    done = subprocess.run([bare.python, "-I", "-c", code], capture_output=True, text=True)
    place = Path(done.stdout.strip())
    if not place.is_relative_to(bare.folder):
        return False  # of the environment above
    inside = str(place.relative_to(bare.folder))
    return inside not in before or not inside.startswith("target/")


def _commit(tree: Path) -> None:
    """Makes a repository of a source tree."""
    git = ["git", "-C", str(tree), "-c", "user.name=x", "-c", "user.email=x@localhost"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *words], check=True)


def _enter(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(stage.folder)
    monkeypatch.delenv("UV_NO_CONFIG", raising=False)
    for name, value in stage.env.items():
        monkeypatch.setenv(name, value)


def _keeps_every_build(words: list[str], python: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What a refusal offers instead is allowed."""
    if words:
        assert main(["guard", "--plan", "--python", str(python), *words]) == 0
        assert "allowed" in capfd.readouterr().out
