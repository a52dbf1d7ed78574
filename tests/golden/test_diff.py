"""``envlock diff`` of files and folders, as people type it: words and exit codes."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from envlock.cli import main
from envlock.model.dist import Distribution, WheelRef
from envlock.model.facts import Device, Finding, Machine
from envlock.model.manifest import Manifest, Stack, dump
from tests.support.fake_manifest import locked
from tests.support.fake_report import device_report
from tests.support.wheels import make_wheel

Capture = pytest.CaptureFixture[str]
A, B = (f"sha256:{letter * 64}" for letter in "ab")
VENDOR = "2.10.0+das.opt1.dtk2604"
GOOD = replace(
    locked(
        Distribution(
            name="torch", version=VENDOR, vendor=("label",), protected=True, content=A, files=9
        ),
        Distribution(name="numpy", version="2.2.6", content=A),
        Distribution(name="tqdm", version="4.67.1", content=A, files=3),
        profile="dtk",
    ),
    stack=Stack(tag="dtk2604", root="/opt/dtk", release="dtk-26.04-DCC2602-0317"),
    machine=Machine(driver="6.3.26", devices=(Device(name="BW", memory_mib=65520),) * 8),
)
REPLACED = "protected; dtk2604 vendor build -> public build; protected only in A; requires 'sympy'"
KINDS = "1 removed, 1 replaced, 1 other bytes, 1 added, 2 facts, 1 of health"
HARMED = replace(
    GOOD,
    stack=replace(GOOD.stack, release="dtk-26.04-DCC2602-0401"),
    machine=replace(GOOD.machine, devices=GOOD.machine.devices[:7]),
    health=(
        Finding(code="requires.missing", subject="torch", what="needs 'sympy'; not installed"),
    ),
    distributions=(
        Distribution(name="einops", version="0.8.1", content=A),
        Distribution(name="torch", version="2.11.0", content=B, requires=("sympy",)),
        Distribution(name="tqdm", version="4.67.1", content=B, files=4),
    ),
)


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of every kind, with names that say nothing or something else."""
    monkeypatch.chdir(tmp_path)
    put("good", dump(GOOD))
    put("harmed.json", dump(HARMED))
    put("report.yaml", json.dumps(device_report()))
    put("notes.txt", "nothing of ours\n")
    put("empty", "")


def put(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")


def house(folder: str, manifest: Manifest, *wheels: Path) -> str:
    """A wheelhouse: the manifest with these wheels."""
    refs = {}
    for path in wheels:
        name = path.name.partition("-")[0]
        refs[name] = WheelRef(file=path.name, sha256="0" * 64, origin="file")
    dists = tuple(replace(d, wheel=refs.get(d.name)) for d in manifest.distributions)
    put(f"{folder}/envlock.yaml", dump(replace(manifest, distributions=dists)))
    return folder


def test_two_manifests(capsys: Capture) -> None:
    assert main(["diff", "good", "harmed.json"]) == 3
    said = capsys.readouterr()
    lines = [" ".join(line.split()) for line in said.out.splitlines()]
    assert lines == [
        "A: manifest 'good', made 2026-11-30T08:00:00Z",
        "B: manifest 'harmed.json', made 2026-11-30T08:00:00Z",
        "what A B",
        f"replaced torch {VENDOR} 2.11.0 {REPLACED}",
        "removed numpy 2.2.6 public build",
        "other bytes tqdm 4.67.1 4.67.1 sha256:aaaaaaaaaaaa -> sha256:bbbbbbbbbbbb; 3 -> 4 files",
        "added einops 0.8.1 public build",
        "fact stack.release dtk-26.04-DCC2602-0317 dtk-26.04-DCC2602-0401",
        "fact machine.devices 8 x BW 7 x BW 1 only in A: 'BW memory_mib 65520'",
        "only in B: torch: needs 'sympy'; not installed [requires.missing]",
        f"7 differences, 1 protected build among them: {KINDS}; 2 distributions compared",
    ]
    assert said.err == ""


def test_the_other_way_round(capsys: Capture) -> None:
    assert main(["diff", "harmed.json", "good"]) == 3
    said = capsys.readouterr().out
    assert "public build -> dtk2604 vendor build; protected only in B" in said
    assert "only in A: torch: needs 'sympy'; not installed [requires.missing]" in said


@pytest.mark.parametrize("named", ["good", "report.yaml"])
def test_the_same(named: str, capsys: Capture) -> None:
    assert main(["diff", named, named]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("no difference; ")


def test_quiet_says_the_verdict_only(capsys: Capture) -> None:
    assert main(["diff", "good", "harmed.json", "-q", "--only", "protected"]) == 3
    said = capsys.readouterr()
    assert said.out == (
        "1 difference, 1 protected build among them: 1 replaced; 2 distributions compared\n"
    )


def test_only(capsys: Capture) -> None:
    assert main(["diff", "good", "harmed.json", "--only", "Tqdm"]) == 3
    assert "torch" not in capsys.readouterr().out
    assert main(["diff", "good", "good", "--only", "protected"]) == 0
    assert main(["diff", "good", "harmed.json", "--only", "nope"]) == 4
    assert "error: --only: 'nope': on neither side" in capsys.readouterr().err
    put("bare", dump(locked(Distribution(name="tqdm", version="1.0"))))
    assert main(["diff", "bare", "bare", "--only", "protected"]) == 4
    assert main(["diff", "report.yaml", "report.yaml", "--only", "torch"]) == 2


def document(capsys: Capture) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_json(capsys: Capture) -> None:
    assert main(["diff", "good", "harmed.json", "--json"]) == 3
    found = document(capsys)
    assert (found["command"], found["exit"]) == ("diff", 3)
    codes = [(one["code"], one["subject"], one["level"]) for one in found["findings"]]
    assert codes == [
        ("diff.replaced", "torch", "error"),
        ("diff.removed", "numpy", "warning"),
        ("diff.other-bytes", "tqdm", "warning"),
        ("diff.added", "einops", "warning"),
        ("requires.missing", "torch", "warning"),
    ]
    data = found["data"]
    assert data["a"] == {
        "kind": "manifest", "name": "good", "manifest": "test-cp311",
        "created": "2026-11-30T08:00:00Z",
    }  # fmt: skip
    torch = data["distributions"][0]
    assert (torch["kind"], torch["protected"]) == ("replaced", True)
    assert torch["old"]["build"] == "dtk2604 vendor build"
    assert torch["new"]["version"] == "2.11.0"
    assert [one["subject"] for one in data["facts"]] == ["stack.release", "machine.devices"]
    assert len(data["facts"][1]["new"]) == 7
    assert [one["code"] for one in data["health"]["appeared"]] == ["requires.missing"]
    assert data["same"] is False
    assert main(["diff", "good", "good", "--json"]) == 0
    assert document(capsys)["data"]["same"] is True


def test_files_of_two_wheelhouses(tmp_path: Path, capsys: Capture) -> None:
    """Wheels of one version with other bytes: the files that differ are named."""
    one = {"tqdm/a.py": "1\n", "tqdm/b.py": "1\n"}
    other = {"tqdm/a.py": "2\n", "tqdm/c.py": "1\n"}
    for folder, inside, digest in (("one", one, A), ("two", other, B)):
        wheel = make_wheel(tmp_path / folder, "tqdm", "4.67.1", inside)
        dist = Distribution(name="tqdm", version="4.67.1", content=digest)
        house(folder, locked(dist), wheel)
    assert main(["diff", "one", "two"]) == 3
    said = capsys.readouterr().out
    assert (
        "changed: 'lib/tqdm/a.py'; only in A: 'lib/tqdm/b.py'; only in B: 'lib/tqdm/c.py'" in said
    )
    assert main(["diff", "one", "two", "--json"]) == 3
    assert document(capsys)["data"]["distributions"][0]["files"]["changed"] == ["lib/tqdm/a.py"]


def test_what_lies_in_a_wheelhouse(tmp_path: Path, capsys: Capture) -> None:
    """A wheel that is not there, and one that nobody knows, are differences."""
    wheel = make_wheel(tmp_path / "W", "tqdm", "4.67.1", {"tqdm.py": ""})
    house("W", GOOD, wheel)
    assert main(["diff", "good", "W"]) == 0
    make_wheel(tmp_path / "W", "left_over", "1.0", {"left_over.py": ""})
    wheel.unlink()
    assert main(["diff", "good", "W"]) == 3
    said = capsys.readouterr().out
    assert f"only in B: tqdm: '{wheel.name}' is not there [wheelhouse.missing]" in said
    assert "only in B: left_over-1.0-py3-none-any.whl: is in the folder, but not" in said


def test_a_manifest_as_json(capsys: Capture) -> None:
    from envlock.model.manifest import to_document

    put("x", json.dumps(to_document(GOOD), default=list))
    assert main(["diff", "good", "x"]) == 0


def test_a_newer_envlock(capsys: Capture) -> None:
    put("newer", dump(replace(GOOD, schema="1.99")))
    assert main(["diff", "good", "newer"]) == 0
    assert "manifest 'newer': of a newer envlock" in capsys.readouterr().err


REFUSALS = [
    (["good", "report.yaml"], 2, "manifest 'good' and report 'report.yaml' have nothing in common"),
    (["report.yaml", "env"], 2, "report 'report.yaml' and the target have nothing in common"),
    (["env", "env"], 2, "there is one target to compare"),
    (["env"], 2, "there is one target to compare"),
    (["good", "none"], 4, "none: cannot be read: No such file or directory"),
    (["good", "notes.txt"], 4, "notes.txt: neither a manifest nor a report"),
    (["empty", "good"], 4, "empty: neither a manifest nor a report"),
    (["good", "bytes"], 4, "bytes: neither a manifest nor a report"),
    (["good", "kit"], 4, "kit: a kit"),
    (["good", "cut"], 4, "cut: cut off: it starts with '---'"),
    (["good", "folder"], 4, "folder: no 'envlock.yaml' in it: no wheelhouse"),
    (["venv"], 4, "venv: no 'envlock.yaml' in it: no wheelhouse"),
    (["good", "half.json"], 4, "half.json: not JSON"),
    (["good", "harmed.json", "empty"], 2, "command line: got unexpected extra argument"),
]


@pytest.mark.parametrize(("words", "code", "what"), REFUSALS)
def test_refusals(words: list[str], code: int, what: str, capsys: Capture) -> None:
    Path("bytes").write_bytes(b"\xff\xfe\0")
    with zipfile.ZipFile("kit", "w") as kit:
        kit.writestr("\xe9", b"\xff\xff")
    put("cut", dump(GOOD)[:-4])
    put("half.json", '{"schema": "1.0", ')
    put("folder/a", "")
    put("venv/pyvenv.cfg", "")
    assert main(["diff", *words]) == code
    said = capsys.readouterr()
    assert what in said.err.splitlines()[0]
    assert said.err.splitlines()[1].startswith("hint: ")
    assert said.out == ""
