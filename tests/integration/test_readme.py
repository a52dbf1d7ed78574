"""What the README tells a newcomer to type does what it says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from envlock.cli import main
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


def test_commands_of_the_readme_exist(capsys: pytest.CaptureFixture[str]) -> None:
    """Every ``envlock COMMAND`` of the README has a help page, and every option it names."""
    named = set(re.findall(r"`envlock ((?:wheelhouse )?[a-z]+)", README))
    assert {"snapshot", "guard", "restore", "verify", "demo", "wheelhouse harvest"} <= named
    pages = ""
    for command in sorted(named - {"wheelhouse"}):
        if command == "COMMAND":
            continue
        assert main([*command.split(), "--help"]) == 0, command
        pages += capsys.readouterr().out
    of_pip = {"--target", "--isolated"}  # named where the README says what stays open
    options = set(re.findall(r"`(?:envlock [a-z ]*)?(--[a-z-]+)", README)) - {"--help"} - of_pip
    assert options
    assert all(option in pages for option in options), [o for o in options if o not in pages]
