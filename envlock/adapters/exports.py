"""The manifest as files that other tools read: requirements, constraints, a lock."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from envlock.adapters.installer import pins
from envlock.adapters.pylock import lock_text, unlockable
from envlock.errors import UnusableInput
from envlock.model.dist import Distribution, WheelRef
from envlock.model.facts import Finding
from envlock.model.label import is_version
from envlock.model.manifest import Manifest

FORMATS = ("pylock", "requirements", "constraints")
_HASHED = "# install with: pip install --no-index --find-links . --require-hashes -r FILE"
_HARVEST = "keep the wheels with 'envlock wheelhouse harvest', and name them with --wheelhouse DIR"
#: Origins of a wheel whose URL leads to the very file.
_PUBLISHED = ("index", "url")


def requirements_text(dists: Iterable[Distribution], head: str = _HASHED) -> str:
    """Every distribution that has a wheel, pinned and hashed, for pip and uv.

    A version that PEP 440 does not know cannot stand in a requirement: a comment says so.
    """
    lines = [head]
    for dist in dists:
        if dist.wheel is None:
            continue
        pinned = _pins([dist])
        lines += [f"{line} --hash=sha256:{dist.wheel.sha256}" for line in pinned]
        if not pinned:
            lines.append(f"# {dist.wheel.file}: '{dist.version}' is no valid version")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be written, and for where.

    Attributes:
        format: one of :data:`FORMATS`.
        names: only these, canonical, and ``protected``; empty for all.
        folder: of the wheels; empty where none is known.
        output: the file's folder, from which a lock names its wheels.
        hashes: of wheels, in requirements.
    """

    format: str
    names: frozenset[str] = frozenset()
    folder: str = ""
    output: str = "."
    hashes: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A file for another tool.

    Attributes:
        written: what is in it.
        findings: what is not, and what is weaker than it could be.
        incomplete: a protected build is not in it.
    """

    text: str
    written: tuple[Distribution, ...]
    findings: tuple[Finding, ...]
    incomplete: bool


def export(manifest: Manifest, wanted: Wanted) -> Export:
    """Writes a manifest for another tool; what has no place in the format is left out, in a
    comment and a finding.

    Raises:
        UnusableInput: nothing is left, or a name is not in the manifest.
    """
    chosen = _chosen(manifest, wanted.names)
    reasons = {id(dist): _why_not(dist, chosen, wanted) for dist in chosen}
    kept = [dist for dist in chosen if not reasons[id(dist)]]
    left_out = [(dist, reasons[id(dist)]) for dist in chosen if reasons[id(dist)]]
    if not kept:
        raise _nothing(wanted, [why for _, why in left_out])
    # a reason may be anybody's text, and a line of its own would be read as a requirement
    comments = [
        " ".join(f"# left out: {str(dist).strip()}: {why}".split()) for dist, why in left_out
    ]
    text, weaker = _WRITERS[wanted.format](manifest, kept, wanted)
    return Export(
        text="".join(f"{line}\n" for line in comments) + text,
        written=tuple(kept),
        findings=(*(_left_out(dist, why, wanted) for dist, why in left_out), *weaker),
        incomplete=any(dist.protected for dist, _ in left_out),
    )


def _nothing(wanted: Wanted, reasons: Sequence[str]) -> UnusableInput:
    why = "; ".join(dict.fromkeys(reasons)) or "no such distribution is in the manifest"
    return UnusableInput(
        f"{wanted.format}: nothing to write: {why}",
        _HARVEST
        if reasons and wanted.format == "pylock"
        else "see 'distributions' in the manifest",
    )


def _chosen(manifest: Manifest, names: frozenset[str]) -> list[Distribution]:
    known = {dist.name for dist in manifest.distributions}
    unknown = sorted(names - known - {"protected"})
    if unknown:
        listed = ", ".join(f"'{name}'" for name in unknown)
        raise UnusableInput(f"--only: {listed}: not in the manifest", "see its 'distributions'")
    return [
        dist
        for dist in manifest.distributions
        if not names or dist.name in names or (dist.protected and "protected" in names)
    ]


def _why_not(dist: Distribution, chosen: Sequence[Distribution], wanted: Wanted) -> str:
    """Why a distribution has no place in the format; empty where it has."""
    several = Counter(one.name for one in chosen)
    if not dist.version:
        return dist.reason or "its version is not known"
    if dist.editable:
        return "installed in development mode"
    if several[dist.name] > 1:
        return "it is installed more than once"
    if not is_version(dist.version):
        return f"'{dist.version}' is no version that PEP 440 knows, and pip and uv name none other"
    if wanted.format != "pylock":
        return ""
    nowhere = dist.wheel is not None and not _where(wanted)(dist.wheel)
    return unlockable(dist) or ("it is not known where its wheel is" if nowhere else "")


def _left_out(dist: Distribution, why: str, wanted: Wanted) -> Finding:
    known = dist.editable or not is_version(dist.version) or (dist.wheel and unlockable(dist))
    no_wheel = wanted.format == "pylock" and not known
    return Finding(
        code="export.left-out",
        subject=dist.name,
        what=f"left out of the {wanted.format}: {why}",
        why="'uv pip sync' removes what a file does not name" if wanted.format != "constraints"
        else "nothing holds it",
        hint=_HARVEST if no_wheel else "'envlock restore' puts it back from its wheel",
        level="error" if dist.protected else "warning",
    )  # fmt: skip


# --------------------------------------------------------------------- one for each format


def _where(wanted: Wanted) -> Callable[[WheelRef], str]:
    """Where a wheel is: in the folder, from the lock's own; else its URL; empty for nowhere."""

    def where(wheel: WheelRef) -> str:
        path = os.path.join(wanted.folder, wheel.file) if wanted.folder else ""
        if path and os.path.exists(path):
            there = os.path.relpath(os.path.abspath(path), os.path.abspath(wanted.output))
            return PurePath(there).as_posix()
        return wheel.url if wheel.origin in _PUBLISHED else ""

    return where


_Written = tuple[str, tuple[Finding, ...]]


def _pylock(manifest: Manifest, kept: Sequence[Distribution], wanted: Wanted) -> _Written:
    return lock_text(kept, manifest.target.markers, _where(wanted)), ()


def _constraints(manifest: Manifest, kept: Sequence[Distribution], wanted: Wanted) -> _Written:
    head = "# hold these builds: pip install -c FILE …, uv pip install -c FILE …"
    return _lines([head, *_pins(kept)]), ()


def _requirements(manifest: Manifest, kept: Sequence[Distribution], wanted: Wanted) -> _Written:
    """Hashed where every line can be: pip refuses a file in which only some lines are."""
    folder = os.path.relpath(wanted.folder, wanted.output) if wanted.folder else "WHEELS"
    install = f"--no-deps --find-links {shlex.quote(folder)}"
    if wanted.hashes and all(dist.wheel is not None for dist in kept):
        head = f"# install with: pip install --no-index {install} --require-hashes -r FILE"
        return requirements_text(kept, head), ()
    lines = _lines([f"# install with: pip install {install} -r FILE", *_pins(kept)])
    return lines, (_unhashed(kept),) if wanted.hashes else ()


def _unhashed(kept: Sequence[Distribution]) -> Finding:
    bare = [dist.name for dist in kept if dist.wheel is None]
    listed = ", ".join(bare[:3]) + (f" and {len(bare) - 3} more" if len(bare) > 3 else "")
    return Finding(
        code="export.no-hashes",
        subject="requirements",
        what=f"written without hashes: no wheel is known of {listed}",
        why="pip refuses a file in which only some lines have one; any build of a version fits now",
        hint=f"{_HARVEST}; --no-hashes says that none are wanted",
    )


def _pins(kept: Sequence[Distribution]) -> list[str]:
    return pins([(dist.name, dist.version) for dist in kept], arbitrary=False)


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"


_WRITERS: dict[str, Callable[[Manifest, Sequence[Distribution], Wanted], _Written]] = {
    "pylock": _pylock,
    "requirements": _requirements,
    "constraints": _constraints,
}
