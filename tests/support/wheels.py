"""Wheels made by tests, in a few lines of test code."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from envlock.model.wheels import escape_name

PLAIN_TAG = "py3-none-any"


def record_hash(data: bytes) -> str:
    """``sha256=…`` as RECORD writes it."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    return f"sha256={digest.decode()}"


def make_wheel(
    folder: Path,
    name: str,
    version: str,
    files: Mapping[str, bytes | str] | None = None,
    *,
    requires: Sequence[str] = (),
    tag: str = PLAIN_TAG,
    entry_points: str = "",
    executable: Sequence[str] = (),
    file_name: str = "",
    extra_record: Mapping[str, str] | None = None,
    modes: Mapping[str, int] | None = None,
    stored: Sequence[str] = (),
    zip64: Sequence[str] = (),
    purelib: bool = True,
    requires_python: str = "",
    extras: Sequence[str] = (),
) -> Path:
    """Writes a wheel and returns its path.

    Args:
        files: members by name; ``NAME.data/…`` is spelled ``.data/…``. Default: one module.
        executable: members with an exec bit.
        file_name: another file name than the right one.
        extra_record: RECORD hashes that differ from the members.
        modes: whole modes of members, with or without a kind of file.
        stored: members that are not deflated.
        zip64: members whose sizes are written in a zip64 field.
        purelib: what WHEEL says of the root.
        requires_python: of METADATA; left out when empty.
    """
    stem = f"{escape_name(name)}-{version}"
    info = f"{stem}.dist-info"
    content: dict[str, bytes] = {}
    module = {f"{escape_name(name).lower()}.py": f"VERSION = {version!r}\n"}
    for member, data in (files if files is not None else module).items():
        path = stem + member if member.startswith(".data/") else member
        content[path] = data.encode() if isinstance(data, str) else data
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += f"Requires-Python: {requires_python}\n" if requires_python else ""
    metadata += "".join(f"Requires-Dist: {line}\n" for line in requires)
    metadata += "".join(f"Provides-Extra: {extra}\n" for extra in extras)
    content[f"{info}/METADATA"] = metadata.encode()
    tags = "".join(f"Tag: {one}\n" for one in expand(tag))
    content[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: {str(purelib).lower()}\n{tags}"
    ).encode()
    if entry_points:
        content[f"{info}/entry_points.txt"] = entry_points.encode()
    content[f"{info}/RECORD"] = _record(content, f"{info}/RECORD", extra_record or {})
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / (file_name or f"{stem}-{tag}.whl")
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in content.items():
            entry = zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0))
            spelled = path.replace(stem + ".data/", ".data/", 1)
            entry.compress_type = zipfile.ZIP_STORED if spelled in stored else zipfile.ZIP_DEFLATED
            mode = 0o100755 if spelled in executable else 0o100644
            entry.external_attr = (modes or {}).get(spelled, mode) << 16
            with archive.open(entry, "w", force_zip64=spelled in zip64) as file:
                file.write(data)
    return wheel


def _record(content: Mapping[str, bytes], own: str, other: Mapping[str, str]) -> bytes:
    listed = io.StringIO()
    record = csv.writer(listed, lineterminator="\n")
    for path, data in content.items():
        record.writerow([path, other.get(path) or record_hash(data), len(data)])
    record.writerow([own, "", ""])
    return listed.getvalue().encode()


def expand(tag: str) -> list[str]:
    """Every tag of a compressed tag set."""
    python, abi, platform = tag.split("-")
    return [
        f"{one}-{two}-{three}"
        for one in python.split(".")
        for two in abi.split(".")
        for three in platform.split(".")
    ]
