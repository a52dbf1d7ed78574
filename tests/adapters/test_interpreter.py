"""Which Python is meant, and what it says of itself."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from envlock.adapters import interpreter
from envlock.adapters.interpreter import Named, find_python, probes_folder, read_target
from envlock.errors import UnusableInput
from envlock.model.facts import Target
from tests.support.pythons import clean_env, make_venv, python_for

VERSIONS = ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13"]


def fake_python(folder: Path, name: str = "python3", code: str = "") -> Path:
    """A program of that name; by default the running Python under another path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(code or f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    path.chmod(0o755)
    return path


def read(path: Path | str, **env: str) -> Target:
    return read_target(Named(str(path), "--python"), clean_env(**env))


# --- which one ------------------------------------------------------------------------------


def test_order(tmp_path: Path) -> None:
    """``--python``, ``$VIRTUAL_ENV``, ``$CONDA_PREFIX``, the first ``python3`` on PATH."""
    named, venv, conda, path = (
        fake_python(tmp_path / name / "bin") for name in ("named", "venv", "conda", "path")
    )
    env = {
        "VIRTUAL_ENV": str(tmp_path / "venv"),
        "CONDA_PREFIX": str(tmp_path / "conda"),
        "PATH": f"{tmp_path}/none:{tmp_path}/path/bin",
    }
    assert find_python(str(named), env) == Named(str(named), "--python")
    assert find_python(None, env) == Named(str(venv), "$VIRTUAL_ENV")
    del env["VIRTUAL_ENV"]
    assert find_python(None, env) == Named(str(conda), "$CONDA_PREFIX")
    del env["CONDA_PREFIX"]
    assert find_python(None, env) == Named(str(path), "PATH")


def test_empty_variables_do_not_count(tmp_path: Path) -> None:
    path = fake_python(tmp_path)
    env = {"VIRTUAL_ENV": "", "CONDA_PREFIX": "", "PATH": f"::{tmp_path}"}
    assert find_python(None, env) == Named(str(path), "PATH")


def test_own_python_is_not_taken_from_path(tmp_path: Path) -> None:
    other = fake_python(tmp_path)
    own = os.path.dirname(sys.executable)
    (tmp_path / "alias").symlink_to(own)
    env = {"PATH": f"{own}:{tmp_path}/alias:{tmp_path}"}
    assert find_python(None, env).path == str(other)
    assert find_python(sys.executable, env).path == sys.executable


def test_none_at_all(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput) as caught:
        find_python(None, {"PATH": str(tmp_path)})
    assert caught.value.message == "target: no Python found"
    assert caught.value.exit_code == 4
    assert "--python" in caught.value.hint


def test_a_folder_means_its_python(tmp_path: Path) -> None:
    python = fake_python(tmp_path / "bin")
    assert find_python(str(tmp_path), {}).path == str(python)
    with pytest.raises(UnusableInput, match=f"no Python in '{tmp_path}/bin/none'"):
        (tmp_path / "bin" / "none").mkdir()
        find_python(f"{tmp_path}/bin/none", {})


def test_home_and_relative_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = fake_python(tmp_path / "bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert find_python("~/bin/python3", {}).path == str(python)
    assert find_python("bin/python3", {}).path == str(python)


def test_a_bare_name_is_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = fake_python(tmp_path, "python3.99")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_python("python3.99", {}).path == str(python)


@pytest.mark.parametrize("named", ["none", "/none/at/all", "./none", ""])
def test_missing(named: str, tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to(tmp_path / "gone")
    with pytest.raises(UnusableInput, match="does not exist"):
        find_python(named or str(tmp_path / "dangling"), {})


def test_activated_environment_that_is_gone(tmp_path: Path) -> None:
    """Never fall through to another Python than the one that is activated."""
    with pytest.raises(UnusableInput, match="does not exist"):
        find_python(None, {"VIRTUAL_ENV": f"{tmp_path}/gone", "PATH": os.environ["PATH"]})


# --- what it says ---------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_and_its_venv(version: str, tmp_path: Path) -> None:
    python = python_for(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    base, venv = read(python), read(make_venv(tmp_path / "v", python))
    short = "cp" + version.replace(".", "")
    for target in (base, venv):
        assert target.python.startswith(version)
        assert target.short == short
        assert target.markers["python_version"] == version
        assert target.markers["sys_platform"] == "linux"
        assert target.glibc is not None
        assert "py3-none-any" in target.tags
        assert not any(entry.endswith("probes") for entry in target.sys_path)
    assert (base.venv, venv.venv) == (False, True)
    assert venv.pip is None
    assert venv.markers == base.markers
    where = venv.layout
    assert where.relative() == {
        "purelib": f"lib/python{version}/site-packages",
        "platlib": f"lib/python{version}/site-packages",
        "scripts": "bin",
        "headers": f"include/site/python{version}",
        "data": ".",
    }
    assert where.prefix == str(tmp_path / "v")
    assert venv.executable == str(tmp_path / "v/bin/python")


def test_own_pip_and_managed_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = make_venv(tmp_path / "v")
    site = Path(read(python).layout.purelib)
    (site / "pip-26.3.dist-info").mkdir()
    assert read(python).pip == "26.3"
    assert read(python).externally_managed is None


def test_noise_does_not_matter(tmp_path: Path) -> None:
    python = make_venv(tmp_path / "v")
    site = Path(read(python).layout.purelib)
    (site / "sitecustomize.py").write_text(
        "import sys; print('{\"schema\": 9}' * 9999); print('hello', file=sys.stderr)"
    )
    assert read(python).venv


@pytest.mark.parametrize("name", ["json", "os", "platform", "site", "sysconfig"])
def test_modules_nearby_do_not_shadow(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither one in the working folder nor one beside the probe."""
    (tmp_path / f"{name}.py").write_text("raise SystemExit('shadowed')")
    monkeypatch.chdir(tmp_path)
    assert not read(sys.executable).executable.endswith("json.py")
    probes = tmp_path / "probes"
    probes.mkdir()
    (probes / f"{name}.py").write_text("raise SystemExit('shadowed')")
    (probes / "environment.py").write_text((probes_folder() / "environment.py").read_text())
    monkeypatch.setattr(interpreter, "probes_folder", lambda: probes)
    assert read(sys.executable).python


def test_nothing_is_written_beside_the_probe() -> None:
    before = sorted(os.listdir(probes_folder()))
    read(sys.executable)
    assert sorted(os.listdir(probes_folder())) == before


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("#!/bin/sh\necho 'libpython: not found' >&2; exit 127\n", "(exit 127): libpython: not"),
        ("#!/bin/sh\nexit 0\n", "(exit 0): it printed nothing"),
        ("#!/bin/sh\nkill -SEGV $$\n", "(exit -11)"),
        ('#!/bin/sh\nfor a; do :; done; printf "{" > "$a"\n', "(exit 0)"),
        ("no program\n", "cannot be started"),
    ],
)
def test_broken(code: str, why: str, tmp_path: Path) -> None:
    python = fake_python(tmp_path, code=code)
    with pytest.raises(UnusableInput) as caught:
        read(python)
    assert why in caught.value.message
    assert str(python) in caught.value.message
    assert "Python 3.8 or newer" in caught.value.hint


def test_not_executable(tmp_path: Path) -> None:
    python = fake_python(tmp_path)
    python.chmod(0o644)
    with pytest.raises(UnusableInput, match=r"^target: .*cannot be started: Permission denied"):
        read(python)


def test_hanging(tmp_path: Path) -> None:
    path = fake_python(tmp_path, code="#!/bin/sh\nexec sleep 60\n")
    with pytest.raises(UnusableInput, match="no answer in time"):
        read_target(Named(str(path), "--python"), clean_env(), 0.3)


def test_other_implementations_are_told_so(tmp_path: Path) -> None:
    answer = json.dumps({"implementation": "pypy"})
    code = f"#!/bin/sh\nfor a; do :; done; echo '{answer}' > \"$a\"\n"
    with pytest.raises(UnusableInput, match="is pypy"):
        read(fake_python(tmp_path, code=code))
