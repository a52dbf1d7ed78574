"""What broken installers left, and distributions that share files: cleared, kept, and told."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support.wheels import make_wheel
from tests.support.worlds import World, install, tree

pytestmark = pytest.mark.integration


def data(capsys: pytest.CaptureFixture[str]) -> list[str]:
    found: list[str] = json.loads(capsys.readouterr().out)["data"]["leftovers"]
    return sorted(Path(path).name for path in found)


@pytest.fixture
def littered(world: World) -> World:
    """Every kind of rubbish that pip and uv are known to leave when they are killed."""
    info = next(world.site.glob("torch-*.dist-info"))
    shutil.copytree(info, world.site / "torch-2.9.0.dist-info")
    (world.site / "torch-2.9.0.dist-info/METADATA").write_text(
        "Metadata-Version: 2.1\nName: torch\nVersion: 2.9.0\n"
    )
    next(world.site.glob("triton-*.dist-info")).joinpath("RECORD").unlink()
    shell = world.site / "gone-1.0.dist-info"
    shell.mkdir()
    (shell / "INSTALLER").write_text("pip\n")
    (world.site / "empty-1.0.dist-info").mkdir()
    (world.site / "~orch/lib").mkdir(parents=True)
    (world.site / "~orch/lib/x.so").write_text("x")
    return world


CLEARED = ["empty-1.0.dist-info", "gone-1.0.dist-info", "torch-2.9.0.dist-info", "~orch"]


def test_all_of_it_is_cleared_and_listed(
    littered: World, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tree(littered.prefix, leave_out=())
    assert littered.restore("--plan", "--json") == 3
    assert data(capsys) == CLEARED
    assert tree(littered.prefix, leave_out=()) == before
    assert littered.restore() == 0
    said = capsys.readouterr().out
    assert "torch-2.9.0.dist-info: second metadata of one name; removed" in said
    assert "gone-1.0.dist-info: left over from a broken install; removed" in said
    assert "triton 3.4.0+git1ef59765: no RECORD" in said
    assert not [name for name in CLEARED if (littered.site / name).exists()]
    assert littered.restore("--plan") == 0


def test_all_of_it_is_back_when_the_restore_fails(
    littered: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from envlock.adapters import moving

    before = tree(littered.prefix, leave_out=())
    real, calls = moving.move, [0]

    def move(source: str, target: str) -> None:
        calls[0] += 1
        if calls[0] == 8:
            raise OSError(28, "No space left on device", source)
        real(source, target)

    monkeypatch.setattr(moving, "move", move)
    assert littered.restore() == 6
    assert tree(littered.prefix, leave_out=()) == before


def test_what_others_manage_is_no_rubbish(world: World) -> None:
    """Debian's own packages have no RECORD: pip must not touch them, and nobody else does."""
    info = world.site / "apt_made-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: apt-made\nVersion: 1.0\n")
    (world.site / "triton/__init__.py").write_text("broken\n")
    assert world.restore() == 0
    assert (info / "METADATA").exists()


def test_one_that_is_not_in_the_manifest_gives_way(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It wrote over a file of a locked build: that build comes back, and the loser is named."""
    wheel = make_wheel(tmp_path / "more", "patch", "1.0", {"torch/__init__.py": "patched\n"})
    install(world.python, wheel)
    assert world.restore("--plan") == 3
    said = "patch: 'lib/torch/__init__.py' is of 'torch' too, whose bytes come in its place"
    assert said in capsys.readouterr().err
    assert world.restore() == 0
    assert said in capsys.readouterr().err
    assert world.restore("--plan") == 0
    assert "patch" in world.versions()


def test_one_that_has_the_same_bytes_is_not_worth_a_word(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    part = (world.site / "shared/torch/part.py").read_text()
    install(
        world.python, make_wheel(tmp_path / "more", "twin", "1.0", {"shared/torch/part.py": part})
    )
    (world.site / "torch/__init__.py").write_text("broken\n")
    assert world.restore() == 0
    assert "twin" not in capsys.readouterr().err
