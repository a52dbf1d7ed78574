"""What is found out beside the command line and the plan: file lists, sources, what is above."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from packaging.utils import canonicalize_name

from envlock.adapters import network
from envlock.adapters.incoming import Members, read_members
from envlock.adapters.installed import Installed
from envlock.adapters.installer import Change, Known, Plan, counting
from envlock.adapters.sources import ARCHIVES, SourceFacts, fetch_archives, read_archive, read_tree
from envlock.guard.asked import Asked
from envlock.guard.case import Evidence, Overlap, Source
from envlock.guard.decide import Verdict, decide
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
#: Seconds for a host with archives where the arguments are enough to refuse.
_PATIENCE = 0.25
#: Files of one other distribution whose bytes are compared; more are more than a coincidence.
_COMPARED = 64


def first_evidence(scene: Scene) -> Evidence:
    """What can be known before the tool is asked: its dry run would build what it is given.

    A host is asked for archives only when it is there; where the arguments are reason enough to
    refuse, nobody waits long for it.
    """
    installing = scene.request.subcommand == "install"
    near = Evidence(
        constraints=scene.request.bounds,
        sources=tuple(_named_sources(scene, {})) if installing else (),
        isolated=not scene.request.given.has("--no-build-isolation"),
        above=scene.above,
        installed={dist.name: dist.version for dist in scene.inventory.distributions},
        healthy=scene.healthy,
        imports={
            build.name: frozenset(_imports(dist))
            for build in scene.intact
            for dist in scene.inventory.named(build.name)
        },
    )
    urls = [url for asked in scene.request.asked if (url := _remote_archive(asked))]
    if not installing or not urls:
        return near
    blind = decide(scene.request, Plan(known=Known.UNKNOWN), scene.protected, near)
    patience = _PATIENCE if blind.verdict is Verdict.REFUSED else network.PROBE_SECONDS
    if not network.uses_proxy(scene.env) and not network.reachable(urls, patience):
        return near
    found = fetch_archives(urls, scene.env)
    return replace(near, sources=tuple(_named_sources(scene, found)))


def full_evidence(scene: Scene, plan: Plan, first: Evidence) -> Evidence:
    """With what the plan leads to: the file lists of wheels, sources from an index."""
    named = {os.path.basename(_file(source.raw)) for source in first.sources}
    judged = first.isolated or scene.request.tool == "uv"  # whose cache may have it from before
    built = [
        change
        for change in plan.changes
        if judged
        and _file(change.url).endswith(ARCHIVES)
        and os.path.basename(_file(change.url)) not in named
    ]
    remote = [change.url for change in built if change.url.startswith(_REMOTE)]
    found = fetch_archives(remote, scene.env)
    sources = [
        _source(
            change.url,
            found.get(change.url) if change.url in remote else read_archive(_file(change.url)),
            scene,
            change.name,
        )
        for change in built
    ]
    sources += [Source(raw=one.raw, requires=one.requires) for one in plan.blocked]
    overlaps, unlisted = ([], ()) if scene.request.elsewhere else _overlaps(scene, plan)
    return replace(
        first,
        sources=(*first.sources, *sources),
        overlaps=tuple(overlaps),
        unlisted=unlisted,
    )


def _file(url: str) -> str:
    """Path of a URL, without its query and as files are called; empty for what is none."""
    try:
        return unquote(urlsplit(url).path)
    except ValueError:
        return ""


def _remote_archive(asked: Asked) -> str:
    """URL of a source archive that is asked for; empty for anything else."""
    url = asked.source.split("#")[0]
    return url if url.startswith(_REMOTE) and _file(url).endswith(ARCHIVES) else ""


def _named_sources(scene: Scene, remote: Mapping[str, SourceFacts]) -> Iterable[Source]:
    """The trees, archives and repositories of the request.

    Args:
        remote: what is known of archives behind URLs.
    """
    for asked in scene.request.asked:
        if not asked.source or asked.version:
            continue
        spelled = asked.source.split("#")[0]
        if spelled.startswith(_VERSION_CONTROL):
            yield _source(asked.raw, None, scene, asked.name)
            continue
        if spelled.startswith(_REMOTE):
            if url := _remote_archive(asked):
                yield _source(asked.raw, remote.get(url), scene, asked.name)
            continue
        path = os.path.abspath(os.path.expanduser(unquote(spelled.removeprefix("file://"))))
        path = path if os.path.exists(path) else path.partition("[")[0]  # extras
        if os.path.isdir(path) and (tree := read_tree(path)):
            yield _source(asked.raw, tree, scene, asked.name)
        elif os.path.isfile(path) and path.endswith(ARCHIVES):
            yield _source(asked.raw, read_archive(path), scene, asked.name)


def _source(raw: str, facts: SourceFacts | None, scene: Scene, name: str) -> Source:
    """What is judged of a source; ``name`` is empty where only its build knows it."""
    in_place = scene.request.given.value("--no-build-isolation-package")
    isolated = name not in {str(canonicalize_name(one)) for one in in_place}
    if facts is None:
        return Source(raw=raw, requires=None, isolated=isolated)
    parsed = (parse_requirement(one) for one in counting(facts.requires, scene.target.markers))
    return Source(
        raw=raw,
        requires=frozenset(canonicalize_name(one.name) for one in parsed if one),
        imports=facts.imports,
        packages=facts.packages - _COMMON,
        isolated=isolated,
    )


def _imports(dist: Installed) -> Iterable[str]:
    """Top-level modules and packages; a folder without ``__init__`` may be anybody's."""
    for row in dist.rows or ():
        top, slash, rest = row.path.partition("/")
        if slash and rest == "__init__.py":
            yield top
        elif not slash and top.endswith((".py", ".so")):
            yield top.partition(".")[0]


def _overlaps(scene: Scene, plan: Plan) -> tuple[list[Overlap], tuple[str, ...]]:
    """Files of protected builds that changes of other distributions would write or delete, and
    the names of those whose file lists could not be had."""
    held = {build.name for build in scene.intact}
    others = [change for change in plan.changes if change.name not in held]
    if not others or not held:
        return [], ()
    layout = scene.target.layout
    owned = {
        path: build
        for build in sorted(held)
        for dist in scene.inventory.named(build)
        for path in _paths(dist)
    }
    wheels = {one.name: one.url for one in others if one.new and _file(one.url).endswith(".whl")}
    incoming = read_members(wheels, scene.env)
    found: list[Overlap] = []
    for change in others:
        hit = set(_deleted(scene, change, owned, incoming.get(change.name)))
        hit |= set(_written(change, incoming.get(change.name, {}), layout, owned))
        for build in sorted({owned[path] for path in hit}):
            places = [installed_place(p, layout, build) or p for p in hit if owned[p] == build]
            found.append(Overlap(by=change.name, build=build, places=tuple(sorted(places))))
    return found, tuple(sorted(wheels.keys() - incoming.keys()))


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
