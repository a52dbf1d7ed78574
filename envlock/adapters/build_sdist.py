"""Wheels from sources, built on this machine in isolation."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from envlock.adapters import process
from envlock.adapters.index_settings import IndexSettings, is_page
from envlock.adapters.installer import complaint, without_settings
from envlock.adapters.resolving import Pin
from envlock.errors import ProgramFailed

_SECONDS = 1800.0
#: 1980-01-01, the first moment that a zip archive can hold: the same wheel from every run.
_EPOCH = "315532800"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipBuilder:
    """``pip wheel``. See :class:`envlock.adapters.resolving.Builder`."""

    env: Mapping[str, str]
    settings: IndexSettings

    def build(self, pin: Pin, folder: str) -> str:
        """See :class:`envlock.adapters.resolving.Builder`."""
        assert pin.sdist is not None
        listed = Path(folder, "source.txt")
        digest = f" --hash=sha256:{pin.sdist.sha256}" if pin.sdist.sha256 else ""
        listed.write_text(f"{pin.name} @ {pin.sdist.urls[0]}{digest}\n", encoding="utf-8")
        out = Path(folder, "built", pin.name)
        command = [
            sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-input", "--no-color",
            "--progress-bar", "off", "--no-cache-dir", "--wheel-dir", str(out), "-r", str(listed),
            *self.settings.places(), *replace(self.settings, proxy="").access(),
        ]  # fmt: skip
        done = process.run(command, env=self._environment(), timeout=_SECONDS)
        names = [name for name in os.listdir(out) if name.endswith(".whl")] if out.is_dir() else []
        if done.code != 0 or len(names) != 1:
            why = "no end in time" if done.timed_out else complaint(done.output)
            raise ProgramFailed(f"pip: '{pin.name} {pin.version}' cannot be built: {why}")
        return str(out / names[0])

    def _environment(self) -> dict[str, str]:
        """With whatever may hold a password: a command line is no secret."""
        env = without_settings(self.env) | {"SOURCE_DATE_EPOCH": _EPOCH, "PYTHONHASHSEED": "0"}
        env |= self.settings.variables("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL")
        if pages := [place for place in self.settings.links if is_page(place)]:
            env["PIP_FIND_LINKS"] = " ".join(pages)
        if self.settings.proxy:
            env["PIP_PROXY"] = self.settings.proxy
        return env
