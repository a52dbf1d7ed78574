"""The vendor's tool that tells of devices: asked while a check runs."""

from __future__ import annotations

import os
import shutil
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from envlock.adapters import process
from envlock.errors import ProgramFailed
from envlock.model import devices
from envlock.model.check import SAMPLES
from envlock.model.devices import Reading
from envlock.model.profile import Profile

_SECONDS = 10.0
_GRACE = 2.0
_NVIDIA = "nvidia-smi"
_NVIDIA_QUERY = (
    f"--query-gpu={','.join(devices.NVIDIA_COLUMNS)}",
    "--format=csv,noheader,nounits",
)
# the flag for clocks has another name in every tool, and the oldest tools have no JSON: from the
# fullest answer to the plainest
_SMI_QUERIES = (
    ("--showpower", "--showtemp", "--showuse", "--showhcuclocks", "--json"),
    ("--showpower", "--showtemp", "--showuse", "--showclocks", "--json"),
    ("--showpower", "--showtemp", "--showuse", "--json"),
    (),
)


@dataclass(slots=True)
class Tool:
    """A program that tells of devices.

    Attributes:
        path: of the program.
        env: for the program.
    """

    path: str
    env: Mapping[str, str]
    _query: int = field(default=0)

    @property
    def name(self) -> str:
        return os.path.basename(self.path)

    @property
    def _nvidia(self) -> bool:
        return self.name == _NVIDIA

    def readings(self) -> tuple[Reading, ...]:
        """All devices now; nothing where the tool does not answer in a form that is known."""
        if self._nvidia:
            return devices.nvidia_readings(self._ask(*_NVIDIA_QUERY))
        while self._query < len(_SMI_QUERIES):
            found = devices.smi_readings(self._ask(*_SMI_QUERIES[self._query]))
            if found:
                return found
            self._query += 1  # never asked again
        return ()

    def _ask(self, *arguments: str) -> str:
        try:
            argv = [self.path, *arguments]
            done = process.run(argv, env=self.env, timeout=_SECONDS, grace=_GRACE)
        except ProgramFailed:
            return ""
        return done.output if done.code == 0 and not done.timed_out else ""


def find_tool(profile: Profile, env: Mapping[str, str]) -> Tool | None:
    """The first of the profile's tools that is there."""
    folders = [*env.get("PATH", "").split(os.pathsep), *profile.tool_folders]
    places = os.pathsep.join(folder for folder in folders if folder)
    found = (shutil.which(name, path=places) for name in profile.tools)
    return next((Tool(path=path, env=env) for path in found if path), None)


@dataclass(slots=True, kw_only=True)
class Sampler:
    """Readings of one device, taken by a thread of this process while a block runs.

    Never in the process that is timed. A reading is taken at the start of every interval, or as
    often as the tool answers.

    Attributes:
        read: the device now; None where it cannot be told.
        interval: seconds.
    """

    read: Callable[[], Reading | None]
    interval: float = 0.5
    _found: list[tuple[float, Reading]] = field(default_factory=list)
    _asked: list[float] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Sampler:
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        assert self._thread is not None
        self._thread.join(_SECONDS + _GRACE)

    def _work(self) -> None:
        started = time.monotonic()
        while not self._over.is_set():
            asked = time.monotonic()
            reading = self.read()
            if reading is not None:
                self._found.append((asked - started, reading))
            self._asked.append(time.monotonic() - asked)
            self._over.wait(max(0.0, self.interval - self._asked[-1]))

    def samples(self) -> dict[str, list[float | None]]:
        """Lists of one length, as :data:`~envlock.model.check.SAMPLES` describes them."""
        found = list(self._found)
        columns: dict[str, list[float | None]] = {"seconds": [round(at, 3) for at, _ in found]}
        for name in SAMPLES:
            if name != "seconds":
                columns[name] = [getattr(reading, name) for _, reading in found]
        return columns

    def cost(self) -> dict[str, Any]:
        """How often the tool was asked, and how long one answer took."""
        asked = list(self._asked)
        median = round(statistics.median(asked), 3) if asked else None
        return {"times": len(asked), "interval": self.interval, "seconds_median": median}


def wait_until_idle(
    read: Callable[[], Reading | None],
    *,
    seconds: float,
    pause: float = 0.5,
    idle: float = 5.0,
) -> float | None:
    """Waits until two of three readings show no work: what ran before still shows in the next one.

    Returns:
        None when the device is idle or nobody knows, else how busy it still is, in percent.
    """
    deadline = time.monotonic() + seconds
    last: list[float] = []
    while True:
        reading = read()
        if reading is None or reading.use_percent is None:
            return None
        last = [*last[-2:], reading.use_percent]
        if sum(use < idle for use in last) >= 2:
            return None
        if time.monotonic() >= deadline:
            return max(last)
        time.sleep(pause)


def summary(columns: Mapping[str, Sequence[float | None]]) -> dict[str, Any]:
    """Least, median and most of each column; "steady" is the median of its second half."""
    found: dict[str, Any] = {}
    for name, values in columns.items():
        known = [value for value in values if value is not None]
        if name == "seconds" or not known:
            continue
        late = [value for value in values[len(values) // 2 :] if value is not None] or known
        found[name] = {
            "least": min(known),
            "median": statistics.median(known),
            "most": max(known),
            "steady": statistics.median(late),
        }
    return found
