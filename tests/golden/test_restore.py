"""What restore refuses: the exact words, the exit code, and a target that is as it was."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from envlock.adapters.locking import lock_folder
from envlock.cli import wiring
from envlock.model.dist import Distribution
from envlock.model.manifest import Stack
from envlock.restore import run
from tests.restore import test_refusals as harms
from tests.restore.test_before import fake_stack
from tests.support.wheels import make_wheel
from tests.support.worlds import World, install, tree, vendor_world

pytestmark = pytest.mark.integration

ROWS = yaml.safe_load((Path(__file__).parent / "restore.yaml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Scene:
    """A world with a wheelhouse of its own, and a folder for what a harm needs."""

    world: World
    folder: Path
    patch: pytest.MonkeyPatch


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A broken target that every row sees, and none changes."""
    folder = tmp_path_factory.mktemp("shared")
    world = vendor_world(folder)
    public = make_wheel(folder / "public", "torch", "2.11.0", {"torch/__init__.py": ""})
    install(world.python, public)
    (world.site / "triton/__init__.py").write_text("broken\n")
    return world


@pytest.fixture
def scene(shared: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    shutil.copytree(shared.wheels, tmp_path / "W")
    return Scene(World(shared.python, tmp_path / "W"), tmp_path, monkeypatch)


# --- what is wrong; those that change the target put it back -------------------------------------


def nothing(_: Scene) -> None:
    pass


def stack_release(scene: Scene) -> None:
    world = scene.world
    stack = Stack(tag="dtk2604", release="dtk-26.04")
    world.write(replace(world.manifest, stack=stack))
    scene.patch.setenv("DTKROOT", fake_stack(scene.folder, "dtk-25.04"))


def managed(scene: Scene) -> None:
    marker = scene.folder / "EXTERNALLY-MANAGED"
    marker.write_text("[externally-managed]\n")
    real = wiring.open_target

    def open_target(*words: Any, **more: Any) -> Any:
        return replace(real(*words, **more), externally_managed=str(marker))

    scene.patch.setattr(wiring, "open_target", open_target)


def two_owners(scene: Scene) -> None:
    world = scene.world
    wheel = make_wheel(world.wheels, "mine", "1.0", {"triton/__init__.py": "mine\n", "mine.py": ""})
    other = make_wheel(world.wheels, "yours", "1.0", {"mine.py": "yours\n"})
    from envlock.adapters.wheelfile import inspect_wheel
    from envlock.model.dist import WheelRef

    dists = []
    for path in (wheel, other):
        found = inspect_wheel(str(path))
        ref = WheelRef(file=path.name, sha256=found.sha256, origin="file", size=found.size)
        dists.append(Distribution(name=found.name, version="1.0", content=found.content, wheel=ref))
    manifest = world.manifest
    world.write(replace(manifest, distributions=(*manifest.distributions, *dists)))


def no_wheel_at_all(scene: Scene) -> None:
    manifest = scene.world.manifest
    dists = tuple(replace(dist, wheel=None) for dist in manifest.distributions)
    scene.world.write(replace(manifest, distributions=dists))


def no_version(scene: Scene) -> None:
    harms.strange_version(scene.world)


def no_content(scene: Scene) -> None:
    manifest = scene.world.manifest
    bare = Distribution(
        name="flash-attn", version="2.6", protected=True, reason="editable install", editable=True
    )
    scene.world.write(replace(manifest, distributions=(*manifest.distributions, bare)))


def no_room(scene: Scene) -> None:
    real = run.room_for

    def room_for(*words: Any) -> Any:
        return replace(real(*words), path="/small", bytes=100, files=3)

    scene.patch.setattr(run, "room_for", room_for)


def quota(scene: Scene) -> None:
    real = run.room_for

    def room_for(*words: Any) -> Any:
        return replace(real(*words), path="/small", refused="Disk quota exceeded")

    scene.patch.setattr(run, "room_for", room_for)


def closed(scene: Scene) -> None:
    real = run.room_for

    def room_for(*words: Any) -> Any:
        return replace(real(*words), closed={"/closed": "Read-only file system"})

    scene.patch.setattr(run, "room_for", room_for)


@contextmanager
def held(scene: Scene) -> Iterator[None]:
    lock = lock_folder(os.path.realpath(scene.world.site))
    try:
        yield
    finally:
        lock.release()


@contextmanager
def held_elsewhere(scene: Scene) -> Iterator[None]:
    path = scene.world.site / ".envlock-lock"
    path.write_text(json.dumps({"node": "node-7", "pid": 4711, "boot": "x", "started": "1"}))
    try:
        yield
    finally:
        path.unlink()


@contextmanager
def unfinished(scene: Scene) -> Iterator[None]:
    folder = scene.world.site / ".envlock-txn"
    folder.mkdir()
    try:
        yield
    finally:
        shutil.rmtree(folder)


@contextmanager
def old_journal(scene: Scene) -> Iterator[None]:
    with unfinished(scene):
        journal = scene.world.site / ".envlock-txn/journal.jsonl"
        journal.write_text('{"schema": 0, "entries": []}\n')
        yield


def into_full(scene: Scene) -> None:
    (scene.folder / "full").mkdir()
    (scene.folder / "full/file").touch()


def everything(scene: Scene) -> None:
    """Every reason in one run."""
    stack_release(scene)
    managed(scene)
    harms.other_machine(scene.world)


def all_wheels(scene: Scene) -> None:
    harms.flip(scene.world)
    harms.wheel(scene.world, "torch").unlink()
    no_room(scene)


HARMS: dict[str, Callable[[Scene], Any]] = {
    one.__name__: one
    for one in (
        nothing, stack_release, managed, two_owners, no_wheel_at_all, no_version, no_content,
        no_room, quota, closed, held, held_elsewhere, unfinished, old_journal, into_full,
        everything, all_wheels,
    )
}  # fmt: skip


def _of_the_world(harm: Callable[[World], None]) -> Callable[[Scene], None]:
    return lambda scene: harm(scene.world)


HARMS |= {harm.__name__: _of_the_world(harm) for harm, _ in harms.CASES}


def normal(text: str, scene: Scene) -> str:
    """Without the places of this machine and this version of Python."""
    real = os.path.realpath(scene.world.prefix)
    for path, name in (
        (str(scene.folder), "TMP"),
        (str(scene.world.prefix), "PREFIX"),
        (real, "PREFIX"),
        (harms.OTHER, "OTHER"),
        (f"cp{harms.OTHER.replace('.', '')}", "cpOTHER"),
        (f"cp{harms.HERE.replace('.', '')}", "cpHERE"),
        (f"'{harms.HERE}'", "'HERE'"),
        (f"python{harms.HERE}", "pythonHERE"),
        (scene.world.target.tags[0].rpartition("-")[2], "PLATFORM"),
        (scene.world.target.markers["platform_machine"], "MACHINE"),
    ):
        text = text.replace(path, name)
    text = re.sub(r"\bline \d+", "line N", text)
    return re.sub(r"[0-9a-f]{16}…", "DIGEST…", text)


def spoken(text: str) -> list[str]:
    """The lines that say why."""
    return [line for line in text.splitlines() if line.startswith(("error: ", "hint: "))]


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_refusal(row: dict[str, Any], scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    world = scene.world
    words = [word.replace("TMP", str(scene.folder)) for word in row.get("words", [])]
    named = [] if row.get("alone") else ["--wheelhouse", str(world.wheels)]
    done = HARMS[row["harm"]](scene)
    try:
        if done is not None:
            done.__enter__()
        before = tree(world.prefix, leave_out=())
        capsys.readouterr()
        code = world.run("restore", *named, *words)
        said = spoken(normal(capsys.readouterr().err, scene))
        after = tree(world.prefix, leave_out=())
    finally:
        if done is not None:
            done.__exit__(None, None, None)
    assert (code, said) == (row["exit"], row["says"])
    assert after == before
    if "insist" in row:
        assert world.restore("--plan", row["insist"]) == 3


def test_every_harm_has_a_row() -> None:
    assert {row["harm"] for row in ROWS} == HARMS.keys()
