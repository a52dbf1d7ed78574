"""The catalogue of translations: every sentence that envlock says to people, as a template.

``python -m tests.catalogue`` tells what is missing; with ``--update`` it writes the templates of
the source into the catalogue and compiles it. Whoever adds a sentence fills in its ``msgstr`` and
runs it again.
"""

from __future__ import annotations

import ast
import io
import re
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

PACKAGE = Path(__file__).parents[1] / "envlock"
CATALOGUE = PACKAGE / "locale" / "zh_CN" / "LC_MESSAGES" / "envlock.po"

#: Modules whose texts go into files, to other programs, or into ``--help``, which is English.
SILENT = (
    "probes/",
    "adapters/marker.py",
    "adapters/piptools_child.py",
    "cli/listing.py",
    "adapters/stubs.py",
    "guard/options.py",
    "model/agents.py",
    "model/check.py",
    "verify/junit.py",
    "verify/page.py",
    "verify/plots.py",
    "verify/timeline.py",
)
#: Sentences that are no single text with a space in it: words, what the system says of files, and
#: what typer says of command lines.
OTHERS = {
    "cli/show.py": ("error", "warning", "note", "hint", "what", "fact"),
    "cli/comparing.py": ("manifest '{}'", "wheelhouse '{}'", "report '{}'", "protected"),
    "cli/restoring.py": (
        "restoring", "compiling", "packing", "unpacking", "resolving", "downloading",
        "{} restored", "{} removed", "{} to restore", "{} to remove",
        "{} restored, {} removed", "{} to restore, {} to remove",
    ),
    "doctor/report.py": (
        "machine", "limits", "devices", "stack", "configuration", "disk", "network", "kernel",
        "processor", "memory", "swap", "compiler", "environment", "packages", "manifest", "servers",
        "architecture", "clock", "topology", "driver", "modules", "activated", "none", "target",
        "{} error{s}", "{} warning{s}", "{} note{s}",
    ),
    "errno": (
        "No such file or directory", "Permission denied", "Is a directory", "Not a directory",
        "File exists", "No space left on device", "Read-only file system", "Input/output error",
        "Too many levels of symbolic links", "File name too long", "Operation not permitted",
        "Disk quota exceeded", "Cross-device link", "Device or resource busy",
    ),
    "model/check.py": (
        "passed", "failed", "incomplete", "interrupted", "warned", "skipped", "blocked", "crashed",
        "timeout", "unkillable",
    ),
    "model/diff.py": ("removed", "replaced", "unreadable", "readable", "added", "entry"),
    "typer": (
        "no such option: {}", "no such command '{}'", "missing argument '{}'", "missing command",
        "option '{}' requires an argument", "got unexpected extra argument(s) ({})",
        "invalid value for '{}': {}", "'{}' is not a valid int", "'{}' is not a valid float",
        "option '{}' does not take a value", "(Possible options: {})", "missing option '{}'",
        "no such command '{}'. Did you mean {}?", "no such option: {} Did you mean {}?",
    ),
    "verify/words.py": ("exact", "nothing"),
    "wheelhouse/harvest.py": (" is", " are"),
}  # fmt: skip

#: Calls whose texts nobody reads, and keywords of the others.
_DEAF = {"compile", "fullmatch", "match", "search", "sub", "Option", "Argument", "Typer", "Host"}
_DEAF |= {"startswith", "endswith", "removeprefix", "removesuffix", "split", "partition"}
_KEYWORDS = {"help", "metavar", "encoding", "errors", "headers", "created", "tool"}
_COUNTERS = {"count", "_number", "_counted_noun"}
_PLURALS = ({"", "s"}, {"", "es"})
_NAMED = re.compile(r"\{[a-z_]*\}")
_PLACES = re.compile(r"\{s?\}")
_WORD = re.compile(r"[A-Za-z]{2,}")
#: No sentences: units, and lines of files, of programs' answers and of command lines.
_UNITS = {"MB", "GB", "GiB", "MiB", "TB", "MHz", "ms", "CPUs", "envlock"}
_TECHNICAL = re.compile(
    r"(source|module load|export|unset|ulimit|import|exec|cat|try: bash|python3?|"
    r"env|bytes|Basic|CONNECT|OPTIONS|zlib|isa-l|envlock guard pip|reason=envlock:|echo) [^b]"
    r"|(pip3?|uv|uv pip) (install|uninstall|sync|add|pip|-|\{\}$)"
    r"|[A-Z][A-Za-z-]+: \{|(Generator|Metadata-Version|Root-Is-Purelib|Tag|Wheel-Version): "
    r"|(#|--[a-z-]+[= ]|exit \d|\[|\^|text/|application/|timeout:|[a-z-]+ = |[a-z]+ \| |\"\"\")"
    r"|(/path|pip3|python3.N)"
    r"|\{\}: python\{\}|(error|hint|warning): \{\}$|[A-Za-z]+ \| None$|if !|[a-z]+=|(\{\})?(==| --)"
)
_SHELL = re.compile(r"\"\$|\$\{|2>|^(trap|mkdir|read|\}) ")
#: What programs and files call things.
_NAMES = {
    "model name", "Card Series", "PCI Bus", "Temperature (Sensor {}) (C)", "pip, uv",
    "imed out", "no end within", "Max address space", "Max open files", "Max processes",
}  # fmt: skip


def modules() -> Iterator[tuple[str, Path]]:
    """Every module that speaks, with its name in the package."""
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith(SILENT):
            yield name, path


def found_in_source() -> dict[str, set[str]]:
    """Each template, and the modules that have it."""
    found: dict[str, set[str]] = {}
    for name, path in modules():
        for text in templates(path.read_text(encoding="utf-8")):
            found.setdefault(text, set()).add(f"envlock/{name}")
    for place, texts in OTHERS.items():
        for text in texts:
            found.setdefault(text, set()).add(place)
    return found


def templates(source: str) -> Iterator[str]:
    """Every text of a module that is made for people, line by line; once or several times."""
    for text in _walk(ast.parse(source)):
        for line in text.split("\n"):
            trimmed = _trimmed(line)
            if is_sentence(trimmed):
                yield trimmed


def _trimmed(line: str) -> str:
    """Without an indent and without what leads to the next part; one blank at the beginning marks
    what is added to a sentence."""
    tail = line.startswith(" ") and not line.startswith("  ")
    text = line.strip()
    return (" " if tail else "") + (text[:-1] if line.endswith(": ") else text)


def is_sentence(text: str) -> bool:
    """Whether a text has words in it, and not only units or a command."""
    if " " not in text or _TECHNICAL.match(text.strip()) or _SHELL.search(text) or text in _NAMES:
        return False
    words = _WORD.findall(_PLACES.sub(" ", text))
    return any(word not in _UNITS for word in words) and text.strip("' ") not in ("and", "or")


def template(node: ast.AST) -> str | None:
    """An expression as text, ``{}`` for what is put in and ``{s}`` for the end of a plural; None
    where it is no text."""
    if isinstance(node, ast.Constant):
        if not isinstance(node.value, str):
            return None
        # what is filled in later has a name: "no answer of {name}"
        return _NAMED.sub("{}", node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_part, node.values))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = template(node.left), template(node.right)
        if left is None and right is None:
            return None
        return ("{}" if left is None else left) + ("{}" if right is None else right)
    if isinstance(node, ast.Call) and _name(node.func) in _COUNTERS and len(node.args) > 1:
        noun = template(node.args[1])
        return None if noun is None else f"{{}} {noun}{{s}}"
    return None


def _part(node: ast.expr) -> str:
    if not isinstance(node, ast.FormattedValue):
        return template(node) or ""
    if isinstance(node.value, ast.IfExp):
        ends = {getattr(side, "value", None) for side in (node.value.body, node.value.orelse)}
        return "{s}" if ends in _PLURALS else "{}"
    return "{}"


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _walk(node: ast.AST) -> Iterator[str]:
    text = template(node)
    if text is not None:
        yield text
        yield from _put_in(node)
        return
    for child in _spoken(node):
        yield from _walk(child)


def _put_in(node: ast.AST) -> Iterator[str]:
    """Texts in what is put into a template."""
    if isinstance(node, ast.JoinedStr):
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                yield from _walk(part.value)
    elif isinstance(node, ast.BinOp):
        for side in (node.left, node.right):
            yield from (_walk(side) if template(side) is None else _put_in(side))
    elif isinstance(node, ast.Call):
        yield from _walk(node.args[0])


def _spoken(node: ast.AST) -> Iterator[ast.AST]:
    """The children of a node in which people may be spoken to."""
    deaf = isinstance(node, ast.Call) and _name(node.func) in _DEAF
    if deaf or (isinstance(node, ast.keyword) and node.arg in _KEYWORDS):
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue  # a docstring
        if isinstance(child, ast.arg | ast.Assert | ast.Compare):
            continue
        if isinstance(node, ast.FunctionDef) and child is node.returns:
            continue
        if isinstance(node, ast.AnnAssign) and child is node.annotation:
            continue
        yield child


# --- the catalogue --------------------------------------------------------------------------


def empty() -> Catalog:
    """A catalogue without entries; it says nothing of times and people, so that the same entries
    give the same file."""
    made = Catalog(
        locale="zh_CN",
        project="envlock",
        fuzzy=False,
        charset="utf-8",
        header_comment="# What envlock says, in Chinese: {} is put in, {s} ends a plural.",
    )
    made.mime_headers = [("Last-Translator", "envlock"), ("Language-Team", "envlock")]
    made.creation_date = made.revision_date = datetime(2026, 11, 30, tzinfo=timezone.utc)
    return made


def read() -> Catalog:
    """The catalogue as it is; an empty one where there is none."""
    if not CATALOGUE.exists():
        return empty()
    with CATALOGUE.open("rb") as file:
        return read_po(file, locale="zh_CN")


def meanings(catalogue: Catalog) -> dict[str, str]:
    """Template and translation of every entry that counts."""
    return {
        str(entry.id): str(entry.string)
        for entry in catalogue
        if entry.id and entry.string and not entry.fuzzy
    }


def updated(old: Catalog, found: Mapping[str, set[str]]) -> Catalog:
    """The catalogue of the templates that the source has, with the translations that are known."""
    known = meanings(old)
    new = empty()
    for text, places in sorted(found.items(), key=lambda item: (min(item[1]), item[0])):
        new.add(text, known.get(text, ""), locations=[(place, 1) for place in sorted(places)])
    return new


def compiled(catalogue: Catalog) -> bytes:
    """The catalogue as gettext reads it."""
    buffer = io.BytesIO()
    write_mo(buffer, catalogue)
    return buffer.getvalue()


def write(catalogue: Catalog) -> None:
    """Writes both forms of it."""
    CATALOGUE.parent.mkdir(parents=True, exist_ok=True)
    with CATALOGUE.open("wb") as file:
        write_po(file, catalogue, width=100, include_lineno=False)
    CATALOGUE.with_suffix(".mo").write_bytes(compiled(catalogue))


def main(words: list[str]) -> int:
    """Updates the catalogue, or only says what it lacks."""
    catalogue = updated(read(), found_in_source())
    if "--update" in words:
        write(catalogue)
    missing = [str(entry.id) for entry in catalogue if entry.id and not entry.string]
    for text in missing:
        print(f"not translated: {text}")
    print(f"{len(catalogue)} templates, {len(missing)} not translated")
    return 3 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
