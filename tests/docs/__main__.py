"""Writes into the pages what their commands print: ``python -m tests.docs PAGE …``.

Lines that were left out by hand are left out again, as long as what stands around them is right.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.docs import blocks, world
from tests.docs.running import LANGUAGE, as_shown, runnable
from tests.support.pythons import ROOT


def rewrite(page: str) -> None:
    """Runs a page in a new world and puts its output into it."""
    text = blocks.read(page)
    listed = [command for command in blocks.commands(text) if runnable(command)]
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "home")
        world.make_world(home)
        ran = world.run(home, listed, LANGUAGE.get(page, ""))
    lines = text.splitlines()
    for command, done in reversed(list(zip(listed, ran, strict=True))):
        if command.shown is None:
            if done.code != command.code:
                print(f"{page}: {command.text}: {done.code}\n  " + "\n  ".join(done.lines))
        elif not as_shown(command, done):
            lines[command.start : command.end] = [
                *done.lines, *([f"(exit {done.code})"] if done.code else [])
            ]  # fmt: skip
            print(f"{page}: written anew: {command.text}")
    (ROOT / page).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for one in sys.argv[1:]:
        rewrite(one)
