"""What a page of the docs holds: fenced blocks, commands with what they print, headings, links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.pythons import ROOT

#: A line that stands for lines of output which are not shown.
LEFT_OUT = "[…]"
#: What the world around the commands is, from here on: a comment that readers do not see.
_AROUND = re.compile(r"<!-- (card|laptop) -->")
_CODE = re.compile(r"\(exit (\d+)\)")
_SHELL = ("sh", "console")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block.

    Attributes:
        kind: what stands behind the fence: ``sh``, ``console``, ``yaml``, or nothing.
        lines: what is between the fences.
        start: index of its first line in the page.
        around: ``card`` (no network) or ``laptop`` (an index answers).
    """

    kind: str
    lines: tuple[str, ...]
    start: int
    around: str = "card"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command as it is typed, and what the page says it prints.

    Attributes:
        text: one line, or several where it goes on.
        shown: the lines below it in a ``console`` block; None in an ``sh`` block.
        code: what it ends with.
        start, end: the lines of the page that ``shown`` takes.
        around: as of its block.
    """

    text: str
    shown: tuple[str, ...] | None
    code: int
    start: int
    end: int
    around: str


def read(page: str) -> str:
    """A page by its path in the checkout."""
    return (ROOT / page).read_text(encoding="utf-8")


def pages() -> list[str]:
    """Every page: the READMEs, and all of ``docs``."""
    found = sorted(str(path.relative_to(ROOT)) for path in Path(ROOT, "docs").rglob("*.md"))
    return ["README.md", "README.zh-CN.md", *found]


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a page."""
    around, kind, start = "card", "", -1
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if start < 0 and (said := _AROUND.fullmatch(line.strip())):
            around = said[1]
        if not line.startswith("```"):
            continue
        if start < 0:
            kind, start = line[3:].strip(), number + 1
        else:
            inside = tuple(lines[start:number])
            yield Block(kind=kind, lines=inside, start=start, around=around)
            start = -1
    assert start < 0, f"a block that has no end, after line {start}"


def commands(text: str) -> Iterator[Command]:
    """The commands of a page, in their order."""
    for block in blocks(text):
        if block.kind in _SHELL:
            yield from _console(block) if block.kind == "console" else _sh(block)


def _console(block: Block) -> Iterator[Command]:
    starts = [n for n, line in enumerate(block.lines) if line.startswith("$ ")]
    assert starts[:1] == [0], f"line {block.start}: a console block begins with a command"
    for start, end in zip(starts, [*starts[1:], len(block.lines)], strict=True):
        body = start
        while block.lines[body].endswith("\\"):
            body += 1
        shown = list(block.lines[body + 1 : end])
        code = _CODE.fullmatch(shown[-1]) if shown else None
        yield Command(
            text="\n".join(block.lines[start : body + 1]).removeprefix("$ "),
            shown=tuple(shown[: len(shown) - bool(code)]),
            code=int(code[1]) if code else 0,
            start=block.start + body + 1,
            end=block.start + end,
            around=block.around,
        )


def _sh(block: Block) -> Iterator[Command]:
    text = ""
    for number, line in enumerate(block.lines):
        text += line + "\n"
        if line.endswith(("\\", "&&")) or not line.strip() or line.startswith("#"):
            continue
        place = block.start + number + 1
        code = _CODE.search(line)
        yield Command(
            text=text.strip(), shown=None, code=int(code[1]) if code else 0,
            start=place, end=place, around=block.around,
        )  # fmt: skip
        text = ""


def outside(text: str) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)


def headings(text: str) -> list[str]:
    """The headings of a page, with their marks."""
    return re.findall(r"^#+ .*$", outside(text), re.M)


def tables(text: str) -> list[list[list[str]]]:
    """The tables of a page: rows of cells."""
    found: list[list[list[str]]] = []
    inside = False
    for line in outside(text).splitlines():
        if line.startswith("|"):
            if not inside:
                found.append([])
            cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
            found[-1].append([cell.strip() for cell in cells])
        inside = line.startswith("|")
    return found


def links(text: str) -> list[str]:
    """Where the links of a page lead."""
    return re.findall(r"\]\(([^)\s]+)\)", outside(text))
