"""What is said of a stack, and of a shell."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.adapters.profiles import load_profile
from envlock.model.hardware import Silence
from envlock.model.runtime import Runtime, numbers
from envlock.model.stack import (
    Named,
    Shell,
    StackFacts,
    compiler_version,
    hip_version,
    newest,
)

DCC = """\
dcc version: 25.10.0-0
clang version 17.0.0
Target: x86_64-unknown-linux-gnu
InstalledDir: /opt/dtk/llvm/bin
"""
NVCC = """\
nvcc: NVIDIA (R) Cuda compiler driver
Cuda compilation tools, release 13.0, V13.0.88
"""


@pytest.mark.parametrize(
    ("text", "hip", "compiler"),
    [
        ("6.2.0-0\n", "6.2.0-0", ""),
        (DCC, "", "dcc 25.10.0-0, clang 17.0.0"),
        ("HIP version: 6.4.43483-a187df25c\nclang version 19.0.0git\n", "6.4.43483-a187df25c",
         "clang 19.0.0git"),
        (NVCC, "", "nvcc 13.0.88"),
        ("hipcc: command not found\n", "", ""),
        ("", "", ""),
    ],
)  # fmt: skip
def test_what_compilers_say(text: str, hip: str, compiler: str) -> None:
    assert (hip_version(text), compiler_version(text)) == (hip, compiler)


@pytest.mark.parametrize(
    ("release", "oldest"),
    [
        ("26.04", "6.3.30"),
        ("DTK-26.04-DCC2602-0317", "6.3.30"),
        ("dtk-26.04-rc4", "6.3.30"),
        ("25.04.4", "6.3.8"),
        ("24.04", ""),
        ("2604", ""),
        ("", ""),
    ],
)
def test_the_oldest_driver(release: str, oldest: str) -> None:
    assert load_profile("dtk").runtime.oldest_driver(release) == oldest


def test_the_longest_entry_counts() -> None:
    runtime = Runtime(drivers={"25": "1", "25.04": "2", "25.04.2": "3"})
    found = [runtime.oldest_driver(release) for release in ("25.10", "25.04", "25.04.2")]
    assert found == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("6.3.8", "6.3.30-V1.4.1a"),
        ("6.3.29-V1.4.0b", "6.3.30"),
        ("6.3.13-v1.12.0a", "6.3.27-V1.2.5"),
        ("525.60.13", "580"),
    ],
)
def test_drivers_are_compared_by_number(older: str, newer: str) -> None:
    assert numbers(older) < numbers(newer)


@given(st.text(max_size=50) | st.sampled_from(["9" * 5000, "6.\N{SUPERSCRIPT TWO}", "."]))
def test_whatever_is_called_a_version(text: str) -> None:
    assert all(isinstance(part, int) for part in numbers(text))
    hip_version(text)
    compiler_version(text)
    replace(SOUND, driver=text, releases={"a": text, "b": "26.04"}).findings()


def test_modules_the_newest_last() -> None:
    names = ["compiler/dtk/25.04.4", "compiler/dtk/24.04", "compiler/dtk/25.04.10"]
    assert newest(names)[-1] == "compiler/dtk/25.04.10"


SLEEPING = Shell(script="/opt/dtk/env.sh", there=True, works=True, active=False)
SOUND = StackFacts(
    profile=load_profile("dtk"),
    root="/opt/dtk",
    target="dtk-26.04",
    releases={".info/rocm_version": "26.04", "": "dtk-26.04"},
    driver="6.3.31-V1.5.0a",
    shell=replace(SLEEPING, active=True),
)


@pytest.mark.parametrize(
    ("values", "code", "line"),
    [
        ({}, "", ""),
        ({"root": "", "target": "", "releases": {}}, "stack.missing", ""),
        (
            {"root": "", "target": "", "releases": {}, "shell": Shell(active=False,
             available=("dtk/24.04", "dtk/25.04"))},
            "stack.not-loaded", "module load dtk/25.04",
        ),
        ({"shell": SLEEPING}, "stack.not-activated", "source /opt/dtk/env.sh"),
        ({"shell": replace(SLEEPING, works=False)}, "stack.no-script", ""),
        ({"shell": replace(SLEEPING, works=False, there=False)}, "stack.no-script", ""),
        ({"variables": (Named(variable="ROCM_PATH", value="/x", there=False, same=False),)},
         "stack.variable-gone", ""),
        ({"variables": (Named(variable="ROCM_PATH", value="/x", same=False),)},
         "stack.variables-differ", ""),
        ({"variables": (Named(variable="ROCM_PATH", value="/opt/dtk-26.04", link="/opt/dtk"),)},
         "stack.unlinked", ""),
        ({"variables": (Named(variable="ROCM_PATH", value="/opt/dtk"),)}, "", ""),
        ({"releases": {".dtk_version": "DTK-26.04-rc4", ".info/version": "26.04.1"}}, "", ""),
        ({"releases": {".dtk_version": "DTK-26.04", ".info/version": "25.04"}},
         "stack.versions-differ", ""),
        ({"lacking": ("/opt/hyhal",)}, "stack.no-companion", ""),
        ({"driver": "6.3.29-V1.4.0b"}, "driver.too-old", ""),
        ({"driver": ""}, "", ""),
        ({"silent": (Silence(program="/opt/dtk/bin/hipcc", hung=True),)}, "tool.hangs", ""),
    ],
)  # fmt: skip
def test_findings(values: dict[str, Any], code: str, line: str) -> None:
    stack = replace(SOUND, **values)
    assert [one.code for one in stack.findings()] == ([code] if code else [])
    assert stack.line == line


def test_facts() -> None:
    assert dict(SOUND.facts()) == {
        "stack": "Hygon DCU (DTK)",
        "stack root": "/opt/dtk -> dtk-26.04",
        "stack release": "26.04",
        "stack driver": "6.3.31-V1.5.0a (needs 6.3.30 or newer)",
        "this shell": "activated",
    }
    sleeping = dict(replace(SOUND, shell=SLEEPING).facts())
    assert sleeping["this shell"] == "not activated; type: source /opt/dtk/env.sh"


def test_a_stack_without_a_script_is_always_active() -> None:
    bare = StackFacts(profile=load_profile("cuda"))
    assert (bare.active, bare.line, bare.findings()) == (True, "", ())
