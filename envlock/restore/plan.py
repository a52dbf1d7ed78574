"""What a restore has to do: manifest minus target, by content. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from packaging.utils import canonicalize_name

from envlock.model.dist import Distribution, same_modes
from envlock.model.facts import Finding
from envlock.model.health import applies, parse_requirement
from envlock.model.label import same_version
from envlock.model.manifest import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """A distribution as the target has it.

    Attributes:
        copies: number of ``.dist-info`` of that name; more than one is a broken state.
        executable: places with an exec bit.
        reason: why there is no digest.
    """

    name: str
    version: str
    content: str = ""
    executable: tuple[str, ...] = ()
    copies: int = 1
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One distribution that has to change.

    Attributes:
        wanted: what it becomes; None when it is removed.
        present: what it is; None when it is not there.
        why: for people.
    """

    wanted: Distribution | None
    present: Present | None
    why: str

    @property
    def name(self) -> str:
        """Canonical name."""
        known = self.wanted or self.present
        assert known is not None
        return known.name

    def __str__(self) -> str:
        before = self.present.version if self.present else ""
        after = self.wanted.version if self.wanted else ""
        if before and after and not same_version(before, after):
            return f"{self.name} {before} -> {after}: {self.why}"
        return f"{self.name} {after or before}: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a restore writes beside what is there, which goes only after the swap.

    Attributes:
        bytes: sum of the files' sizes.
        files: their number, folders not counted.
    """

    bytes: int
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything a restore does, and what stands in its way.

    Attributes:
        steps: sorted by name.
        kept: distributions that are right already.
        extra: names installed beyond the manifest, which stay.
        leftovers: absolute paths that interrupted installers left; they go.
        twins: absolute paths of metadata that a distribution has twice; they go with its step.
        findings: what cannot be restored; an ``error`` refuses the restore.
    """

    steps: tuple[Step, ...] = ()
    kept: tuple[Distribution, ...] = ()
    extra: tuple[str, ...] = ()
    leftovers: tuple[str, ...] = ()
    twins: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def work(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.steps or self.leftovers)

    @property
    def wanted(self) -> tuple[Distribution, ...]:
        """What has to come from wheels."""
        return tuple(step.wanted for step in self.steps if step.wanted is not None)

    @property
    def need(self) -> Need:
        """What that takes on the disk."""
        return Need(
            bytes=sum(dist.bytes for dist in self.wanted),
            files=sum(dist.files for dist in self.wanted),
        )


def difference(wanted: Distribution, present: Present | None) -> str:
    """Why a distribution is not as it should be; empty when it is."""
    if present is None:
        return "missing"
    if present.copies > 1:
        return f"{present.copies} copies of its metadata"
    if not same_version(wanted.version, present.version):
        return "another version"
    if not wanted.content:
        return ""
    if not present.content:
        return present.reason
    if present.content != wanted.content:
        return "other bytes"
    return "" if same_modes(wanted.executable, present.executable) else "other exec bits"


def make_plan(
    manifest: Manifest,
    present: Sequence[Present],
    *,
    only: Collection[str] = (),
    exact: bool = False,
    own: Collection[str] = (),
) -> Plan:
    """Compares a manifest with a target: each distribution of the manifest that is looked at is in
    exactly one of steps, kept and findings.

    Args:
        present: what the target has.
        only: canonical names to look at, or ``protected``; empty means all.
        exact: remove what the manifest does not have.
        own: names that are never removed (envlock and what it runs with, where it lives there).
    """
    there = {one.name: one for one in present}
    steps, kept, findings = [], [], []
    for dist in manifest.distributions:
        if only and not (dist.name in only or ("protected" in only and dist.protected)):
            continue
        why = difference(dist, there.get(dist.name))
        if not why:
            kept.append(dist)
        elif dist.content:
            steps.append(Step(wanted=dist, present=there.get(dist.name), why=why))
        else:
            findings.append(_cannot(dist, why))
    known = {dist.name for dist in manifest.distributions}
    extra = [one for one in present if one.name not in known]
    if exact and not only:
        gone = [one for one in extra if one.name not in own]
        steps += [Step(wanted=None, present=one, why="not in the manifest") for one in gone]
        extra = [one for one in extra if one.name in own]
    return Plan(
        steps=tuple(sorted(steps, key=lambda step: step.name)),
        kept=tuple(kept),
        extra=tuple(one.name for one in extra),
        findings=tuple(findings),
    )


def _cannot(dist: Distribution, why: str) -> Finding:
    return Finding(
        code="restore.no-content",
        subject=dist.name,
        what=f"'{dist.version}' is {why}, and the manifest has no content for it: {dist.reason}",
        hint="leave it out with --only, or take a manifest that has it",
        level="error" if dist.protected else "warning",
    )


def unknown_names(manifest: Manifest, only: Collection[str]) -> list[str]:
    """Names of ``--only`` that the manifest does not have; ``protected`` where nothing is."""
    known = {dist.name for dist in manifest.distributions}
    return sorted(set(only) - known - ({"protected"} if manifest.protected else set()))


def needed_by(
    root: str, requires: Mapping[str, Collection[str]], markers: Mapping[str, str]
) -> set[str]:
    """A distribution and all it needs, directly or not, as far as it is installed.

    Args:
        root: canonical name.
        requires: raw Requires-Dist by canonical name, of everything installed.
    """
    found: set[str] = set()
    todo = [root]
    while todo:
        name = todo.pop()
        if name in found or name not in requires:
            continue
        found.add(name)
        for raw in requires[name]:
            requirement = parse_requirement(raw)
            if requirement is not None and applies(requirement, markers):
                todo.append(canonicalize_name(requirement.name))
    return found


def overlap_problems(
    contents: Mapping[str, Mapping[str, str]], allowed: Collection[str]
) -> list[Finding]:
    """Files that two distributions would own with different bytes.

    Args:
        contents: for each distribution, sha256 (hexadecimal) by place.
        allowed: names whose overlaps the healthy image already had.
    """
    first: dict[str, tuple[str, str]] = {}
    found = []
    for name, files in contents.items():
        for place, hexa in files.items():
            other, known = first.setdefault(place, (name, hexa))
            if known != hexa and not {name, other} & set(allowed):
                found.append(
                    Finding(
                        code="restore.overlap",
                        subject=name,
                        what=f"'{place}' is owned by '{other}' too, with other bytes",
                        hint="only one of them can be whole: leave the other one out with --only",
                        level="error",
                    )
                )
    return found
