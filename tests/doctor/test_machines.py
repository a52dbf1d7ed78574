"""envlock doctor on recorded machines, and all that it prints on one of them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from envlock import __version__
from envlock.cli import examining, main
from tests.support.examined import GIB, VENDOR, codes, doctor, document, site_of
from tests.support.fake_manifest import put_dist
from tests.support.group_trees import build_tree
from tests.support.machines import NAMES, build
from tests.support.pythons import MACHINE

#: What the vendor's things are called: their findings are those that were recorded.
OF_THE_MACHINE = ("stack.", "device.", "tool.", "driver.")
#: The first article's notebook.
NOTEBOOK: dict[str, Any] = {
    "groups": ["0::/"],
    "mounts": ["/ /sys/fs/cgroup cgroup2 rw"],
    "tree": {"cpu.max": "1500000 100000", "memory.max": str(59 * GIB), "memory.swap.max": "0"},
}


@pytest.mark.parametrize("name", NAMES)
def test_recorded_machines(
    name: str,
    python: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    recorded = build(name, tmp_path)
    recorded.enter(monkeypatch)
    expect = recorded.expect
    hangs = "tool.hangs" in expect["findings"]
    monkeypatch.setattr(examining, "_TOOLS", 2.0 if hangs else 30.0)
    code = doctor(python, "--json", "--profile", expect["profile"])
    found = document(capsys)
    seen = {c: level for c, level in codes(found).items() if c.startswith(OF_THE_MACHINE)}
    assert seen == expect["findings"]
    assert found["exit"] == code == (3 if "error" in codes(found).values() else 0)
    devices = found["data"]["devices"]
    assert len(devices["devices"]) == expect.get("count", len(expect["devices"]))
    for device, wanted in zip(devices["devices"], expect["devices"], strict=False):
        assert {key: device[key] for key in wanted} == wanted
    assert devices["driver"] == expect.get("driver", "")
    for key, value in expect.get("stack", {}).items():
        assert found["data"]["stack"][key] == value
    assert found["data"]["stack"]["type"] == expect.get("type", "")
    if "os" in expect:
        assert found["data"]["machine"]["os"] == expect["os"]


def test_a_notebook(
    python: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """All of it, as it is printed: the first article's machine."""
    recorded = build("bw-dtk2604-container", tmp_path)
    build_tree(Path(recorded.root), NOTEBOOK)
    put_dist(site_of(python), "torch", VENDOR, {"torch/__init__.py": ""})
    put_dist(site_of(python), "triton", "3.4.0+git1ef59765", {"triton/__init__.py": ""})
    recorded.enter(monkeypatch)
    # nothing of the machine that the tests run on but bash, for the vendor's script
    (tmp_path / "bin").mkdir()
    for name in ("bash", "env"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name, path=MACHINE["PATH"]) or "")
    monkeypatch.setenv("PATH", f"{python.parent}:{tmp_path}/bin")
    monkeypatch.setattr(examining, "_TOOLS", 30.0)
    monkeypatch.setenv("VIRTUAL_ENV", str(python.parents[1]))
    monkeypatch.setenv("USER", "user")
    assert main(["doctor", "--no-network"]) == 0
    said = capsys.readouterr()
    text = re.sub(r"3\.\d+\.\d+\w*, ", "3.10.12, ", said.out.replace(str(tmp_path), "/home/user"))
    text = re.sub(r"python3\.\d+/", "python3.10/", text)
    text = text.replace(f" {__version__}, in an", " 0.1.0, in an")
    assert text == Path(__file__).with_name("notebook.txt").read_text(encoding="utf-8")
    lines = re.findall(r"\[([\w.-]+)\]$", said.err, re.M)
    assert lines == [
        "limits.cpu-quota", "stack.not-activated", "stack.looks-public", "state.no-manifest",
    ]  # fmt: skip
    page = Path(__file__).parents[2] / "docs/doctor.md"
    assert said.err.partition("…\n")[2] in page.read_text(encoding="utf-8")


def test_a_public_build_on_a_vendors_machine(
    python: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A label of builds for a processor does not make it a machine without a device."""
    build("bw-dtk2604-container", tmp_path).enter(monkeypatch)
    put_dist(site_of(python), "torch", "2.13.0+cpu", {"torch/__init__.py": ""})
    assert doctor(python, "--json") == 0
    found = document(capsys)
    assert found["data"]["devices"]["profile"] == "dtk"
    assert codes(found)["stack.looks-public"] == "warning"


def test_no_bash(
    python: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The vendor's script cannot be sourced: that is told, and everything else too."""
    build("bw-dtk2604-container", tmp_path).enter(monkeypatch)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert doctor(python, "--json", "--profile", "dtk") == 0
    found = document(capsys)
    assert codes(found)["stack.no-script"] == "warning"
    assert found["data"]["devices"]["devices"]
