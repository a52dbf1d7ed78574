"""dev.nodes and dev.visible: what can be said before anything is imported."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from envlock.adapters.profiles import load_profile
from tests.support.asking import Asked, reason, statuses

DTK: dict[str, Any] = {
    **asdict(load_profile("dtk").runtime),
    "architectures": list(load_profile("dtk").architectures),
    "tools": ["hy-smi", "rocm-smi"],
}


# --- nodes ----------------------------------------------------------------------------------


def _nodes(folder: Path) -> dict[str, Any]:
    for name in ("kfd", "mkfd", "renderD128", "renderD129"):
        (folder / name).touch()
    return {
        "nodes": [f"{folder}/kfd", f"{folder}/renderD*"],
        "optional_nodes": [f"{folder}/mkfd"],
    }


def _socket(path: Path) -> None:
    """A node that is there and cannot be opened."""
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.path.relpath(path))


def test_nodes_that_may_be_opened(asked: Asked, tmp_path: Path) -> None:
    found = asked.ask("dev_nodes", _nodes(tmp_path))
    assert set(statuses(found).values()) == {"passed"}
    assert len(found["cases"]) == 3


def test_one_of_several_cards_is_enough(
    asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = _nodes(tmp_path)
    _socket(tmp_path / "renderD128")
    found = asked.ask("dev_nodes", given)
    assert set(statuses(found).values()) == {"passed"}
    assert list(found["cases"][1]["metrics"]["refused"]) == [f"{tmp_path}/renderD128"]


@pytest.mark.parametrize("expected", [False, True])
def test_no_node_at_all(asked: Asked, tmp_path: Path, expected: bool) -> None:
    """No device, where nobody knows of one; a failure where one is known to be there."""
    given = {"nodes": [f"{tmp_path}/kfd|{tmp_path}/dxg"]}
    found = asked.ask("dev_nodes", given, expected=expected)
    assert list(statuses(found).values()) == ["failed" if expected else "skipped"]
    assert "ENOENT: there is no" in reason(found)


def test_half_of_the_nodes_is_a_failure(asked: Asked, tmp_path: Path) -> None:
    given = _nodes(tmp_path)
    (tmp_path / "kfd").unlink()
    (tmp_path / "mkfd").unlink()
    assert list(statuses(asked.ask("dev_nodes", given)).values()) == ["failed", "passed", "warned"]


def test_a_node_that_cannot_be_opened(
    asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = _nodes(tmp_path)
    _socket(tmp_path / "kfd")
    found = asked.ask("dev_nodes", given)
    assert list(statuses(found).values()) == ["failed", "passed", "passed"]
    assert "kfd: ENXIO: " in reason(found)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PermissionError(13, "Permission denied"), "EACCES: no permission; it belongs to group"),
        (PermissionError(1, "Operation not permitted"), "EPERM: the container may not use it"),
        (OSError(19, "No such device"), "ENODEV: No such device"),
    ],
)
def test_why_a_node_cannot_be_opened(
    load: Callable[[str], ModuleType],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: OSError,
    words: str,
) -> None:
    nodes = load("dev_nodes")

    def refuse(path: str, flags: int) -> int:
        raise error

    monkeypatch.setattr(nodes.os, "open", refuse)
    assert nodes.opened(str(tmp_path)).startswith(words)


# --- variables ------------------------------------------------------------------------------

# variables; number of devices; words of the problem, empty when there is none
CHOICES = [
    ({}, 1, ""),
    ({"CUDA_VISIBLE_DEVICES": "0"}, 1, ""),
    ({"HIP_VISIBLE_DEVICES": "1,0"}, 2, ""),
    ({"HIP_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "0"}, 2, ""),
    ({"ROCR_VISIBLE_DEVICES": "3", "HIP_VISIBLE_DEVICES": "0"}, 4, ""),
    ({"CUDA_VISIBLE_DEVICES": "GPU-8f2a,GPU-91bc"}, 2, ""),
    ({"CUDA_VISIBLE_DEVICES": "MIG-5c3a"}, 1, ""),
    ({"CUDA_VISIBLE_DEVICES": "7"}, 0, ""),  # nobody says how many there are
    ({"CUDA_VISIBLE_DEVICES": ""}, 1, "hides every device"),
    ({"CUDA_VISIBLE_DEVICES": "-1"}, 1, "hides every device"),
    ({"HIP_VISIBLE_DEVICES": "NoDevFiles"}, 1, "hides every device"),
    ({"CUDA_VISIBLE_DEVICES": "0,-1,1"}, 2, "what follows '0' is ignored"),
    ({"CUDA_VISIBLE_DEVICES": "0 1"}, 2, "hides every device"),
    ({"CUDA_VISIBLE_DEVICES": "0,0"}, 2, "names a device twice"),
    ({"CUDA_VISIBLE_DEVICES": "0,4"}, 4, "there are 4 devices: 4 is none"),
    ({"HIP_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "1"}, 2, "differ: libraries read one"),
    ({"ROCR_VISIBLE_DEVICES": "3", "HIP_VISIBLE_DEVICES": "3"}, 4,
     "counts inside ROCR_VISIBLE_DEVICES='3', which leaves 1"),
    ({"HCU_VISIBLE_DEVICES": "0", "HIP_VISIBLE_DEVICES": "1"}, 2, "differ: libraries read one"),
    ({"ROCR_VISIBLE_DEVICES": "9"}, 8, "there are 8 devices: 9 is none"),
]  # fmt: skip


@pytest.mark.parametrize(("variables", "count", "words"), CHOICES)
def test_variables_that_choose_devices(
    load: Callable[[str], ModuleType],
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    count: int,
    words: str,
) -> None:
    visible = load("dev_visible")
    monkeypatch.setattr(visible, "devices", lambda kind: count)
    given = {**DTK, "variables": variables}
    context = sys.modules["harness"].Context({"device": "cuda", "given": given})
    cases = list(visible.check(context))
    failed = [case for case in cases if case["status"] == "failed"]
    assert bool(failed) == bool(words), cases
    assert all(words in case["reason"] for case in failed)


def test_devices_as_the_driver_counts_them(
    load: Callable[[str], ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visible = load("dev_visible")
    for name, text in (("0", "0\n"), ("1", "34430\n"), ("2", "11302\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "gpu_id").write_text(text)
    monkeypatch.setitem(visible._LISTS, "hip", f"{tmp_path}/*/gpu_id")
    assert (visible.devices("hip"), visible.devices("")) == (2, 0)


@pytest.mark.parametrize("check", ["dev_nodes", "dev_visible", "dev_versions", "dev_enum"])
def test_a_processor_is_asked_nothing(asked: Asked, check: str) -> None:
    assert statuses(asked.ask(check, DTK, "cpu")) == {"skip": "no device is asked for"}
