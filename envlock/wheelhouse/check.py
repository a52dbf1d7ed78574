"""check: is a wheelhouse whole, right, fitting and enough. All problems in one run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from envlock.adapters import files
from envlock.adapters.resolving import Resolver
from envlock.adapters.state import read_manifest
from envlock.adapters.wheelfile import WheelFile, inspect_wheel
from envlock.model.dist import Distribution
from envlock.model.facts import Finding
from envlock.model.label import same_version
from envlock.model.manifest import Manifest, is_newer_minor
from envlock.model.wheels import parse_wheel_name
from envlock.wheelhouse.enough import as_the_wheels_say, not_enough, resolve_alone
from envlock.wheelhouse.folder import MANIFEST, SUMS, parse_sums, stranger, wheel_files


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """What a check found.

    Attributes:
        manifest: the wheelhouse's own.
        wheels: every wheel that was read to its last byte.
        without_wheel: distributions that cannot be installed from here.
        unknown: wheel files that the manifest does not have.
        findings: everything that is wrong; an error among them means the answer is no.
    """

    manifest: Manifest
    wheels: tuple[WheelFile, ...]
    without_wheel: tuple[str, ...]
    unknown: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong that matters."""
        return not any(finding.level == "error" for finding in self.findings)


def check(
    folder: str,
    advance: Callable[[int], None] | None = None,
    resolver: Resolver | None = None,
) -> CheckReport:
    """Reads a wheelhouse to the last byte.

    Args:
        advance: called with the number of wheels done since the last call.
        resolver: one that asks no index; judges whether the wheels are enough for the target.

    Raises:
        UnusableInput: it has no manifest, or one that cannot be read.
    """
    manifest = read_manifest(os.path.join(folder, MANIFEST))
    there = wheel_files(folder)
    with_wheel = [dist for dist in manifest.distributions if dist.wheel is not None]
    wheels: dict[str, WheelFile] = {}
    findings: list[Finding] = []
    for dist in with_wheel:
        assert dist.wheel is not None
        if dist.wheel.file in there:
            wheels[dist.name] = inspect_wheel(os.path.join(folder, dist.wheel.file))
        findings += _wheel_findings(dist, wheels.get(dist.name), manifest)
        if advance:
            advance(1)
    unknown = sorted(set(there) - {dist.wheel.file for dist in with_wheel if dist.wheel})
    bare = [d for d in manifest.distributions if d.wheel is None and not d.editable]
    findings += [_no_wheel(dist) for dist in bare]
    findings += [stranger(name) for name in unknown]
    findings += _sums_findings(folder, {wheel.file: wheel.sha256 for wheel in wheels.values()})
    together = as_the_wheels_say(manifest, wheels)
    findings += not_enough(together)
    if resolver is not None:
        findings += resolve_alone(together, resolver)
    if is_newer_minor(manifest):
        what = f"schema '{manifest.schema}' is newer than this envlock"
        findings.append(Finding(code="manifest.newer", subject=MANIFEST, what=what))
    return CheckReport(
        manifest=manifest,
        wheels=tuple(wheels.values()),
        without_wheel=tuple(dist.name for dist in bare),
        unknown=tuple(unknown),
        findings=tuple(_advised(finding) for finding in findings),
    )


#: Why a fault matters and what to do about it, by the beginning of its code.
_ADVICE = (
    ("wheelhouse.missing", "it cannot be put back from here", "get the file again"),
    ("wheelhouse.sums", "the folder is not as it was written", "get the file again"),
    ("wheelhouse.tags", "no installer puts it into the target", "get the wheel for the target"),
    ("wheelhouse.python", "pip and uv refuse it there", "get a version for the target's Python"),
    ("wheelhouse", "it is not what was locked", "get the file again"),
    ("wheel", "installers do something else with it, or fail", "get the wheel again"),
    ("manifest", "what this envlock does not know is left out", "use a newer envlock"),
)


def _advised(finding: Finding) -> Finding:
    """The finding with a reason and an advice, where it came without."""
    for code, why, hint in _ADVICE:
        if finding.code.startswith(code):
            return replace(finding, why=finding.why or why, hint=finding.hint or hint)
    return finding


def _error(code: str, subject: str, what: str) -> Finding:
    return Finding(code=code, subject=subject, what=what, level="error")


def _wheel_findings(
    dist: Distribution, wheel: WheelFile | None, manifest: Manifest
) -> list[Finding]:
    """Everything that is wrong with the wheel of one distribution."""
    assert dist.wheel is not None
    file = dist.wheel.file
    if wheel is None:
        return [_error("wheelhouse.missing", dist.name, f"'{file}' is not there")]
    found = list(wheel.problems)
    if wheel.sha256 != dist.wheel.sha256:
        what = f"sha256 is {wheel.sha256[:16]}…, the manifest says {dist.wheel.sha256[:16]}…"
        found.append(_error("wheelhouse.sha256", file, what))
    if wheel.content and dist.content and wheel.content != dist.content:
        found.append(_error("wheelhouse.content", file, "holds other files than the manifest says"))
    if wheel.name and (wheel.name != dist.name or not same_version(wheel.version, dist.version)):
        found.append(_error("wheelhouse.other", file, f"is not the wheel of '{dist}'"))
    if wheel.tags and not parse_wheel_name(file).fits(manifest.target.tags):
        what = f"does not fit the manifest's target ({manifest.target.tags[0]})"
        found.append(_error("wheelhouse.tags", file, what))
    if bad := _other_python(wheel.requires_python, manifest.target.python):
        # a rebuilt one was installed there all the same
        level = "warning" if dist.wheel.origin == "rebuilt" else "error"
        found.append(replace(_error("wheelhouse.python", file, bad), level=level))
    return found


def _other_python(required: str, python: str) -> str:
    """How a Requires-Python speaks against a target; empty where it does not."""
    try:
        fits = not required or SpecifierSet(required).contains(python, prereleases=True)
    except InvalidSpecifier:
        return ""  # pip ignores it, too
    return "" if fits else f"requires Python '{required}', the target has {python}"


def _no_wheel(dist: Distribution) -> Finding:
    because = f": {dist.reason}" if dist.reason else ""
    return Finding(
        code="wheelhouse.no-wheel",
        subject=dist.name,
        what=f"'{dist.version}' has no wheel here{because}",
        why="it cannot be put back from here",
        hint="envlock wheelhouse harvest, on the machine that has it",
        level="error" if dist.protected else "warning",
    )


def _sums_findings(folder: str, hashes: Mapping[str, str]) -> list[Finding]:
    """Where SHA256SUMS does not agree.

    Args:
        hashes: sha256 of the files that were read already.
    """
    try:
        text = Path(folder, SUMS).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return [_error("wheelhouse.sums", SUMS, f"cannot be read: {error.strerror}")]
    claimed, odd = parse_sums(text)
    found = [_error("wheelhouse.sums", SUMS, f"cannot be read: '{line[:60]}'") for line in odd]
    for name, hexa in claimed.items():
        real = hashes.get(name) or _sha256(os.path.join(folder, name))
        if not real:
            found.append(_error("wheelhouse.sums", name, f"is in {SUMS}, but not there"))
        elif real != hexa:
            found.append(_error("wheelhouse.sums", name, f"is not what {SUMS} says"))
    unlisted = sorted({MANIFEST, *hashes} - set(claimed))
    return found + [_error("wheelhouse.sums", name, f"is not in {SUMS}") for name in unlisted]


def _sha256(path: str) -> str:
    try:
        return files.sha256(path)
    except OSError:
        return ""
