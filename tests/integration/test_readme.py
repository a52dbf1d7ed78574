"""What the README and the docs tell people to type does what they say."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from envlock.cli import app, main
from tests.docs.blocks import Command, blocks, commands, pages, read, tables
from tests.docs.picture import BEFORE, PICTURE, TYPED, text_of
from tests.docs.running import ELSEWHERE, LANGUAGE, NOT_RUN, as_shown, runnable
from tests.docs.world import TORCH, alike, make_world, run
from tests.support.pythons import ROOT, clean_env

pytestmark = pytest.mark.integration

README = (ROOT / "README.md").read_text(encoding="utf-8")


def first_command() -> str:
    """The first shell block: environment, install, demo."""
    found = re.search(r"```sh\n(.*?)```", README, re.S)
    assert found is not None
    return found[1]


def test_demo_command_on_a_new_checkout(tmp_path: Path) -> None:
    checkout = tmp_path / "check out"
    checkout.mkdir()
    shutil.copytree(ROOT / "envlock", checkout / "envlock",
                    ignore=shutil.ignore_patterns("__pycache__"))  # fmt: skip
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout / name)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", first_command()],
        cwd=checkout, env=clean_env(), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
    assert done.stdout.splitlines()[-1] == "demo: it works here"


def test_demo_needs_no_network(tmp_path: Path) -> None:
    if subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode != 0:
        pytest.skip("network namespaces are not allowed here")
    done = subprocess.run(
        ["unshare", "-n", sys.executable, "-m", "envlock", "demo", "--folder", str(tmp_path / "d")],
        cwd=ROOT, env=clean_env(), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert (tmp_path / "d/manifests/dtk2604-cp311.yaml").exists() or sys.version_info[:2] != (3, 11)
    assert list((tmp_path / "d/wheels").glob("pyyaml-*+das.opt1.dtk2604-*.whl"))


def test_demo_leaves_a_folder_alone_that_is_not_empty(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    assert main(["demo", "--folder", str(tmp_path)]) == 4
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("page", [page for page in pages() if page not in ELSEWHERE])
def test_commands_of_a_page_do_what_it_says(page: str, tmp_path: Path) -> None:
    """Every command of a page, run in its order, ends and prints as the page says."""
    listed = [command for command in commands(read(page)) if runnable(command)]
    if not listed:
        return
    make_world(tmp_path / "home")
    ran = run(tmp_path / "home", listed, LANGUAGE.get(page, ""))
    wrong = [
        f"$ {command.text}\n" + "\n".join(done.lines) + f"\n(exit {done.code})"
        for command, done in zip(listed, ran, strict=True)
        if not as_shown(command, done)
    ]
    told = f"'python -m tests.docs {page}' writes what is printed now"
    assert not wrong, "\n".join([f"{page}: {told}", *wrong])


def test_the_picture_shows_what_is_printed(tmp_path: Path) -> None:
    """``python -m tests.docs.picture`` takes it anew."""
    picture = PICTURE.read_text(encoding="utf-8")
    assert "http" not in picture.replace('xmlns="http://www.w3.org/2000/svg"', "")
    rows = text_of(picture)
    assert [row for row in rows if row.startswith("$ ")] == [f"$ {line}" for line in TYPED]
    make_world(tmp_path / "home")
    typed = [
        Command(text=line, shown=(), code=0, start=0, end=0, around="laptop")
        for line in (*BEFORE, *TYPED)
    ]
    ran = run(tmp_path / "home", typed)[len(BEFORE) :]
    seen = "".join(alike(row) for row in rows).replace(" ", "")
    printed = [alike(line).replace(" ", "") for done in ran for line in done.lines]
    # a bar stands in a terminal for lines that end so, and a table is cut where the window ends
    missing = [line for line in printed if not line.endswith("…") and line[:60] not in seen]
    assert not missing
    assert len(printed) > 10


_HIP = "python -c 'import torch; print(torch.version.hip)'"
_BROKEN = ("pip install -q -U torch", f"test $({_HIP}) = None")
_WELL = (f"test $({_HIP}) != None", "envlock snapshot -q")
#: Somebody else's image: the wheels are all that is carried over.
_SISTER = (
    "cd sister; export VIRTUAL_ENV=$PWD/venv",
    "envlock snapshot -q",
    "envlock wheelhouse harvest wheels -q",
    "cp -r wheels ..; cd ..; export VIRTUAL_ENV=$PWD/venv",
    "envlock restore --wheelhouse wheels",
)
_VENDOR = f"pip install --no-index --no-deps --find-links .image torch=={TORCH}"


@pytest.mark.parametrize(
    "rescue",
    [
        _SISTER,
        (f"envlock guard {_VENDOR}",),
        # what was locked by its name alone gives way to the vendor's own
        ("envlock snapshot", f"envlock guard uv {_VENDOR}"),
    ],
    ids=["a-sister", "the-vendors-wheels", "locked-when-it-was-broken"],
)
def test_what_helps_where_nothing_was_locked(rescue: Sequence[str], tmp_path: Path) -> None:
    """The table of 'When you are already broken', on a machine that envlock has never seen."""
    make_world(tmp_path / "home")
    make_world(tmp_path / "home/sister")
    typed = [
        Command(text=line, shown=None, code=0, start=0, end=0, around=around)
        for around, lines in (("laptop", _BROKEN), ("card", (*rescue, *_WELL)))
        for line in lines
    ]
    ran = run(tmp_path / "home", typed)
    assert [done.code for done in ran] == [0] * len(typed), ran
    manifest = next((tmp_path / "home/manifests").glob("*.yaml")).read_text(encoding="utf-8")
    assert f"version: {TORCH}" in manifest


def test_the_lines_of_the_doctors_page(tmp_path: Path) -> None:
    """Its table of options; no server is asked here."""
    lines = next(block.lines for block in blocks(read("docs/doctor.md")))
    typed = [
        Command(text=f"{line.partition('#')[0]} --no-network", shown=None, code=0, start=0, end=0,
                around="card")
        for line in lines
    ]  # fmt: skip
    make_world(tmp_path / "home")
    ran = run(tmp_path / "home", typed)
    assert len(ran) == 5
    assert {done.code for done in ran} <= {0, 3}
    assert all("state.no-manifest" in "".join(done.lines) for done in ran)


def test_no_command_hides_in_a_block_without_a_kind() -> None:
    for page in pages():
        for block in blocks(read(page)) if page not in ELSEWHERE else ():
            typed = [line for line in block.lines if re.match(r"(\$ )?(envlock|pip|uv) ", line)]
            assert block.kind in ("sh", "console") or not typed, (page, typed)


def test_what_is_not_run_has_its_reason() -> None:
    """No command escapes, and no exception outlives its command."""
    every = [one for page in pages() if page not in ELSEWHERE for one in commands(read(page))]
    texts = [" ".join(one.text.split()) for one in every]
    idle = [pattern for pattern in NOT_RUN if not any(re.search(pattern, t) for t in texts)]
    assert not idle
    for page, test in ELSEWHERE.items():
        assert Path(page).name in read(test)
    assert sum(map(runnable, every)) > len(every) / 2


@pytest.mark.parametrize("page", pages())
def test_commands_that_are_named_exist(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every ``envlock COMMAND`` has a help page, with every option that is named with it."""
    named: dict[str, set[str]] = {}
    for words in re.findall(r"`envlock ([a-z][^`]*)`", read(page)):
        found = re.match(r"(?:wheelhouse |fleet )?[a-z]+", words)
        assert found is not None
        own = "" if re.match(r"guard .*(pip|uv) ", words) else words  # else they are pip's
        named.setdefault(found[0], set()).update(re.findall(r"--[a-z-]+", own.partition(" -- ")[0]))
    for command, options in named.items():
        assert main([*command.split(), "--help"]) in (0, 2), command
        shown = capsys.readouterr().out
        assert options <= {*re.findall(r"--[a-z-]+", shown), "--lang"}, command


def test_the_readme_names_every_command() -> None:
    named = {row[0].partition("`envlock ")[2].split("`")[0].split()[0]
             for table in tables(README) for row in table[2:]
             if table[0][0] == "command"}  # fmt: skip
    assert named == {info.name or info.callback.__name__ for info in app.registered_commands
                     if info.callback} | {"wheelhouse", "fleet"}  # fmt: skip
