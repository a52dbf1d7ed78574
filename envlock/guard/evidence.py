"""What is found out beside the command line and the plan: file lists, sources, what is above."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote

from packaging.utils import canonicalize_name

from envlock.adapters.incoming import Members, read_members
from envlock.adapters.installed import Installed
from envlock.adapters.installer import Change, Plan, counting
from envlock.adapters.sources import ARCHIVES, SourceFacts, fetch_archive, read_archive, read_tree
from envlock.guard.case import Evidence, Overlap, Source
from envlock.model.facts import Layout
from envlock.model.health import parse_requirement
from envlock.model.record import installed_place, is_bytecode, place_path
from envlock.model.wheels import wheel_place

if TYPE_CHECKING:
    from envlock.guard.run import Scene

_REMOTE = ("http://", "https://")
_VERSION_CONTROL = ("git+", "hg+", "svn+", "bzr+")
#: Folders that many projects have beside their package.
_COMMON = frozenset({"tests", "test", "docs", "doc", "examples", "benchmarks", "scripts", "tools"})
#: Files of one other distribution whose bytes are compared; more are more than a coincidence.
_COMPARED = 64


def first_evidence(scene: Scene) -> Evidence:
    """What can be known before the tool is asked: its dry run would build what it is given."""
    flags = ("--no-build-isolation", "--no-build-isolation-package")
    installing = scene.request.subcommand == "install"
    return Evidence(
        constraints=scene.request.bounds,
        sources=tuple(_named_sources(scene)) if installing else (),
        isolated=not scene.request.given.has(*flags),
        above=scene.above,
        installed={dist.name: dist.version for dist in scene.inventory.distributions},
        healthy=scene.healthy,
        imports={
            build.name: frozenset(_imports(dist))
            for build in scene.intact
            for dist in scene.inventory.named(build.name)
        },
    )


def full_evidence(scene: Scene, plan: Plan, first: Evidence) -> Evidence:
    """With what the plan leads to: the file lists of wheels, sources from an index."""
    from dataclasses import replace

    named = {os.path.basename(source.raw.split("#")[0]) for source in first.sources}
    urls = [c.url for c in plan.changes if c.url.split("#")[0].endswith(ARCHIVES)]
    judged = first.isolated or scene.request.tool == "uv"  # whose cache may have it from before
    sources = [
        _source(url, _archive(url, scene.env), scene.target.markers)
        for url in urls
        if judged and os.path.basename(url.split("#")[0]) not in named
    ]
    sources += [Source(raw=one.raw, requires=one.requires) for one in plan.blocked]
    elsewhere = bool(scene.request.elsewhere)
    return replace(
        first,
        sources=(*first.sources, *sources),
        overlaps=() if elsewhere else tuple(_overlaps(scene, plan)),
    )


def _named_sources(scene: Scene) -> Iterable[Source]:
    """The trees, archives and repositories of the request."""
    for asked in scene.request.asked:
        if not asked.source or asked.version:
            continue
        spelled = asked.source.split("#")[0]
        if spelled.startswith(_VERSION_CONTROL):
            yield Source(raw=asked.raw, requires=None)
            continue
        if spelled.startswith(_REMOTE):
            if spelled.endswith(ARCHIVES):
                facts = fetch_archive(spelled, scene.env)
                yield _source(asked.raw, facts, scene.target.markers)
            continue
        path = os.path.abspath(os.path.expanduser(unquote(spelled.removeprefix("file://"))))
        path = path if os.path.exists(path) else path.partition("[")[0]  # extras
        if os.path.isdir(path) and (tree := read_tree(path)):
            yield _source(asked.raw, tree, scene.target.markers)
        elif os.path.isfile(path) and path.endswith(ARCHIVES):
            yield _source(asked.raw, read_archive(path), scene.target.markers)


def _archive(url: str, env: Mapping[str, str]) -> SourceFacts | None:
    if url.startswith(_REMOTE):
        return fetch_archive(url, env)
    return read_archive(unquote(url.split("#")[0].removeprefix("file://")))


def _source(raw: str, facts: SourceFacts | None, markers: Mapping[str, str]) -> Source:
    if facts is None:
        return Source(raw=raw, requires=None)
    parsed = (parse_requirement(one) for one in counting(facts.requires, markers))
    return Source(
        raw=raw,
        requires=frozenset(canonicalize_name(one.name) for one in parsed if one),
        imports=facts.imports,
        packages=facts.packages - _COMMON,
    )


def _imports(dist: Installed) -> Iterable[str]:
    """Top-level modules and packages; a folder without ``__init__`` may be anybody's."""
    for row in dist.rows or ():
        top, slash, rest = row.path.partition("/")
        if slash and rest == "__init__.py":
            yield top
        elif not slash and top.endswith((".py", ".so")):
            yield top.partition(".")[0]


def _overlaps(scene: Scene, plan: Plan) -> Iterable[Overlap]:
    """Files of protected builds that changes of other distributions would write or delete."""
    held = {build.name for build in scene.intact}
    others = [change for change in plan.changes if change.name not in held]
    if not others or not held:
        return
    layout = scene.target.layout
    owned = {
        path: build
        for build in sorted(held)
        for dist in scene.inventory.named(build)
        for path in _paths(dist)
    }
    incoming = read_members(
        {one.name: one.url for one in others if one.new and one.url.endswith(".whl")}, scene.env
    )
    for change in others:
        hit = set(_deleted(scene, change, owned, incoming.get(change.name)))
        hit |= set(_written(change, incoming.get(change.name, {}), layout, owned))
        for build in sorted({owned[path] for path in hit}):
            places = [installed_place(p, layout, build) or p for p in hit if owned[p] == build]
            yield Overlap(by=change.name, build=build, places=tuple(sorted(places)))


def _paths(dist: Installed) -> Iterable[str]:
    """Absolute paths of a distribution's files."""
    for row in dist.rows or ():
        if not (row.path.endswith(".pyc") and is_bytecode(row.path)):
            if row.path[0] in "./":
                yield os.path.normpath(os.path.join(dist.site, row.path))
            else:
                yield f"{dist.site}/{row.path}"  # os.path.join() takes five times as long


def _destinations(members: Members, name: str, layout: Layout) -> dict[str, tuple[int, int]]:
    """Where members are installed: absolute path, CRC-32 and size."""
    found = {}
    for member, facts in members.items():
        try:
            place = wheel_place(member, name)
        except ValueError:
            continue  # no tool installs it
        found[os.path.normpath(place_path(place, layout, name))] = facts
    return found


def _written(
    change: Change, members: Members, layout: Layout, owned: Mapping[str, str]
) -> Iterable[str]:
    """Protected files that get other bytes; the same bytes twice hurt nobody yet."""
    paths = _destinations(members, change.name, layout)
    hit = sorted(paths.keys() & owned.keys())
    if len(hit) > _COMPARED:
        return hit
    return [path for path in hit if not _holds(path, *paths[path])]


def _deleted(
    scene: Scene, change: Change, owned: Mapping[str, str], members: Members | None
) -> Iterable[str]:
    """Protected files that go with the old version of another distribution that lists them too.

    Where the new version's files are not known, they are taken to come back.
    """
    if change.old is None:
        return []
    shared = {p for dist in scene.inventory.named(change.name) for p in _paths(dist)} & owned.keys()
    if change.new is None:
        return shared
    if members is None or not shared:
        return []
    return shared - _destinations(members, change.name, scene.target.layout).keys()


def _holds(path: str, crc: int, size: int) -> bool:
    """Whether a file has these bytes already."""
    try:
        if os.path.getsize(path) != size:
            return False
        with open(path, "rb") as file:
            found = 0
            while piece := file.read(1024 * 1024):
                found = zlib.crc32(piece, found)
            return found == crc
    except OSError:
        return False
