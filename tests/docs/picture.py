"""Takes the picture of a terminal that the pages show: ``python -m tests.docs.picture``.

tmux is the terminal, the commands are run in the world of the docs, and what it shows is written
as an SVG that fetches nothing.
"""

from __future__ import annotations

import html
import io
import os
import re
import secrets
import shutil
import subprocess
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tests.docs import world
from tests.support.pythons import ROOT

PICTURE = ROOT / "docs/pictures/loop.svg"
#: What is typed before anybody looks.
BEFORE = ("envlock snapshot", "envlock wheelhouse harvest wheels")
TYPED = (
    "envlock guard pip install -U torch",
    "pip install -q -U torch",
    "envlock verify --only static.lock",
    "envlock restore",
    "envlock verify --only static.lock",
)
_WIDTH, _HEIGHT = 100, 36
_FORMAT = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""  # fmt: skip


def _tmux(socket: str, *words: str, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        ["tmux", "-L", socket, *words], env=env, capture_output=True, text=True, check=True
    )
    return done.stdout


def _seen(home: Path) -> str:
    """What the terminal shows after the commands, with its colours."""
    socket, end = f"docs-{os.getpid()}", home / ".end"
    env = world.environment(home) | {"TERM": "xterm-256color"}
    size = ["-x", str(_WIDTH), "-y", str(_HEIGHT)]
    _tmux(socket, "new-session", "-d", *size, "-c", str(home), "bash --norc -i", env=env)
    try:
        around = "PS1='$ '; " + world.around(home, "laptop")
        for line in (around, *BEFORE, "clear; tmux clear-history", *TYPED):
            end.unlink(missing_ok=True)
            _tmux(socket, "send-keys", "-l", line)
            _tmux(socket, "send-keys", "Enter")
            _tmux(socket, "send-keys", "-l", f" : > {end}")
            _tmux(socket, "send-keys", "Enter")
            deadline = time.monotonic() + 60
            while not end.exists() and time.monotonic() < deadline:
                time.sleep(0.05)
        return _tmux(socket, "capture-pane", "-e", "-p", "-S", "-")
    finally:
        _tmux(socket, "kill-server")


def text_of(picture: str) -> list[str]:
    """The lines of text in a picture."""
    rows: dict[float, str] = {}
    for y, inner in re.findall(r'<text[^>]* y="([\d.]+)"[^>]*>(.*?)</text>', picture):
        rows[float(y)] = rows.get(float(y), "") + html.unescape(inner).replace("\xa0", " ")
    return [rows[y].rstrip() for y in sorted(rows)]


def take() -> None:
    """Runs the commands and writes the picture."""
    # as long as the name that stands for it: lines end where they end in the picture
    home = Path("/tmp", secrets.token_hex(3)[:5])
    try:
        world.make_world(home)
        seen = _seen(home)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    lines = seen.replace(str(home), world.HOME).rstrip().splitlines()
    shown = [line for line in lines if f": > {world.HOME}/.end" not in line]
    while shown and not re.sub(r"\x1b\[[\d;]*m", "", shown[-1]).strip(" $"):
        shown.pop()
    console = Console(record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi("\n".join(shown)), soft_wrap=False)
    PICTURE.parent.mkdir(exist_ok=True)
    svg = console.export_svg(title="", code_format=_FORMAT, unique_id="envlock")
    PICTURE.write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    take()
