"""Spellings of the commands that guard understands, and what it reads out of them."""

from __future__ import annotations

import pytest

from envlock.errors import UsageProblem
from envlock.guard import options
from envlock.guard.command import parse, parse_asked, requirement_lines


@pytest.mark.parametrize(
    ("line", "tool", "subcommand", "by_path", "version"),
    [
        ("pip install x", "pip", "install", False, ""),
        ("pip3 install x", "pip", "install", False, ""),
        ("pip3.10 install x", "pip", "install", False, "3.10"),
        ("python -m pip install x", "pip", "install", False, ""),
        ("python3 -m pip uninstall x", "pip", "uninstall", False, ""),
        ("python3.12 -m pip install x", "pip", "install", False, "3.12"),
        ("python -I -W ignore -m pip install x", "pip", "install", False, ""),
        ("/opt/v/bin/pip install x", "pip", "install", True, ""),
        ("/opt/v/bin/pip3.10 install x", "pip", "install", True, ""),
        ("/opt/v/bin/python -m pip install x", "pip", "install", True, ""),
        ("./bin/python3.11 -m pip install x", "pip", "install", True, ""),
        ("pip -q --proxy http://p:1 install x", "pip", "install", False, ""),
        ("uv pip install x", "uv", "install", False, ""),
        ("uv --color never pip -q uninstall x", "uv", "uninstall", False, ""),
        ("/opt/uv pip install x", "uv", "install", True, ""),
        ("pip list", "pip", "list", False, ""),
        ("pip", "pip", "", False, ""),
        ("pip --version", "pip", "", False, ""),
        ("uv pip freeze", "uv", "freeze", False, ""),
    ],
)
def test_spellings(line: str, tool: str, subcommand: str, by_path: bool, version: str) -> None:
    request = parse(line.split())
    assert (request.tool, request.subcommand) == (tool, subcommand)
    assert (request.by_path, request.version_named) == (by_path, version)
    assert " ".join(request.words) == line


@pytest.mark.parametrize(
    "line",
    ["conda install x", "poetry add x", "python setup.py install", "python -m build", "uv add x",
     "uv pip sync x", "uv pip bogus", "sudo pip install x", "pip2 install x", "pipx install x", ""],
)  # fmt: skip
def test_what_is_not_understood_is_a_usage_problem_with_the_list(line: str) -> None:
    with pytest.raises(UsageProblem) as caught:
        parse(line.split())
    assert "pip install" in caught.value.hint


@pytest.mark.parametrize(
    ("line", "names", "flags", "unknown"),
    [
        ("pip install -U torch", {"torch"}, {"--upgrade"}, ()),
        ("pip install torch -Uq", {"torch"}, {"--upgrade", "--quiet"}, ()),
        ("pip install -i https://x/simple Torch==2", {"torch"}, set(), ()),
        ("pip install -ihttps://x torch", {"torch"}, set(), ()),
        ("pip install --index-url=https://x torch", {"torch"}, set(), ()),
        ("pip install --index https://x torch", {"torch"}, set(), ()),
        ("pip install --force torch", {"torch"}, {"--force-reinstall"}, ()),
        ("pip install --up torch", {"torch"}, set(), ("--up",)),
        ("pip install -- -U torch", {"torch"}, set(), ()),
        ("pip install --nonsense torch", {"torch"}, set(), ("--nonsense",)),
        ("pip install flash_attn[x]>=2 tqdm", {"flash-attn", "tqdm"}, set(), ()),
        ("uv pip install -P torch peft", {"peft"}, set(), ()),
        ("uv pip install --upg torch", {"torch"}, set(), ("--upg",)),
        ("uv pip install --force-reinstall torch", {"torch"}, {"--reinstall"}, ()),
        ("pip uninstall -y Torch tqdm", {"torch", "tqdm"}, {"--yes"}, ()),
    ],
)
def test_options_and_requirements(
    line: str, names: set[str], flags: set[str], unknown: tuple[str, ...]
) -> None:
    request = parse(line.split())
    assert request.names == names
    assert request.given.flags == flags
    assert request.given.unknown == unknown


@pytest.mark.parametrize(
    ("line", "elsewhere", "upgrades", "reinstalls", "changes_nothing"),
    [
        ("pip install -t /x a", "--target", False, False, False),
        ("pip install --prefix=/x a", "--prefix", False, False, False),
        ("pip install --root /x a", "--root", False, False, False),
        ("pip install --user a", "--user", False, False, False),
        ("pip install -U a", "", True, False, False),
        ("pip install -I a", "", False, True, False),
        ("uv pip install --reinstall a", "", False, True, False),
        ("pip install --dry-run a", "", False, False, True),
        ("pip install --help", "", False, False, True),
        ("pip --version", "", False, False, True),
        ("uv pip install --check a", "", False, False, True),
        ("uv pip list", "", False, False, True),
        ("pip download torch", "", False, False, True),
    ],
)
def test_what_the_options_mean(
    line: str, elsewhere: str, upgrades: bool, reinstalls: bool, changes_nothing: bool
) -> None:
    request = parse(line.split())
    assert request.elsewhere == elsewhere
    assert (request.upgrades, request.reinstalls) == (upgrades, reinstalls)
    assert request.changes_nothing is changes_nothing


@pytest.mark.parametrize(
    "line",
    ["pip --python /x/python install a", "pip install a --python /x/python",
     "uv pip install -p /x/python a", "uv pip install -p=/x/python a"],
)  # fmt: skip
def test_the_interpreter_that_an_option_names(line: str) -> None:
    assert parse(line.split()).interpreters == ("/x/python",)


@pytest.mark.parametrize(
    ("word", "name", "source", "version"),
    [
        ("torch", "torch", "", ""),
        ("torch==2.11.0; python_version>'3'", "torch", "", ""),
        ("torch @ https://x/torch-2.11.0-py3-none-any.whl", "torch",
         "https://x/torch-2.11.0-py3-none-any.whl", "2.11.0"),
        ("torch @ file:///w/torch-2.10.0%2Bdas-py3-none-any.whl", "torch",
         "file:///w/torch-2.10.0%2Bdas-py3-none-any.whl", "2.10.0+das"),
        ("./w/torch-2.10.0+das-py3-none-any.whl", "torch",
         "./w/torch-2.10.0+das-py3-none-any.whl", "2.10.0+das"),
        ("torch-2.10.0-py3-none-any.whl", "torch", "torch-2.10.0-py3-none-any.whl", "2.10.0"),
        ("w/torch-2.10.0-py3-none-any.whl[opt]", "torch", "w/torch-2.10.0-py3-none-any.whl",
         "2.10.0"),
        (".", "", ".", ""),
        ("./folder", "", "./folder", ""),
        ("git+https://x/torch.git#egg=Torch", "torch", "git+https://x/torch.git", ""),
        ("git+https://x/torch.git@v1", "", "git+https://x/torch.git@v1", ""),
        ("https://x/torch-2.0.tar.gz", "", "https://x/torch-2.0.tar.gz", ""),
        ("what is this", "", "", ""),
    ],
)  # fmt: skip
def test_one_requirement(word: str, name: str, source: str, version: str) -> None:
    asked = parse_asked(word)
    assert (asked.name, asked.source, asked.version) == (name, source, version)
    assert asked.raw == word


def test_requirements_files_include_others_and_know_options() -> None:
    files = {
        "a/req.txt": (
            "# a comment\n--index-url https://x/simple\ntorch==2.11.0 \\\n"
            "  --hash=sha256:00\n-r more.txt\n-e ./local  # here\n\n-c held.txt\n"
        ),
        "a/more.txt": "--requirement=req.txt\ntqdm ; python_version > '3'\n-rlost.txt\n",
    }
    assert requirement_lines("a/req.txt", files.get) == [
        "torch==2.11.0",
        "./local",
        "tqdm ; python_version > '3'",
    ]
    request = parse(["pip", "install", "-r", "a/req.txt", "numpy"], files.get)
    assert request.names == {"numpy", "torch", "tqdm"}


def test_options_can_be_taken_out() -> None:
    table = options.PIP_COMMANDS["install"]

    def without(line: str, *names: str) -> str:
        return " ".join(options.without(line.split(), table, names))

    assert without("-U --upgrade-strategy eager peft", "--upgrade-strategy") == "-U peft"
    assert without("--upgrade-strategy=eager -U a", "--upgrade-strategy") == "-U a"
    assert without("-Uq -r f a", "--upgrade", "--requirement") == "-q a"
    assert without("a -qrf b", "--requirement") == "a -q b"
    assert without("-U -- -U", "--upgrade") == "-- -U"
    assert options.only_options(["-U", "a", "-i", "x", "b", "--pre", "--", "c"], table) == [
        "-U",
        "-i",
        "x",
        "--pre",
    ]
