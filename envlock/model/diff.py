"""What differs between two manifests."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

from packaging.version import InvalidVersion, Version

from envlock.model.dist import Distribution, same_modes
from envlock.model.facts import Finding
from envlock.model.label import same_version
from envlock.model.manifest import Manifest, to_document


class Kind(str, Enum):
    """What became of a distribution, in the order in which it is told."""

    REMOVED = "removed"
    REPLACED = "replaced"
    UNREADABLE = "unreadable"
    BYTES = "other bytes"
    MODES = "exec bits"
    READABLE = "readable"
    ADDED = "added"
    ENTRY = "entry"


_MIRRORED = {
    Kind.REMOVED: Kind.ADDED,
    Kind.ADDED: Kind.REMOVED,
    Kind.UNREADABLE: Kind.READABLE,
    Kind.READABLE: Kind.UNREADABLE,
}
_ORDER = {kind: index for index, kind in enumerate(Kind)}
#: What only a manifest knows: a target has no wheels, nobody's wishes, and no direct_url.json
#: after a restore; why something cannot be read is told with its content.
_NOT_LIVE = frozenset({"vendor", "protected", "wheel", "reason"})
#: What schema 1.0 has no word for, and what is read of protected builds alone.
_SOMETIMES = frozenset({"module"})
#: Of the making of a manifest, not of what it locks.
_MAKING = ("schema", "created", "tool", "health", "distributions")
_TOPS = ("name", "profile", "stack", "target", "machine")
_GLIBC = re.compile(r"manylinux_(\d+)_(\d+)_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A distribution that is not the same on both sides.

    Attributes:
        old: None where it was added.
        new: None where it was removed.
        fields: names of the fields of :class:`Distribution` that differ.
    """

    kind: Kind
    old: Distribution | None = None
    new: Distribution | None = None
    fields: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Canonical name."""
        known = self.old or self.new
        assert known is not None
        return known.name

    @property
    def protected(self) -> bool:
        """Whether either side protects it."""
        return any(side is not None and side.protected for side in (self.old, self.new))

    def mirrored(self) -> Change:
        """The same, seen from the other side."""
        kind = _MIRRORED.get(self.kind, self.kind)
        return Change(kind=kind, old=self.new, new=self.old, fields=self.fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A fact of target, machine or stack that is not the same.

    Attributes:
        subject: its path in a manifest, ``target.python``; ``target.glibc`` is read off the tags.
        old: text, a tuple, or None where that side does not say.
        new: likewise.
    """

    subject: str
    old: Any = None
    new: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """Everything that is not the same in two manifests.

    Attributes:
        changes: of distributions; protected ones first.
        appeared: findings about health that only the second one has.
        gone: those that only the first one has.
        compared: distributions that both have.
    """

    changes: tuple[Change, ...] = ()
    facts: tuple[Fact, ...] = ()
    appeared: tuple[Finding, ...] = ()
    gone: tuple[Finding, ...] = ()
    compared: int = 0

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.changes) + len(self.facts) + len(self.appeared) + len(self.gone)

    def mirrored(self) -> Differences:
        """The same, seen from the other side."""
        return Differences(
            changes=tuple(sorted((one.mirrored() for one in self.changes), key=_weight)),
            facts=tuple(Fact(subject=f.subject, old=f.new, new=f.old) for f in self.facts),
            appeared=self.gone,
            gone=self.appeared,
            compared=self.compared,
        )

    def only(self, names: Collection[str]) -> Differences:
        """Those of some distributions alone.

        Args:
            names: canonical names, or ``protected``; empty means everything.
        """
        if not names:
            return self
        protected = "protected" in names
        kept = (c for c in self.changes if c.name in names or (protected and c.protected))
        return Differences(changes=tuple(kept), compared=self.compared)


def compare(old: Manifest, new: Manifest, live: str = "", *, wheels: bool = True) -> Differences:
    """Everything that differs; versions and labels are compared for equality only.

    When a manifest was made, and by which envlock, is no difference. What a manifest of an older
    schema has no word for is not compared.

    Args:
        live: ``old`` or ``new``: the side that was read off a target just now. It has no wheels,
            nobody's wishes and no name, and files in ``bin`` may run that need not.
        wheels: whether both sides know wheels: a wheelhouse does, a snapshot need not.
    """
    pairs = list(_pairs(old.distributions, new.distributions))
    silent = _NOT_LIVE if live else frozenset() if wheels else frozenset({"wheel"})
    view = _View(live=live, silent=silent, older=old.schema != new.schema)
    changes = [change for one, other in pairs if (change := _change(one, other, view))]
    return Differences(
        changes=tuple(sorted(changes, key=_weight)),
        facts=tuple(_facts(old, new, view)),
        appeared=_beyond(new.health, old.health),
        gone=_beyond(old.health, new.health),
        compared=sum(one is not None and other is not None for one, other in pairs),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """What of two sides can be compared.

    Attributes:
        live: as of :func:`compare`.
        silent: fields of a distribution that one side knows nothing of.
        older: one side is of an older schema.
    """

    live: str
    silent: Collection[str]
    older: bool

    def counts(self, field: str, old: Distribution, new: Distribution) -> bool:
        """Whether it means something that a field is not the same."""
        if field == "executable" and self.live:
            wanted, found = (old, new) if self.live == "new" else (new, old)
            return bool(wanted.content) and not same_modes(wanted.executable, found.executable)
        if field in _SOMETIMES and (self.live or self.older):
            return bool(getattr(old, field) and getattr(new, field))
        return field not in self.silent


def _weight(change: Change) -> tuple[bool, int, str, str]:
    versions = [side.version for side in (change.old, change.new) if side is not None]
    return not change.protected, _ORDER[change.kind], change.name, min(versions)


def _beyond(findings: Iterable[Finding], others: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings that the others do not have, in order; one counts as often as it is there."""
    left = Counter(others)
    found = []
    for finding in findings:
        if left[finding]:
            left[finding] -= 1
        else:
            found.append(finding)
    return tuple(found)


# --- distributions --------------------------------------------------------------------------


_Pair = tuple[Distribution | None, Distribution | None]


def _pairs(old: Iterable[Distribution], new: Iterable[Distribution]) -> Iterator[_Pair]:
    """Each distribution beside the one that it has to be compared with.

    A name may be there twice: the same version belongs together, then what is left, in order.
    """
    before, after = _grouped(old), _grouped(new)
    for name in sorted({*before, *after}):
        ours, theirs = before.get(name, []), after.get(name, [])
        if len(ours) == len(theirs) == 1:
            yield ours[0], theirs[0]
        else:
            yield from _twins(ours, theirs)


def _grouped(dists: Iterable[Distribution]) -> dict[str, list[Distribution]]:
    found: dict[str, list[Distribution]] = {}
    for dist in dists:
        found.setdefault(dist.name, []).append(dist)
    return found


def _twins(old: list[Distribution], new: list[Distribution]) -> Iterator[_Pair]:
    likeness: tuple[Callable[[Distribution], Any], ...] = (
        lambda dist: dist,
        lambda dist: _spelling(dist.version),
        lambda dist: dist.name,
    )
    for alike in likeness:
        for one in sorted(old, key=repr):
            other = next((it for it in sorted(new, key=repr) if alike(it) == alike(one)), None)
            if other is not None:
                old.remove(one)
                new.remove(other)
                yield one, other
    yield from ((one, None) for one in old)
    yield from ((None, one) for one in new)


def _spelling(version: str) -> Version | str:
    """Equal for all spellings of a version that :func:`same_version` takes for one."""
    try:
        return Version(version)
    except InvalidVersion:
        return version


def _change(old: Distribution | None, new: Distribution | None, view: _View) -> Change | None:
    if old is None or new is None:
        return Change(kind=Kind.ADDED if old is None else Kind.REMOVED, old=old, new=new)
    differing = tuple(
        field.name
        for field in fields(Distribution)
        if getattr(old, field.name) != getattr(new, field.name)
        and view.counts(field.name, old, new)
    )
    if not differing:
        return None
    return Change(kind=_kind(old, new, differing), old=old, new=new, fields=differing)


def _kind(old: Distribution, new: Distribution, differing: Collection[str]) -> Kind:
    if "version" in differing and not same_version(old.version, new.version):
        return Kind.REPLACED
    if "content" in differing:
        if not new.content:
            return Kind.UNREADABLE
        return Kind.BYTES if old.content else Kind.READABLE
    return Kind.MODES if "executable" in differing else Kind.ENTRY


# --- facts ----------------------------------------------------------------------------------


def _facts(old: Manifest, new: Manifest, view: _View) -> Iterator[Fact]:
    before, after = _flat_facts(old, view.live), _flat_facts(new, view.live)
    for subject in sorted({*before, *after}, key=_place):
        for name, one, other in _parts(subject, before.get(subject), after.get(subject)):
            if one != other and not (view.older and not (_says(one) and _says(other))):
                yield Fact(subject=name, old=one, new=other)


def _says(value: Any) -> bool:
    return any(one is not None for one in (value if isinstance(value, tuple) else (value,)))


def _parts(subject: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """A fact; of as many devices as before, one for each of their properties."""
    if not (_are_mappings(old) and _are_mappings(new) and len(old) == len(new)):
        yield subject, old, new
        return
    for key in sorted({key for one in (*old, *new) for key in one}):
        mine, other = (tuple(one.get(key) for one in side) for side in (old, new))
        yield f"{subject}.{key}", mine, other


def _are_mappings(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(one, Mapping) for one in value)


def _place(subject: str) -> tuple[int, str]:
    top = subject.partition(".")[0]
    return _TOPS.index(top) if top in _TOPS else len(_TOPS), subject


def _flat_facts(manifest: Manifest, live: str) -> dict[str, Any]:
    document = to_document(manifest)
    for name in (*_MAKING, *(["name"] if live else [])):
        document.pop(name, None)
    return {**_flat("", document), **_glibc(manifest.target.tags)}


def _flat(path: str, value: Any) -> dict[str, Any]:
    """The values of a document by their path; a list is one value."""
    if isinstance(value, Mapping):
        inside = (_flat(f"{path}.{key}" if path else str(key), value[key]) for key in value)
        return {key: found for part in inside for key, found in part.items()}
    return {path: tuple(value) if isinstance(value, list) else value}


def _glibc(tags: Iterable[str]) -> dict[str, str]:
    """The newest glibc that the tags accept wheels for."""
    found = [(int(hit[1]), int(hit[2])) for tag in tags if (hit := _GLIBC.search(tag))]
    return {"target.glibc": "{}.{}".format(*max(found))} if found else {}


# --- losses ---------------------------------------------------------------------------------


def losses(old: Manifest, new: Manifest) -> list[Finding]:
    """Protected builds of ``old`` that ``new`` does not have or has differently.

    A manifest in which this happens is never written over the old one without being asked to.
    """
    return [
        _loss(dist, what)
        for dist in old.protected
        if (what := _vanished(dist, new.find(dist.name)) or _changed(dist, new.find(dist.name)))
    ]


def vanished(old: Manifest, new: Manifest) -> list[Finding]:
    """Protected builds of ``old`` that ``new`` could not give back in any version.

    What is remembered never moves to such a manifest; another build of the same is no loss where
    a person restored it on purpose.
    """
    return [
        _loss(dist, what)
        for dist in old.protected
        if (what := _vanished(dist, new.find(dist.name)))
    ]


def _vanished(dist: Distribution, now: Distribution | None) -> str:
    if now is None:
        return f"'{dist.version}' is not installed any more"
    if dist.content and not now.content:
        return f"'{dist.version}' cannot be read any more: {now.reason or 'no content'}"
    same = bool(dist.content) and now.content == dist.content
    if dist.vendor and not now.vendor and not same:
        return f"'{dist.version}' is now '{now.version}', no vendor build"
    return ""


def _changed(dist: Distribution, now: Distribution | None) -> str:
    if now is None or (same_version(now.version, dist.version) and now.content == dist.content):
        return ""
    if now.vendor and not dist.vendor:  # what only its name protected gave way to the vendor's own
        return ""
    if not same_version(now.version, dist.version):
        return f"'{dist.version}' is now '{now.version}'"
    return f"'{dist.version}' has other bytes" if dist.content else ""


def _loss(dist: Distribution, what: str) -> Finding:
    return Finding(code="manifest.loss", subject=dist.name, what=what, level="error")
