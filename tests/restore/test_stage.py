"""Between the preflight and the swap: what was staged is what was looked at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from envlock.adapters.files import Hashed, sha256
from envlock.adapters.installed import read_contents, read_inventory
from envlock.adapters.installer import Pinned
from envlock.restore import run
from envlock.restore.preflight import look_at_wheels
from tests.support.wheels import make_wheel
from tests.support.worlds import World, tree

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("backend", ["native", "uv", "pip"])
@pytest.mark.parametrize("how", ["written over", "another file"])
def test_a_wheel_that_changes_after_the_preflight(
    broken: World,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    backend: str,
    how: str,
) -> None:
    def look(*args: object) -> tuple[Sequence[Pinned], object]:
        pinned, problems = look_at_wheels(*args)  # type: ignore[arg-type]
        path = Path(next(one.path for one in pinned if one.name == "torch"))
        data = path.read_bytes()
        if how == "another file":
            path.unlink()
        path.write_bytes(data.replace(b"METADATA", b"METADATa"))
        return pinned, problems

    monkeypatch.setattr(run, "look_at_wheels", look)
    before = tree(broken.prefix)
    assert broken.restore("--backend", backend) == 6
    assert "the target is as it was" in capsys.readouterr().err
    assert tree(broken.prefix) == before


@pytest.mark.parametrize("backend", ["native", "uv", "pip"])
def test_each_backend_restores(broken: World, backend: str) -> None:
    assert broken.restore("--backend", backend) == 0
    manifest = str(broken.wheels / "envlock.yaml")
    words = ("verify", "--level", "static", "--only", "static.lock", "--manifest", manifest)
    assert broken.run(*words) == 0


def test_an_unknown_backend(broken: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert broken.restore("--backend", "conda") == 4
    assert "one of native, uv, pip" in capsys.readouterr().err


@pytest.mark.parametrize("change", ["longer", "gone", "a folder", "a link"])
def test_what_somebody_wrote_is_looked_for(world: World, tmp_path: Path, change: str) -> None:
    """A digest that comes with the writing counts only for a file that is there and as long."""
    layout = world.target.layout
    [dist] = read_inventory(layout).named("triton")
    [before] = read_contents([dist], layout)
    path = world.site / "triton/__init__.py"
    known = {str(path): Hashed(sha256(path), path.stat().st_size)}
    assert read_contents([dist], layout, known=known) == [before]
    path.rename(tmp_path / "away")
    if change == "longer":
        path.write_text("longer than it was before, by far\n")
    elif change == "a folder":
        path.mkdir()
    elif change == "a link":
        path.symlink_to(make_wheel(tmp_path, "other", "1.0"))
    [after] = read_contents([dist], layout, known=known)
    assert after.digest != before.digest


def test_a_known_file_is_not_read(world: World) -> None:
    layout = world.target.layout
    [dist] = read_inventory(layout).named("triton")
    path = world.site / "triton/__init__.py"
    known = {str(path): Hashed("0" * 64, path.stat().st_size)}
    [found] = read_contents([dist], layout, known=known)
    assert found.files["lib/triton/__init__.py"].hex == "0" * 64
