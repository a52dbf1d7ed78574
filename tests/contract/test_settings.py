"""What guard reads out of variables and files is what pip itself reads."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from envlock.adapters.configuration import pip_files
from envlock.guard.command import configured, parse
from envlock.guard.settings import Source, Surroundings
from tests.support.pythons import clean_env

# no part of pip's interface: the test is what tells when it moves
PROBE = """
import json, sys
from pip._internal.commands import create_command
command = create_command("install", isolated="--isolated" in sys.argv)
found, _ = command.parser.parse_args(sys.argv[1:])
print(json.dumps({
    "--upgrade": bool(found.upgrade),
    "--force-reinstall": bool(found.force_reinstall),
    "--ignore-installed": bool(found.ignore_installed),
    "--no-deps": bool(found.ignore_dependencies),
    "--user": bool(found.use_user_site),
    "--no-build-isolation": not found.build_isolation,
    "--no-index": bool(found.no_index),
    "--pre": bool(getattr(found, "pre", False)),
    "--target": [found.target_dir] if found.target_dir else [],
    "--prefix": [found.prefix_path] if found.prefix_path else [],
    "--constraint": found.constraints,
    "--requirement": found.requirements,
}))
"""
PERSON = """
[global]
user = true
no_index = 1
constraint = one.txt two.txt
[install]
upgrade = yes
target = /from/file
"""


@pytest.mark.integration
@pytest.mark.parametrize("line", ["", "-U", "--no-user", "-t /typed -c mine.txt", "--isolated"])
@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"PIP_UPGRADE": "off", "PIP_TARGET": "/var"},
        {"PIP_UPGRADE": "1", "PIP_FORCE_REINSTALL": "True", "PIP_NO_DEPS": "y"},
        {"PIP_NO_BUILD_ISOLATION": "0", "PIP_USER": "no"},
        {"PIP_NO_BUILD_ISOLATION": "1", "PIP_NO_USER": "1"},
        {"PIP_CONSTRAINT": "c.txt d.txt", "PIP_REQUIREMENT": "r.txt", "PIP_NO_INDEX": "f"},
        {"PIP_IGNORE_INSTALLED": "t", "PIP_PREFIX": "/p", "PIP_NO_USER": "0"},
    ],
)
@pytest.mark.parametrize("person", ["", PERSON])
def test_pip_agrees(line: str, variables: dict[str, str], person: str, tmp_path: Path) -> None:
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip" / "pip.conf").write_text(person)
    env = {k: v for k, v in clean_env().items() if not k.startswith("PIP_")}
    env |= {"XDG_CONFIG_HOME": str(tmp_path), "XDG_CONFIG_DIRS": str(tmp_path / "x"), **variables}
    words = line.split()
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *words], env=env, capture_output=True, text=True, check=True
    )
    pips = json.loads(done.stdout)

    isolated = "--isolated" in words
    found = pip_files(env, sys.prefix, isolated=isolated)
    files = tuple(Source(path=path, text=text) for path, text in found)
    around = Surroundings(env={} if isolated else env, files=files)
    given = configured(parse(["pip", "install", *words, "x"]), around, None).given
    ours = {
        option: list(given.value(option)) if isinstance(value, list) else given.has(option)
        for option, value in pips.items()
    }
    assert ours == pips
