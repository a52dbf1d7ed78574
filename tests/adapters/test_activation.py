"""Whether a shell has the vendor's environment: one answer, whoever asks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from envlock.adapters import activation
from envlock.adapters.activation import read_stack, sleeping_script
from envlock.model.profile import Profile

SCRIPT = """
root="$(dirname "${BASH_SOURCE[0]}")"
export LD_LIBRARY_PATH="$root/lib:$root/hip/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "stack").mkdir()
    (tmp_path / "stack" / "env.sh").write_text(SCRIPT)
    return tmp_path / "stack"


def profile(root: Path, script: str = "env.sh") -> Profile:
    return Profile(
        name="dtk",
        title="DTK",
        labels=(),
        names=(),
        roots=(str(root),),
        env_script=script,
        device="cuda",
    )


def shell(*libraries: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": os.pathsep.join(libraries)}


def test_a_shell_that_has_nothing_of_it(root: Path) -> None:
    assert sleeping_script(profile(root), shell("/mine")) == f"{root}/env.sh"


def test_a_shell_that_has_all_of_it(root: Path) -> None:
    env = shell(f"{root}/hip/lib", "/mine", f"{root}/lib")
    assert sleeping_script(profile(root), env) == ""
    found = read_stack(profile(root), env)
    assert found is not None
    assert found.active


def test_one_folder_of_the_stack_is_not_all_of_it(root: Path) -> None:
    """An image sets one for everybody, and the device is missing all the same."""
    env = shell(f"{root}/lib")
    assert sleeping_script(profile(root), env) == f"{root}/env.sh"
    found = read_stack(profile(root), env)
    assert found is not None
    assert not found.active


@pytest.mark.parametrize("script", ["exit 3", "kill -9 $$"])
def test_nobody_is_sent_to_a_script_that_does_not_work(root: Path, script: str) -> None:
    (root / "env.sh").write_text(script)
    assert sleeping_script(profile(root), shell()) == ""


def test_nobody_is_sent_to_a_script_that_is_not_there(root: Path) -> None:
    assert sleeping_script(profile(root, script="other.sh"), shell()) == ""
    assert sleeping_script(profile(root, script=""), shell()) == ""
    assert sleeping_script(profile(root / "none"), shell()) == ""


def test_a_script_that_hangs_is_not_waited_for(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "env.sh").write_text("sleep 600")
    monkeypatch.setattr(activation, "_MOMENT", 0.2)
    assert sleeping_script(profile(root), shell()) == ""
