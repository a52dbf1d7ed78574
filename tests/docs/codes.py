"""Every code that envlock can emit, read from its source.

A code stands in a finding as a constant; where it is made (``f"wheel.{code}"``) this module says
of what, and a place that makes one in another way is an error here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

from envlock import errors
from envlock.fleet.words import _STATES
from envlock.guard.case import code_of
from envlock.guard.decide import RULES
from envlock.model.diff import Kind as Change
from envlock.model.triage import Verdict
from envlock.verify.compare import Kind as Compared
from envlock.verify.registry import CHECKS
from tests.support.pythons import ROOT

_CODE = re.compile(r"[a-z]+\.[a-z][a-z0-9-]*")
#: Ends of file names, which look the same.
_FILES = ("json", "yaml", "py", "txt", "exe", "html", "toml", "cfg")


#: A folder that ``doctor`` looks at, and no code.
_NO_CODES = {"torch.hub"}


@cache
def _trees() -> tuple[tuple[str, tuple[ast.AST, ...]], ...]:
    """Every module of envlock with all of its nodes; the probes make no findings."""
    return tuple(
        (str(path.relative_to(ROOT)), tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8")))))
        for path in sorted(Path(ROOT, "envlock").rglob("*.py"))
        if "probes" not in path.parts
    )


def _calls(name: str, under: str = "envlock/") -> Iterator[tuple[str, ast.Call]]:
    for path, nodes in _trees():
        for node in nodes if path.startswith(under) else ():
            if isinstance(node, ast.Call):
                called = node.func
                if name == getattr(called, "id", getattr(called, "attr", "")):
                    yield path, node


def _words(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _wheel() -> set[str]:
    """What the readers of wheels complain about: the first word of ``add("zip", …)``."""
    calls = [call for _, call in _calls("add", "envlock/adapters/wheel") if len(call.args) > 1]
    return {f"wheel.{word}" for call in calls for word in _words(call.args[:1])}


def _fleet() -> set[str]:
    words = {code for code, *_ in _STATES.values()}
    for _, call in _calls("Section", "envlock/fleet/words.py"):
        words |= {str(k.value.value) for k in call.keywords
                  if k.arg == "code" and isinstance(k.value, ast.Constant)}  # fmt: skip
    return {f"fleet.{word}" for word in words}


def _network() -> set[str]:
    """At a proxy the same words have ``proxy-`` before them: one entry for all."""
    good = {Verdict.ANSWERS, Verdict.NOT_ASKED}
    return {f"network.{verdict.value}" for verdict in Verdict if verdict not in good}


def _errors() -> set[str]:
    """An error is told by the name of its class; those of ``--json``."""
    classes = errors.EnvlockError.__subclasses__()
    return {one.__name__ for one in classes if one is not errors.Interrupted}


#: Where codes are made, and which they can be.
MADE: dict[tuple[str, str], Callable[[], set[str]]] = {
    ("envlock/adapters/wheelfile.py", "f'wheel.{code}'"): _wheel,
    ("envlock/cli/show.py", "type(error).__name__"): _errors,
    ("envlock/cli/telling.py", "texts[node.how][0]"): set,  # constants beside it
    ("envlock/cli/verify.py", "'baseline'"): lambda: {"baseline"},
    ("envlock/fleet/words.py", "f'fleet.{one.code}'"): _fleet,
    ("envlock/model/diff_words.py", "f\"diff.{kind.replace(' ', '-')}\""): lambda: {
        f"diff.{kind.value.replace(' ', '-')}" for kind in Change
    },
    ("envlock/model/manifest.py", "node.get('code').text()"): set,  # what a snapshot wrote
    (
        "envlock/model/triage.py",
        "f\"network.{('proxy-' if through and 'proxy' not in code else '')}{code}\"",
    ): _network,
    ("envlock/verify/words.py", "result.id"): set,  # the checks, below
    ("envlock/verify/words.py", "f'baseline.{one.kind.value}'"): lambda: {
        f"baseline.{kind.value}" for kind in Compared
    },
}
_RULES = {code_of(rule) for rule in RULES}
_MARKERS = {"target.machine", "target.platform"}  # of markers that differ: restore/refusals.py


def _made() -> Iterator[tuple[str, str]]:
    """Codes of findings that are no constant: file and expression."""
    for path, call in _calls("Finding"):
        given = [k.value for k in call.keywords if k.arg == "code"] + call.args[:1]
        for code in given:
            plain = isinstance(code, (ast.Name, ast.IfExp)) or (
                isinstance(code, ast.Constant) and (not code.value or "." in str(code.value))
            )
            if not plain:
                yield path, ast.unparse(code)


def families() -> set[str]:
    """What stands before the dot in codes that are constants."""
    found = set()
    for _, call in _calls("Finding"):
        for keyword in call.keywords:
            if keyword.arg == "code":
                found |= {one.partition(".")[0] for one in _words(ast.walk(keyword.value))
                          if _CODE.fullmatch(one)}  # fmt: skip
    return found | {"wheel", "harvest", "requires", "target", "limits", "always"}


def _written() -> set[str]:
    """Codes that are constants anywhere: many are handed to a function that makes the finding."""
    known = families()
    checks = {check.id for check in CHECKS}
    return {
        word
        for _, nodes in _trees()
        for word in _words(nodes)
        if _CODE.fullmatch(word) and word not in checks | _NO_CODES
        and word.partition(".")[0] in known and word.partition(".")[2] not in _FILES
    }  # fmt: skip


def unknown_places() -> set[tuple[str, str]]:
    """Places that make codes in a way which nobody has written down here."""
    return set(_made()) - set(MADE)


def all_codes() -> set[str]:
    """Every code of a finding or an error; the checks of ``verify`` apart."""
    made = set().union(*(make() for make in MADE.values()))
    return _written() | made | _RULES | _MARKERS


def all_checks() -> set[str]:
    """The checks of ``verify``, whose ids are the codes of what they find."""
    return {check.id for check in CHECKS}
