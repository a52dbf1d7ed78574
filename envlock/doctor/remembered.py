"""What envlock knows of a target: its manifest, kept wheels, an unfinished restore. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from envlock.doctor.report import Section, listed, rows
from envlock.model.dist import Distribution
from envlock.model.facts import Finding
from envlock.model.label import same_version
from envlock.model.manifest import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """Of one target.

    Attributes:
        manifest: in force; None without one.
        source: where it is from.
        unreadable: why the one that is remembered cannot be read; empty when it can.
        wheels: folder of kept wheels; empty for none.
        report: the verdict of the last ``verify``, and when; empty for none.
        unfinished: what is to be said of a restore that has not ended, and what to do.
        installed: name to version, now.
        vendor: names that carry a sign of a vendor build, now.
        held: whether plain installs keep the builds; empty where nobody asked.
        holding: what is wrong with that.
    """

    manifest: Manifest | None = None
    source: str = ""
    unreadable: str = ""
    wheels: str = ""
    report: str = ""
    unfinished: tuple[str, str] = ("", "")
    installed: Mapping[str, str] = field(default_factory=dict)
    vendor: tuple[str, ...] = ()
    held: str = ""
    holding: tuple[Finding, ...] = ()

    def lost(self) -> list[tuple[Distribution, str]]:
        """Protected builds that are not there any more, and what is; empty for nothing."""
        return [
            (dist, now)
            for dist in (self.manifest.protected if self.manifest else ())
            if not same_version(now := self.installed.get(dist.name, ""), dist.version)
        ]

    def moved(self) -> list[str]:
        """Other distributions that the manifest has in another version, or not."""
        if self.manifest is None:
            return []
        locked = {dist.name: dist for dist in self.manifest.distributions}
        changed = [
            name
            for name, dist in locked.items()
            if not dist.protected and not same_version(self.installed.get(name, ""), dist.version)
        ]
        return sorted({*changed, *(self.installed.keys() - locked.keys())})


def envlock_section(known: Knowledge) -> Section:
    """The manifest and the target beside each other, by version alone: no file is hashed."""
    manifest, lost = known.manifest, known.lost()
    protected = len(manifest.protected) if manifest else 0
    there = f"{protected - len(lost)} of {protected} there" if protected else ""
    named = f"{manifest.name} of {manifest.created} ({known.source})" if manifest else "none"
    return Section(
        title="envlock",
        rows=rows(
            [
                ("manifest", named),
                ("protected builds", f"{there} by version; bytes: 'envlock verify'" * bool(there)),
                ("other changes", listed(known.moved(), 8)),
                ("kept wheels", known.wheels or "none"),
                ("last verify", known.report),
                ("plain installs", known.held),
            ]
        ),
        findings=(
            *_unfinished(known),
            *_drift(known),
            *_missing(known),
            *known.holding,
        ),
        data={
            "manifest": known.source if manifest else None,
            "protected": protected,
            "lost": [{"name": d.name, "locked": d.version, "now": now} for d, now in lost],
            "moved": known.moved(),
            "wheels": known.wheels or None,
            "last_verify": known.report,
            "unfinished": bool(known.unfinished[0]),
        },
    )


def _unfinished(known: Knowledge) -> Iterator[Finding]:
    what, hint = known.unfinished
    if what:
        yield Finding(
            code="state.unfinished",
            subject="target",
            what=what,
            why="until it has ended, the target may be half old and half new",
            hint=hint,
            level="error",
        )


def _drift(known: Knowledge) -> Iterator[Finding]:
    hint = (
        "put it back: envlock restore"
        if known.wheels
        else "put it back: envlock restore --wheelhouse DIR, with the wheels that were kept"
    )
    for dist, now in known.lost():
        what = f"'{dist.version}' is now '{now}'" if now else f"'{dist.version}' is gone"
        yield Finding(
            code="drift.changed" if now else "drift.gone",
            subject=dist.name,
            what=what,
            why="the manifest protects it",
            hint=hint,
            level="error",
        )


def _missing(known: Knowledge) -> Iterator[Finding]:
    if known.unreadable:
        yield Finding(
            code="state.unreadable",
            subject="manifest",
            what=known.unreadable,
            why="guard and restore need it",
            hint="make it again with 'envlock snapshot --force' while the target is healthy",
            level="error",
        )
    elif known.manifest is None and known.vendor:
        yield Finding(
            code="state.no-manifest",
            subject="target",
            what=f"nothing is locked, and {listed(known.vendor)} can be had from no index",
            why="what is replaced now can be neither named nor put back",
            hint="envlock snapshot, then envlock wheelhouse harvest",
        )
    if known.manifest is not None and known.manifest.protected and not known.wheels:
        yield Finding(
            code="state.no-wheels",
            subject="target",
            what="no wheels are kept of its protected builds",
            why="restore needs them",
            hint="envlock wheelhouse harvest",
        )
