"""A target made of plain files; nothing in it is ever run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from envlock.adapters.installed import Content, Installed, read_contents, read_installed
from envlock.model.facts import Layout
from tests.support.wheels import record_hash


class Site:
    """A prefix with a site-packages folder, and what is put there."""

    def __init__(self, prefix: Path) -> None:
        self.prefix = prefix
        self.site = prefix / "lib/python3.10/site-packages"
        self.site.mkdir(parents=True)
        self.layout = Layout(
            prefix=str(prefix),
            purelib=str(self.site),
            platlib=str(self.site),
            scripts=str(prefix / "bin"),
            headers=str(prefix / "include/site/python3.10"),
            data=str(prefix),
        )

    def add(
        self,
        name: str = "torch",
        version: str = "2.0",
        files: Mapping[str, str | bytes] | None = None,
        *,
        info: str = "",
        extra_rows: str = "",
    ) -> Path:
        """Puts a distribution there, RECORD and all; paths are relative to site-packages."""
        folder = info or f"{name}-{version}.dist-info"
        content = {f"{folder}/METADATA": f"Name: {name}\nVersion: {version}\n"}
        content |= files if files is not None else {f"{name}/__init__.py": "x = 1\n"}  # type: ignore[arg-type]
        rows = ""
        for path, text in content.items():
            data = text.encode() if isinstance(text, str) else text
            target = Path(os.path.normpath(self.site / path))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            quoted = f'"{path}"' if "," in path else path
            rows += f"{quoted},{record_hash(data)},{len(data)}\n"
        record = self.site / folder / "RECORD"
        record.write_text(f"{rows}{extra_rows}{folder}/RECORD,,\n")
        return self.site / folder

    def dists(self) -> list[Installed]:
        return read_installed(self.layout)

    def one(self) -> Installed:
        [found] = self.dists()
        return found

    def content(self, *, trust_record: bool = False) -> Content:
        [found] = read_contents(self.dists(), self.layout, trust_record=trust_record)
        return found
