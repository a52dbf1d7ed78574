"""Where the commands of the docs are run: a card's notebook, and an index for the laptop.

A home folder with an activated environment of small vendor builds. It stands for ``/home/user``,
and is named so in everything that is compared.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.docs.blocks import Command
from tests.support.elf_files import shared_object
from tests.support.pythons import clean_env, make_venv
from tests.support.wheels import make_wheel
from tests.support.worlds import install

HOME = "/home/user"
TORCH = "2.10.0+das.opt1.dtk2604.20260325.g6b060a"
FLASH = "2.8.3+das.opt1.dtk2604.torch2100"
TRITON = "3.5.0+das.opt1.dtk2604.torch2100"

_TORCH_INIT = """\
__version__ = {version!r}


class version:
    hip = {hip!r}
    cuda = None


class cuda:
    @staticmethod
    def is_available():
        return version.hip is not None
"""

#: What an index gives: versions, and what each of them requires.
_PUBLIC: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "torch": (("2.10.0", "2.11.0"), ("filelock", "triton>=3.5")),
    "triton": (("3.6.0",), ()),
    "flash-attn": (("2.9.0",), ("torch",)),
    "filelock": (("3.16.0",), ()),
    "numpy": (("2.1.0",), ()),
    "tqdm": (("4.66.0", "4.67.1"), ()),
    "accelerate": (("1.2.0",), ("torch>=2.0", "numpy")),
    "peft": (("0.14.0",), ("torch>=1.13", "accelerate", "tqdm")),
    "datasets": (("3.2.0",), ("numpy", "tqdm")),
    "xformers": (("0.0.33", "0.0.34"), ("torch==2.11.0",)),
    "lightning": (("2.4.0",), ("torch>=2.1", "tqdm")),
}
#: Newer ones that require more.
_NEWER = {"lightning": ("2.5.0", ("torch>=2.11", "tqdm"))}


@dataclass(frozen=True, slots=True)
class Ran:
    """What one command did: what it printed, and the code it ended with."""

    lines: tuple[str, ...]
    code: int


def _torch(version: str, hip: str | None) -> dict[str, bytes | str]:
    files: dict[str, bytes | str] = {
        "torch/__init__.py": _TORCH_INIT.format(version=version, hip=hip)
    }
    if hip:
        files["torch/lib/libtorch_hip.so"] = shared_object(["libgalaxyhip.so.5"])
    return files


def make_world(home: Path) -> None:
    """Fills a home folder: ``venv``, and what the laptop's index has."""
    home.mkdir(parents=True)
    vendor = home / ".image"
    wheels = [
        make_wheel(vendor, "torch", TORCH, _torch(TORCH, "6.3.26093"), requires=["filelock"]),
        make_wheel(vendor, "triton", TRITON),
        make_wheel(vendor, "flash_attn", FLASH, requires=["torch"]),
        make_wheel(vendor, "filelock", "3.16.0"),
        make_wheel(vendor, "tqdm", "4.66.0"),
    ]
    install(make_venv(home / "venv"), *wheels)
    for name, (versions, requires) in _PUBLIC.items():
        for version in versions:
            files = _torch(version, None) if name == "torch" else None
            make_wheel(home / ".index", name, version, files, requires=requires)
    for name, (version, requires) in _NEWER.items():
        make_wheel(home / ".index", name, version, requires=requires)
    tools = home / ".tools"
    tools.mkdir()
    _tool(tools / "envlock", f'exec "{sys.executable}" -m envlock "$@"')
    _tool(tools / "pip", f'exec "{sys.executable}" -m pip --python "$VIRTUAL_ENV" "$@"')
    (tools / "pip.conf").touch()
    (tools / "uv").symlink_to(Path(sys.executable).with_name("uv"))


def _tool(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def around(home: Path, around: str) -> str:
    """Exports that make a network: an index that has everything, or none that answers."""
    names = ("PIP_INDEX_URL", "PIP_NO_INDEX", "PIP_FIND_LINKS", "UV_NO_INDEX", "UV_FIND_LINKS",
             "UV_DEFAULT_INDEX")  # fmt: skip
    # nobody listens on the first port: refused, as by a network that is closed
    closed, index = "http://127.0.0.1:1/simple", home / ".index"
    words = {
        "card": f"PIP_INDEX_URL={closed} UV_DEFAULT_INDEX={closed}",
        "laptop": f"PIP_NO_INDEX=1 PIP_FIND_LINKS='{index}' UV_NO_INDEX=1 UV_FIND_LINKS='{index}'",
    }
    return f"unset {' '.join(names)}; export {words[around]}"


def environment(home: Path, **more: str) -> dict[str, str]:
    env = clean_env(
        HOME=str(home), VIRTUAL_ENV=str(home / "venv"), LANG="C.UTF-8",
        # no file of this machine's administrator either
        PIP_CONFIG_FILE=str(home / ".tools/pip.conf"), XDG_CONFIG_DIRS=str(home / ".tools"),
        PIP_RETRIES="0", UV_HTTP_RETRIES="0",
        PATH=os.pathsep.join([str(home / "venv/bin"), str(home / ".tools"), "/usr/bin", "/bin"]),
    )  # fmt: skip
    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "LC_ALL", "LANGUAGE"):
        env.pop(name, None)
    return env | more


def run(home: Path, page: Sequence[Command], language: str = "") -> list[Ran]:
    """Runs the commands of a page one after the other in one shell, in the home folder."""
    mark = "@@ command"
    script = ["exec 2>&1", 'cd "$HOME"']
    for command in page:
        script += [around(home, command.around), f"echo '{mark}'", command.text,
                   f'echo "{mark} $?"']  # fmt: skip
    more = {"LANG": language} if language else {}
    done = subprocess.run(
        ["bash"], input="\n".join(script) + "\n", env=environment(home, **more),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
    )  # fmt: skip
    found, lines = [], list[str]()
    for line in done.stdout.replace(str(home), HOME).splitlines():
        text, marked, code = line.partition(mark)
        if text:
            lines.append(text)
        elif not marked:
            lines.append(line)
        if marked and not code:
            lines.clear()
        elif marked:
            found.append(Ran(tuple(lines), int(code)))
    assert len(found) == len(page), f"the shell ended early: {done.stdout[-2000:]}"
    return found


#: What differs between machines and runs, and says nothing about envlock.
_VARIES = (
    (re.compile(r"\b\d+(\.\d+)? (B|kB|MB|GB|MiB|GiB)\b"), "SIZE"),
    (re.compile(r"\b\d+(\.\d+)? (s|ms|seconds|秒)(?!\w)"), "TIME"),
    (re.compile(r"\bPython 3\.\d+\.\d+"), "PYTHON"),
    (re.compile(r"\b(cp3\d+|python3\.\d+)"), "TAG"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "DATE"),
    (re.compile(r"\b[0-9a-f]{12,64}\b"), "HASH"),
    (re.compile(r"\b[\d,]+ inodes\b"), "INODES"),
    (re.compile(r"\s+"), " "),
)


def alike(line: str) -> str:
    """A line as it is compared: without times, sizes and the number of spaces."""
    for pattern, name in _VARIES:
        line = pattern.sub(name, line)
    return line.strip()
