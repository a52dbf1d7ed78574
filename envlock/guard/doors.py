"""The installers that guard knows: those it judges, those it lets pass, and those it does not
understand, with what to do about each. Pure."""

from __future__ import annotations

import os
from collections.abc import Sequence

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
    "and what changes nothing, such as pip list",
)
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
}


def hint() -> str:
    """The list of what is understood."""
    return "understood are: " + ", ".join(UNDERSTOOD)


def not_understood(words: Sequence[str], what: str = "") -> UsageProblem:
    """The problem of a command line that guard cannot read, and what to do for that tool."""
    name = os.path.basename(words[0]) if words else ""
    if name == "uv" and words[1:2] == ["tool"]:
        name = "uvx"
    advice = _ADVICE.get(name)
    shown = what or (f"'{words[0]}' is not understood" if words else "no command given")
    return UsageProblem(f"guard: {shown}", f"{advice}; {hint()}" if advice else hint())
