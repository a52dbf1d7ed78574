"""What ``envlock restore`` says and remembers."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from envlock.adapters.state import memory_of
from envlock.model.dist import Distribution
from envlock.model.manifest import Manifest, dump
from tests.support.wheels import make_wheel
from tests.support.worlds import VENDOR, World, install, lock, take_snapshot, tree

pytestmark = pytest.mark.integration


def break_triton(world: World) -> None:
    (world.site / "triton/__init__.py").write_text("broken\n")


def document(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def remembered(world: World) -> Manifest | None:
    return memory_of(world.target.layout, dict(os.environ)).manifest()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--plan"], 3),
        ([], 0),
        (["--recover"], 0),
        (["--only", "nothing"], 4),
        (["--wheelhouse", "/nothing/there"], 4),
        (["--recover", "--plan"], 2),
        (["--exact", "--only", "torch"], 2),
        (["--nonsense"], 2),
    ],
)
def test_json_is_one_document(
    broken: World, words: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert broken.restore("--json", *words) == code
    found = document(capsys)
    assert found["exit"] == code
    assert found["command"] == "restore"


def test_recover_takes_no_other_wishes(broken: World, capsys: pytest.CaptureFixture[str]) -> None:
    """``--recover --plan`` must not change anything."""
    (broken.site / ".envlock-txn").mkdir()
    before = tree(broken.prefix)
    for word in ("--plan", "--exact", "--into=x", "--only=torch"):
        assert broken.run("restore", "--recover", word) == 2
    assert "takes no other wishes" in capsys.readouterr().err
    assert tree(broken.prefix) == before


def test_recover_of_an_empty_transaction(broken: World) -> None:
    """Killed before anything was written down."""
    for name in ("stage", "stash"):
        (broken.site / ".envlock-txn" / name).mkdir(parents=True)
    assert broken.restore() == 4
    assert broken.run("restore", "--recover") == 0
    assert broken.restore() == 0


def test_plan_says_what_would_be_refused(broken: World, capsys: pytest.CaptureFixture[str]) -> None:
    next(broken.wheels.glob("torch-*.whl")).unlink()
    assert broken.restore("--plan") == 4
    said = capsys.readouterr()
    assert "torch 2.11.0 ->" in said.out
    assert "is not in" in said.err


def test_plan_for_an_environment_that_is_not_there_yet(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    into = tmp_path / "fresh"
    assert world.restore("--into", str(into), "--plan", "--json") == 3
    found = document(capsys)["data"]
    assert [step["name"] for step in found["changed"]] == ["filelock", "torch", "triton"]
    assert found["target"] == str(into)
    assert not into.exists()
    assert world.restore("--into", str(into)) == 0
    assert f"envlock verify --python {into}/bin/python" in capsys.readouterr().out
    assert world.restore("--into", str(into), "--plan") == 0
    break_triton(world)
    assert world.restore("--into", str(into), "--plan") == 0  # that one is right
    assert world.restore("--plan") == 3


def test_failed_into_leaves_the_empty_folder_that_was_there(world: World, tmp_path: Path) -> None:
    into = tmp_path / "mine"
    into.mkdir()
    next(world.wheels.glob("triton-*.whl")).unlink()
    assert world.restore("--into", str(into)) == 4
    assert list(into.iterdir()) == []


def test_only_protected_where_nothing_is(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    bare = tuple(replace(dist, protected=False) for dist in world.manifest.distributions)
    world.write(replace(world.manifest, distributions=bare))
    assert world.restore("--only", "protected") == 4
    assert "'protected': not in the manifest" in capsys.readouterr().err


def test_only_takes_any_spelling(world: World) -> None:
    break_triton(world)
    assert world.restore("--only", "Triton") == 0
    assert world.restore("--plan") == 0


def test_vanished_builds_are_not_forgotten(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A restore with a manifest that knows nothing of the vendor's torch."""
    assert world.run("snapshot", "-o", str(tmp_path / "good.yaml")) == 0
    good = remembered(world)
    manifest = world.manifest
    lesser = tuple(dist for dist in manifest.distributions if dist.name != "torch")
    world.write(replace(manifest, distributions=lesser))
    break_triton(world)
    assert world.restore() == 0
    assert f"'torch': '{VENDOR}' is not installed any more" in capsys.readouterr().err
    assert remembered(world) == good


def test_what_was_restored_is_remembered(world: World) -> None:
    assert remembered(world) is None
    assert world.restore("--only", "torch") == 0
    assert remembered(world) is None
    assert world.restore() == 0
    assert remembered(world) == world.manifest


def strange(world: World, version: str) -> None:
    wheel = make_wheel(world.wheels, "odd", version, {"odd.py": ""})
    from envlock.adapters.wheelfile import inspect_wheel
    from envlock.model.dist import WheelRef

    found = inspect_wheel(str(wheel))
    ref = WheelRef(file=wheel.name, sha256=found.sha256, origin="file")
    odd = Distribution(name="odd", version=version, content="sha256:" + "0" * 64, wheel=ref)
    manifest = world.manifest
    world.write(replace(manifest, distributions=(*manifest.distributions, odd)))


def test_version_that_no_installer_knows(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """Refused before anything is staged, and the rest can be had with --only."""
    strange(world, "2.1.0_gita38191a_dtk22.04.2")
    break_triton(world)
    assert world.restore() == 4
    said = capsys.readouterr().err
    assert "'2.1.0_gita38191a_dtk22.04.2' is no version of PEP 440" in said
    assert "--only" in said
    assert world.restore("--only", "triton") == 0


def test_manifest_without_any_wheel(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing to change needs no wheel; what must change is named, all of it."""
    (world.wheels / "envlock.yaml").write_text(dump(take_snapshot(world.target)))
    assert world.restore() == 0
    break_triton(world)
    (world.site / "filelock.py").unlink()
    assert world.restore() == 4
    said = capsys.readouterr().err
    assert "'triton': '3.4.0+git1ef59765' has no wheel" in said
    assert "'filelock': '3.0.0' has no wheel" in said


def test_distributions_with_a_reason(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """An editable install that is gone: said, and the rest is restored; protected: refused."""
    bare = Distribution(name="mine", version="1.0", editable=True, reason="editable install")
    manifest = world.manifest
    world.write(replace(manifest, distributions=(*manifest.distributions, bare)))
    break_triton(world)
    assert world.restore() == 0
    assert "mine: '1.0' is missing, and the manifest has no content" in capsys.readouterr().err
    bare = replace(bare, protected=True)
    world.write(replace(manifest, distributions=(*manifest.distributions, bare)))
    assert world.restore() == 4


def test_tags_that_are_none(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = world.manifest
    world.write(replace(manifest, target=replace(manifest.target, tags=("nonsense",))))
    assert world.restore() == 0
    markers = {**manifest.target.markers, "python_version": "3.7"}
    world.write(replace(manifest, target=replace(manifest.target, tags=("", ""), markers=markers)))
    assert world.restore() == 4
    assert "Python '3.7'" in capsys.readouterr().err


def test_newer_manifest_is_read_with_a_word(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.write(replace(world.manifest, schema="1.9"))
    assert world.restore() == 0
    assert "was written by a newer envlock" in capsys.readouterr().err


def test_exact_keeps_envlock_and_what_it_needs(world: World, tmp_path: Path) -> None:
    install(
        world.python,
        make_wheel(tmp_path / "more", "envlock", "0.1.0", requires=["typer>=0.26"]),
        make_wheel(tmp_path / "more", "typer", "0.26.0", requires=["rich"]),
        make_wheel(tmp_path / "more", "rich", "13.7"),
        make_wheel(tmp_path / "more", "other", "1.0"),
    )
    assert world.restore("--exact") == 0
    assert set(world.versions()) == {"torch", "triton", "filelock", "envlock", "typer", "rich"}


def test_restore_twice(broken: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert broken.restore() == 0
    after = tree(broken.prefix, leave_out=())
    capsys.readouterr()
    assert broken.restore() == 0
    assert "nothing to do: 3 are right" in capsys.readouterr().out
    assert tree(broken.prefix, leave_out=()) == after


def test_compile_makes_the_byte_code(broken: World) -> None:
    assert broken.restore() == 0
    (broken.site / "torch/__init__.py").write_text("broken\n")
    assert not (broken.site / "torch/__pycache__").exists()
    assert broken.restore("--compile") == 0
    [made] = (broken.site / "torch/__pycache__").iterdir()
    assert made.name.startswith("__init__.cpython-")
    assert made.stat().st_uid == broken.site.stat().st_uid
    assert broken.restore("--plan") == 0


def test_compile_of_a_file_of_another_python(
    broken: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Some distributions carry such files as data: that is no failure."""
    wheel = make_wheel(tmp_path / "old", "filelock", "3.0.0", {"filelock.py": "print 1\n"})
    install(broken.python, wheel)
    kept = next(broken.wheels.glob("filelock-*.whl"))
    kept.unlink()
    wheel.rename(broken.wheels / wheel.name)
    other = lock(broken.python, broken.wheels)
    (broken.site / "filelock.py").write_text("")
    assert other.restore("--compile") == 0
    assert "restore.uncompiled" not in capsys.readouterr().err
    assert (broken.site / "filelock.py").read_text() == "print 1\n"
