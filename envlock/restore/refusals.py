"""What speaks against a restore before anything is touched. Pure; every reason at once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from envlock.model.facts import Finding, Layout, Target
from envlock.model.manifest import Manifest
from envlock.restore.plan import Need

_GLIBC = re.compile(r"manylinux_(\d+)_(\d+)_")
_ANOTHER = "name another target with --python"


@dataclass(frozen=True, slots=True, kw_only=True)
class Insist:
    """What a person insists on, though it speaks against the restore.

    Attributes:
        stack_change: the machine has another release of the vendor's stack.
        managed: somebody else manages the target (PEP 668).
    """

    stack_change: bool = False
    managed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """What the machine and the target say for themselves, apart from the interpreter.

    Attributes:
        release: of the vendor's stack; empty where it is not known.
        managed_by: marker of somebody else who manages the target (PEP 668); empty without one.
    """

    release: str = ""
    managed_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What a file system gives.

    Attributes:
        path: where it was asked.
        bytes: free for this user; None where nobody knows.
        files: free inodes; None where the file system has no fixed number.
        refused: why it would not take ``bytes`` more (a quota says nothing in advance); empty when
            it would, or cannot be asked.
        closed: folders that this user cannot write to, and why.
    """

    path: str
    bytes: int | None = None
    files: int | None = None
    refused: str = ""
    closed: Mapping[str, str] = field(default_factory=dict)


def _problem(code: str, what: str, hint: str, level: str = "error") -> Finding:
    return Finding(code=code, subject="target", what=what, hint=hint, level=level)


def target_problems(
    manifest: Manifest, target: Target, here: Here, insist: Insist
) -> list[Finding]:
    """Why a target is not one that a manifest can be restored to."""
    found = _other_python(manifest, target)
    release = manifest.stack.release
    if release and here.release and release != here.release and not insist.stack_change:
        found.append(
            _problem(
                "target.stack",
                f"the manifest is for stack release '{release}', this machine has '{here.release}'",
                "take the manifest of this release, or insist with --allow-stack-change",
            )
        )
    if here.managed_by and not insist.managed:
        found.append(
            _problem(
                "target.managed",
                f"it is managed by somebody else: '{here.managed_by}'",
                "restore into an environment with --into, or insist with --break-system-packages",
            )
        )
    return found


def layout_problems(layout: Layout) -> list[Finding]:
    """Folders outside the prefix: what is unpacked for them would leave the stage.

    Headers of Debian's system Python are one step outside, and still inside the transaction.
    """
    outside = [
        name
        for name, path in layout.relative().items()
        if path.split("/").count("..") > (1 if name == "headers" else 0)
    ]
    return [
        _problem(
            "target.layout",
            f"its folder for {name} is outside its prefix: '{getattr(layout, name)}'",
            "restore into an environment with --into",
        )
        for name in outside
    ]


def _other_python(manifest: Manifest, target: Target) -> list[Finding]:
    locked = manifest.target
    compared = [
        (
            "target.python", "Python",
            locked.markers.get("python_version", ""), target.markers["python_version"],
        ),
        ("target.abi", "ABI", _abi(locked.tags), _abi(target.tags)),
    ]  # fmt: skip
    compared += [
        (f"target.{marker.split('_')[-1]}", marker.replace("_", " "),
         locked.markers.get(marker, ""), target.markers[marker])
        for marker in ("platform_machine", "sys_platform")
    ]  # fmt: skip
    return [
        _problem(code, f"the manifest is for {what} '{wanted}', the target has '{got}'", _ANOTHER)
        for code, what, wanted, got in compared
        if wanted and wanted != got
    ]


def _abi(tags: Sequence[str]) -> str:
    """The ABI of the best tag; empty where that is no tag (the file may say anything)."""
    parts = tags[0].split("-") if tags else []
    return parts[1] if len(parts) == 3 else ""


def older_glibc(manifest: Manifest, target: Target) -> list[Finding]:
    """A warning where the C library is older than the one the builds ran on: a vendor's wheel is
    tagged ``linux_x86_64``, which says nothing of what it needs."""
    wanted = max(
        (tuple(map(int, found.groups())) for tag in manifest.target.tags
         if (found := _GLIBC.search(tag))), default=None,
    )  # fmt: skip
    if wanted is None or target.glibc is None or target.glibc >= wanted:
        return []
    had, has = (".".join(map(str, version)) for version in (wanted, target.glibc))
    return [
        _problem(
            "target.glibc",
            f"the builds ran on glibc {had}, the target has {has}",
            "prove it afterwards with 'envlock verify'",
            "warning",
        )
    ]


def room_problems(need: Need, room: Room) -> list[Finding]:
    """Why what is needed cannot be written."""
    found = [
        _problem(
            "target.closed",
            f"'{folder}' cannot be written: {why}",
            "run as the user who owns it, or restore into an environment with --into",
        )
        for folder, why in room.closed.items()
    ]
    hint = "make room there: a restore keeps the old files until the new ones are in place"
    if room.bytes is not None and room.bytes < need.bytes:
        what = f"'{room.path}' has {_mega(room.bytes)} free, and {_mega(need.bytes)} are needed"
        found.append(_problem("target.room", what, hint))
    elif room.refused:
        what = f"'{room.path}' does not take {_mega(need.bytes)} more: {room.refused}"
        found.append(_problem("target.room", what, hint))
    if room.files is not None and room.files < need.files:
        what = f"'{room.path}' has {room.files:,} inodes free, and {need.files:,} are needed"
        found.append(_problem("target.room", what, hint))
    return found


def _mega(count: int) -> str:
    """Bytes in MB; as exact as a decision about room needs."""
    return f"{count / 1e6:,.1f} MB"
