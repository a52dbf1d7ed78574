"""Manifests made in a line, and a site folder with small distributions in it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path

from envlock.adapters.installed import read_contents, read_installed
from envlock.model.dist import Distribution
from envlock.model.facts import Layout, Machine
from envlock.model.manifest import LockedTarget, Manifest, Stack


def fake_layout(prefix: Path) -> Layout:
    """A venv's layout under a folder."""
    site = str(prefix / "lib" / "python3.11" / "site-packages")
    Path(site).mkdir(parents=True, exist_ok=True)
    return Layout(
        prefix=str(prefix),
        purelib=site,
        platlib=site,
        scripts=str(prefix / "bin"),
        headers=str(prefix / "include"),
        data=str(prefix),
    )


def put_dist(site: Path, name: str, version: str, files: Mapping[str, str]) -> None:
    """Installs a distribution by hand, with a true RECORD."""
    info = f"{name}-{version}.dist-info"
    texts = {f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"}
    rows = []
    for path, text in {**files, **texts}.items():
        place = site / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        rows.append(f"{path},sha256={digest.decode()},{len(text.encode())}")
    record = "\n".join([*rows, f"{info}/RECORD,,"]) + "\n"
    (site / info / "RECORD").write_text(record, encoding="utf-8")


def locked(*distributions: Distribution, profile: str = "cpu") -> Manifest:
    """A manifest of these distributions."""
    return Manifest(
        name="test-cp311",
        created="2026-11-30T08:00:00Z",
        tool="envlock test",
        profile=profile,
        stack=Stack(),
        target=LockedTarget(python="3.11.7", markers={}, tags=("cp311-cp311-any",), paths={}),
        machine=Machine(),
        distributions=tuple(sorted(distributions, key=lambda dist: dist.key)),
    )


def lock_site(layout: Layout, *protected: str) -> Manifest:
    """A manifest of everything in a site folder; the named ones are protected."""
    installed = read_installed(layout)
    contents = read_contents(installed, layout)
    return locked(
        *[
            Distribution(
                name=one.name,
                version=one.version,
                protected=one.name in protected,
                content=content.digest,
                files=len(content.files),
                bytes=content.size,
                executable=content.executable,
                reason=content.reason,
            )
            for one, content in zip(installed, contents, strict=True)
        ]
    )
