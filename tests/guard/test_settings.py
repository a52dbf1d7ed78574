"""Variables and configuration files are options of the request."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from envlock.adapters.configuration import (
    pip_files,
    pip_tools_files,
    read_pip_tools,
    read_toml,
    uv_files,
)
from envlock.adapters.project import project_environment
from envlock.guard.command import Request, configured, parse
from envlock.guard.settings import Source, Surroundings, overrule


def _pip(line: str, env: dict[str, str] | None = None, *texts: str) -> Request:
    files = tuple(Source(path=f"{n}.conf", text=text) for n, text in enumerate(texts))
    read = {"r.txt": "torch==2.11.0\n"}.get
    around = Surroundings(env=env or {}, files=files)
    return configured(parse(line.split(), read), around, read)


def _uv(line: str, env: dict[str, str] | None = None, **content: object) -> Request:
    around = Surroundings(env=env or {})
    return configured(parse(line.split()), around, None, [("uv.toml", content)])


@pytest.mark.parametrize(
    ("env", "flags"),
    [
        ({"PIP_UPGRADE": "1"}, {"--upgrade"}),
        ({"PIP_UPGRADE": "yes"}, {"--upgrade"}),
        ({"PIP_UPGRADE": "T"}, {"--upgrade"}),
        ({"PIP_UPGRADE": "on"}, {"--upgrade"}),
        ({"PIP_UPGRADE": "0"}, set()),
        ({"PIP_UPGRADE": "false"}, set()),
        ({"PIP_UPGRADE": ""}, set()),
        ({"pip_upgrade": "1"}, set()),
        ({"PIP_FORCE_REINSTALL": "1", "PIP_NO_DEPS": "1"}, {"--force-reinstall", "--no-deps"}),
        ({"PIP_USER": "1"}, {"--user"}),
        # the value is that of the attribute behind the option
        ({"PIP_NO_USER": "1"}, {"--user"}),
        ({"PIP_NO_BUILD_ISOLATION": "0"}, {"--no-build-isolation"}),
        ({"PIP_NO_BUILD_ISOLATION": "1"}, set()),
        ({"PIP_NO_SUCH_OPTION": "1", "PIP_HELP": "1", "PIP_VERSION": "1"}, set()),
        ({"UV_NO_INDEX": "1"}, set()),
    ],
)
def test_pips_variables(env: dict[str, str], flags: set[str]) -> None:
    assert _pip("pip install a", env).given.flags == flags


def test_pips_variables_with_values() -> None:
    env = {"PIP_TARGET": "/a b", "PIP_REQUIREMENT": "r.txt", "PIP_CONSTRAINT": "c.txt d.txt"}
    request = _pip("pip install tqdm", env)
    assert request.elsewhere == "--target"
    assert request.given.value("--target") == ("/a b",)
    assert request.names == {"tqdm", "torch"}
    assert request.given.value("--constraint") == ("c.txt", "d.txt")
    assert request.origins["--target"] == "PIP_TARGET"
    # uninstall has neither
    assert _pip("pip uninstall tqdm", env).names == {"tqdm", "torch"}
    assert not _pip("pip uninstall tqdm", env).given.has("--target", "--constraint")


def test_what_was_typed_is_stronger() -> None:
    env = {"PIP_INDEX_URL": "https://a", "PIP_FIND_LINKS": "w", "PIP_USER": "1"}
    request = _pip("pip install -i https://b -f v --no-user x", env)
    assert request.given.value("--index-url") == ("https://b",)
    assert request.given.value("--find-links") == ("w", "v")
    assert request.elsewhere == ""
    assert request.typed.value("--find-links") == ("v",)


def test_sections_of_pips_files_come_in_pips_order() -> None:
    machine = "[install]\nupgrade = true\nindex-url = https://machine\n[global]\nuser = yes\n"
    person = (
        "[global]\nupgrade = false\nindex_url = https://person\nuser = no\n[uninstall]\nyes = 1\n"
    )
    request = _pip("pip install a", {}, machine, person)
    assert request.upgrades  # the subcommand's section is stronger than any [global]
    assert request.given.value("--index-url") == ("https://machine",)
    assert request.elsewhere == ""
    assert request.origins["--upgrade"] == "0.conf [install]"
    assert _pip("pip install a", {"PIP_UPGRADE": "0"}, machine).upgrades is False
    assert _pip("pip uninstall a", {}, machine, person).given.has("--yes")
    assert _pip("pip install a", {}, "this is no configuration").given.flags == set()
    listed = "[install]\nfind-links =\n    one\n    two\n"
    assert _pip("pip install a", {}, listed).given.value("--find-links") == ("one", "two")


def test_harmless_subcommands_have_no_settings() -> None:
    assert _pip("pip list", {"PIP_UPGRADE": "1"}).given.flags == set()


def test_uvs_settings() -> None:
    request = _uv(
        "uv pip install a",
        {"UV_CONSTRAINT": "a.txt b.txt", "UV_OVERRIDE": "o.txt", "UV_NO_INDEX": "0",
         "UV_SYSTEM_PYTHON": "1", "UV_PYTHON": "3.9", "UV_OFFLINE": "1"},
        pip={"upgrade": True, "target": "x", "system": True},
        reinstall=True,
        index=[{"url": "https://a"}, {"url": "https://b", "default": True}],
    )  # fmt: skip
    assert request.upgrades
    assert request.reinstalls
    assert request.elsewhere == "--target"
    assert request.given.value("--constraints") == ("a.txt", "b.txt")
    assert request.given.value("--overrides") == ("o.txt",)
    assert request.given.value("--index") == ("https://a",)
    assert request.given.value("--default-index") == ("https://b",)
    assert request.given.has("--offline")
    # which environment is meant is not theirs to say: the target is
    assert request.interpreters == ()
    assert not request.given.has("--system", "--no-index")
    assert request.origins["--upgrade"] == "uv.toml [pip]"


def test_a_typed_option_of_uv_takes_the_place_of_a_setting() -> None:
    request = _uv("uv pip install -c mine.txt --no-upgrade a", {"UV_CONSTRAINT": "a.txt"},
                  pip={"upgrade": True})  # fmt: skip
    assert request.given.value("--constraints") == ("mine.txt",)
    assert not request.upgrades
    assert _uv("uv sync", {}, pip={"upgrade": True}).upgrades is False
    assert _uv("uv sync", {}, upgrade=True).upgrades
    assert _uv("uv run x.py", {"UV_NO_SYNC": "1"}).changes_nothing


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for folder in ("etc/pip", "home/.pip", "home/.config/pip", "venv", "etc/uv", "home/.config/uv"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "venv")
    return tmp_path


def _env(home: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(home / "home"), "XDG_CONFIG_DIRS": str(home / "etc"), **more}


def test_pips_files_strongest_last(home: Path) -> None:
    names = ["etc/pip/pip.conf", "home/.pip/pip.conf", "home/.config/pip/pip.conf",
             "venv/pip.conf", "own.conf"]  # fmt: skip
    for name in names:
        (home / name).write_text(name)

    def found(*, isolated: bool = False, **more: str) -> list[str]:
        files = pip_files(_env(home, **more), str(home / "venv"), isolated=isolated)
        return [text for _, text in files if text in names]

    assert found() == names[:4]
    assert found(PIP_CONFIG_FILE=str(home / "own.conf")) == [names[0], *names[3:]]
    assert found(PIP_CONFIG_FILE=str(home / "none.conf")) == names[:4]
    assert found(PIP_CONFIG_FILE=os.devnull) == []
    assert found(isolated=True) == [names[0], names[3]]


def test_uvs_files_strongest_last(home: Path) -> None:
    (home / "etc/uv/uv.toml").write_text("offline = true\n")
    (home / "home/.config/uv/uv.toml").write_text("offline = false\n")
    (home / "pyproject.toml").write_text("[tool.uv]\nreinstall = true\n")
    (home / "venv/pyproject.toml").write_text("[project]\nname = 'x'\n")
    (home / "own.toml").write_text("no-index = true\n")

    def found(**more: str) -> list[object]:
        return [content for _, content in read_toml(uv_files(_env(home, **more)))]

    assert found() == [{"offline": True}, {"offline": False}, {"reinstall": True}]
    assert found(UV_CONFIG_FILE=str(home / "own.toml")) == [{"no-index": True}]
    assert found(UV_NO_CONFIG="1") == []
    (home / "venv/uv.toml").write_text("not toml")
    assert found()[-1] == {}


def test_the_environment_of_a_project(home: Path) -> None:
    assert project_environment(_env(home)) is None
    (home / "pyproject.toml").write_text("[project]\nname = 'x'\n[tool.uv.workspace]\n")
    (home / "home/pyproject.toml").write_text("[project]\nname = 'y'\n")
    venv = str(home / ".venv")
    assert project_environment(_env(home)) == venv
    assert project_environment(_env(home), project=str(home / "home")) == venv
    assert project_environment(_env(home, UV_PROJECT_ENVIRONMENT="e")) == str(home / "e")
    assert project_environment(_env(home, VIRTUAL_ENV="/v")) == venv
    assert project_environment(_env(home, VIRTUAL_ENV="/v"), active=True) == "/v"


def test_pip_tools_has_settings_of_its_own(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    (home / "pyproject.toml").write_text("[tool.pip-tools]\ndry-run = true\n")
    assert [path for path, _ in pip_tools_files()] == [str(home / "pyproject.toml")]
    (home / ".pip-tools.toml").write_text(
        "[tool.pip-tools]\nfind_links = ['a', 'b']\nforce = true\n"
        "[tool.pip-tools.sync]\npip-args-str = '-v'\npython-executable = 'py'\nforce = false\n"
        "[tool.pip-tools.compile]\nno-index = true\n"
    )
    tables = list(read_pip_tools(pip_tools_files()))
    assert pip_tools_files(ignored=True) == []
    named = dict(read_pip_tools(pip_tools_files(named="pyproject.toml")))
    assert list(named.values()) == [{"dry-run": True}]

    def sync(line: str) -> Request:
        return configured(parse(line.split()), Surroundings(env={}), None, tables)

    request = sync("pip-sync -f c")
    assert request.given.flags == set()
    assert request.given.value("--find-links") == ("c",)
    assert request.interpreters == ("py",)
    assert request.unsaid == ("--pip-args", "-v")
    assert sync("pip-sync").given.value("--find-links") == ("a", "b")
    assert sync("pip-sync --pip-args -q").unsaid == ()
    asks = configured(parse(["pip-sync"]), Surroundings(env={}), None, [("x", {"dry_run": True})])
    assert asks.changes_nothing


@pytest.mark.parametrize(
    ("option", "origin", "tool", "expected"),
    [
        ("--upgrade", "PIP_UPGRADE", "pip", ({"PIP_UPGRADE": "0"}, [])),
        ("--force-reinstall", "/x/pip.conf [install]", "pip", ({"PIP_FORCE_REINSTALL": "0"}, [])),
        ("--upgrade-strategy", "PIP_UPGRADE_STRATEGY", "pip",
         ({}, ["--upgrade-strategy", "only-if-needed"])),
        ("--constraint", "PIP_CONSTRAINT", "pip", ({"PIP_CONSTRAINT": None}, [])),
        ("--constraint", "/x/pip.conf [global]", "pip", ({}, [])),
        ("--reinstall", "/x/uv.toml [pip]", "uv", ({}, ["--no-reinstall"])),
        ("--upgrade", "UV_UPGRADE", "uv", ({}, ["--no-upgrade"])),
        ("--overrides", "UV_OVERRIDE", "uv", ({"UV_OVERRIDE": None}, [])),
        ("--overrides", "/x/uv.toml", "uv", ({}, [])),
    ],
)  # fmt: skip
def test_how_a_setting_is_overruled(
    option: str, origin: str, tool: str, expected: tuple[dict[str, str | None], list[str]]
) -> None:
    assert overrule(option, origin, tool) == expected


def test_an_index_that_is_no_table_is_none() -> None:
    content = {"index": ["https://x/simple", {"url": "https://y/simple"}]}
    found = configured(
        parse(["uv", "pip", "install", "x"]), Surroundings(env={}), None, [("uv.toml", content)]
    )
    assert found.given.value("--index") == ("https://y/simple",)


@pytest.mark.parametrize("name", ["UV_DRY_RUN", "UV_CHECK"])
@pytest.mark.parametrize("line", ["uv pip install x", "uv sync"])
def test_no_setting_of_uv_makes_a_command_harmless(name: str, line: str) -> None:
    around = Surroundings(env={name: "1"})
    table = ("uv.toml", {"dry-run": True, "pip": {"dry-run": True}})
    assert not configured(parse(line.split()), around, None, [table]).changes_nothing
