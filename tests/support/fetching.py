"""One file to fetch, and who fetches it."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from pathlib import Path

from envlock.adapters.download import Download, Wanted
from envlock.adapters.index_settings import IndexSettings
from envlock.adapters.partial import part_path
from envlock.adapters.resolving import RemoteFile
from envlock.adapters.web import Web
from tests.support.loopback import Turn

DATA = random.Random(4).randbytes(300_000)
OTHER = random.Random(5).randbytes(300_000)
SHA = hashlib.sha256(DATA).hexdigest()
HALF = len(DATA) // 2
GOOD = Turn(data=DATA)
#: Seconds without a byte: for servers that answer, however busy the machine is, and for those that
#: hang.
PATIENT, IMPATIENT = 30.0, 0.5
NAME = "a-1-py3-none-any.whl"


class Fetch:
    """A download, and what it did."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.folder = folder
        self.waited: list[float] = []
        self.came = 0
        known = {"timeout": PATIENT, **settings}
        env = known.pop("env", {"HOME": str(folder)})
        self.web = Web(settings=IndexSettings(**known), env=env)  # type: ignore[arg-type]

    def __call__(
        self, *urls: str, size: int | None = len(DATA), more: Callable[[], list[str]] = list
    ) -> bytes:
        file = RemoteFile(file=NAME, urls=urls, sha256=SHA, size=size)
        wanted = Wanted(file=file, hashes=(SHA,), more=more)
        Download(
            wanted=wanted, folder=str(self.folder), web=self.web, advance=self.add, wait=self.wait
        ).run()
        return self.final.read_bytes()

    def add(self, count: int) -> None:
        self.came += count

    def wait(self, seconds: float) -> None:
        if seconds:
            self.waited.append(seconds)

    @property
    def final(self) -> Path:
        return self.folder / NAME

    @property
    def part(self) -> Path:
        return Path(part_path(str(self.final), (SHA,)))
