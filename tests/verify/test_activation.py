"""The vendor's script is sourced once, from where envlock itself found the stack."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from envlock.model.profile import Profile
from envlock.verify.activation import activate
from tests.support.fake_checks import fake_check
from tests.verify.conftest import RunFakes

# like the real one: it reads an unset variable, prints, and appends to what is there
_SCRIPT = """
echo "welcome to the stack"
export DTKROOT="$(dirname "${BASH_SOURCE[0]}")"
export LD_LIBRARY_PATH="$DTKROOT/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}$NOT_SET_ANYWHERE"
export ODD="two
lines"
"""
PATH = os.environ.get("PATH", "")


@pytest.fixture
def stack(tmp_path: Path) -> Path:
    root = tmp_path / "dtk-26.04"
    root.mkdir()
    (root / "env.sh").write_text(_SCRIPT)
    link = tmp_path / "dtk"
    link.symlink_to(root)
    return link


def _profile(root: Path | str, device: str = "cpu") -> Profile:
    return Profile(
        name="dtk",
        title="DTK",
        labels=(),
        names=(),
        roots=(str(root),),
        root_variables=("DTKROOT",),
        env_script="env.sh",
        device=device,
    )


def test_without_a_script_nothing_happens() -> None:
    profile = Profile(name="cpu", title="CPU", labels=(), names=(), device="cpu")
    env = {"A": "1"}
    found = activate(profile, env)
    assert (found.env, found.findings) == (env, ())


def test_an_inactive_shell_is_told_and_helped(stack: Path) -> None:
    found = activate(_profile(stack), {"PATH": PATH, "LD_LIBRARY_PATH": "/mine", "MINE": "x"})
    assert found.env["LD_LIBRARY_PATH"] == f"{stack}/lib:/mine"
    assert found.env["DTKROOT"] == str(stack)  # the link, not where it leads
    assert (found.env["ODD"], found.env["MINE"]) == ("two\nlines", "x")
    assert "BASH_ENV" not in found.env
    assert not found.active
    assert [finding.code for finding in found.findings] == ["stack.not-activated"]
    assert found.findings[0].hint == f"source {stack}/env.sh"


def test_an_active_shell_is_used_as_it_is(stack: Path) -> None:
    env = {"PATH": PATH, "LD_LIBRARY_PATH": f"/before:{stack}/lib", "DTKROOT": str(stack)}
    found = activate(_profile("/nowhere"), env)
    assert found.active
    assert found.env == env
    assert found.findings == ()


def test_a_stack_that_is_not_there_is_a_finding(tmp_path: Path) -> None:
    found = activate(_profile(tmp_path / "none"), {"PATH": PATH})
    assert [finding.code for finding in found.findings] == ["stack.not-found"]


@pytest.mark.parametrize("script", ["exit 3", "kill -9 $$", None])
def test_a_broken_script_is_a_finding(stack: Path, script: str | None) -> None:
    if script is None:
        (stack / "env.sh").unlink()
    else:
        (stack / "env.sh").write_text(script)
    env = {"PATH": PATH}
    found = activate(_profile(stack), env)
    assert [finding.code for finding in found.findings] == ["stack.env-script"]
    assert found.env == env


def test_children_get_the_variables_and_empty_caches(run_fakes: RunFakes, stack: Path) -> None:
    body = (
        "names = ('DTKROOT', 'TRITON_CACHE_DIR', 'TORCHINDUCTOR_CACHE_DIR', 'TMPDIR', 'HOME');"
        " context.facts.update({n: os.environ.get(n) for n in names});"
        " context.facts['empty'] = not any(map(os.listdir, map(os.environ.get, names[1:4])));"
        " context.facts['interpret'] = 'TRITON_INTERPRET' in os.environ;"
        " context.facts['cwd'] = os.getcwd(); context.facts['path'] = sys.path;"
        " import resource; context.facts['core'] = resource.getrlimit(resource.RLIMIT_CORE);"
        " yield context.case('one', dict)"
    )
    env = {**os.environ, "TRITON_INTERPRET": "1", "TRITON_CACHE_DIR": "/stale"}
    env.pop("LD_LIBRARY_PATH", None)
    checks = (fake_check("first"), fake_check("second"))
    outcome = run_fakes(
        *checks, bodies={"first": body, "second": body}, env=env, profile=_profile(stack)
    )
    first, second = (result.facts for result in outcome.results)
    assert outcome.code == 0
    assert first["DTKROOT"] == str(stack)
    assert first["empty"] is True and first["interpret"] is False
    assert first["core"] == [0, 0]
    assert not any("probes" in entry for entry in first["path"])
    for name in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TMPDIR", "cwd"):
        assert first[name] != second[name]
        assert not os.path.exists(first[name])
    assert [f.code for f in outcome.findings] == ["stack.not-activated"]
    assert outcome.report["findings"][0]["code"] == "stack.not-activated"


def test_the_reports_text_has_no_path_of_the_target(run_fakes: RunFakes) -> None:
    body = "print(sys.prefix + '/lib/x'); yield context.case('one', failing)"
    result = run_fakes(fake_check("first"), bodies={"first": body}).results[0]
    assert "PREFIX/lib/x" in result.output
    assert sys.prefix not in result.output
