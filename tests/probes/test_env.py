"""env.* and static.triton_target: each fault is named by its check, and a plain machine by none."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.support.asking import Asked, reason, statuses
from tests.support.pythons import clean_env

# --- variables ------------------------------------------------------------------------------

# variable, value, status, words
VARIABLES = [
    ("HSA_OVERRIDE_GFX_VERSION", "9.4.2", "failed", "kernels for another architecture"),
    ("TRITON_INTERPRET", "1", "failed", "run on the processor"),
    ("TRITON_INTERPRET", "0", "passed", ""),
    ("CUDA_LAUNCH_BLOCKING", "1", "warned", "every launch waits"),
    ("HIP_LAUNCH_BLOCKING", "true", "warned", "every launch waits"),
    ("AMD_SERIALIZE_KERNEL", "3", "warned", "one after the other"),
    ("TORCH_USE_HIP_DSA", "1", "warned", "check themselves"),
    ("PYTORCH_NO_CUDA_MEMORY_CACHING", "1", "warned", "asked of the driver"),
    ("TORCHDYNAMO_DISABLE", "1", "warned", "does nothing"),
    ("PYTORCH_TUNABLEOP_ENABLED", "1", "warned", "earlier measurements"),
    ("NVIDIA_TF32_OVERRIDE", "0", "warned", "not torch's choice"),
    ("PYTHONHOME", "/opt/python", "warned", "its own library"),
    ("LD_PRELOAD", "/nowhere/libx.so", "warned", "/nowhere/libx.so is not there"),
    ("LD_PRELOAD", "libjemalloc.so.2", "warned", "is loaded into every process"),
    ("PYTHONPATH", "/nowhere:", "warned", "/nowhere is not there"),
    ("PYTHONPATH", "/usr", "passed", ""),
    ("OMP_NUM_THREADS", "1", "", ""),
]


@pytest.mark.parametrize(("name", "value", "status", "words"), VARIABLES)
def test_variables(asked: Asked, name: str, value: str, status: str, words: str) -> None:
    found = asked.ask("env_vars", {"variables": {name: value}})
    others = {"looked for": "passed"}
    assert statuses(found) == ({name: status, **others} if status else others)
    assert words in reason(found)


# --- the vendor's script --------------------------------------------------------------------


def _stack(folder: Path) -> dict[str, Any]:
    """A stack behind a link, with the libraries of a real one."""
    real = folder / "dtk-26.04"
    for place in ("hip/lib/libgalaxyhip.so.5", "lib/librccl.so.1", "dcc/lib/libomp.so"):
        (real / place).parent.mkdir(parents=True, exist_ok=True)
        (real / place).touch()
    root = folder / "dtk"
    root.symlink_to(real)
    libraries = ":".join(f"{root}/{one}/lib" for one in ("hip", "dcc", ".")).replace("/./", "/")
    return {
        "env_script": "env.sh",
        "root": str(root),
        "libraries": ["libgalaxyhip.so", "librccl.so", "libMIOpen.so"],
        "variables": {"LD_LIBRARY_PATH": libraries, "ROCM_PATH": str(root), "DTKROOT": str(root)},
    }


def test_an_active_stack(asked: Asked, tmp_path: Path) -> None:
    found = statuses(asked.ask("env_dtk", _stack(tmp_path)))
    assert found == {"libraries": "passed", "root": "passed", "search path": "passed"}


@pytest.mark.parametrize(
    ("name", "value", "case", "words"),
    [
        ("LD_LIBRARY_PATH", "{root}/hip/lib:{root}/lib", "libraries", "dcc/lib/libomp.so"),
        ("LD_LIBRARY_PATH", "{root}/dcc/lib:{root}/lib", "libraries", "hip/lib/libgalaxyhip.so"),
        ("LD_LIBRARY_PATH", "", "libraries", "lib/librccl.so"),
        ("ROCM_PATH", "{root}-26.04", "root", "names the folder itself, not the link"),
        ("ROCM_PATH", "/nowhere", "root", "'/nowhere' is not there"),
        ("DTK_HOME", "/usr", "root", "is another stack than"),
    ],
)
def test_a_stack_that_is_half_active(
    asked: Asked, tmp_path: Path, name: str, value: str, case: str, words: str
) -> None:
    given = _stack(tmp_path)
    given["variables"][name] = value.format(root=given["root"])
    found = asked.ask("env_dtk", given)
    assert statuses(found)[case] == "warned"
    assert words in reason(found)


@pytest.mark.parametrize("given", [{}, {"env_script": "env.sh", "root": ""}])
def test_no_stack(asked: Asked, given: Mapping[str, str]) -> None:
    assert "skip" in statuses(asked.ask("env_dtk", given))


# --- limits ---------------------------------------------------------------------------------

_GIB = 1024**3


_MANY = "100000"

# what envlock tells, MAX_JOBS, words of the warning of each case
LIMITS: list[tuple[Mapping[str, float], str, tuple[str, str]]] = [
    ({}, "1", ("", "")),
    ({"cpus": 0.5, "memory": 4 * _GIB, "host_memory": 503 * _GIB}, "1", ("", "4.0 GiB may be")),
    ({"cpus": 0.5, "memory": 64 * _GIB, "host_memory": 503 * _GIB}, _MANY, ("and 1 proc", "")),
    ({"cpus": 2, "memory": 4 * _GIB, "host_memory": 4 * _GIB}, "1", ("", "")),  # a small machine
]


@pytest.mark.parametrize(("limits", "jobs", "words"), LIMITS)
def test_limits(
    asked: Asked, limits: Mapping[str, float], jobs: str, words: tuple[str, str]
) -> None:
    given = {"limits": limits, "variables": {"MAX_JOBS": jobs}}
    cases = asked.ask("env_cgroup", given)["cases"]
    found = {case["name"]: case for case in cases}
    for name, said in zip(("processors", "memory"), words, strict=True):
        assert found[name]["status"] == ("warned" if said else "passed")
        assert said in found[name]["reason"]
    assert found["processors"]["metrics"]["quota"] == limits.get("cpus")


@pytest.mark.parametrize(
    ("function", "arguments", "words"),
    [
        ("threads", (2.0, {"OMP_NUM_THREADS": "128"}), "OMP_NUM_THREADS=128, and"),
        ("threads", (0.5, {"MAX_JOBS": "64"}), "MAX_JOBS=64, and 1 processors may be used"),
        ("room", (4 * 1024**3,), "4.0 GiB may be used; large checks need 12"),
        ("resources", (100,), "100 processes (pids.max)"),
    ],
)
def test_limits_that_are_too_small(
    load: Callable[[str], ModuleType], function: str, arguments: tuple[Any, ...], words: str
) -> None:
    assert words in getattr(load("env_cgroup"), function)(*arguments)["warning"]


def test_a_plain_machine_has_no_warning(load: Callable[[str], ModuleType]) -> None:
    limits = load("env_cgroup")
    found = [limits.threads(None, {"OMP_NUM_THREADS": "1"}), limits.room(None), limits.room(2**40)]
    assert not any("warning" in metrics for metrics in found)


# --- shared memory and caches ---------------------------------------------------------------


def test_shared_memory(load: Callable[[str], ModuleType], tmp_path: Path) -> None:
    shm = load("env_shm")
    assert "warning" not in shm.shared(str(tmp_path), least=1)
    assert "MiB, " in shm.shared(str(tmp_path), least=2**60)["warning"]
    assert shm.shared(str(tmp_path / "none"))["warning"].startswith("there is no")


@pytest.mark.parametrize(
    ("mount", "words"),
    [
        ("overlay {0} overlay rw,relatime 0 0", ""),
        ("server:/home {0} nfs4 rw 0 0", "is on nfs4: others may write the same files"),
        ("disk {0} lustre rw 0 0", "is on lustre"),
        ("tmpfs {0} tmpfs rw,nosuid,noexec 0 0", "is mounted noexec"),
        ("server:/x / nfs rw 0 0\noverlay {0} overlay rw 0 0", ""),
        ("overlay {0} overlay rw 0 0\nserver:/x {0}-other nfs rw 0 0", ""),
    ],
)
def test_folders_for_caches(
    load: Callable[[str], ModuleType], tmp_path: Path, mount: str, words: str
) -> None:
    shm = load("env_shm")
    mounts = tmp_path / "mounts"
    folder = tmp_path / "cache"
    folder.mkdir()
    mounts.write_text(mount.format(folder) + "\n")
    found = shm.cache(str(folder / "to" / "come"), str(mounts), least=1)
    assert words in found.get("warning", "")
    assert bool(found.get("warning")) == bool(words)


def test_a_cache_without_room_or_without_rights(
    load: Callable[[str], ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shm = load("env_shm")
    assert "MiB left" in shm.cache(str(tmp_path), least=2**60)["warning"]

    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(shm.tempfile, "NamedTemporaryFile", refuse)
    assert "cannot be written: Permission denied" in shm.cache(str(tmp_path), least=1)["warning"]


# --- Triton's compiler ----------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.integration
@pytest.mark.parametrize(
    ("target", "status"),
    [
        (["hip", "gfx942", "64"], "passed"),
        (["cuda", "90", "32"], "passed"),
        # the triton of the index does not know this one: it tells the vendor's from a foreign one
        (["hip", "gfx936", "64"], "failed"),
        (["hip", "gfx942", "32"], "failed"),
    ],
)
def test_triton_compiles_for_a_device_that_is_not_here(
    asked: Asked,
    torch_target: Path,
    monkeypatch: pytest.MonkeyPatch,
    target: list[str],
    status: str,
) -> None:
    asked.env = clean_env(TRITON_CACHE_DIR=str(asked.folder / "cache"))
    monkeypatch.setattr(sys, "executable", str(torch_target / "bin" / "python"))
    found = asked.ask("static_triton", {"triton": target})
    assert statuses(found) == {"add": status, "dot": status}


@pytest.mark.torch
@pytest.mark.integration
def test_a_labelled_triton_is_warned_about(
    asked: Asked, torch_target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has shown every vendor's build to compile without a device."""
    (site,) = torch_target.glob("lib/python*/site-packages")
    (info,) = site.glob("triton-*.dist-info")
    shutil.copytree(info, asked.modules / "triton-3.4.0+git1ef59765.dist-info")
    metadata = asked.modules / "triton-3.4.0+git1ef59765.dist-info" / "METADATA"
    metadata.write_text("Metadata-Version: 2.1\nName: triton\nVersion: 3.4.0+git1ef59765\n")
    asked.env = clean_env(
        TRITON_CACHE_DIR=str(asked.folder / "cache"), PYTHONPATH=str(asked.modules)
    )
    monkeypatch.setattr(sys, "executable", str(torch_target / "bin" / "python"))
    found = asked.ask("static_triton", {"triton": ["hip", "gfx936", "64"]})
    assert statuses(found) == {"add": "warned", "dot": "warned"}


def test_no_triton_target(asked: Asked) -> None:
    assert "skip" in statuses(asked.ask("static_triton", {}))


def test_a_triton_that_cannot_be_imported(asked: Asked) -> None:
    asked.module("triton", "raise ImportError('libtriton.so: undefined symbol')")
    found = asked.ask("static_triton", {"triton": ["hip", "gfx936", "64"]})
    assert statuses(found) == {"prepare": "failed"}
    assert "undefined symbol" in reason(found)
