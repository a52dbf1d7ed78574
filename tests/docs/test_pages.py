"""The pages hang together: links, the built site, and the two READMEs."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import Block, blocks, headings, links, outside, pages, read, tables
from tests.support.pythons import ROOT

ENGLISH, CHINESE = read("README.md"), read("README.zh-CN.md")


def _anchor(heading: str) -> str:
    """What a heading is called in a link, on the site and where READMEs are shown."""
    text = re.sub(r"[^\w\s-]", "", heading.lstrip("# ").lower())
    return re.sub(r"\s", "-", text.strip())


@pytest.mark.parametrize("page", pages())
def test_links_lead_somewhere(page: str) -> None:
    for link in links(read(page)):
        place, _, anchor = link.partition("#")
        assert not re.match(r"[a-z]+:", link), f"{page}: {link} leaves the checkout"
        path = (ROOT / page).parent / place if place else ROOT / page
        assert path.exists(), f"{page}: {link}"
        if anchor:
            names = [_anchor(heading) for heading in headings(path.read_text(encoding="utf-8"))]
            assert anchor in names, f"{page}: {link}"


def test_every_page_can_be_reached() -> None:
    """From the README, through links."""
    seen, ahead = set[Path](), [ROOT / "README.md"]
    while ahead:
        page = ahead.pop().resolve()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        text = page.read_text(encoding="utf-8")
        ahead += [page.parent / link.partition("#")[0] for link in links(text) if link[0] != "#"]
    assert {(ROOT / page).resolve() for page in pages()} <= seen


@pytest.mark.parametrize("page", pages())
def test_nothing_of_this_machine_is_in_a_page(page: str) -> None:
    """Outputs come from a home folder that is called ``/home/user``."""
    assert not re.search(r"(?<![\w.])/(tmp|root|work|mnt|var|private)/", read(page))
    assert set(re.findall(r"/home/(\w+)", read(page))) <= {"user"}


@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="mkdocs is not installed")
def test_the_site_is_built(tmp_path: Path) -> None:
    """Without a warning; and nothing in it is fetched from elsewhere."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path / "s")],
        cwd=ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    made = {path.name for path in (tmp_path / "s").glob("*.html")}
    assert {Path(page).stem + ".html" for page in pages() if page.startswith("docs/")} <= made
    for path in (tmp_path / "s").glob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert not re.findall(
            r"<(?:script|link|img)[^>]+(?:src|href)=\"(?:https?:)?//[^\"]*\"", text
        )


def test_both_readmes_have_the_same_sections() -> None:
    levels = [[line.split()[0] for line in headings(text)] for text in (ENGLISH, CHINESE)]
    assert levels[0] == levels[1]
    assert levels[0].count("##") >= 8


def _typed(text: str) -> list[tuple[str, list[str]]]:
    """Blocks with what is typed in them; comments are translated, and so is what is printed."""

    def lines(block: Block) -> list[str]:
        if block.kind == "console":
            return [line for line in block.lines if line.startswith("$ ")]
        return [line.partition("  #")[0].rstrip() for line in block.lines if block.kind == "sh"]

    return [(block.kind, lines(block)) for block in blocks(text)]


def test_both_readmes_have_the_same_commands() -> None:
    assert _typed(ENGLISH) == _typed(CHINESE)


def _code(text: str) -> list[str]:
    return sorted(re.findall(r"`[^`]+`", text))


def test_both_readmes_have_the_same_tables() -> None:
    """As many rows and columns, with the same commands, options and codes in each row."""
    for ours, theirs in zip(tables(ENGLISH), tables(CHINESE), strict=True):
        assert [len(row) for row in ours] == [len(row) for row in theirs]
        assert [_code(" ".join(row)) for row in ours] == [_code(" ".join(row)) for row in theirs]


def test_both_readmes_have_the_same_links_and_names() -> None:
    def theirs(text: str) -> list[str]:
        return sorted(link for link in links(text) if "README" not in link and link[0] != "#")

    assert theirs(ENGLISH) == theirs(CHINESE)
    assert _code(outside(ENGLISH)) == _code(outside(CHINESE))


def test_what_to_do_when_it_is_broken_is_the_same_everywhere() -> None:
    """The table of the README and that of the docs."""
    home = [table for table in tables(read("docs/index.md")) if "you have" in table[0]]
    here = [table for table in tables(ENGLISH) if "you have" in table[0]]
    assert home == here
    assert here
