"""static.ldd, static.cxxabi, static.onehip and static.gfx, each on objects that a compiler made."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from envlock.model.check import Status
from envlock.model.facts import Target
from envlock.verify.plan import Options
from envlock.verify.run import run_suite
from tests.support.objects import (
    NO_COMPILER,
    SUFFIX,
    compiled,
    cuda_container,
    extension,
    hip_bundle,
    library,
    with_section,
)
from tests.support.static_world import World

pytestmark = NO_COMPILER


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, own_target: Target) -> Path:
    """Compiled once; no path of it is in the objects."""
    folder = tmp_path_factory.mktemp("world")
    World(folder, own_target).build()
    return folder


@pytest.fixture
def world(built: Path, tmp_path: Path, own_target: Target) -> World:
    folder = tmp_path / "world"
    shutil.copytree(built, folder)
    return World(folder, own_target)


def test_a_whole_one_passes(world: World) -> None:
    with_section(world.hip, ".hip_fatbin", hip_bundle("gfx936:sramecc+:xnack-"))
    assert world.statuses() == {
        check: {Status.PASSED}
        for check in ("static.ldd", "static.cxxabi", "static.onehip", "static.gfx")
    }
    assert set(world.cases("static.ldd")) == {"torch 2.10.0", "flash-attn 2.8.3"}


def test_python_agrees(world: World) -> None:
    """What passes can be imported, in the order that static.ldd supposes."""
    opened = "; ".join(f"ctypes.CDLL({str(path)!r})" for path in (world.cpu, world.flash))
    command = [sys.executable, "-c", f"import ctypes; {opened}"]
    done = subprocess.run(command, env={**os.environ, **world.env}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# --- faults ---------------------------------------------------------------------------------


def _library_gone(world: World) -> None:
    world.c10.unlink()


def _stack_not_activated(world: World) -> None:
    world.env.clear()


def _library_only_beside(world: World) -> None:
    """It is there, but no search leads to it: the extension has no path of its own."""
    other = library(world.site / "flash_attn" / "libbeside.so", "beside")
    world.build_flash(calls="beside", needs=[other])


def _other_torch(world: World) -> None:
    """Built against another torch: a symbol that nobody has."""
    world.build_flash("-Wl,--unresolved-symbols=ignore-all", calls="_ZN3c105ErrorC2Ev")


def _library_lost_a_symbol(world: World) -> None:
    library(world.c10, "c10_other_error")


def _lazy_binding_does_not_hide_it(world: World) -> None:
    options = ("-Wl,-z,lazy", "-Wl,--unresolved-symbols=ignore-all")
    world.build_flash(*options, calls="not_anywhere")


def _short_file(world: World) -> None:
    data = world.cpu.read_bytes()
    world.cpu.write_bytes(data[: len(data) // 3])


def _damaged_header(world: World) -> None:
    data = bytearray(world.flash.read_bytes())
    data[0x20:0x28] = b"\xf0" * 8  # where the program headers are
    world.flash.write_bytes(data)


def _runpath_of_the_builder(world: World) -> None:
    """The build machine's folder instead of $ORIGIN."""
    extension(
        world.site / "torch", "_C", "-Wl,-rpath,/build/lib", calls="at_add", needs=[world.cpu]
    )


def _other_machine(world: World) -> None:
    data = bytearray(world.c10.read_bytes())
    data[18:20] = (183).to_bytes(2, "little")  # EM_AARCH64
    world.c10.write_bytes(data)


def _versioned(world: World, version: str, *, defines: str = "c10_error") -> Path:
    script = world.site.parent / "versions"
    script.write_text(f"{version} {{ global: {defines}; local: *; }};\n")
    return library(world.c10, defines, f"-Wl,--version-script={script}")


def _too_old_library(world: World) -> None:
    """Like ``libamdhip64.so: version 'hip_4.2' not found``."""
    _versioned(world, "hip_4.2")
    world.build_flash()
    _versioned(world, "hip_4.1")


def _too_new_glibc(world: World) -> None:
    data = _rebuilt_for(world, b"GLIBC_2.2.5", b"GLIBC_9.9.5")
    world.flash.write_bytes(data)


def _too_new_libstdcxx(world: World) -> None:
    fake = library(world.stack / "lib" / "libstdc++.so.6", "cxx", _script(world, "GLIBCXX_3.4.30"))
    world.build_flash(calls="cxx", needs=[fake])
    library(fake, "cxx", _script(world, "GLIBCXX_3.4.19"))


def _script(world: World, version: str) -> str:
    path = world.site.parent / f"{version}.map"
    path.write_text(f"{version} {{ global: *; }};\n")
    return f"-Wl,--version-script={path}"


def _rebuilt_for(world: World, old: bytes, new: bytes) -> bytes:
    """flash-attn that calls the C library, its wish for a version changed (text and hash)."""
    path = world.build_flash(calls="getpid", needs=[])
    data = path.read_bytes()
    assert old in data
    return data.replace(old, new).replace(_elf_hash(old), _elf_hash(new))


def _elf_hash(name: bytes) -> bytes:
    value = 0
    for byte in name:
        value = (value << 4) + byte
        value ^= (value >> 24) & 0xF0
        value &= 0x0FFFFFFF
    return value.to_bytes(4, "little")


def _other_python(world: World) -> None:
    tag = SUFFIX.split("-")[1]
    other = SUFFIX.replace(tag, "38" if tag != "38" else "39")
    world.flash.rename(world.flash.with_name(f"flash_attn_2_cuda{other}"))


def _second_runtime(world: World) -> None:
    """The vendor's runtime copied into a wheel, beside the one of the stack."""
    own = library(world.site / "flash_attn" / "lib" / "libgalaxyhip.so.5", "hipLaunch")
    rpath = "-Wl,--disable-new-dtags,-rpath,$ORIGIN/flash_attn/lib"
    world.build_flash(rpath, calls="hipLaunch", needs=[own])


def _only_the_bundled_runtime(world: World) -> None:
    own = library(world.libs / "libgalaxyhip.so.5", "hipLaunch")
    library(world.hip, "at_hip", "-Wl,--disable-new-dtags,-rpath,$ORIGIN", needs=[own])


def _wrong_architecture(world: World) -> None:
    with_section(world.hip, ".hip_fatbin", hip_bundle("gfx936"))
    with_section(world.flash, ".hip_fatbin", hip_bundle("gfx90a", "gfx942"))


def _cuda_build(world: World) -> None:
    with_section(world.hip, ".nv_fatbin", cuda_container((2, 80), (1, 90)))


def _processor_build(world: World) -> None:
    """No code for any device in torch: what an upstream wheel for processors leaves."""


def _kernels_of_the_stack(world: World) -> None:
    with_section(world.hip, ".hip_fatbin", hip_bundle("gfx936"))
    folder = world.stack / "lib" / "rocblas" / "library"
    folder.mkdir(parents=True)
    (folder / "TensileLibrary_gfx90a.dat").touch()


Break = Callable[[World], None]
LDD, ABI, HIP, GFX = "static.ldd", "static.cxxabi", "static.onehip", "static.gfx"

# fault; the check that names it; what is judged; words of the reason
FAULTS: list[tuple[Break, str, str, str]] = [
    (_library_gone, LDD, "torch 2.10.0", "needs 'libc10.so', which is not found"),
    (_stack_not_activated, LDD, "torch 2.10.0", "needs 'libgalaxyhip.so.5', which is not found"),
    (_library_only_beside, LDD, "flash-attn 2.8.3", "needs 'libbeside.so', which is not found"),
    (_other_torch, LDD, "flash-attn 2.8.3", "undefined symbol: _ZN3c105ErrorC2Ev"),
    (_library_lost_a_symbol, LDD, "flash-attn 2.8.3", "undefined symbol: c10_error"),
    (_lazy_binding_does_not_hide_it, LDD, "flash-attn 2.8.3", "undefined symbol: not_anywhere"),
    (_short_file, LDD, "torch 2.10.0", "'torch/lib/libtorch_cpu.so': file too short"),
    (_damaged_header, LDD, "flash-attn 2.8.3", "damaged"),
    (_runpath_of_the_builder, LDD, "torch 2.10.0", "needs 'libtorch_cpu.so', which is not found"),
    (_other_machine, LDD, "torch 2.10.0", "needs 'libc10.so', which is not found"),
    (_too_old_library, ABI, "flash-attn 2.8.3", "needs hip_4.2 of 'libc10.so', which has hip_4.1"),
    (_too_new_glibc, ABI, "flash-attn 2.8.3", "needs GLIBC_9.9.5 of 'libc.so.6'"),
    (_too_new_libstdcxx, ABI, "flash-attn 2.8.3", "GLIBCXX_3.4.30 of 'libstdc++.so.6', which has"),
    (_other_python, ABI, "flash-attn 2.8.3", "is for Python 3."),
    (_second_runtime, HIP, "libgalaxyhip.so", "two are loaded as 'libgalaxyhip.so.5'"),
    (_only_the_bundled_runtime, HIP, "libgalaxyhip.so", "and the stack has its own"),
    (_wrong_architecture, GFX, "flash-attn 2.8.3", "code for gfx90a, gfx942, not for gfx928, gfx9"),
    (_cuda_build, GFX, "torch 2.10.0", "has code for compute_90, sm_80"),
    (_processor_build, GFX, "torch 2.10.0", "a build for processors"),
    (_kernels_of_the_stack, GFX, "rocblas of the stack", "TensileLibrary*gfx936*' is not there"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "check", "name", "words"), FAULTS, ids=[row[0].__name__ for row in FAULTS]
)
def test_a_fault_is_named(world: World, fault: Break, check: str, name: str, words: str) -> None:
    fault(world)
    cases = world.cases(check)
    assert cases[name].status is Status.FAILED, cases
    assert words in cases[name].reason


# --- no false alarms ------------------------------------------------------------------------


def _plugin(world: World) -> None:
    """Opened by torch when it is wanted, with what torch has by then."""
    needs = [world.cpu, world.c10]
    library(world.site / "torch" / "plugins" / "libplugin.so", "plug", needs=needs)


def _weak(world: World) -> None:
    code = "int maybe(void) __attribute__((weak)); int PyInit_weak(void) { return maybe(); }"
    compiled(world.site / "torch" / f"weak{SUFFIX}", code)


def _linker_script(world: World) -> None:
    (world.libs / "libtext.so").write_text("INPUT(-lc10)\n")


def _link_with_another_name(world: World) -> None:
    (world.libs / "libc10.so.1").symlink_to("libc10.so")


def _foreign_machine_beside(world: World) -> None:
    path = library(world.site / "flash_attn" / "libother.so", "other")
    data = bytearray(path.read_bytes())
    data[18:20] = (183).to_bytes(2, "little")
    path.write_bytes(data)


def _rpath_of_the_one_who_asks(world: World) -> None:
    """DT_RPATH counts for what its libraries need as well; DT_RUNPATH does not."""
    deep = library(world.site / "deep" / "libdeep.so", "deep")
    inner = library(world.site / "deep" / "libinner.so", "inner", needs=[deep])
    rpath = "-Wl,--disable-new-dtags,-rpath,$ORIGIN/deep"
    extension(world.site, "asks", rpath, calls="inner", needs=[inner])


def _preloaded(world: World) -> None:
    path = library(world.stack / "own" / "libtrace.so", "trace")
    world.env["LD_PRELOAD"] = str(path)
    world.build_flash("-Wl,--unresolved-symbols=ignore-all", calls="trace")


@pytest.mark.parametrize(
    "change",
    [
        _plugin, _weak, _linker_script, _link_with_another_name, _foreign_machine_beside,
        _rpath_of_the_one_who_asks, _preloaded,
    ],
    ids=lambda change: change.__name__,
)  # fmt: skip
def test_what_works_is_no_fault(world: World, change: Break) -> None:
    change(world)
    with_section(world.hip, ".hip_fatbin", hip_bundle("gfx936"))
    assert world.statuses() == {check: {Status.PASSED} for check in (LDD, ABI, HIP, GFX)}


@pytest.mark.parametrize(("sourced", "code"), [(True, 0), (False, 3)])
def test_the_environment_is_the_activated_one(
    world: World, own_target: Target, sourced: bool, code: int
) -> None:
    """The script's search path counts, in a shell that has not sourced it."""
    script = f'export LD_LIBRARY_PATH="{world.stack}/lib"\n' if sourced else "true\n"
    (world.stack / "env.sh").write_text(script)
    world.record()
    options = Options(level="static", only=("static.ldd", "static.onehip", "static.labels"))
    env = {"PATH": os.environ["PATH"]}
    outcome = run_suite(world.target, None, world.profile, options, env=env)
    assert outcome.code == code, outcome.said
    results = {result.id: result for result in outcome.results}
    assert results["static.ldd"].required
    assert results["static.labels"].status is Status.PASSED
    # nothing can need what cannot be found
    assert results["static.onehip"].required is sourced


def test_runpath_does_not_count_for_what_its_libraries_need(world: World) -> None:
    deep = library(world.site / "deep" / "libdeep.so", "deep")
    inner = library(world.site / "deep" / "libinner.so", "inner", needs=[deep])
    rpath = "-Wl,--enable-new-dtags,-rpath,$ORIGIN/deep"
    extension(world.site, "asks", rpath, calls="inner", needs=[inner])
    (case,) = [c for name, c in world.cases(LDD).items() if name == "(no distribution)"]
    assert case.reason == "'deep/libinner.so' needs 'libdeep.so', which is not found"


def test_only_torch_has_it(world: World) -> None:
    """Not linked, but some set RTLD_GLOBAL: a warning."""
    world.build_flash("-Wl,--unresolved-symbols=ignore-all", calls="at_add", needs=[])
    case = world.cases(LDD)["flash-attn 2.8.3"]
    assert (case.status, "only torch has it" in case.reason) == (Status.WARNED, True)


def test_a_driver_is_not_missed_without_one(world: World) -> None:
    driver = library(world.stack / "gone" / "libdriver.so.1", "driver")
    world.build_flash(calls="driver", needs=[driver])
    shutil.rmtree(driver.parent)
    case = world.cases(LDD)["flash-attn 2.8.3"]
    assert (case.status, "'libdriver.so.1'" in case.reason) == (Status.WARNED, True)


def test_a_plugin_for_other_hardware_is_a_note(world: World) -> None:
    other = library(world.stack / "gone" / "libinfiniband.so", "verbs")
    library(world.site / "torch" / "libtransport.so", "send", needs=[other])
    other.unlink()
    case = world.cases(LDD)["torch 2.10.0"]
    (note,) = case.metrics["unusable"]
    assert (case.status, "needs 'libinfiniband.so'" in note) == (Status.PASSED, True)


def test_a_plugin_without_the_vendors_runtime_is_a_warning(world: World) -> None:
    """Like a library that is opened with ctypes."""
    other = library(world.stack / "gone" / "libgalaxyhip.so.4", "old")
    library(world.site / "flash_attn" / "libopened.so", "opened", needs=[other])
    other.unlink()
    case = world.cases(LDD)["flash-attn 2.8.3"]
    assert (case.status, "needs 'libgalaxyhip.so.4'" in case.reason) == (Status.WARNED, True)


def test_a_plugin_without_its_own_library_is_a_warning(world: World) -> None:
    other = library(world.site / "flash_attn" / "deep" / "libdeep.so", "deep")
    library(world.site / "triton" / "libopened.so", "opened", needs=[other])
    (case,) = [c for name, c in world.cases(LDD).items() if name == "(no distribution)"]
    assert (case.status, "needs 'libdeep.so'" in case.reason) == (Status.WARNED, True)


@pytest.mark.parametrize(
    ("change", "status"),
    [(_only_the_bundled_runtime, Status.PASSED), (_second_runtime, Status.WARNED)],
)
def test_a_bundled_runtime_is_normal_without_a_stack(
    world: World, change: Break, status: Status
) -> None:
    """Wheels of an index bring the runtime with them, whatever else is on the machine."""
    world.profile = replace(world.profile, env_script="")
    change(world)
    assert world.cases(HIP)["libgalaxyhip.so"].status is status


def test_what_is_not_the_vendors_is_a_warning(world: World) -> None:
    with_section(world.hip, ".hip_fatbin", hip_bundle("gfx936"))
    other = library(world.site / "other" / "libother.so", "other")
    with_section(other, ".hip_fatbin", hip_bundle("gfx90a"))
    assert world.cases(GFX)["(no distribution)"].status is Status.WARNED


def test_an_object_for_each_kind_of_device(world: World) -> None:
    with_section(world.hip, ".hip_fatbin", hip_bundle("gfx936"))
    with_section(world.cpu, ".hip_fatbin", hip_bundle("gfx90a"))
    case = world.cases(GFX)["torch 2.10.0"]
    assert case.status is Status.PASSED
    assert case.metrics["others"] == [
        "'torch/lib/libtorch_cpu.so' has code for gfx90a, not for gfx928, gfx936"
    ]
