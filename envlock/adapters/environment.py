"""Making environments."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from envlock.adapters import files, process
from envlock.adapters.installer import without_settings
from envlock.errors import ProgramFailed, UndoIncomplete, UnusableInput

_SECONDS = 300.0


def python_of(folder: str) -> str:
    """The interpreter of an environment, whether it is there yet or not."""
    return os.path.join(os.path.abspath(folder), "bin", "python")


@contextmanager
def new_environment(python: str, folder: str, env: Mapping[str, str]) -> Iterator[str]:
    """A venv without pip, taken away again when the block fails.

    An empty folder that was there stays, empty; a stash that an undo could not put back, too.

    Args:
        python: the interpreter it is made from.
        folder: where; an existing environment is used as it is and never taken away.

    Yields:
        Path of its interpreter.

    Raises:
        UnusableInput: something else is there already.
        ProgramFailed: the venv cannot be made.
    """
    path = os.path.abspath(folder)
    inside = python_of(folder)
    if os.path.exists(os.path.join(path, "pyvenv.cfg")):
        yield inside
        return
    if os.path.lexists(path) and (not os.path.isdir(path) or os.listdir(path)):
        raise UnusableInput(
            f"--into: '{folder}' is not an environment, and not empty", "name another folder"
        )
    existed = os.path.isdir(path)
    command = [python, "-m", "venv", "--without-pip", path]
    try:
        done = process.run(command, env=without_settings(env), timeout=_SECONDS)
        if done.code != 0:
            raise ProgramFailed(
                f"venv: exit {done.code}: {process.last_lines(done.output)}",
                "the target's Python needs the 'venv' module of its standard library",
            )
        yield inside
    except UndoIncomplete:
        raise
    except BaseException:
        for name in os.listdir(path) if existed else ():
            files.remove_tree(os.path.join(path, name))
        if not existed:
            files.remove_tree(path)
        raise
