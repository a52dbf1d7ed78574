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
    ["conda install x", "poetry add x", "python setup.py install", "python -m build",
     "uv venv", "uv pip bogus", "sudo pip install x", "pip2 install x", "pipx install x", "",
     "uvx pip install x", "uv tool run pip install x", "mamba install x", "pdm add x",
     "pixi add x", "pipenv install x", "easy_install x", "apt install x", "python -m piptools",
     "uv run pip install x", "uv run -- python -m pip install x", "uv run -m pip install x"],
)  # fmt: skip
def test_what_is_not_understood_is_a_usage_problem_with_the_list(line: str) -> None:
    with pytest.raises(UsageProblem) as caught:
        parse(line.split())
    assert "pip install" in caught.value.hint


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("conda install x", "keep conda's hands off"),
        ("pixi add x", "envlock guard pip install -r requirements.txt"),
        ("pipx install x", "no guard is needed"),
        ("uvx ruff", "no guard is needed"),
        ("uv tool install ruff", "no guard is needed"),
        ("apt install python3-torch", "it installs for the system"),
        ("sudo pip install x", "sudo envlock guard"),
    ],
)
def test_the_hint_says_what_to_do_for_that_tool(line: str, advice: str) -> None:
    with pytest.raises(UsageProblem) as caught:
        parse(line.split())
    assert advice in caught.value.hint


@pytest.mark.parametrize(
    ("line", "tool", "subcommand", "project", "changes_nothing"),
    [
        ("uv pip sync r.txt", "uv", "sync", False, False),
        ("python -m uv pip install x", "uv", "install", False, False),
        ("pip-sync", "pip-sync", "sync", False, False),
        ("python -m piptools sync r.txt", "pip-sync", "sync", False, False),
        ("pip-sync -n r.txt", "pip-sync", "sync", False, True),
        ("uv sync --extra x", "uv", "sync", True, False),
        ("uv sync --dry-run", "uv", "sync", True, True),
        ("uv sync --check", "uv", "sync", True, True),
        ("uv --project p run python x.py --help", "uv", "run", True, False),
        ("uv run --no-sync x.py", "uv", "run", True, True),
        ("uv run --isolated x.py", "uv", "run", True, True),
        ("uv add torch", "uv", "add", True, False),
        ("uv add --no-sync torch", "uv", "add", True, True),
        ("uv add --frozen torch", "uv", "add", True, True),
        ("uv remove torch", "uv", "remove", True, False),
        ("uv lock -U", "uv", "lock", True, True),
        ("uv export", "uv", "export", True, True),
        ("pip sync x", "pip", "sync", False, True),
        ("uv pip compile r.in", "uv", "compile", False, True),
    ],
)
def test_other_doors(
    line: str, tool: str, subcommand: str, project: bool, changes_nothing: bool
) -> None:
    request = parse(line.split())
    assert (request.tool, request.subcommand, request.project) == (tool, subcommand, project)
    assert request.changes_nothing is changes_nothing
    assert request.given.unknown == ()


def test_the_files_of_sync_are_its_words() -> None:
    files = {"requirements.txt": "torch==2.9", "a.txt": "tqdm", "b.txt": "numpy"}
    assert parse(["pip-sync"], files.get).names == {"torch"}
    assert parse(["pip-sync", "a.txt", "b.txt"], files.get).names == {"tqdm", "numpy"}
    assert parse(["uv", "pip", "sync", "a.txt"], files.get).names == {"tqdm"}
    assert parse(["uv", "add", "torch", "-r", "a.txt"], files.get).names == {"torch", "tqdm"}
    assert parse(["uv", "sync"], files.get).names == set()


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
        ("vllm[audio,video]>=0.5", "vllm", "", ""),
        ("./w/torch-2.10.0%2Bdas-py3-none-any.whl", "torch",
         "./w/torch-2.10.0%2Bdas-py3-none-any.whl", "2.10.0+das"),
        ("./w/torch-2.10.0-py3-none-any.whl ; python_version > '3'", "torch",
         "./w/torch-2.10.0-py3-none-any.whl", "2.10.0"),
        ("-", "", "", ""),
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


@pytest.mark.parametrize("tool", ["pip", "uv pip"])
def test_options_in_requirements_files_are_part_of_the_request(tool: str) -> None:
    files = {
        "r.txt": "--pre\n-i https://a/simple\n--no-binary torch\n-c sub/c.txt\n-e git+https://x/y#egg=Z\n",
        "sub/c.txt": "torch==2.9\n--extra-index-url=https://b/simple\n-r d.txt\n",
        "sub/d.txt": "triton==3\n--no-index\n",
    }
    request = parse([*tool.split(), "install", "-r", "r.txt"], files.get)
    assert request.names == {"z"}  # constraints are not asked for
    assert request.given.has("--pre")
    assert request.given.has("--no-index")
    assert request.given.value("--index-url") == ("https://a/simple",)
    assert request.given.value("--extra-index-url") == ("https://b/simple",)
    assert request.given.value("--no-binary") == ("torch",)
    assert not request.typed.has("--pre")
    bound = parse([*tool.split(), "install", "-c", "sub/c.txt", "torch"], files.get)
    assert bound.given.has("--no-index")
    assert bound.names == {"torch"}


def test_markers_are_judged_for_the_target() -> None:
    line = ["pip", "install", "torch==2.11; python_version < '3.8'", "b; extra == 'x'", "tqdm"]
    request = parse(line).within({"python_version": "3.10"})
    assert request.names == {"tqdm"}


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
