"""What restore refuses before anything is touched: exit 4, every reason named."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from envlock.adapters.files import sha256
from envlock.model.dist import Distribution, WheelRef
from envlock.model.manifest import with_wheels
from tests.support.wheels import make_wheel
from tests.support.worlds import World, tree

pytestmark = pytest.mark.integration


def wheel(world: World, name: str) -> Path:
    return next(world.wheels.glob(f"{name}-*.whl"))


def flip(world: World) -> None:
    path = wheel(world, "triton")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def lose(world: World) -> None:
    wheel(world, "triton").unlink()
    wheel(world, "torch").unlink()


def relock(world: World, name: str) -> None:
    """Lets the manifest agree with the file, so that only what is inside speaks against it."""
    path = wheel(world, name)
    ref = WheelRef(file=path.name, sha256=sha256(path), origin="file", size=path.stat().st_size)
    world.write(with_wheels(world.manifest, {name: ref}))


def escape(world: World) -> None:
    with zipfile.ZipFile(wheel(world, "triton"), "a") as archive:
        archive.writestr("../x", "out")
    relock(world, "triton")


def cut(world: World) -> None:
    path = wheel(world, "triton")
    path.write_bytes(path.read_bytes()[:-100])
    relock(world, "triton")


def truncate_manifest(world: World) -> None:
    path = world.wheels / "envlock.yaml"
    path.write_text(path.read_text()[:-40] + "\n  wheel: {file: [\n")


def strange_version(world: World) -> None:
    """As some vendors write them: no installer takes it."""
    found = make_wheel(world.wheels, "odd", "2.1.0_gita38191a_dtk22.04.2", {"odd.py": ""})
    ref = WheelRef(file=found.name, sha256=sha256(found), origin="file")
    odd = Distribution(
        name="odd", version="2.1.0_gita38191a_dtk22.04.2", content="sha256:" + "0" * 64, wheel=ref
    )
    manifest = world.manifest
    world.write(replace(manifest, distributions=(*manifest.distributions, odd)))


HERE = f"3.{sys.version_info[1]}"
OTHER = "3.10" if HERE != "3.10" else "3.11"


def other_python(world: World) -> None:
    manifest = world.manifest
    markers = {**manifest.target.markers, "python_version": OTHER}
    here, other = (f"cp{version.replace('.', '')}" for version in (HERE, OTHER))
    tags = tuple(tag.replace(here, other) for tag in manifest.target.tags)
    world.write(replace(manifest, target=replace(manifest.target, markers=markers, tags=tags)))


def other_machine(world: World) -> None:
    manifest = world.manifest
    markers = {**manifest.target.markers, "platform_machine": "aarch64"}
    world.write(replace(manifest, target=replace(manifest.target, markers=markers)))


def foreign_wheel(world: World) -> None:
    path = wheel(world, "triton")
    path.rename(path.with_name(path.name.replace("py3-none-any", "cp27-cp27mu-win32")))
    relock(world, "triton")


def newer_schema(world: World) -> None:
    world.write(replace(world.manifest, schema="2.0"))


CASES = [
    (flip, ["triton-3.4.0+git1ef59765-py3-none-any.whl", "sha256"]),
    (lose, ["'torch'", "'triton'", "is not in"]),
    (escape, ["../x", "leads out of the wheel"]),
    (cut, ["triton-3.4.0+git1ef59765-py3-none-any.whl"]),
    (truncate_manifest, ["envlock.yaml", "line"]),
    (other_python, [f"Python '{OTHER}'", f"'{HERE}'", f"ABI 'cp{OTHER.replace('.', '')}'"]),
    (other_machine, ["'aarch64'"]),
    (foreign_wheel, ["cp27", "does not fit the target"]),
    (newer_schema, ["schema", "'2.0'"]),
]


@pytest.mark.parametrize(("harm", "said"), CASES, ids=[harm.__name__ for harm, _ in CASES])
def test_refused(
    broken: World,
    harm: Callable[[World], None],
    said: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = tree(broken.prefix, leave_out=())
    harm(broken)
    capsys.readouterr()
    assert broken.restore() == 4
    error = capsys.readouterr().err
    assert all(words in error for words in said), error
    assert "hint: " in error
    assert tree(broken.prefix, leave_out=()) == before


def test_no_wheelhouse(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert world.run("restore") == 4
    assert "--wheelhouse DIR" in capsys.readouterr().err
    assert world.run("restore", "--wheelhouse", "/nothing/there") == 4


def test_manifest_that_lies_about_content(
    broken: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """The wheel is the one that was locked, and unpacks to something else: exit 6, untouched."""
    manifest = broken.manifest
    dists = tuple(
        replace(dist, content="sha256:" + "0" * 64) if dist.name == "triton" else dist
        for dist in manifest.distributions
    )
    broken.write(replace(manifest, distributions=dists))
    before = tree(broken.prefix, leave_out=())
    assert broken.restore() == 6
    assert "'triton' has other bytes than the manifest has" in capsys.readouterr().err
    assert tree(broken.prefix, leave_out=()) == before
