"""Byte code of what was restored, made by the target's own interpreter after the commit."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from envlock.adapters import files, process
from envlock.adapters.installed import read_installed
from envlock.adapters.moving import give_like
from envlock.errors import ProgramFailed
from envlock.model.facts import Finding, Target


def sources_of(target: Target, names: Collection[str]) -> list[str]:
    """Absolute paths of the Python files in the site folders that distributions own."""
    found = []
    for dist in read_installed(target.layout):
        if dist.name in names:
            for row in dist.rows or ():
                if row.path.endswith(".py") and not row.path.startswith((".", os.sep)):
                    found.append(os.path.join(dist.site, row.path))
    return sorted(found)


def compile_files(target: Target, paths: Sequence[str], env: Mapping[str, str]) -> list[Finding]:
    """Compiles files; one that cannot be compiled is imported from its source, so that it is a
    finding and no failure.

    ``compileall`` with as many processes as there are CPUs; files of other Python versions, which
    some distributions carry as data, make it end with 1.
    """
    if not paths:
        return []
    with tempfile.TemporaryDirectory(prefix="envlock-") as private:
        listed = Path(private, "files")
        listed.write_text("".join(f"{path}\n" for path in paths), encoding="utf-8")
        command = [target.executable, "-m", "compileall", "-qq", "-j", str(files.workers()),
                   "-i", str(listed)]  # fmt: skip
        try:
            done = process.run(command, env=env)
        except ProgramFailed as error:
            return [_uncompiled(error.message)]
    _owned_like(target.layout.purelib, paths)
    if done.code in (0, 1):
        return []
    return [_uncompiled(process.last_lines(done.output) or f"exit {done.code}")]


def _owned_like(model: str, paths: Sequence[str]) -> None:
    """Root's byte code in another user's environment could never be replaced by its owner."""
    for folder in {os.path.join(os.path.dirname(path), "__pycache__") for path in paths}:
        if os.path.isdir(folder):
            give_like(folder, model, time.time(), itself=True)


def _uncompiled(why: str) -> Finding:
    return Finding(
        code="restore.uncompiled",
        subject="byte code",
        what=f"was not made: {why}",
        why="the first import of each module takes longer",
    )
