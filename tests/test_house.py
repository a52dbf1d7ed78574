"""The rules of the house: sizes, import contracts, and what must not be in the text.

Each limit is first seen to fail, on a small example, so that none is only believed in.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import envlock

ROOT = Path(__file__).parents[1]
MODULES = sorted(
    path for folder in ("envlock", "tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")
)
TEXTS = [
    *MODULES,
    *(path for path in sorted(ROOT.glob("*.*")) if path.suffix in (".md", ".toml")),
    *sorted((ROOT / "envlock").rglob("*.yaml")),
    *sorted((ROOT / "manifests").rglob("*.yaml")),
    ROOT / ".ci" / "run",
]
MOST_LINES, MOST_FUNCTION, LONG_FUNCTION = 400, 50, 30


def named(paths: Iterable[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


# --- sizes ----------------------------------------------------------------------------------


def functions(source: str) -> Iterator[tuple[str, int]]:
    """Name and number of lines of every function, its docstring and decorators not counted."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        first = node.body[0]
        if ast.get_docstring(node) is not None:
            lines -= (first.end_lineno or first.lineno) - first.lineno + 1
        yield node.name, lines


def too_long(source: str) -> list[str]:
    return [f"{name}: {lines} lines" for name, lines in functions(source) if lines > MOST_FUNCTION]


@pytest.mark.parametrize("path", MODULES, ids=named(MODULES))
def test_sizes(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert source.count("\n") <= MOST_LINES
    assert too_long(source) == []


def test_most_functions_are_short() -> None:
    own = [path for path in MODULES if path.is_relative_to(ROOT / "envlock")]
    sizes = [lines for path in own for _, lines in functions(path.read_text(encoding="utf-8"))]
    assert sum(lines <= LONG_FUNCTION for lines in sizes) >= 0.9 * len(sizes)


def test_sizes_are_measured() -> None:
    docstring = '    """' + "\n" * 60 + '    """\n'
    body = "    x = 1\n"
    assert too_long(f"def f():\n{docstring}{body * 49}") == []
    assert too_long(f"def f():\n{docstring}{body * 50}") == ["f: 51 lines"]
    nested = "class A:\n  async def g(self):\n" + body * 60
    assert too_long(nested) == ["g: 61 lines"]


# --- words ----------------------------------------------------------------------------------

# put together here, or this file would be the first to break the rule
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX"]) + r")\b")
MACHINE = re.compile(
    "|".join(
        [
            r"/wo" + r"rk/(?:main|shared|\.)",
            r"/opt/wh" + "eels",
            r"/ro" + r"ot/",
            r"py" + r"pi\.org",
            r"python" + r"hosted\.org",
            r"py" + r"env/versions/\d",
        ]
    )
)


def offences(text: str) -> list[str]:
    return [found[0] for pattern in (UNFINISHED, MACHINE) for found in pattern.finditer(text)]


@pytest.mark.parametrize("path", TEXTS, ids=named(TEXTS))
def test_words(path: Path) -> None:
    """Nothing unfinished, and nothing that is true on one machine only."""
    assert offences(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "# TO" + "DO: later",
        "https://py" + "pi.org/simple",
        "/opt/wh" + "eels/a",
        "/wo" + "rk/main/x",
    ],
)
def test_words_are_found(text: str) -> None:
    assert offences(text)


def test_harmless_words() -> None:
    assert offences("TODOS, /workspace, /home/work/x, /opt/dtk, a mastodon") == []


# --- imports --------------------------------------------------------------------------------

#: A line that breaks each contract, and where.
BREACHES = {
    "cli over features over adapters over model over errors": (
        "model/label.py",
        "envlock.adapters",
    ),
    "features know the protocols, never pip or uv by name": ("snapshot.py", "envlock.adapters.pip"),
    "the model does no input or output": ("model/record.py", "pathlib"),
    "only one module starts programs": ("adapters/files.py", "subprocess"),
    "probes import nothing of envlock": ("probes/environment.py", "envlock.errors"),
    "nothing of the target is imported": ("adapters/installed.py", "torch"),
}


def lint_imports(folder: Path) -> str:
    tool = Path(sys.executable).with_name("lint-imports")
    command = [str(tool), "--no-logo", "--no-cache", "--config", str(folder / "pyproject.toml")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_import_contracts(tmp_path: Path) -> None:
    """They hold for the code as it is, and each is broken by a line that breaks it."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    leave_out = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "envlock", tmp_path / "envlock", ignore=leave_out)
    said = lint_imports(tmp_path)
    for contract in BREACHES:
        assert f"{contract} KEPT" in said
    assert " BROKEN" not in said
    for path, module in BREACHES.values():
        with (tmp_path / "envlock" / path).open("a") as file:
            file.write(f"\nimport {module}\n")
    said = lint_imports(tmp_path)
    for contract in BREACHES:
        assert f"{contract} BROKEN" in said


# --- what the documents say -----------------------------------------------------------------


def section(text: str, heading: str) -> str:
    """The text below a heading, up to the next one."""
    found = re.search(rf"^#+ {heading}\n(.*?)(?=^#+ |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, f"no heading '{heading}'"
    return found[1]


def fenced(text: str) -> str:
    """The first fenced block."""
    found = re.search(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert found is not None, "no fenced block"
    return found[1].strip()


def test_the_one_command() -> None:
    """README, CONTRIBUTING and CI name the same one."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    command = fenced(section(readme, "Run the tests"))
    assert command.endswith("-m tests")
    assert "--group test" in command
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert fenced(section(contributing, "Run everything")) == command


def test_ci_runs_the_readmes_command(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    script = shutil.copy(ROOT / ".ci/run", tmp_path / ".ci")
    readme = tmp_path / "README.md"
    readme.write_text(
        "# x\n```\necho no\n```\n## Run the tests\nwords\n```sh\necho one &&\n"
        "  echo two; cat\n```\n```\necho no\n```\n# y\n```\necho no\n```\n"
    )
    done = subprocess.run([script], capture_output=True, text=True, check=True, input="typed\n")
    assert done.stdout.endswith("\none\ntwo\n")
    readme.write_text("# x\n")
    assert subprocess.run([script], capture_output=True, check=False).returncode == 1
    readme.write_text("## Run the tests\n```\nfalse\necho on\n```\n")
    assert subprocess.run([script], capture_output=True, check=False).returncode == 1


def test_contributing_names_what_is_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    names = re.findall(r"`([\w./]+(?:/|\.py|\.md|\.yaml|\.toml))`", text)
    assert len(names) > 20
    places = (ROOT, ROOT / "envlock")
    assert [name for name in names if not any((place / name).exists() for place in places)] == []


def test_changelog_has_the_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[{re.escape(envlock.__version__)}\]", text, re.MULTILINE)


def test_licence() -> None:
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")
