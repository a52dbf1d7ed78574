"""What a rule looks at: the request, the plan, what must not be lost, and what was found out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from envlock.adapters.installer import Change, Known, Plan
from envlock.guard.command import Asked, Request
from envlock.model.facts import Finding
from envlock.model.label import same_version


@dataclass(frozen=True, slots=True, kw_only=True)
class Protected:
    """A build that must not be lost.

    Attributes:
        name: canonical.
        version: raw version to be kept.
        installed: raw version that is in the target now; None when none is.
        sha256: of the wheel it was installed from or is kept in; empty when not known.
        requires: its Requires-Dist that count in the target.
        by_name: nothing but its name speaks for it: it may be what took a vendor build's place.
    """

    name: str
    version: str
    installed: str | None = None
    sha256: str = ""
    requires: tuple[str, ...] = ()
    by_name: bool = False

    @property
    def intact(self) -> bool:
        """Whether it is there to be lost."""
        return self.installed is not None and same_version(self.installed, self.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Files of a protected build that a change of another distribution would write or delete.

    Attributes:
        by: name of the other distribution.
        build: name of the protected one.
        places: where the files are (``SCHEME/PATH``).
    """

    by: str
    build: str
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Something that has to be built before it can be installed.

    Attributes:
        raw: as it was asked for, or the URL it comes from.
        requires: canonical names that its build requires; None when nobody could read them.
        imports: top-level names that its ``setup.py`` imports.
        packages: import packages that lie in it.
        isolated: whether it is built in an environment of its own.
    """

    raw: str
    requires: frozenset[str] | None = frozenset()
    imports: frozenset[str] = frozenset()
    packages: frozenset[str] = frozenset()
    isolated: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What neither the command line nor the plan says.

    Attributes:
        overlaps: as far as file lists could be had.
        sources: what would be built.
        unlisted: names of changes whose wheels have file lists that could not be had.
        isolated: whether builds happen in an environment of their own, unless a source does not.
        above: protected builds of an environment that shows through in this one.
        installed: canonical names and raw versions of what is in the target.
        healthy: those of the manifest; empty without one.
        imports: top-level import names of each protected build.
        constraints: raw lines of the person's own constraint files.
    """

    overlaps: tuple[Overlap, ...] = ()
    sources: tuple[Source, ...] = ()
    unlisted: tuple[str, ...] = ()
    isolated: bool = True
    above: tuple[Protected, ...] = ()
    installed: Mapping[str, str] = field(default_factory=dict)
    healthy: Mapping[str, str] = field(default_factory=dict)
    imports: Mapping[str, frozenset[str]] = field(default_factory=dict)
    constraints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Everything that a rule judges by; ``held`` are the builds that are there to be lost."""

    request: Request
    plan: Plan
    held: Mapping[str, Protected]
    evidence: Evidence = Evidence()

    def planned(self) -> Iterator[tuple[Change, Protected]]:
        """Changes of protected builds."""
        for change in self.plan.changes:
            if change.name in self.held:
                yield change, self.held[change.name]

    def unforeseen(self) -> Iterator[tuple[Asked, Protected]]:
        """Protected names that the command line spells out, where nobody could be asked."""
        if self.plan.known is not Known.UNKNOWN or self.request.subcommand != "install":
            return
        for asked in self.request.asked:
            if asked.name in self.held:
                yield asked, self.held[asked.name]


Rule = Callable[[Case], Iterator[Finding]]


def loss(build: Protected, what: str, why: str, hint: str = "") -> Finding:
    """What would be lost; the rule that says so adds its code."""
    return Finding(code="", subject=build.name, what=what, why=why, hint=hint, level="error")


def code_of(rule: Rule) -> str:
    """The stable code of a rule: its own name."""
    name = rule.__name__
    return "guard." + name.strip("_").replace("_", "-")
