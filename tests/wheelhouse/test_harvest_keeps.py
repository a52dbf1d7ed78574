"""harvest: what it must not write over, forget or lose."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from envlock.adapters.files import sha256
from envlock.adapters.wheelfile import inspect_wheel
from envlock.cli import main
from envlock.errors import Refused, UnusableInput
from envlock.model.dist import WheelRef
from envlock.model.manifest import Manifest, load
from envlock.wheelhouse import harvest as harvest_module
from envlock.wheelhouse.check import check
from envlock.wheelhouse.folder import write_papers
from envlock.wheelhouse.harvest import How, harvest
from envlock.wheelhouse.rebuild import rebuild as real_rebuild
from tests.support.pythons import uv
from tests.support.wheels import make_wheel
from tests.support.worlds import take_snapshot
from tests.wheelhouse.conftest import LABEL, Place
from tests.wheelhouse.test_harvest import contents, texts

pytestmark = pytest.mark.integration

PLAIN = "plain-2.0-py3-none-any.whl"


def written(folder: Path) -> Manifest:
    return load((folder / "envlock.yaml").read_text())


def wheel_of(folder: Path, name: str) -> WheelRef | None:
    found = written(folder).find(name)
    assert found is not None
    return found.wheel


@pytest.fixture
def published(two: Place, tmp_path: Path) -> Path:
    """A wheelhouse with the published wheel of 'plain'."""
    folder = tmp_path / "W"
    folder.mkdir()
    shutil.copy(tmp_path / "in" / PLAIN, folder)
    return folder


@pytest.mark.parametrize("origin", ["index", "url", "file", "built"])
def test_compress_leaves_published_wheels(two: Place, published: Path, origin: str) -> None:
    ref = WheelRef(file=PLAIN, sha256=sha256(published / PLAIN), origin=origin)
    dists = [
        replace(dist, wheel=ref if dist.name == "plain" else None)
        for dist in two.manifest.distributions
    ]
    write_papers(str(published), replace(two.manifest, distributions=tuple(dists)))
    before = (published / PLAIN).read_bytes()
    harvest(two.target, two.manifest, str(published), How(compress="none"))
    assert (published / PLAIN).read_bytes() == before
    assert wheel_of(published, "plain") == ref


def test_compress_makes_rebuilt_ones_again(two: Place, tmp_path: Path) -> None:
    harvest(two.target, two.manifest, str(tmp_path / "W"))
    done = harvest(two.target, two.manifest, str(tmp_path / "W"), How(compress="none"))
    assert (len(done.packed), len(done.kept)) == (2, 0)
    assert check(str(tmp_path / "W")).findings == ()


@pytest.mark.parametrize("in_force", [True, False])
def test_wheel_that_lies_there_is_kept(two: Place, published: Path, in_force: bool) -> None:
    before = (published / PLAIN).read_bytes()
    done = harvest(two.target, two.manifest, str(published), How(in_force=in_force))
    assert texts(done) == []
    assert (published / PLAIN).read_bytes() == before
    ref = wheel_of(published, "plain")
    assert ref is not None and ref.origin == "file" and ref in done.kept
    assert check(str(published)).findings == ()


def test_the_same_wheel_under_other_tags(two: Place, tmp_path: Path) -> None:
    """A vendor names fewer tags than its WHEEL file has."""
    folder = tmp_path / "W"
    harvest(two.target, two.manifest, str(tmp_path / "once"))
    (rebuilt,) = (tmp_path / "once").glob("vend_or*")
    name = rebuilt.name.replace("cp36.cp37", "cp37")
    folder.mkdir()
    shutil.copy(rebuilt, folder / name)
    if inspect_wheel(str(folder / name)).errors:
        pytest.skip("file name and WHEEL have to agree")
    harvest(two.target, two.manifest, str(folder))
    ref = wheel_of(folder, "vend-or")
    assert ref is not None and (ref.file, ref.origin) == (name, "file")
    assert [path.name for path in folder.glob("vend_or*")] == [name]


@pytest.mark.parametrize("other", ["other content", "no wheel"])
def test_what_is_something_else_is_not_written_over(
    two: Place, published: Path, other: str
) -> None:
    (published / PLAIN).unlink()
    if other == "no wheel":
        (published / PLAIN).write_text("half a download")
    else:
        make_wheel(published, "plain", "2.0", {"plain.py": "OTHER = 1\n"})
    before = (published / PLAIN).read_bytes()
    done = harvest(two.target, two.manifest, str(published))
    assert [(f.level, f.code, f.subject) for f in done.findings if f.level == "error"] == [
        ("error", "harvest.other-wheel", "plain")
    ]
    assert (published / PLAIN).read_bytes() == before
    assert wheel_of(published, "plain") is None


def test_damaged_published_wheel_keeps_its_hash(two: Place, published: Path) -> None:
    harvest(two.target, two.manifest, str(published))
    ref = wheel_of(published, "plain")
    (published / PLAIN).write_bytes(b"damaged")
    done = harvest(two.target, two.manifest, str(published))
    assert [f.code for f in done.findings] == ["harvest.other-wheel"]
    assert (published / PLAIN).read_bytes() == b"damaged"
    assert wheel_of(published, "plain") == ref


# --------------------------------------------------------------------------- protected builds


def protecting(manifest: Manifest) -> Manifest:
    return replace(
        manifest,
        distributions=tuple(
            replace(d, protected=True, vendor=("label",)) if d.name == "vend-or" else d
            for d in manifest.distributions
        ),
    )


def test_lost_vendor_build_is_not_forgotten(
    two: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "W"
    harvest(two.target, protecting(two.manifest), str(folder))
    before = contents(folder)
    uv("pip", "uninstall", "--python", str(two.python), "vend-or")
    words = ["wheelhouse", "harvest", str(folder), "--python", str(two.python)]
    assert main(words) == 3
    said = " ".join(capsys.readouterr().err.split())
    assert f"'vend-or': '{LABEL}' is not installed any more" in said
    assert f"--manifest {folder}/envlock.yaml" in said and "remove it" not in said
    assert contents(folder) == before
    main([*words, "--manifest", str(folder / "envlock.yaml")])
    assert wheel_of(folder, "vend-or") is not None


def test_other_build_of_a_protected_one(two: Place, tmp_path: Path) -> None:
    """By chance it is a loss; where a manifest has it so it was wanted."""
    folder = str(tmp_path / "W")
    harvest(two.target, protecting(two.manifest), folder)
    newer = make_wheel(tmp_path / "new", "vend-or", "1.1+das.opt1.dtk2604")
    uv("pip", "install", "--no-index", "--python", str(two.python), str(newer))
    now = protecting(take_snapshot(two.target))
    with pytest.raises(Refused, match=r"'vend-or': .* is now '1\.1"):
        harvest(two.target, now, folder, How(in_force=False))
    done = harvest(two.target, now, folder)
    hints = {f.code: f.hint for f in done.findings}
    assert "keep it" in hints["wheelhouse.unknown-wheel"]


@pytest.mark.parametrize(
    ("version", "advice"), [(LABEL, "keep it"), ("1.0", "remove it"), ("1.0+mine", "remove it")]
)
def test_nobody_is_told_to_remove_a_vendors_build(
    two: Place, tmp_path: Path, version: str, advice: str
) -> None:
    folder = tmp_path / "W"
    make_wheel(folder, "stranger", version)
    done = harvest(two.target, two.manifest, str(folder))
    for findings in (done.findings, check(str(folder)).findings):
        (found,) = [f for f in findings if f.code == "wheelhouse.unknown-wheel"]
        assert advice in found.hint


# --------------------------------------------------------------------------- ended early


@pytest.mark.parametrize("before", [False, True], ids=["new", "with papers"])
@pytest.mark.parametrize(
    "fault", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()], ids=repr
)
def test_what_is_finished_is_kept(
    two: Place,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: BaseException,
    before: bool,
) -> None:
    folder = tmp_path / "W"
    if before:
        harvest(two.target, two.manifest, str(folder))
        (folder / PLAIN).unlink()
        for wheel in folder.glob("vend_or*"):
            wheel.write_bytes(b"damaged")
        written_before = written(folder)
    monkeypatch.setattr(harvest_module, "rebuild", _second_fails(fault))
    with pytest.raises((UnusableInput, KeyboardInterrupt)):
        harvest(two.target, two.manifest, str(folder))
    monkeypatch.undo()
    assert (folder / PLAIN).exists() and not list(folder.glob(".part*"))
    ref = wheel_of(folder, "plain")
    assert ref is not None and ref.sha256 == sha256(folder / PLAIN)
    if before:
        assert written(folder) == written_before
    else:
        assert wheel_of(folder, "vend-or") is None
    done = harvest(two.target, two.manifest, str(folder))
    assert [ref.file for ref in done.kept] == [PLAIN]
    assert check(str(folder)).findings == ()


def _second_fails(fault: BaseException) -> Callable[..., object]:
    calls: list[object] = []

    def rebuild(*words: object) -> object:
        calls.append(words)
        if len(calls) == 2:
            raise fault
        return real_rebuild(*words)  # type: ignore[arg-type]

    return rebuild
