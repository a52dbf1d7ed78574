"""imp.order: several modules in one process, and two runtimes in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.asking import Asked, reason, statuses
from tests.support.objects import NO_COMPILER, library

GIVEN = {"libraries": ["libgalaxyhip.so"], "env_script": "env.sh"}
MODULES = {"modules": ["torch", "triton", "flash_attn"]}
_OPENS = "import ctypes; ctypes.CDLL({!r})\n"


@pytest.fixture
def runtime(tmp_path: Path) -> Path:
    return library(tmp_path / "stack" / "libgalaxyhip.so.5", "hipLaunch")


@NO_COMPILER
def test_one_runtime(asked: Asked, runtime: Path) -> None:
    for name in MODULES["modules"]:
        asked.module(name, _OPENS.format(str(runtime)))
    found = asked.ask("imports_together", GIVEN, arguments=MODULES)
    assert set(statuses(found).values()) == {"passed"}
    assert found["cases"][-1]["metrics"]["libraries"] == {"libgalaxyhip.so": [str(runtime)]}
    assert len(found["cases"]) == 4


@NO_COMPILER
def test_two_runtimes(asked: Asked, runtime: Path, tmp_path: Path) -> None:
    """A path does not help: the second file has another name inside."""
    other = library(tmp_path / "wheel" / "libgalaxyhip.so.4", "hipLaunch")
    asked.module("torch", _OPENS.format(str(runtime)))
    asked.module("flash_attn", _OPENS.format(str(other)))
    found = asked.ask("imports_together", GIVEN, arguments=MODULES)
    assert statuses(found)["one runtime"] == "failed"
    assert f"{runtime}" in reason(found) and f"{other}" in reason(found)
    # wheels of an index bring their own, each: nobody made them for one stack
    found = asked.ask("imports_together", {**GIVEN, "env_script": ""}, arguments=MODULES)
    assert statuses(found)["one runtime"] == "warned"


def test_a_module_that_fails_after_another(asked: Asked) -> None:
    asked.module("torch", "import sys; sys.modules['taken'] = sys\n")
    asked.module(
        "flash_attn", "import sys\nif 'taken' in sys.modules: raise ImportError('taken')\n"
    )
    found = statuses(asked.ask("imports_together", GIVEN, arguments=MODULES))
    assert found == {
        "import torch": "passed",
        "import flash_attn": "failed",
        "one runtime": "passed",
    }
    turned = {"modules": ["flash_attn", "torch"]}
    found = statuses(asked.ask("imports_together", GIVEN, arguments=turned))
    assert set(found.values()) == {"passed"}


def test_without_a_runtime_there_is_nothing_to_compare(asked: Asked) -> None:
    asked.module("torch", "")
    asked.module("triton", "")
    found = statuses(asked.ask("imports_together", {}, arguments=MODULES))
    assert found["one runtime"] == "skipped"


def test_one_module_has_no_order(asked: Asked) -> None:
    asked.module("torch", "")
    found = asked.ask("imports_together", GIVEN, arguments={"modules": ["torch", "nobody_has_it"]})
    assert "skip" in statuses(found), json.dumps(found)
