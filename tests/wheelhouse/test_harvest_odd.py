"""harvest: options, odd files, odd metadata, and files that are nobody's or two's."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from envlock.adapters.deflating import COMPRESSORS
from envlock.adapters.wheelfile import inspect_wheel
from envlock.cli import main
from envlock.model.manifest import load
from envlock.wheelhouse.check import check
from envlock.wheelhouse.harvest import Harvest, How, harvest
from tests.support.pythons import make_venv, pip, uv
from tests.support.wheels import make_wheel
from tests.support.worlds import take_snapshot
from tests.wheelhouse.conftest import Place, described, place

pytestmark = pytest.mark.integration

Damage = Callable[[Place, str, "bytes | None"], None]


def texts(done: Harvest) -> list[str]:
    return [f"{f.level} {f.code} {f.subject}: {f.what}" for f in done.findings]


@pytest.mark.parametrize("name", ["fast", "best", "none"])
def test_compress(two: Place, tmp_path: Path, name: str) -> None:
    """What made a wheel is written down, and another wish makes it again; no wish keeps it."""
    folder = tmp_path / "W"
    first = harvest(two.target, two.manifest, str(folder), How(compress=name))
    assert texts(first) == [] and check(str(folder)).findings == ()
    made = {d.wheel.compressor for d in first.manifest.distributions if d.wheel}
    assert made == {COMPRESSORS[name].version}
    method = zipfile.ZIP_STORED if name == "none" else zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(folder / first.packed[0].file) as archive:
        assert {info.compress_type for info in archive.infolist()} == {method}
    digests = [dist.content for dist in two.manifest.distributions]
    assert [dist.content for dist in first.manifest.distributions] == digests
    for wish, packed in [(None, 0), (name, 0), ("none" if name != "none" else "fast", 2)]:
        again = harvest(two.target, two.manifest, str(folder), How(compress=wish))
        assert (len(again.packed), len(again.kept)) == (packed, 2 - packed)


def test_untracked_files_are_listed(two: Place, tmp_path: Path) -> None:
    """Byte code, caches beside it and what installers write are no such files; nor is what lies in
    a folder that two distributions share, or in none of theirs."""
    vendor = two.site / "vendor"
    (vendor / "tuned").mkdir()
    (vendor / "tuned" / "gfx936.json").write_text("{}")
    (vendor / "late.so").write_bytes(b"late")
    (vendor / "__pycache__").mkdir(exist_ok=True)
    (vendor / "__pycache__" / "x.cpython-311.pyc").write_bytes(b"code")
    (vendor / "__pycache__" / "x.nbi").write_bytes(b"cache")
    (two.site / "lonely.py").write_text("")
    (two.site / "nobody").mkdir()
    (two.site / "nobody" / "x.py").write_text("")
    done = harvest(two.target, two.manifest, str(tmp_path / "W"))
    assert texts(done) == [
        (
            "warning harvest.untracked vend-or: not packed: 'lib/vendor/late.so' and 1 more in its "
            "folders, and no RECORD lists it"
        )
    ]
    assert "--with-untracked" in done.findings[0].hint
    wheel = next((tmp_path / "W").glob("vend_or*"))
    assert "lib/vendor/late.so" not in inspect_wheel(str(wheel)).files


def test_with_untracked(two: Place, tmp_path: Path) -> None:
    """They are packed, RECORD lists them from then on, and the new content is what is locked."""
    late = two.site / "vendor" / "late.so"
    late.write_bytes(b"late")
    late.chmod(0o755)
    folder = tmp_path / "W"
    harvest(two.target, two.manifest, str(folder))
    done = harvest(two.target, two.manifest, str(folder), How(untracked=True))
    assert [text for text in texts(done) if "packed: 'lib/vendor/late.so'" in text] == texts(done)
    assert (len(done.packed), len(done.kept)) == (1, 1)
    (packed,) = done.packed
    wheel = inspect_wheel(str(folder / packed.file))
    locked = done.manifest.find("vend-or")
    assert locked and locked.content == wheel.content != two.manifest.find("vend-or").content  # type: ignore[union-attr]
    assert "lib/vendor/late.so" in locked.executable
    assert check(str(folder)).findings == ()
    python = make_venv(tmp_path / "new")
    uv("pip", "install", "--no-index", "--no-deps", "--python", str(python),
       str(folder / packed.file))  # fmt: skip
    again = described(python).manifest.find("vend-or")
    assert again and again.content == locked.content


def test_folder_of_two(tmp_path: Path) -> None:
    """A namespace belongs to nobody; what lies in the part of one does."""
    wheels = [
        make_wheel(tmp_path / "in", name, "1.0", {f"space/{name}/x.py": "", f"space/{name}.py": ""})
        for name in ("one", "two")
    ]
    here = place(tmp_path / "venv", wheels)
    (here.site / "space" / "stray.py").write_text("")
    (here.site / "space" / "two" / "mine.py").write_text("")
    done = harvest(here.target, here.manifest, str(tmp_path / "W"))
    assert [(f.subject, f.what.split("'")[1]) for f in done.findings] == [
        ("two", "lib/space/two/mine.py")
    ]


def test_two_owners_of_one_file(tmp_path: Path) -> None:
    """The second one's bytes are there: both wheels have them, and without a manifest that is said
    instead of being taken for damage."""
    wheels = [
        make_wheel(tmp_path / "in", name, "1.0", {"shared/x.py": name, f"{name}.py": ""})
        for name in ("one", "two")
    ]
    python = make_venv(tmp_path / "venv")
    for wheel in wheels:
        pip(python, "install", "--no-index", "--no-deps", "--no-compile", str(wheel))
    here = described(python)
    done = harvest(here.target, here.manifest, str(tmp_path / "W"), How(in_force=False))
    assert texts(done) == [
        (
            "warning harvest.two-owners one: 'lib/shared/x.py' is as 'two' wrote it, which owns "
            "it, too; packed so"
        )
    ]
    assert len(done.packed) == 2 and check(str(tmp_path / "W")).sound
    (here.site / "shared" / "x.py").unlink()
    (here.site / "shared" / "x.py").write_text("a third hand")
    now = harvest(here.target, take_snapshot(here.target), str(tmp_path / "W2"),
                  How(in_force=False))  # fmt: skip
    assert {text.split()[1] for text in texts(now)} == {"harvest.record"}
    assert now.packed == ()


def test_odd_files(two: Place, tmp_path: Path) -> None:
    """Dates before 1980, links to files, and files of nobody's mode."""
    outside = tmp_path / "real.so"
    outside.write_bytes((two.site / "vendor" / "lib.so").read_bytes())
    (two.site / "vendor" / "lib.so").unlink()
    (two.site / "vendor" / "lib.so").symlink_to(outside)
    os.utime(two.site / "vendor" / "__init__.py", (0, 0))
    (two.site / "vendor" / "empty").chmod(0o400)
    done = harvest(two.target, two.manifest, str(tmp_path / "W"))
    assert texts(done) == [] and check(str(tmp_path / "W")).findings == ()
    wheel = next((tmp_path / "W").glob("vend_or*"))
    with zipfile.ZipFile(wheel) as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert archive.read("vendor/lib.so") == outside.read_bytes()


@pytest.mark.parametrize("version", ["2.1.0_gita38191a_dtk22.04.2", "das.dtk2604"])
def test_version_that_is_none(two: Place, tmp_path: Path, version: str) -> None:
    """Vendors write what PEP 440 does not know; the files are kept all the same."""
    old, new = two.site / "plain-2.0.dist-info", two.site / f"plain-{version}.dist-info"
    old.rename(new)
    for name in ("METADATA", "RECORD"):
        text = (new / name).read_text().replace("plain-2.0.d", f"plain-{version}.d")
        (new / name).write_text(text.replace("Version: 2.0\n", f"Version: {version}\n"))
    done = harvest(two.target, take_snapshot(two.target), str(tmp_path / "W"))
    assert [f.code for f in done.findings] == ["harvest.record"]  # of METADATA, which changed
    wheel = done.manifest.find("plain")
    assert wheel and wheel.wheel and wheel.wheel.file == f"plain-{version}-py3-none-any.whl"
    assert check(str(tmp_path / "W")).sound


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("../../../../../../etc/passwd,,", "RECORD leads outside the target"),
        ("/etc/passwd,,", "RECORD leads outside the target"),
        ("gone.py,,", "'lib/gone.py': No such file or directory"),
        ("vendor,,", "'lib/vendor': not a file"),
        ("bad\x1bname,,", "control character or line end in the name"),
    ],
)
def test_record_that_cannot_be_packed(two: Place, tmp_path: Path, row: str, said: str) -> None:
    (two.site / "bad\x1bname").write_text("")
    record = two.site / "plain-2.0.dist-info" / "RECORD"
    text = record.read_text()
    record.unlink()
    record.write_text(f"{text}{row}\n")
    done = harvest(two.target, two.manifest, str(tmp_path / "W"))
    (finding,) = done.findings
    assert finding.code == "harvest.impossible" and said in finding.what
    assert [wheel.file.split("-")[0] for wheel in done.packed] == ["vend_or"]


def test_no_record(two: Place, tmp_path: Path) -> None:
    (two.site / "plain-2.0.dist-info" / "RECORD").unlink()
    done = harvest(two.target, two.manifest, str(tmp_path / "W"))
    assert texts(done) == [
        (
            "error harvest.impossible plain: '2.0' cannot be packed: no RECORD: its files are "
            "not known"
        )
    ]


def test_options_of_the_command(
    two: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (two.site / "vendor" / "late.so").write_bytes(b"late")
    words = ["wheelhouse", "harvest", str(tmp_path / "W"), "--python", str(two.python)]
    assert main([*words, "--compress", "zip"]) == 2
    assert "one of fast, best, none" in capsys.readouterr().err
    assert main(words) == 0
    assert "not packed: 'lib/vendor/late.so'" in capsys.readouterr().err
    assert main([*words, "--compress", "none", "--with-untracked"]) == 0
    assert "2 wheels packed, 0 kept" in capsys.readouterr().out
    locked = load((tmp_path / "W" / "envlock.yaml").read_text()).find("vend-or")
    assert locked and locked.wheel and locked.wheel.compressor == "none"
    assert locked.content.startswith("sha256:") and check(str(tmp_path / "W")).findings == ()


def test_command_without_a_manifest_trusts_nothing(
    two: Place, tmp_path: Path, damage: Damage, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files are read once, while they are packed, and compared with RECORD there."""
    damage(two, "plain.py", b"VERSION = 'evil'\n")
    words = ["wheelhouse", "harvest", str(tmp_path / "W"), "--python", str(two.python)]
    for _ in range(2):  # the second run finds a folder that has wheels
        assert main(words) == 3
        assert "plain: 'lib/plain.py' is not what its RECORD says" in capsys.readouterr().err
