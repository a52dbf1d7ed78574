"""What the modules of a distribution say of themselves, read from their files; nothing is imported.

Beside the metadata, never instead: a vendor's module may say 2.6.1 where its distribution is 2.8.3,
and torch says 2.10.0 where its label is what tells one build from another.
"""

from __future__ import annotations

import ast
import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from envlock.adapters.installed import Installed

_FILES = ("version.py", "__init__.py")
_MOST = 64 * 1024  # bytes of a file that only says its version, or hardly more
_LONGEST = 100
#: Names that tell of a build, in the order in which they are kept.
_VERSIONS = ("__version__", "version")
_TELLING = (
    *_VERSIONS, "hip", "cuda", "dtk", "abi", "torch_version", "hcu_version",
    "git_version", "git_hash",
)  # fmt: skip


def module_facts(dist: Installed, marks: Sequence[str] = ()) -> tuple[tuple[str, str], ...]:
    """Names that tell of a build, and their values, as the distribution's own module has them.

    A version that is the metadata's own is left out: it tells nothing more.

    Args:
        marks: names that the vendor's modules define besides.
    """
    found: dict[str, str] = {}
    folder = _folder(dist)
    for name in _FILES if folder else ():
        for key, value in _literals(os.path.join(folder, name)):
            found.setdefault(key, value)
    for name in _VERSIONS:
        if found.get(name) == dist.version:
            del found[name]
    return tuple((name, found[name]) for name in (*_TELLING, *marks) if name in found)


def _folder(dist: Installed) -> str:
    """Of the package that is called like the distribution; empty where there is none."""
    wanted = dist.name.replace("-", "_")
    owned = (row.path for row in dist.rows or ())
    tops = {path.split("/")[0] for path in owned if path.endswith("/__init__.py")}
    alike = [top for top in sorted(tops) if top.lower() == wanted]
    return os.path.join(dist.site, alike[0]) if alike else ""


def _literals(path: str) -> Iterator[tuple[str, str]]:
    try:
        if os.path.getsize(path) > _MOST:
            return
    except OSError:
        return
    for name, value in assigned(path).items():
        text = str(value) if isinstance(value, str | int) and value != "" else ""
        if text and text.isprintable() and len(text) <= _LONGEST and "/" not in text:
            yield name, text


def assigned(path: str) -> dict[str, object]:
    """Names that a module gives a literal value at its top level; nothing is run."""
    try:
        with warnings.catch_warnings():  # of its escapes, which are nobody's business here
            warnings.simplefilter("ignore")
            tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return {}
    found: dict[str, object] = {}
    for node in tree.body:
        targets: Sequence[ast.expr] = ()
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = (node.target,)
        value = getattr(node, "value", None)
        for target in targets:
            if isinstance(target, ast.Name) and isinstance(value, ast.Constant):
                found[target.id] = value.value
    return found
