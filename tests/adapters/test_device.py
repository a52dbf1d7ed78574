"""Tools that tell of devices: found, asked, sampled; every one of them a script on a PATH."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from envlock.adapters.device import (
    Sampler,
    Tool,
    find_tool,
    summary,
    wait_until_idle,
)
from envlock.model.check import SAMPLES
from envlock.model.devices import Reading
from envlock.model.profile import Profile

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the tools are shell scripts")

DTK = Profile(name="dtk", title="", labels=(), names=(), tools=("hy-smi", "rocm-smi"))
CARD = '{"card0": {"HCU use (%)": "3.0", "Average Graphics Package Power (W)": "79.0"}}'


def _put(folder: Path, name: str, body: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def _env(folder: Path) -> dict[str, str]:
    return {"PATH": f"{folder}:/usr/bin:/bin"}


def test_the_first_tool_that_is_there(tmp_path: Path) -> None:
    assert find_tool(DTK, _env(tmp_path)) is None
    rocm = _put(tmp_path / "dtk", "rocm-smi", "")
    profile = Profile(
        name="dtk", title="", labels=(), names=(), tools=DTK.tools,
        tool_folders=(str(tmp_path / "hyhal"), str(tmp_path / "dtk")),
    )  # fmt: skip
    found = find_tool(profile, _env(tmp_path / "empty"))
    assert found is not None
    assert found.path == str(rocm)
    hy = _put(tmp_path / "hyhal", "hy-smi", "")
    found = find_tool(profile, {})
    assert found is not None
    assert found.path == str(hy)


def test_a_tool_that_knows_fewer_words_is_asked_with_fewer(tmp_path: Path) -> None:
    log = tmp_path / "log"
    body = f'echo "$*" >> {log}; case "$*" in *clocks*) echo "unknown flag"; exit 2;; esac\n'
    path = _put(tmp_path, "hy-smi", body + f"echo 'Warning: x'; echo '{CARD}'")
    tool = Tool(path=str(path), env=_env(tmp_path))
    assert tool.readings() == (Reading(index=0, power_w=79.0, use_percent=3.0),)
    assert len(log.read_text().splitlines()) == 3
    tool.readings()
    assert len(log.read_text().splitlines()) == 4  # what it does not know is not asked again


def test_a_table_does_where_there_is_no_json(tmp_path: Path) -> None:
    body = '[ $# = 0 ] || exit 1; echo "DCU Temp AvgPwr DCU%"; echo "0 44.0c 20.0W 1%"'
    tool = Tool(path=str(_put(tmp_path, "rocm-smi", body)), env=_env(tmp_path))
    assert tool.readings() == (Reading(index=0, power_w=20.0, temperature_c=44.0, use_percent=1.0),)


@pytest.mark.parametrize("body", ["exit 3", "echo nonsense", "exec false"])
def test_a_tool_that_says_nothing(tmp_path: Path, body: str) -> None:
    for name in ("hy-smi", "nvidia-smi"):
        tool = Tool(path=str(_put(tmp_path, name, body)), env=_env(tmp_path))
        assert tool.readings() == ()
    assert Tool(path=str(tmp_path / "gone"), env={}).readings() == ()


def _uses(*values: float | None) -> Iterator[Reading | None]:
    for value in itertools.chain(values, itertools.repeat(values[-1])):
        yield Reading(index=0, use_percent=value)


@pytest.mark.parametrize(
    ("uses", "busy"),
    [
        ((0.0, 0.0), None),
        ((90.0, 0.0, 0.0), None),  # what ran before
        ((0.0, 60.0, 1.0), None),  # one reading flutters
        ((100.0,), 100.0),
        ((None,), None),  # nobody knows
    ],
)
def test_waiting_for_an_idle_device(uses: tuple[float | None, ...], busy: float | None) -> None:
    values = _uses(*uses)
    assert wait_until_idle(lambda: next(values), seconds=0.05, pause=0.001) == busy


def test_samples_are_lists_of_one_length() -> None:
    readings = (
        Reading(index=0, power_w=float(n), clock_mhz=1500.0, use_percent=None)
        for n in itertools.count()
    )
    with Sampler(read=lambda: next(readings), interval=0.001) as sampler:
        while len(sampler.samples()["seconds"]) < 5:
            pass
    columns = sampler.samples()
    assert set(columns) == set(SAMPLES)
    assert {len(values) for values in columns.values()} == {len(columns["seconds"])}
    assert columns["power_w"][:5] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert columns["seconds"] == sorted(columns["seconds"], key=lambda at: at or 0.0)
    cost = sampler.cost()
    assert cost["times"] >= 5
    assert cost["seconds_median"] is not None


def test_a_tool_that_answers_nothing_gives_no_samples() -> None:
    with Sampler(read=lambda: None, interval=0.001) as sampler:
        while sampler.cost()["times"] < 2:
            pass
    assert sampler.samples() == {name: [] for name in SAMPLES}


def test_the_steady_state_is_the_second_half() -> None:
    columns: Mapping[str, list[float | None]] = {
        "seconds": [0, 1, 2, 3],
        "power_w": [70.0, 200.0, 300.0, 310.0],
        "clock_mhz": [1500.0, None, None, None],
        "use_percent": [None] * 4,
    }
    assert summary(columns) == {
        "power_w": {"least": 70.0, "median": 250.0, "most": 310.0, "steady": 305.0},
        "clock_mhz": {"least": 1500.0, "median": 1500.0, "most": 1500.0, "steady": 1500.0},
    }
