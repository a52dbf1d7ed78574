"""Room on the disks: for the target, for temporary files and for the caches of the tools. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from envlock.adapters.rooms import Room
from envlock.doctor.report import Row, Section
from envlock.model.facts import Finding
from envlock.model.sizing import GIB, gib

#: Less than this is little: a wheel of torch is 0.7 GB and is unpacked beside itself.
LITTLE = 4 * GIB
#: Less than this is nothing: a program that writes there fails today.
NOTHING = GIB // 8
INODES = 20_000  # an environment with torch has 22,500 files
#: Docker gives 64 MiB; loaders hand batches over in it.
SHARED = GIB
_SHARED = "/dev/shm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A folder that something is written to.

    Attributes:
        name: what for.
        path: absolute.
        variable: that moves it elsewhere; empty for none.
        needed: whether nothing works without it, or only slower.
    """

    name: str
    path: str
    variable: str = ""
    needed: bool = False


def places(env: Mapping[str, str], home: str, target: str, here: str) -> list[Place]:
    """Where this user's tools write; each place as the tool itself looks for it.

    Args:
        home: the person's home folder.
        target: the folder of the target's packages; empty without a target.
        here: the working folder.
    """
    temporary = env.get("TMPDIR") or "/tmp"
    cache = env.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    hub = env.get("HF_HOME") or os.path.join(cache, "huggingface")
    triton = env.get("TRITON_HOME") or home
    inductor = os.path.join(temporary, f"torchinductor_{env.get('USER', '')}".rstrip("_"))
    found = [
        Place(name="target", path=target, needed=True),
        Place(name="working folder", path=here),
        Place(name="temporary files", path=temporary, variable="TMPDIR", needed=True),
        _cache(env, "pip's cache", os.path.join(cache, "pip"), "PIP_CACHE_DIR"),
        _cache(env, "uv's cache", os.path.join(cache, "uv"), "UV_CACHE_DIR"),
        _cache(env, "models (Hugging Face)", os.path.join(hub, "hub"), "HF_HUB_CACHE", "HF_HOME"),
        _cache(env, "torch.hub", os.path.join(cache, "torch"), "TORCH_HOME"),
        _cache(env, "Triton's cache", os.path.join(triton, ".triton", "cache"), "TRITON_CACHE_DIR"),
        _cache(env, "Inductor's cache", inductor, "TORCHINDUCTOR_CACHE_DIR"),
        _cache(env, "vLLM's cache", os.path.join(cache, "vllm"), "VLLM_CACHE_ROOT"),
        Place(name="shared memory", path=_SHARED),
    ]
    if env.get("MODELSCOPE_CACHE"):
        found.append(_cache(env, "models (ModelScope)", "", "MODELSCOPE_CACHE"))
    return [place for place in found if os.path.isabs(place.path)]


def _cache(env: Mapping[str, str], name: str, usual: str, variable: str, moved: str = "") -> Place:
    """
    Args:
        variable: names the folder itself.
        moved: the variable to set where that one is not; default the same.
    """
    path = os.path.abspath(env[variable]) if env.get(variable) else usual
    return Place(name=name, path=path, variable=moved or variable)


def disk_section(asked: Sequence[Place], rooms: Sequence[Room]) -> Section:
    """One row for each file system, with what is written there.

    Args:
        rooms: of each place, in order.
    """
    pairs = list(zip(asked, rooms, strict=True))
    shared = [pair for pair in pairs if pair[0].path == _SHARED]
    systems: dict[int, list[tuple[Place, Room]]] = {}
    for pair in pairs:
        if pair not in shared and not pair[1].silent:
            systems.setdefault(pair[1].device, []).append(pair)
    return Section(
        title="disk",
        rows=(
            *(_system(group) for group in systems.values()),
            *(Row(name=r.path, value=f"no answer: {p.name}") for p, r in pairs if r.silent),
            *(_shared(room) for _, room in shared if room.there),
            *(Row(name=place.name, value=_path(place, room), detail=True) for place, room in pairs),
        ),
        findings=(
            *(_silence(place, room) for place, room in pairs if room.silent),
            *(finding for group in systems.values() for finding in _judged(group)),
            *(finding for _, room in shared for finding in _judged_shared(room)),
        ),
        data={
            "places": [{"name": place.name, **asdict(room)} for place, room in pairs],
        },
    )


def _system(group: Sequence[tuple[Place, Room]]) -> Row:
    room = group[0][1]
    free = "free space is not told" if room.free is None else f"{gib(room.free)} free"
    of = f" of {gib(room.size)}" if room.size else ""
    kind = f" ({room.kind})" if room.kind else ""
    names = ", ".join(place.name for place, _ in group)
    return Row(name=room.mount or room.path, value=f"{free}{of}{kind}: {names}")


def _shared(room: Room) -> Row:
    return Row(name=_SHARED, value=f"{gib(room.size)}: shared memory, part of the memory's limit")


def _path(place: Place, room: Room) -> str:
    return f"{place.path}{'' if room.there else '  (not there yet)'}"


def _silence(place: Place, room: Room) -> Finding:
    move = f"export {place.variable}=FOLDER" if place.variable else ""
    return Finding(
        code="disk.hangs",
        subject=place.name,
        what=f"'{room.path}' gives no answer",
        why="every program that looks there waits; a file server that is gone does this",
        hint=move or "ask whoever runs the machine",
        level="error",
    )


def _judged(group: Sequence[tuple[Place, Room]]) -> Iterator[Finding]:
    room = max((room for _, room in group), key=lambda room: bool(room.refused))
    needed = any(place.needed for place, _ in group)
    where = room.mount or room.path
    names = ", ".join(place.name for place, _ in group)
    movable = [f"{place.variable}=…" for place, _ in group if place.variable]
    move = f"make room, or move what can be moved: export {' '.join(movable)}" if movable else ""
    if room.refused:
        yield Finding(
            code="disk.quota",
            subject=where,
            what=f"takes no more though {gib(room.free or 0)} are free: {room.refused}",
            why=f"a quota is used up; there are: {names}",
            hint=move or "make room",
            level="error" if needed else "warning",
        )
    elif room.free is not None and room.free < LITTLE:
        nothing = room.free < NOTHING
        yield Finding(
            code="disk.full" if nothing else "disk.little",
            subject=where,
            what=f"{gib(room.free)} free",
            why=f"for: {names}; a stack with torch takes 2 GB and more",
            hint=move or "make room",
            level="error" if nothing and needed else "warning",
        )
    if room.inodes is not None and room.inodes < INODES:
        yield Finding(
            code="disk.inodes",
            subject=where,
            what=f"room for {room.inodes} more files",
            why="an environment with torch has more than 20,000; the error says 'no space left'",
            hint=move or "remove folders with many small files",
        )
    yield from _closed(group)
    if room.in_memory and any(place.needed for place, _ in group):
        yield Finding(
            code="disk.in-memory",
            subject=where,
            what=f"is memory ({room.kind})",
            why="what is written there counts against the memory's limit",
            hint=f"large files elsewhere: export {' '.join(movable)}" if movable else "",
            level="info",
        )


def _closed(group: Sequence[tuple[Place, Room]]) -> Iterator[Finding]:
    for place, room in group:
        if not room.closed or place.name == "working folder":
            continue
        target = place.name == "target"
        yield Finding(
            code="disk.closed",
            subject=place.name,
            what=f"'{place.path}' cannot be written: {room.closed}",
            why="nothing can be installed or restored there" if target else "",
            hint=f"export {place.variable}=FOLDER" if place.variable else "",
            level="warning" if target or place.needed else "info",
        )


def _judged_shared(room: Room) -> Iterator[Finding]:
    if room.there and 0 < room.size < SHARED:
        yield Finding(
            code="disk.shared-memory",
            subject=_SHARED,
            what=f"{gib(room.size)} in all",
            why="DataLoader workers hand batches over in it, and die with 'Bus error' when it is "
            "full",
            hint="have the container started with '--shm-size=8g' or '--ipc=host', or use "
            "num_workers=0",
        )
