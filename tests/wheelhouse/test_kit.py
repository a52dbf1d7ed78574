"""pack and unpack: what comes out is what went in."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard

from envlock.adapters import kitfile, zstd
from envlock.adapters.kitfile import KitFile, KitWriter, PartsWriter, Slice, read_contents
from envlock.adapters.wheelfile import inspect_wheel
from envlock.adapters.wheelstored import open_stored
from envlock.cli import main
from envlock.errors import Refused, UnusableInput
from envlock.model.kit import Contents, dump_contents, runner_of
from envlock.wheelhouse.check import check
from envlock.wheelhouse.extras import Extra, find_extras
from envlock.wheelhouse.folder import write_papers
from envlock.wheelhouse.harvest import How, harvest
from envlock.wheelhouse.kit_read import unpack
from envlock.wheelhouse.kit_tool import Tool
from tests.support.kits import lock, make_house, packed, tree
from tests.support.wheels import make_wheel
from tests.wheelhouse.conftest import Place
from tests.wheelhouse.test_check import manifest_of


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A wheelhouse with a rebuilt and a published wheel."""
    return make_house(tmp_path / "W")


def test_there_and_back(house: Path, tmp_path: Path) -> None:
    """Published wheels byte for byte, rebuilt ones with the same content; check passes."""
    packed(house, tmp_path / "a.kit")
    out = tmp_path / "out"
    assert not unpack(str(tmp_path / "a.kit"), str(out)).already
    assert check(str(out)).findings == ()
    before, after = tree(house), tree(out)
    assert before.keys() == after.keys()
    sympy, torch = "sympy-1.0-py3-none-any.whl", "torch-1.0-py3-none-any.whl"
    assert after[sympy] == before[sympy] and after[torch] != before[torch]
    old, new = lock(house), lock(out)
    assert [d.content for d in old.distributions] == [d.content for d in new.distributions]
    ref = new.find("torch")
    assert ref and ref.wheel and ref.wheel.sha256 == hashlib.sha256(after[torch]).hexdigest()
    assert (ref.wheel.origin, ref.wheel.size) == ("rebuilt", len(after[torch]))
    with zipfile.ZipFile(out / torch) as wheel:
        assert {info.compress_type for info in wheel.infolist()} == {zipfile.ZIP_STORED}
        assert wheel.testzip() is None
    inspected = inspect_wheel(str(out / torch))
    assert inspected.errors == () and inspected.executable == ("lib/torch/lib.so",)


def test_any_zip_tool_reads_it(house: Path, tmp_path: Path) -> None:
    """Without envlock: unzip, zstd and tar are enough."""
    packed(house, tmp_path / "a.kit")
    with zipfile.ZipFile(tmp_path / "a.kit") as archive:
        assert archive.testzip() is None
        stream = archive.read("rebuilt.tar.zst")
        assert archive.read("wheels/sympy-1.0-py3-none-any.whl")[:2] == b"PK"
    plain = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(stream))
    with tarfile.open(fileobj=plain, mode="r|") as inside:
        members = list(inside)
    assert [member.name for member in members] == ["wheels/torch-1.0-py3-none-any.whl"]
    assert {(m.uid, m.gid, m.uname, m.gname, m.mtime) for m in members} == {(0, 0, "", "", 0)}


def test_the_same_bytes_again(house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the folder, the time and the number of CPUs."""
    packed(house, tmp_path / "a.kit")
    house.rename(tmp_path / "elsewhere")
    monkeypatch.setattr(zstd, "workers", lambda: 7)
    packed(tmp_path / "elsewhere", tmp_path / "b.kit")
    assert (tmp_path / "a.kit").read_bytes() == (tmp_path / "b.kit").read_bytes()


def test_stored_as_harvest_stores(two: Place, tmp_path: Path) -> None:
    """A wheel that was harvested uncompressed is what the kit makes of a compressed one."""
    fast, none = tmp_path / "fast", tmp_path / "none"
    harvest(two.target, two.manifest, str(fast))
    harvest(two.target, two.manifest, str(none), How(compress="none"))
    for name in sorted(path.name for path in fast.glob("*.whl")):
        with open_stored(str(fast / name)) as wheel:
            stored = b"".join(wheel.chunks())
            assert len(stored) == wheel.size
        assert stored == (none / name).read_bytes()
    packed(fast, tmp_path / "a.kit")
    unpack(str(tmp_path / "a.kit"), str(tmp_path / "out"))
    assert tree(tmp_path / "out") == tree(none)


# --- extras ---------------------------------------------------------------------------------


def test_extras(house: Path, tmp_path: Path) -> None:
    """Files and folders, links as what they lead to, exec bits kept."""
    (tmp_path / "models/deep").mkdir(parents=True)
    (tmp_path / "models/deep/größe.bin").write_bytes(b"x" * 3_000_000)
    (tmp_path / "blob").write_text("blob")
    (tmp_path / "models/link").symlink_to(tmp_path / "blob")
    (tmp_path / "run.sh").write_text("#!/bin/sh\n")
    (tmp_path / "run.sh").chmod(0o755)
    extras = find_extras([str(tmp_path / "models"), f"{tmp_path}/run.sh"])
    packed(house, tmp_path / "a.kit", extras=extras)
    unpack(str(tmp_path / "a.kit"), str(tmp_path / "out"))
    found = tree(tmp_path / "out/extras")
    assert found == {
        "models/deep/größe.bin": b"x" * 3_000_000,
        "models/link": b"blob",
        "run.sh": b"#!/bin/sh\n",
    }
    assert os.access(tmp_path / "out/extras/run.sh", os.X_OK)
    assert check(str(tmp_path / "out")).findings == ()


def test_extras_that_cannot_be_carried(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/loop").symlink_to(tmp_path / "a")
    (tmp_path / "a/dead").symlink_to("nowhere")
    os.mkfifo(tmp_path / "a/pipe")
    (tmp_path / "b/a").mkdir(parents=True)
    (tmp_path / "b/a/x").write_text("2")
    (tmp_path / "a/x").write_text("1")
    with pytest.raises(UnusableInput) as caught:
        find_extras([str(tmp_path / name) for name in ("a", "b/a", "none")])
    said = str(caught.value)
    for part in ("loop' leads to", "dead': No such", "pipe' is no file", "same name", "none': No"):
        assert part in said


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("x/Model.bin", "y/model.BIN", "the same name but for case"),
        ("x/a", "y/a/b/c", "needs a folder where"),
        ("x/a/b/c", "y/A", "needs a folder where"),
        ("x/\N{LATIN SMALL LETTER E WITH ACUTE}", "y/e\N{COMBINING ACUTE ACCENT}", "but for case"),
    ],
)
def test_extras_that_have_no_room_for_each_other(
    tmp_path: Path, first: str, second: str, message: str
) -> None:
    for name in (first, second):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("")
    named = [str(tmp_path / "/".join(name.split("/")[:2])) for name in (first, second)]
    with pytest.raises(UnusableInput, match=message):
        find_extras(named)


def test_names_in_any_locale(house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "größe.bin").write_text("x")
    extras = find_extras([str(tmp_path / "größe.bin")])
    packed(house, tmp_path / "utf8.kit", extras=extras)
    monkeypatch.setattr(tarfile.TarFile, "encoding", "latin-1")
    packed(house, tmp_path / "a.kit", extras=extras)
    assert (tmp_path / "a.kit").read_bytes() == (tmp_path / "utf8.kit").read_bytes()
    unpack(str(tmp_path / "a.kit"), str(tmp_path / "out"))
    assert (tmp_path / "out/extras/größe.bin").read_text() == "x"


def test_no_file_twice(house: Path, tmp_path: Path) -> None:
    """Nobody could unpack it."""
    (tmp_path / "x").write_text("x")
    extra = Extra(str(tmp_path / "x"), "extras/x", 1)
    with pytest.raises(Refused, match="'extras/x' would be in it twice"):
        packed(house, tmp_path / "a.kit", extras=(extra, extra))
    assert not (tmp_path / "a.kit").exists()


def test_the_last_report_travels(house: Path, tmp_path: Path) -> None:
    report = tmp_path / "verify-report.json"
    report.write_text("{}")
    extra = Extra(str(report), "extras/verify-report.json", 2)
    packed(house, tmp_path / "a.kit", extras=(extra,))
    unpack(str(tmp_path / "a.kit"), str(tmp_path / "out"))
    assert (tmp_path / "out/extras/verify-report.json").read_text() == "{}"


def test_a_file_that_changes_meanwhile(house: Path, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("longer now")
    for size in (3, 30):
        extra = Extra(str(tmp_path / "log"), "extras/log", size)
        with pytest.raises((Refused, UnusableInput)):
            packed(house, tmp_path / "a.kit", extras=(extra,))
    assert not (tmp_path / "a.kit").exists()


# --- large ----------------------------------------------------------------------------------


def test_a_kit_that_no_small_directory_covers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python before 3.13 runs no archive with 64-bit numbers: what lies beyond is not listed, and
    found all the same."""
    monkeypatch.setattr(kitfile, "SMALL", 1500)
    out = PartsWriter(str(tmp_path / "a.kit"))
    kit = KitWriter(out)
    for number in range(4):
        kit.add(f"extras/{number}", [bytes([number]) * 1000])
    contents = Contents(name="n", envlock="0", python="3.10", machine="", blobs=tuple(kit.blobs))
    kit.add("kit.json", [dump_contents(replace(contents, blobs=contents.blobs)).encode()])
    kit.add("__main__.py", [b"print('it runs')\n"])
    monkeypatch.setattr(kitfile, "SMALL", out.position - kit.blobs[3].at + 1000)
    kit.finish()
    with zipfile.ZipFile(tmp_path / "a.kit") as archive:
        assert archive.namelist() == ["extras/3", "kit.json", "__main__.py"]
    done = subprocess.run([sys.executable, tmp_path / "a.kit"], capture_output=True, text=True)
    assert done.stdout == "it runs\n"
    with KitFile([str(tmp_path / "a.kit")]) as file:
        for number, blob in enumerate(read_contents(file, "a.kit").blobs):
            source = Slice(file, blob)
            assert source.read(5000) == bytes([number]) * 1000 and source.whole


@pytest.mark.long
def test_larger_than_four_gigabytes(house: Path, tmp_path: Path) -> None:
    """A sparse model of 5 GiB, in a kit and back, within 900 MB of memory."""
    with open(tmp_path / "model", "wb") as file:
        file.truncate(5 * 2**30)
    limit = 900 * 2**20
    script = (
        "import resource, sys\n"
        f"resource.setrlimit(resource.RLIMIT_DATA, ({limit}, {limit}))\n"
        "from tests.wheelhouse.test_kit import *\n"
        "base = Path(sys.argv[1])\n"
        "packed(base / 'W', base / 'a.kit', extras=find_extras([str(base / 'model')]))\n"
        "unpack(str(base / 'a.kit'), str(base / 'out'))\n"
    )
    subprocess.run([sys.executable, "-c", script, tmp_path], check=True)
    assert (tmp_path / "out/extras/model").stat().st_size == 5 * 2**30


# --- which Python ---------------------------------------------------------------------------


def test_runner() -> None:
    """The target itself where it can, else the oldest that can, with the same glibc."""
    target = manifest_of().target
    assert runner_of(target) is target
    old = replace(target, python="3.8.10", markers={**target.markers, "python_version": "3.8"},
                  tags=tuple(tag.replace("310", "38") for tag in target.tags))  # fmt: skip
    assert runner_of(old).tags == target.tags
    assert runner_of(old).markers["python_full_version"] == "3.10.0"
    newer = runner_of(target, (3, 12))
    assert newer.python == "3.12.0" and newer.tags[0] == "cp312-cp312-linux_x86_64"
    assert "cp312-cp312-manylinux_2_35_x86_64" in newer.tags
    with pytest.raises(ValueError, match="no platform"):
        runner_of(replace(old, tags=("cp38-cp38-any",)))


# --- the commands ---------------------------------------------------------------------------


@pytest.fixture
def no_tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The commands, with an envlock inside that is quickly made; the Pythons asked for."""
    asked: list[str] = []

    def tool(runner: object, sources: object, staging: str) -> Tool:
        asked.append(runner.python)  # type: ignore[attr-defined]
        return Tool((str(make_wheel(Path(staging), "envlock", "0")),), "made by the test")

    monkeypatch.setattr("envlock.wheelhouse.kit_tool.tool_wheels", tool)
    return asked


def test_commands(
    house: Path, tmp_path: Path, no_tool: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    kit = str(tmp_path / "my kit")
    assert main(["wheelhouse", "pack", str(house), kit, "--split", "3k", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["command"] == "wheelhouse pack" and document["data"]["python"] == "3.10"
    assert document["data"]["files"][0] == f"{kit}.001"
    assert "wheels/torch-1.0-py3-none-any.whl" in document["data"]["carried"]
    assert main(["wheelhouse", "pack", str(house), kit, "--split", "3k"]) == 0
    said = capsys.readouterr().out
    assert "sha256sum -c 'my kit'-SHA256SUMS" in said and "cat 'my kit'.[0-9]* > 'my kit'" in said
    assert "then: python3.10 'my kit'" in said
    assert main(["wheelhouse", "unpack", kit, str(tmp_path / "out"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["folder"] == str(tmp_path / "out")
    assert main(["wheelhouse", "unpack", kit, str(tmp_path / "out")]) == 0
    assert "2 wheels for cpu-cp310, all of it was there already" in capsys.readouterr().out
    assert main(["wheelhouse", "unpack", str(tmp_path / "no"), str(tmp_path / "x")]) == 4
    assert main(["wheelhouse", "pack", str(house), kit, "--split", "many"]) == 2
    assert main(["wheelhouse", "pack", str(house), kit, "--tool-python", "3.8"]) == 2
    assert main(["wheelhouse", "pack", str(tmp_path / "no"), kit]) == 4
    (house / "torch-1.0-py3-none-any.whl").unlink()
    assert main(["wheelhouse", "pack", str(house), kit]) == 3


def test_an_old_target_needs_another_python(
    house: Path, tmp_path: Path, no_tool: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = lock(house)
    old = replace(manifest, target=replace(manifest.target, python="3.8.10"))
    write_papers(str(house), old)
    kit = str(tmp_path / "a.kit")
    assert main(["wheelhouse", "pack", str(house), kit]) == 0
    said = capsys.readouterr().out
    assert "the target's Python 3.8.10 does not run this envlock" in said
    assert "the device needs Python 3.10 beside it" in said and "python3.10 a.kit" in said
    assert main(["wheelhouse", "pack", str(house), kit, "--tool-python", "3.12"]) == 0
    assert no_tool == ["3.10.0", "3.12.0"]


def test_no_names_of_people_and_machines(house: Path, tmp_path: Path) -> None:
    import getpass
    import platform

    packed(house, tmp_path / "a.kit")
    with zipfile.ZipFile(tmp_path / "a.kit") as archive:
        texts = [
            archive.read(name) for name in archive.namelist() if name.endswith(("yaml", "json"))
        ]
    for name in (platform.node(), f"/{getpass.getuser()}/", str(tmp_path)):
        assert all(name.encode() not in text for text in texts)


def test_the_last_verify_report_travels_by_default(
    two: Place, tmp_path: Path, no_tool: list[str]
) -> None:
    """Of the target that the wheelhouse is of; not where it is another target's."""
    python = ["--python", str(two.python)]
    house, kit = str(tmp_path / "W"), str(tmp_path / "a.kit")
    assert main(["wheelhouse", "harvest", house, *python]) == 0
    assert main(["wheelhouse", "pack", house, kit, *python]) == 0
    unpack(kit, str(tmp_path / "before"))
    assert not (tmp_path / "before/extras").exists()
    main(["verify", "--level", "static", *python])
    assert main(["wheelhouse", "pack", house, kit, *python]) == 0
    unpack(kit, str(tmp_path / "after"))
    report = json.loads((tmp_path / "after/extras/verify-report.json").read_text())
    assert report["level"] == "static" and report["verdict"] != "running"
    (tmp_path / "verify-report.json").write_text("mine")
    mine = ["--with", str(tmp_path / "verify-report.json")]
    assert main(["wheelhouse", "pack", house, kit, *mine, *python]) == 0
    unpack(kit, str(tmp_path / "mine"))
    assert (tmp_path / "mine/extras/verify-report.json").read_text() == "mine"
    other = make_house(tmp_path / "other")
    assert main(["wheelhouse", "pack", str(other), kit, *python]) == 0
    unpack(kit, str(tmp_path / "elsewhere"))
    assert not (tmp_path / "elsewhere/extras").exists()


def test_pack_needs_nothing_that_only_posix_has(house: Path, tmp_path: Path) -> None:
    """The host may be a laptop with Windows."""
    script = (
        "import sys\n"
        "for name in ('fcntl', 'pwd', 'grp', 'resource', 'termios'):\n"
        "    sys.modules[name] = None\n"
        "from pathlib import Path\n"
        "from tests.support.kits import packed\n"
        "packed(Path(sys.argv[1]), Path(sys.argv[2]))\n"
    )
    kit = tmp_path / "a.kit"
    subprocess.run([sys.executable, "-c", script, house, kit], check=True)
    unpack(str(kit), str(tmp_path / "out"))
    assert check(str(tmp_path / "out")).findings == ()
