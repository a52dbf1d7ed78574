"""Spellings of the commands that guard understands, and what it reads out of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from envlock.errors import UsageProblem
from envlock.guard.command import configured, parse, parse_asked, requirement_lines
from envlock.guard.doors import joined_variables, split_variables
from envlock.guard.settings import Surroundings


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
        ("python -mpip install x", "pip", "install", False, ""),
        ("python -X utf8 -um pip install x", "pip", "install", False, ""),
        ("env A=1 pip install x", "pip", "install", False, ""),
        ("A=1 B= /opt/v/bin/pip install x", "pip", "install", True, ""),
        ("uv --version", "uv", "", False, ""),
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
     "pip sync x", "pip instal x", "env", "env -i pip install x", "env A=1", "python -c pip",
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
        ("time pip install x", "put it in front of envlock"),
        ("!pip install x", "!envlock guard pip install"),
        ("python3 setup.py develop", "envlock guard pip install ."),
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
        ("https://x/torch-2.0.tar.gz", "torch", "https://x/torch-2.0.tar.gz", ""),
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


def test_variables_before_a_command() -> None:
    """``env -u NAME NAME=VALUE`` is part of the command."""
    request = parse(["env", "-u", "A", "--unset=B", "-uC", "D=1", "E=", "pip", "install", "x"])
    env = {"A": "1", "B": "1", "C": "1", "D": "0", "F": "1"}
    assert request.environment(env) == {"D": "1", "E": "", "F": "1"}
    assert request.after == ("x",)
    changes, rest = split_variables([*joined_variables(request.variables), "pip"])
    assert (changes, rest) == (request.variables, ["pip"])
    assert parse(["pip", "install", "D=1"]).environment(env) == env


def test_files_may_name_variables() -> None:
    text = "-i https://${WHO}:${WORD}@x/simple\ntorch==${NEW}\n${lower} # no\n-r ${MORE}.txt\n"
    files = {"r.txt": text, "more.txt": "x @ https://${WORD}@x/x-1.zip\n", "c.txt": "y==${NEW}\n"}
    env = {"NEW": "2.11.0", "WHO": "me", "WORD": "secret", "MORE": "more", "lower": "z"}
    request = parse(["pip", "install", "-r", "r.txt", "-c", "c.txt"], files.get)
    request = configured(request, Surroundings(env=env), files.get)
    assert request.names == {"torch", "x"}
    assert request.given.value("--index-url") == ("https://me:secret@x/simple",)
    assert request.asked[0].raw == "torch==${NEW}"
    assert str(request.asked[0].requirement) == "torch==2.11.0"
    assert request.bounds == ("y==2.11.0",)
    assert not any("secret" in one.raw for one in request.asked)


LOCK = """
[[packages]]
name = "torch"
version = "2.10.0"
[[packages]]
name = "dev"
version = "1"
marker = "'dev' in dependency_groups and sys_platform == 'linux'"
[[packages]]
name = "tree"
directory = {path = "../tree"}
[[packages]]
name = "web"
archive = {url = "https://x/web-1-py3-none-any.whl"}
"""


@pytest.mark.parametrize(("tool", "pin"), [("pip", "==2.10.0"), ("uv pip", "===2.10.0")])
def test_a_lock_is_a_list_of_requirements(tool: str, pin: str) -> None:
    """uv takes another label for another version, pip does not."""
    files = {"sub/pylock.toml": LOCK, "pylock.x.y.toml": LOCK}
    request = parse([*tool.split(), "install", "-r", "sub/pylock.toml"], files.get)
    torch, _, tree, web = request.asked
    assert torch.raw == f"torch{pin}"
    assert tree.source == (Path.cwd() / "tree").as_uri()
    assert (web.name, web.version) == ("web", "1")
    assert parse(["pip", "install", "-r", "pylock.x.y.toml"], files.get).names == set()
    broken = {"pylock.toml": "packages = 1"}
    assert parse(["uv", "pip", "sync", "pylock.toml"], broken.get).names == set()


def test_options_of_files_that_have_to_be_said_again() -> None:
    files = {"sub/r.txt": "-f links\n--no-index\n-i https://x\n-f https://y\n"}
    request = parse(["uv", "pip", "install", "-f", "z", "-r", "sub/r.txt"], files.get)
    assert request.unsaid == (
        *("--no-index", "--index-url", "https://x"),
        *("--find-links", "sub/links", "--find-links", "https://y"),
    )


def test_a_source_is_named_by_itself() -> None:
    request = parse(["pip", "install", "-e", "./torch", "x", "./a-1-py3-none-any.whl"])
    named = request.with_names(lambda source: "torch" if source == "./torch" else "other")
    assert named.names == {"torch", "x", "a"}


@pytest.mark.parametrize("tool", ["pip", "uv pip"])
def test_what_is_to_be_removed_goes_whatever_its_marker_says(tool: str) -> None:
    files = {"u.txt": 'torch==2.4 ; sys_platform == "win32"\n-c c.txt\n-r n.txt\n',
             "c.txt": "triton\n-e git+https://x/apex#egg=apex\n", "n.txt": "-c m.txt",
             "m.txt": "numpy==1"}  # fmt: skip
    words = [*tool.split(), "uninstall", "-r", "u.txt", 'xformers; sys_platform == "win32"']
    request = parse(words, files.get).within({"sys_platform": "linux"})
    bound = {"triton", "apex", "numpy"} if tool == "pip" else set()
    assert request.names == {"torch", "xformers"} | bound
    assert not request.bounds or tool != "pip"


def test_a_file_is_asked_for_also_where_it_was_a_constraint_before() -> None:
    files = {"a.txt": "-c x.txt\n-r b.txt", "b.txt": "-r x.txt", "x.txt": "torch==2.11"}
    assert parse(["pip", "install", "-r", "a.txt"], files.get).names == {"torch"}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("pip install -V torch==2.11.0", False),
        ("pip uninstall -V -y torch", False),
        ("pip uninstall --version -y torch", False),
        ("python -m pip install --vers torch==2.11.0", False),
        ("pip -V install torch==2.11.0", True),
        ("pip --version uninstall -y torch", True),
        ("pip install --help torch", True),
        ("pip-sync --version", True),
        # another Python makes a project's environment anew
        ("uv run --no-sync -p 3.12 x.py", False),
        ("uv run --no-sync x.py", True),
    ],
)
def test_what_changes_nothing(line: str, expected: bool) -> None:
    assert parse(line.split()).changes_nothing is expected


@pytest.mark.parametrize(
    "inner",
    ["python -mpip uninstall -y torch", "python -I -m pip install x", "python -Im pip install x",
     "-- python -mpip install x", "env pip install x", "env A=1 python3 -m pip install x",
     "env -u A pip install x", "env -i pip install x", "A=1 pip install x", "env env pip install",
     "python -m pip.__main__ install x", "-m pip.__main__ install x", "nohup pip install x",
     "env uv pip install x", "python -X utf8 -m piptools sync", "/opt/v/bin/pip3.11 install x"],
)  # fmt: skip
def test_what_uv_runs_may_be_an_installer(inner: str) -> None:
    with pytest.raises(UsageProblem, match="'uv run' would run"):
        parse(["uv", "run", "--no-sync", *inner.split()])


@pytest.mark.parametrize(
    "inner",
    ["python x.py pip", "python -m pytest", "env A=1 train.py", "env", "nice x.py", "pipes"],
)
def test_what_uv_runs_is_mostly_none(inner: str) -> None:
    assert parse(["uv", "run", "--no-sync", *inner.split()]).subcommand == "run"
