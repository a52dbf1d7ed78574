"""envlock doctor, as people type it, on targets with something wrong."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from envlock.adapters import places as configured
from envlock.adapters import rooms
from envlock.cli import examining, main
from envlock.model.triage import Place, What
from tests.support.bad_servers import refusing
from tests.support.examined import VENDOR, codes, doctor, document, large_room, site_of
from tests.support.fake_manifest import put_dist
from tests.support.pythons import make_venv


def test_document(python: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor(python, "--json", "--profile", "cpu") == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert found.keys() == {"schema", "command", "exit", "findings", "data"}
    assert (found["command"], found["exit"]) == ("doctor", 0)
    data = found["data"]
    assert list(data) == [
        "machine", "limits", "devices", "stack", "python", "configuration", "envlock", "disk",
        "network",
    ]  # fmt: skip
    for section in data.values():
        assert all(row.keys() == {"name", "value"} for row in section["rows"])
    assert {"cpus", "cpus_from", "host_cpus", "memory", "swap", "advice"} <= data["limits"].keys()
    assert data["python"]["target"]["purelib"] == str(site_of(python))
    assert data["network"] == {
        "rows": [{"name": "servers", "value": "not asked (--no-network)"}],
        "asked": False,
        "answers": [],
    }
    for finding in found["findings"]:
        assert finding.keys() == {"code", "subject", "what", "why", "hint", "level"}


def test_quiet_and_details(python: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor(python, "-q", "--profile", "cpu") == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) == 1
    assert out.startswith("nothing is wrong")
    assert doctor(python, "-v", "--profile", "cpu") == 0
    said = capsys.readouterr().out
    assert "sys.path" in said and "uv's cache" in said


def test_a_narrow_window(
    python: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What does not fit goes on below itself."""
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert doctor(python, "--profile", "cpu") == 0
    said = capsys.readouterr().out
    assert "\x1b[1mdisk\x1b[0m\n" in said
    disk = said.partition("mdisk")[2].partition("/dev/shm")[0].splitlines()
    assert len(disk) > 3
    assert max(map(len, disk)) <= 60
    assert all(line.startswith(" " * 19) for line in disk[2:] if line.strip())
    monkeypatch.setenv("NO_COLOR", "1")
    assert doctor(python, "--profile", "cpu") == 0
    assert "\x1b" not in capsys.readouterr().out


def test_no_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(rooms, "_room", large_room)
    assert main(["doctor", "--no-network", "--json", "--profile", "cpu"]) == 0
    found = document(capsys)
    assert codes(found) == {"python.none": "warning"}
    assert found["data"]["python"]["target"] is None
    assert found["data"]["limits"]["cpus"] > 0


def test_a_target_that_does_not_answer(
    python: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho 'ld.so: libpython3.10.so: not found' >&2\nexit 127\n")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    assert doctor(broken, "--json", "--profile", "cpu") == 3
    [found] = [f for f in document(capsys)["findings"] if f["code"] == "python.broken"]
    assert "libpython3.10.so" in found["what"]
    assert doctor(tmp_path / "none") == 4  # a slip of the pen


def test_a_target_that_hangs(
    python: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(examining, "_PYTHON", 0.3)
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 600\n")
    slow.chmod(0o755)
    assert doctor(slow, "--json", "--profile", "cpu") == 3
    [found] = [f for f in document(capsys)["findings"] if f["code"] == "python.broken"]
    assert "no answer in time" in found["what"]


def test_a_lost_build(python: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site = site_of(python)
    put_dist(site, "torch", VENDOR, {"torch/__init__.py": ""})
    words = ("--profile", "dtk")
    assert main(["snapshot", "-o", "m.yaml", "--python", str(python), *words]) == 0
    capsys.readouterr()
    assert doctor(python, "--json", *words) in (0, 3)  # of the machine that the tests run on
    before = document(capsys)
    assert "drift.changed" not in codes(before)
    assert codes(before)["state.no-wheels"] == "warning"
    (site / f"torch-{VENDOR}.dist-info").rename(site / "torch-2.11.0.dist-info")
    metadata = site / "torch-2.11.0.dist-info/METADATA"
    metadata.write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.11.0\n")
    assert doctor(python, "--json", *words) == 3
    found = document(capsys)
    assert codes(found)["drift.changed"] == "error"
    assert found["data"]["envlock"]["lost"] == [
        {"name": "torch", "locked": VENDOR, "now": "2.11.0"}
    ]
    # the file itself, where it is named
    assert doctor(python, "--json", "--manifest", "m.yaml", *words) == 3
    assert document(capsys)["data"]["envlock"]["manifest"] == "m.yaml"
    assert doctor(python, "--manifest", "none.yaml") == 4


def test_a_remembered_manifest_that_cannot_be_read(
    python: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put_dist(site_of(python), "torch", VENDOR, {"torch/__init__.py": ""})
    words = ("--profile", "dtk")
    assert main(["snapshot", "-o", "m.yaml", "--python", str(python), *words]) == 0
    [kept] = Path(os.environ["XDG_STATE_HOME"]).glob("envlock/*/manifest.yaml")
    kept.write_text("---\nschema: '1.0'\n")
    capsys.readouterr()
    assert doctor(python, "--json", *words) == 3
    assert codes(document(capsys))["state.unreadable"] == "error"


def test_an_unfinished_restore(python: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (site_of(python) / ".envlock-txn").mkdir()
    assert doctor(python, "--json", "--profile", "cpu") == 3
    [found] = [f for f in document(capsys)["findings"] if f["code"] == "state.unfinished"]
    assert "envlock restore --recover" in found["hint"]
    assert (site_of(python) / ".envlock-txn").is_dir()  # doctor only looks


def test_settings(
    python: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PIP_CONFIG_FILE")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(python.parents[2] / "config"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(python.parents[2] / "none"))
    (python.parents[1] / "pip.conf").write_text(
        "[install]\nconstraint = /nowhere/c.txt\nupgrade = true\n"
        "[global]\nindex-url = https://me:secret@index.invalid/simple\n"
    )
    assert doctor(python, "--json", "--profile", "cpu") == 3
    said = capsys.readouterr().out
    found = json.loads(said)
    wanted = {"config.constraint-missing": "error", "config.moves": "warning"}
    assert wanted.items() <= codes(found).items()
    assert "secret" not in said
    (python.parents[1] / "pip.conf").write_text("index-url\n")
    assert doctor(python, "--json", "--profile", "cpu") == 3
    assert codes(document(capsys))["config.unreadable"] == "error"


def test_constraints_that_are_a_stream(
    python: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reading it here would take it from the tool."""
    os.mkfifo("fifo")
    monkeypatch.setenv("PIP_CONSTRAINT", "fifo")
    assert doctor(python, "--json", "--profile", "cpu") == 3
    assert codes(document(capsys))["config.unreadable"] == "error"


def test_a_bug_stays_a_traceback(python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in a part that another thread reads."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("envlock.adapters.limits.read_limits", broken)
    with pytest.raises(ZeroDivisionError):
        doctor(python)


def test_builds_that_are_held(python: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put_dist(site_of(python), "torch", VENDOR, {"torch/__init__.py": ""})
    assert main(["guard", "--enable", "--python", str(python)]) == 0
    capsys.readouterr()
    doctor(python, "--json", "--profile", "dtk")
    rows = {r["name"]: r["value"] for r in document(capsys)["data"]["envlock"]["rows"]}
    assert rows["plain installs"] == "held by pip's configuration"
    (python.parents[1] / "envlock-constraints.txt").unlink()
    assert doctor(python, "--json", "--profile", "dtk") == 3
    assert codes(document(capsys))["always.missing"] == "error"


def test_another_copy_and_other_pythons(
    python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    put_dist(site_of(python), "torch", VENDOR, {"torch/__init__.py": ""})
    put_dist(tmp_path / "before", "torch", "2.11.0", {"torch/__init__.py": ""})
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "before"))
    other = make_venv(tmp_path / "other")
    pip = other.parent / "pip"
    pip.write_text(f"#!{other}\n")
    pip.chmod(0o755)
    monkeypatch.setenv("PATH", str(other.parent))
    monkeypatch.setenv("VIRTUAL_ENV", str(python.parents[1]))
    assert main(["doctor", "--no-network", "--json", "--profile", "dtk"]) in (0, 3)
    found = codes(document(capsys))
    assert found["path.shadowed"] == "warning"
    assert found["python.other-on-path"] == found["python.other-pip"] == "warning"


# --- the network ----------------------------------------------------------------------------


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The only server is one that refuses."""
    with refusing() as port:
        url = f"http://127.0.0.1:{port}/simple"
        place = Place(what=What.INDEX, url=url, origin="$PIP_INDEX_URL", tools="pip")
        monkeypatch.setattr(configured, "configured_places", lambda *_: (place,))
        yield url


def test_network(closed: str, python: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", "--json", "--python", str(python), "--profile", "cpu"])
    found = document(capsys)
    assert code == 0
    assert codes(found)["network.refused"] == "warning"
    [index, *_] = found["data"]["network"]["answers"]
    assert (index["url"], index["verdict"]) == (closed, "refused")
    assert found["data"]["network"]["asked"] is True
