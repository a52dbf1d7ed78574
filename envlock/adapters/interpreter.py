"""The target: which Python is meant, and what it says of itself."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from envlock.adapters import process
from envlock.errors import ProgramFailed, UnusableInput
from envlock.model.facts import Layout, TagFacts, Target, supported_tags

_PROBE_SECONDS = 60.0
_GRACE = 2.0  # it has nothing to put right
_NEEDED = "envlock needs a working Python 3.8 or newer; name one with --python PATH"


@dataclass(frozen=True, slots=True)
class Named:
    """A Python and where it was named."""

    path: str
    source: str


def probes_folder() -> Path:
    """Folder of the scripts that the target's Python runs."""
    return Path(str(resources.files("envlock"))) / "probes"


def find_python(option: str | None, env: Mapping[str, str]) -> Named:
    """The target's Python: ``--python``, ``$VIRTUAL_ENV``, ``$CONDA_PREFIX``, ``python3`` on PATH.

    envlock's own Python is never taken from PATH; named on purpose it is.

    Raises:
        UnusableInput: there is none.
    """
    if option:
        return Named(_python_in(option), "--python")
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = env.get(variable)
        if prefix and not is_own(os.path.join(prefix, "bin", "python")):
            return Named(_python_in(prefix), f"${variable}")
    for folder in env.get("PATH", "").split(os.pathsep):
        found = shutil.which("python3", path=folder) if folder else None
        if found and not is_own(found):
            return Named(found, "PATH")
    raise UnusableInput(
        "target: no Python found",
        "name it with --python PATH, or activate its environment",
    )


def is_own(path: str) -> bool:
    """Whether this is the Python of envlock's own environment (compared by folder: in a venv the
    file is a link to the one it was made from)."""
    return os.path.realpath(os.path.dirname(path)) == os.path.realpath(
        os.path.dirname(sys.executable)
    )


def _python_in(named: str) -> str:
    """The interpreter a person means by a path: the file itself, or the one in an environment."""
    path = os.path.abspath(os.path.expanduser(named))
    if os.path.isdir(path):
        for name in ("bin/python3", "bin/python", "python.exe", "Scripts/python.exe"):
            if os.path.exists(os.path.join(path, name)):
                return os.path.join(path, name)
        raise UnusableInput(f"target: no Python in '{named}'", "name the interpreter itself")
    if not os.path.exists(path):
        found = shutil.which(named) if os.sep not in named else None
        if found is None:
            raise UnusableInput(f"target: '{named}' does not exist", "name it with --python PATH")
        return found
    return path


def read_target(named: Named, env: Mapping[str, str], seconds: float = _PROBE_SECONDS) -> Target:
    """Asks the target's Python about itself.

    Args:
        seconds: until it is taken to hang.

    Raises:
        UnusableInput: it does not run, gives no answer, or is a Python that envlock cannot read.
    """
    with tempfile.TemporaryDirectory(prefix="envlock-") as folder:
        answer = os.path.join(folder, "answer.json")
        script = str(probes_folder() / "environment.py")
        quiet = {**env, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [named.path, script, answer]
        try:
            done = process.run(command, env=quiet, timeout=seconds, grace=_GRACE)
        except ProgramFailed as error:
            raise UnusableInput(f"target: {error.message}", _NEEDED) from error
        try:
            said: dict[str, Any] = json.loads(Path(answer).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            ending = "no answer in time" if done.timed_out else f"exit {done.code}"
            raise UnusableInput(
                f"target: '{named.path}' does not answer ({ending}): "
                f"{process.last_lines(done.output) or 'it printed nothing'}",
                _NEEDED,
            ) from error
    return _target(said, named)


def _target(said: Mapping[str, Any], named: Named) -> Target:
    if said["implementation"] != "cpython":
        raise UnusableInput(
            f"target: '{named.path}' is {said['implementation']}",
            "only CPython targets are supported",
        )
    glibc = tuple(said["glibc"]) if said["glibc"] else None
    facts = TagFacts(
        version=(said["version"][0], said["version"][1]),
        abi=said["abi"],
        platform=said["platform"],
        glibc=(glibc[0], glibc[1]) if glibc else None,
    )
    names = ("prefix", "purelib", "platlib", "scripts", "headers", "data")
    return Target(
        executable=said["executable"] or named.path,
        source=named.source,
        python=said["python"],
        markers=said["markers"],
        tags=supported_tags(facts),
        layout=Layout(**{name: os.path.normpath(said["paths"][name]) for name in names}),
        sys_path=tuple(said["sys_path"]),
        glibc=facts.glibc,
        venv=said["venv"],
        pip=said["pip"],
        externally_managed=said["externally_managed"],
        home=os.path.normpath(said["prefix"]),
        stdlib=os.path.normpath(said["paths"]["stdlib"]),
    )
