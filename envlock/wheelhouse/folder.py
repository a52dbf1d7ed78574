"""What a wheelhouse holds besides wheels: its manifest, requirements and checksums."""

from __future__ import annotations

import hashlib
import os
import shlex
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from envlock.adapters import files
from envlock.adapters.exports import requirements_text
from envlock.adapters.partial import try_lock
from envlock.adapters.profiles import bundled_profiles
from envlock.adapters.pylock import lock_text
from envlock.adapters.state import read_manifest
from envlock.errors import EnvlockError, Refused, UnusableInput
from envlock.model.dist import Distribution
from envlock.model.facts import Finding
from envlock.model.manifest import Manifest, dump
from envlock.model.wheels import parse_wheel_name

MANIFEST = "envlock.yaml"
LOCK = "pylock.toml"
REQUIREMENTS = "requirements.txt"
SUMS = "SHA256SUMS"
_PART = ".part-"


@contextmanager
def scratch(folder: str) -> Iterator[str]:
    """A folder inside a wheelhouse for what is not finished; what a killed run left of its own
    goes, what another run is working in stays.

    Raises:
        OSError: the wheelhouse cannot be written.
    """
    for left in Path(folder).glob(f"{_PART}*"):
        _clear(left)
    with tempfile.TemporaryDirectory(prefix=_PART, dir=folder) as path:
        descriptor = _hold(path)
        try:
            yield path
        finally:
            if descriptor is not None:
                os.close(descriptor)


def _hold(path: str | os.PathLike[str]) -> int | None:
    """A descriptor that holds a folder's lock; None where somebody else does, or nobody can."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:  # Windows opens no folders
        return None
    if try_lock(descriptor):
        return descriptor
    os.close(descriptor)
    return None


def _clear(left: Path) -> None:
    descriptor = _hold(left)
    if descriptor is not None:
        with suppress(OSError):
            files.remove_tree(os.fspath(left))
        os.close(descriptor)


def sums_text(hashes: Iterable[tuple[str, str]]) -> str:
    """What ``sha256sum -c`` reads.

    Args:
        hashes: file name and sha256 in hexadecimal.
    """
    return "".join(f"{hexa}  {name}\n" for name, hexa in sorted(hashes))


def parse_sums(text: str) -> tuple[dict[str, str], list[str]]:
    """File names and their sha256, and the lines that are neither."""
    found: dict[str, str] = {}
    odd: list[str] = []
    for line in text.splitlines():
        hexa, _, name = line.partition("  ")
        if len(hexa) == 64 and name and "/" not in name and "\\" not in name:
            found[name] = hexa.lower()
        elif line.strip():
            odd.append(line)
    return found, odd


def make_folder(folder: str) -> None:
    """Makes the wheelhouse where it is not there.

    Raises:
        UnusableInput: it cannot be made.
    """
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from error


def write_papers(folder: str, manifest: Manifest) -> None:
    """Writes manifest, lock, requirements and checksums, each whole or not at all; checksums last.

    Raises:
        UnusableInput: the folder cannot be written.
    """
    papers = {
        MANIFEST: dump(manifest),
        LOCK: lock_text(manifest.distributions, manifest.target.markers),
        REQUIREMENTS: requirements_text(manifest.distributions),
    }
    wheels = [dist.wheel for dist in manifest.distributions if dist.wheel is not None]
    hashes = [(wheel.file, wheel.sha256) for wheel in wheels]
    hashes += [(name, hashlib.sha256(text.encode()).hexdigest()) for name, text in papers.items()]
    try:
        for name, text in [*papers.items(), (SUMS, sums_text(hashes))]:
            files.write_whole(os.path.join(folder, name), text)
    except OSError as error:
        raise cannot_write(folder, error) from error


def manifest_before(folder: str) -> Manifest | None:
    """What an earlier run wrote into a wheelhouse; one that cannot be read counts for nothing."""
    try:
        return read_manifest(os.path.join(folder, MANIFEST))
    except EnvlockError:
        return None


def wheels_before(folder: str) -> dict[str, Distribution]:
    """The distributions of :func:`manifest_before`, by name."""
    known = manifest_before(folder)
    return {dist.name: dist for dist in known.distributions} if known is not None else {}


def replaceable(dist: Distribution) -> bool:
    """Whether the wheel of a distribution came from somewhere that may give it again: nobody but
    the target gives back what is protected or was rebuilt from its files."""
    return dist.wheel is not None and not dist.protected and dist.wheel.origin != "rebuilt"


def refuse_losses(
    folder: str, manifest: Manifest, judge: Callable[[Manifest, Manifest], list[Finding]]
) -> None:
    """A wheelhouse's manifest never moves to a state in which a protected build is lost.

    Args:
        judge: what is lost between two manifests.

    Raises:
        Refused: it would; the message names every build.
    """
    old = manifest_before(folder)
    lost = judge(old, manifest) if old is not None else []
    if lost:
        own = os.path.join(folder, MANIFEST)
        raise Refused(
            f"wheelhouse: nothing written, since '{own}' has builds that would be lost: "
            + "; ".join(f"'{one.subject}': {one.what}" for one in lost),
            f"use --manifest {shlex.quote(own)}, or another folder",
        )


def strangers(folder: str, manifest: Manifest) -> list[Finding]:
    """A finding for every wheel in a folder that is not in its manifest."""
    known = {dist.wheel.file for dist in manifest.distributions if dist.wheel is not None}
    return [stranger(name) for name in wheel_files(folder) if name not in known]


def stranger(file: str) -> Finding:
    """The finding for a wheel that the folder's manifest does not have.

    Nobody is told to remove a vendor's build: no index gives it back.
    """
    try:
        version = parse_wheel_name(file).version
    except ValueError:
        version = ""
    vendor = any(profile.knows_label(version) for profile in bundled_profiles())
    return Finding(
        code="wheelhouse.unknown-wheel",
        subject=file,
        what="is in the folder, but not in its manifest",
        why="'pip install --find-links' takes it all the same",
        hint="a vendor's build: keep it, if need be in another folder"
        if vendor
        else "remove it if nobody needs it",
    )


def wheel_files(folder: str) -> list[str]:
    """Names of the wheel files in a folder, sorted."""
    return sorted(name for name in os.listdir(folder) if name.endswith(".whl"))


def sha256_of(path: str) -> str:
    """sha256 of a file, hexadecimal; empty where it cannot be read."""
    try:
        return files.sha256(path)
    except OSError:
        return ""


def cannot_write(folder: str, error: OSError) -> UnusableInput:
    """The error for a wheelhouse that cannot be written."""
    return UnusableInput(
        f"wheelhouse: '{folder}' cannot be written: {error.strerror or error}",
        "make room or name another folder; what was done before is kept",
    )
