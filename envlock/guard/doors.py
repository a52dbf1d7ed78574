"""The installers that guard knows: those it judges, those it lets pass, and those it does not
understand, with what to do about each. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from envlock.errors import UsageProblem

#: What guard understands, as messages list it.
UNDERSTOOD = (
    "pip install",
    "pip uninstall",
    "pip3 …",
    "pip3.N …",
    "python -m pip …",
    "python3.N -m pip …",
    "/path/to/pip …",
    "/path/to/python -m pip …",
    "pip-sync",
    "uv pip install",
    "uv pip uninstall",
    "uv pip sync",
    "uv add, remove, sync, run",
    "python -m uv …",
    "env -u NAME NAME=VALUE … before one of these",
    "and what changes nothing, such as pip list",
)
#: Subcommands of pip (9.0 to 26.3): two that change an environment, and those that do not.
PIP = frozenset({"install", "uninstall", "cache", "check", "completion", "config", "debug",
                 "download", "freeze", "hash", "help", "index", "inspect", "list", "lock",
                 "search", "show", "wheel"})  # fmt: skip
#: Subcommands of ``uv pip`` that change no environment.
UV_PIP_HARMLESS = frozenset({"list", "freeze", "show", "check", "tree", "compile", "debug", "help"})
#: Subcommands of ``uv`` that change no environment.
UV_HARMLESS = frozenset({"lock", "tree", "export", "help", "version", "build", "cache"})
#: Subcommands of ``uv`` that change the project's environment.
UV_PROJECT = frozenset({"add", "remove", "sync", "run"})

_CONDA = (
    "install Python packages through 'envlock guard pip install', and keep conda's hands off: "
    "its solver knows nothing of the vendor builds"
)
_OWN = (
    "it installs into an environment that it chooses itself; export the requirements and type "
    "'envlock guard pip install -r requirements.txt'"
)
_SYSTEM = "it installs for the system; type 'envlock guard pip install' for Python packages"
_FRONT = "put it in front of envlock: it runs what follows it"
_ADVICE = {
    "conda": _CONDA,
    "mamba": _CONDA,
    "micromamba": _CONDA,
    "pixi": _OWN,
    "poetry": _OWN,
    "pdm": _OWN,
    "pipenv": _OWN,
    "hatch": _OWN,
    "rye": _OWN,
    "pipx": "it makes an environment for each program, beside the target: no guard is needed",
    "uvx": "it makes an environment for each program, beside the target: no guard is needed",
    "easy_install": "it is no more; type 'envlock guard pip install'",
    "apt": _SYSTEM,
    "apt-get": _SYSTEM,
    "dnf": _SYSTEM,
    "yum": _SYSTEM,
    "sudo": "put it in front of envlock: 'sudo envlock guard --python PATH pip install …'",
    "!pip": "in a notebook, type '!envlock guard pip install …'",
    "%pip": "in a notebook, type '!envlock guard pip install …'",
    "python setup.py": "type 'envlock guard pip install .', or '-e .'",
    **dict.fromkeys(("time", "nohup", "nice", "proxychains", "proxychains4", "xargs"), _FRONT),
}


PIP_NAME = re.compile(r"pip(3(\.\d+)?)?\Z")
PYTHON_NAME = re.compile(r"python(3(\.\d+)?)?\Z")
#: What ``python -m`` may run, and the tool that it is.
MODULES = {"pip": "pip", "uv": "uv", "piptools": "pip-sync"}
#: Programs that run what follows them.
_BEFORE_OTHERS = ("sudo", "time", "nohup", "nice")
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)=(.*)\Z", re.S)
_TAKEN = re.compile(r"(?:(?:--unset=|-u)(.+)|--unset|-u)\Z")


def split_variables(words: Sequence[str]) -> tuple[dict[str, str | None], list[str]]:
    """``env -u NAME NAME=VALUE pip …``, with or without the ``env``.

    Returns:
        The variables that it sets, None for those that it takes away, and the rest; an option of
        ``env`` that is none of these begins the rest, and nobody understands it.
    """
    found: dict[str, str | None] = {}
    left = list(words)
    with_options = bool(left) and os.path.basename(left[0]) == "env"
    left = left[1:] if with_options else left
    while with_options and left and (taken := _TAKEN.match(left[0])):
        found[taken[1] or "".join(left[1:2])] = None
        left = left[1:] if taken[1] else left[2:]
    while left and (assigned := _ASSIGNED.match(left[0])):
        found[assigned[1]] = assigned[2]
        left.pop(0)
    return found, left


def joined_variables(changes: Mapping[str, str | None]) -> list[str]:
    """The words that say so: what :func:`split_variables` reads."""
    gone = [word for name, value in changes.items() if value is None for word in ("-u", name)]
    kept = [f"{name}={value}" for name, value in changes.items() if value is not None]
    return ["env", *gone, *kept] if changes else []


def split_module(after: Sequence[str]) -> tuple[list[str], str, list[str]]:
    """The interpreter's own options, the module of ``-m``, and what follows it; no module where a
    script or something else is run."""
    before, words = list[str](), list(after)
    while words and words[0].startswith("-"):
        word = words.pop(0)
        found = re.match(r"-([A-Za-z]*?)([mcWX])(.*)\Z", word, re.S)
        if found is None:
            before.append(word)
            continue
        if found[2] == "c":
            break
        value = [found[3]] if found[3] else words[:1]
        words = words if found[3] else words[1:]
        if found[2] == "m":
            return [*before, *([f"-{found[1]}"] if found[1] else [])], "".join(value), words
        before += [word, *([] if found[3] else value)]
    return before, "", words


def installer(words: Sequence[str]) -> str:
    """The program of a command line that is an installer, or that may hide one; empty where none
    is."""
    _, rest = split_variables(words)
    name = os.path.basename(rest[0]) if rest else ""
    if os.path.basename(words[0] if words else "") == "env" and name.startswith("-"):
        return "env"  # with options that nobody reads
    if name == "env" and len(rest) < len(words):
        return installer(rest)
    if name in _BEFORE_OTHERS:
        return installer(rest[1:])
    if PYTHON_NAME.match(name):
        module = split_module(rest[1:])[1].partition(".")[0]
        return name if module in MODULES else ""
    return name if PIP_NAME.match(name) or name in ("uv", "pip-sync") else ""


def hint() -> str:
    """The list of what is understood."""
    return "understood are: " + ", ".join(UNDERSTOOD)


def not_understood(words: Sequence[str], what: str = "") -> UsageProblem:
    """The problem of a command line that guard cannot read, and what to do for that tool."""
    name = os.path.basename(words[0]) if words else ""
    if name == "uv" and words[1:2] == ["tool"]:
        name = "uvx"
    if name.startswith("python") and list(words[1:2]) == ["setup.py"]:
        name = "python setup.py"
    advice = _ADVICE.get(name)
    shown = what or (f"'{words[0]}' is not understood" if words else "no command given")
    return UsageProblem(f"guard: {shown}", f"{advice}; {hint()}" if advice else hint())
