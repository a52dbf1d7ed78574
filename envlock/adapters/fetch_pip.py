"""Fetching wheels with envlock's own pip for a target that is somewhere else."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from envlock.adapters import process
from envlock.adapters.index_settings import IndexSettings
from envlock.adapters.installer import complaint, without_settings
from envlock.adapters.resolving import Pin
from envlock.errors import ProgramFailed
from envlock.model.manifest import LockedTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class PipDownloader:
    """``pip download --require-hashes``. See :class:`envlock.adapters.resolving.Downloader`.

    Without dependencies, so that markers of the host play no part; with every platform tag by
    name, since pip takes exactly those.
    """

    env: Mapping[str, str]
    settings: IndexSettings

    def download(self, wanted: Sequence[Pin], target: LockedTarget, folder: str) -> None:
        """See :class:`envlock.adapters.resolving.Downloader`."""
        with tempfile.TemporaryDirectory(prefix="envlock-") as private:
            listed = Path(private, "wanted.txt")
            listed.write_text("".join(f"{requirement(pin)}\n" for pin in wanted))
            command = [
                sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes",
                "--only-binary", ":all:", "--progress-bar", "off", "--no-color", "--no-input",
                "--dest", folder, "-r", str(listed), *target_options(target),
                *self.settings.options(),
            ]  # fmt: skip
            for host in self.settings.trusted:
                command += ["--trusted-host", host]
            if self.settings.cert:
                command += ["--cert", self.settings.cert]
            if self.settings.proxy:
                command += ["--proxy", self.settings.proxy]
            done = process.run(command, env=without_settings(self.env))
        if done.code != 0:
            raise ProgramFailed(
                f"pip: {complaint(done.output)}", "try again: what is there already is kept"
            )


def requirement(pin: Pin) -> str:
    """A line that admits the pin and its hashes only."""
    return " ".join([f"{pin.name}=={pin.version}", *(f"--hash=sha256:{h}" for h in pin.hashes)])


def target_options(target: LockedTarget) -> list[str]:
    """The target's tags, one option for each value."""
    python, abis, platforms = target.tags[0].split("-")[0], [], []
    for tag in target.tags:
        interpreter, abi, platform = tag.split("-")
        if interpreter == python:
            abis.append(abi)
        platforms.append(platform)
    options = ["--implementation", "cp", "--python-version", target.python]
    for abi in dict.fromkeys(abis):
        options += ["--abi", abi]
    for platform in dict.fromkeys(platforms):
        options += ["--platform", platform] if platform != "any" else []
    return options
