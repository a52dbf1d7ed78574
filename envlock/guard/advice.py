"""Why a build would be lost, and the nearest command that keeps it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from packaging.utils import canonicalize_name

from envlock.adapters.installer import Change, Plan
from envlock.guard import doors, options
from envlock.guard.case import Case
from envlock.guard.command import Asked, Request
from envlock.guard.settings import overrule
from envlock.model.facts import Finding
from envlock.model.health import parse_requirement, satisfies

#: The reason where the tool does not tell who requires what.
UNTOLD = "something that is asked for requires it"

#: Options that name what is asked for.
_NAMING = ("--requirement", "--requirements", "--editable", "--group", "--requirements-from-script")
_ANEW = ("--force-reinstall", "--ignore-installed", "--reinstall")


class Build(Protocol):
    """What a reason needs to know of a protected build."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def requires(self) -> tuple[str, ...]: ...


def cause(change: Change, request: Request, plan: Plan, held: Mapping[str, Build]) -> str:
    """Why the tool would touch it, as far as that can be told; may be empty."""
    for asked in request.asked:
        if asked.name == change.name:
            return _asked_for(asked, request)
    if request.subcommand == "uninstall":
        return ""
    chain = requirers(change, plan, held)
    if chain:
        return "; ".join(chain)
    if request.given.has("--exact"):
        return "'--exact' removes what is not asked for"
    if request.reinstalls:
        return "everything in the tree is installed again"
    if request.upgrades:
        return "'-U' takes the newest of everything in the tree"
    return UNTOLD


def _asked_for(asked: Asked, request: Request) -> str:
    if request.subcommand == "install" and request.upgrades and not asked.source:
        return f"'{asked.raw}' is asked for with '-U', which takes the newest"
    return f"'{asked.raw}' is asked for"


def requirers(change: Change, plan: Plan, held: Mapping[str, Build]) -> list[str]:
    """Requirements that what is installed does not satisfy: ``'xformers 0.0.33' requires …``.

    Those of the plan come first; else those of the protected builds themselves: a resolver
    "repairs" what the vendor's own metadata has always said.
    """
    old = change.old or ""
    planned = [(f"{one.name} {one.new}", one.requires or ()) for one in plan.changes if one.new]
    kept = [(f"{build.name} {build.version}", build.requires) for build in held.values()]
    for group in (planned, kept):
        found = [
            f"'{name}' requires '{raw}'"
            for name, requires in group
            for raw in requires
            if unmet(raw, change.name, old)
        ]
        if found:
            return found
    return []


def unmet(raw: str, name: str, installed: str) -> bool:
    """Whether a requirement is about a distribution, and its installed version is no answer."""
    found = parse_requirement(raw)
    if found is None or canonicalize_name(found.name) != name:
        return False
    return bool(found.specifier) and not satisfies(installed, found.specifier)


def in_place(tool: str) -> tuple[str, ...]:
    """What makes a tool build against what is installed.

    uv takes a wheel that it once built in isolation for a build without it, and ``--refresh`` and
    ``--reinstall`` change nothing about that: seen with uv 0.13.
    """
    return ("--no-build-isolation", *(("--no-cache",) if tool == "uv" else ()))


def instead(case: Case, reasons: Iterable[Finding]) -> tuple[str, ...]:
    """The nearest command that keeps every build; empty when nothing would be left to do."""
    request = case.request
    losses = [finding for finding in reasons if finding.level == "error"]
    codes = {finding.code for finding in losses}
    lost = frozenset(finding.subject for finding in losses)
    head = request.words[: len(request.words) - len(request.after)]
    if codes == {"guard.isolated-build"}:
        new = [word for word in in_place(request.tool) if not request.given.has(word)]
        return (*head, *new, *request.after)
    if codes == {"guard.range"}:
        return _in_range(case, head)
    if codes == {"guard.overlap"}:
        lost = frozenset(found.by for found in case.evidence.overlaps)
    if codes == {"guard.shadowed-source"}:
        after = options.without_words(request.after, _table(request), _shadowing(case))
        return (*head, *after) if _left(request, after) else ()
    if lost & in_files(request) or "guard.shadowed-source" in codes:
        return ()
    after = _named_out(request, lost)
    if request.subcommand == "uninstall" or not _left(request, after):
        return (*head, *after) if _left(request, after) else ()
    if lost <= request.names and not request.elsewhere:
        return (*head, *after)
    return _less(request, head, after, lost)


def _less(
    request: Request, head: Sequence[str], after: Sequence[str], lost: frozenset[str]
) -> tuple[str, ...]:
    """Without what makes a tool install everything anew; else without dependencies."""
    anew = [name for name in (*_ANEW, "--upgrade-strategy", "--exact") if request.given.has(name)]
    if anew:
        return _without(request, after, anew)
    if request.tool == "uv" and request.upgrades and not request.elsewhere:
        if "--upgrade" in request.origins:
            return _without(request, after, ["--upgrade"])
        return (*head, *_upgrade_only_named(request, after, lost))
    return (*head, *after) if request.given.has("--no-deps") else (*head, "--no-deps", *after)


def _without(request: Request, after: Sequence[str], names: Iterable[str]) -> tuple[str, ...]:
    """The command without some options, whoever set them: what is typed goes, and what a variable
    or a file sets is overruled."""
    variables, more = dict(request.variables), list[str]()
    for name in names:
        if name in request.origins:
            changes, words = overrule(name, request.origins[name], request.tool)
            variables |= changes
            more += words
    kept = options.without(after, _table(request), names)
    start = len(request.words) - len(request.after)
    head = doors.split_variables(request.words[:start])[1]
    return (*doors.joined_variables(variables), *head, *more, *kept)


def without_dependencies(request: Request) -> tuple[str, ...]:
    """The same, and nothing of what it requires."""
    head = request.words[: len(request.words) - len(request.after)]
    return (*head, "--no-deps", *request.after)


def _in_range(case: Case, head: Sequence[str]) -> tuple[str, ...]:
    """The command with the ranges that the protected builds name, in place of what moves out of
    them or beside it; what would be removed is left out."""
    request = case.request
    moved = {change.name for change in case.plan.changes} | request.names
    if request.subcommand == "uninstall":
        parsed = map(parse_requirement, _needs(case))
        after = _named_out(request, frozenset(canonicalize_name(one.name) for one in parsed if one))
        return (*head, *after) if _left(request, after) else ()
    ranges = {
        raw: canonicalize_name(found.name)
        for raw in _needs(case)
        if (found := parse_requirement(raw)) and found.specifier
    }
    ranges = {raw: name for raw, name in ranges.items() if name in moved}
    names = frozenset(ranges.values())
    if names & in_files(request):
        return ()
    words = [str(parse_requirement(raw)).partition(";")[0].strip() for raw in ranges]
    return (*head, *_named_out(request, names), *dict.fromkeys(words))


def _needs(case: Case) -> list[str]:
    """What the protected builds require and have."""
    found = []
    for build in case.held.values():
        for raw in build.requires:
            one = parse_requirement(raw)
            name = canonicalize_name(one.name) if one else ""
            version = case.evidence.installed.get(name)
            if one and name not in case.held and version and satisfies(version, one.specifier):
                found.append(raw)
    return found


def _shadowing(case: Case) -> frozenset[str]:
    """The sources that have an import package of a protected build."""
    imports = {name for build in case.held for name in case.evidence.imports.get(build, ())}
    return frozenset(one.raw for one in case.evidence.sources if one.packages & imports)


def in_files(request: Request) -> frozenset[str]:
    """Names that only a requirements file spells out."""
    spelled = {*request.typed.words, *request.typed.value("--editable")}
    typed = {one.name for one in request.asked if one.raw in spelled}
    return request.names - typed


def hint_for(name: str, request: Request) -> str:
    """What to change about a requirement that names a protected build."""
    if name in in_files(request):
        return f"take '{name}' out of the requirements file: it is installed already"
    for asked in request.asked:
        if asked.name == name:
            if asked.source:
                return f"leave '{asked.raw}' out: '{name}' is installed already"
            return f"leave '{name}' out: it is installed already"
    return ""


def _table(request: Request) -> options.Table:
    tables = options.UV_COMMANDS if request.tool == "uv" else options.PIP_COMMANDS
    return tables[request.subcommand]


def _named_out(request: Request, lost: frozenset[str]) -> list[str]:
    """The words after the subcommand without the requirements that name a lost build."""
    gone = {asked.raw for asked in request.asked if asked.name in lost}
    return options.without_words(request.after, _table(request), gone)


def _left(request: Request, after: Iterable[str]) -> bool:
    """Whether the command still names something."""
    return names_something(options.parse(list(after), _table(request)))


def names_something(given: options.Parsed) -> bool:
    """Whether anything is asked for; a tool rejects a command that names nothing."""
    return bool(given.words) or given.has(*_NAMING)


def _upgrade_only_named(request: Request, after: Sequence[str], lost: frozenset[str]) -> list[str]:
    """uv's ``-U`` is for the whole tree; pip's only for what is named."""
    kept = options.without(after, _table(request), ["--upgrade"])
    names = sorted(request.names - lost)
    return [*(word for name in names for word in ("--upgrade-package", name)), *kept]
