"""The static checks on the real torch: no false alarm, and what they say is what Python does."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from envlock.adapters.elf import read_elf
from envlock.adapters.installed import read_installed
from envlock.adapters.interpreter import Named, read_target
from envlock.adapters.profiles import load_profile
from envlock.cli import main
from envlock.model.check import Status
from envlock.verify.static_ground import Scene
from envlock.verify.static_suite import STATIC
from tests.support.objects import NO_COMPILER, extension
from tests.support.pythons import clean_env, make_venv

pytestmark = [pytest.mark.torch, pytest.mark.integration]


def test_the_static_level_passes(
    torch_target: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.json"
    python = str(torch_target / "bin" / "python")
    assert main(["verify", "--level", "static", "--python", python, "--report", str(report)]) == 0
    checks = {one["id"]: one for one in json.loads(report.read_text())["checks"]}
    passed = {name for name, one in checks.items() if one["status"] == "passed"}
    assert passed >= {
        "static.labels", "static.vendor_mark", "static.ldd", "static.cxxabi", "static.pth",
    }  # fmt: skip
    assert {one["status"] for one in checks.values()} <= {"passed", "skipped"}
    judged = {case["name"].split()[0]: case for case in checks["static.ldd"]["cases"]}
    assert judged["torch"]["metrics"]["objects"] >= 10
    assert judged["triton"]["metrics"]["objects"] >= 3
    assert str(torch_target) not in report.read_text()
    capsys.readouterr()


@pytest.mark.parametrize("profile", ["dtk", "cuda"])
def test_a_build_for_processors_is_not_the_vendors(torch_target: Path, profile: str) -> None:
    scene = _scene(torch_target, profile)
    for check, words in (
        ("static.vendor_mark", "is a build for the processor alone, not for"),
        ("static.gfx", "a build for processors"),
    ):
        (case,) = [one for one in STATIC[check](scene) if one.name.startswith("torch ")]
        assert (case.status, words in case.reason) == (Status.FAILED, True), case


def _scene(prefix: Path, profile: str = "cpu") -> Scene:
    target = read_target(Named(str(prefix / "bin" / "python"), "test"), clean_env())
    return Scene(
        target=target,
        profile=load_profile(profile),
        manifest=None,
        installed=read_installed(target.layout),
        env=clean_env(),
    )


@NO_COMPILER
@pytest.mark.parametrize("whole", [True, False])
def test_an_extension_of_torch(torch_target: Path, tmp_path: Path, whole: bool) -> None:
    """It needs torch's libraries and has no path to them, as flash-attn has none."""
    python = make_venv(tmp_path / "target")
    (site,) = (tmp_path / "target").glob("lib/python*/site-packages")
    (torch_site,) = torch_target.glob("lib/python*/site-packages")
    (site / "torch.pth").write_text(f"{torch_site}\n")
    library = torch_site / "torch" / "lib" / "libc10.so"
    known = sorted(name.decode() for name in read_elf(str(library)).defined)
    calls = next(name for name in known if name.startswith("_ZN3c106detail"))
    name = calls if whole else "_ZN3c105ErrorC2EvNobodyHasThis"
    loose = "-Wl,--unresolved-symbols=ignore-all"
    extension(site, "flash_attn_2_cuda", loose, calls=name, needs=[library])

    cases = {case.name: case for case in STATIC["static.ldd"](_scene(tmp_path / "target"))}
    reasons = "; ".join(case.reason for case in cases.values())
    code = "import torch, flash_attn_2_cuda"
    env = clean_env(OMP_NUM_THREADS="1")
    done = subprocess.run([python, "-c", code], env=env, capture_output=True, text=True)
    # the module is none: a whole one gets as far as that
    assert ("undefined symbol" in done.stderr) == (not whole), done.stderr
    assert (f"undefined symbol: {name}" in reasons) == (not whole), reasons
    if whole:
        assert {case.status for case in cases.values()} == {Status.PASSED}, reasons
