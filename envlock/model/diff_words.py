"""What differs between two manifests, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from envlock.model.diff import Change, Differences, Fact, Kind
from envlock.model.dist import Distribution
from envlock.model.facts import Finding
from envlock.model.label import parse_label

_NAMED = 3  # files and values that a line names
_LONG = 60

_LEVELS = {Kind.ADDED: "warning", Kind.READABLE: "info", Kind.ENTRY: "info"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Files of a distribution that are not the same, by place (``SCHEME/PATH``).

    Attributes:
        changed: other bytes.
        gone: only in the first one.
        added: only in the second one.
        damaged: on the disk of a target other than their own RECORD says.
    """

    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()


def whose(dist: Distribution) -> str:
    """Whose build it is: ``dtk2604 vendor build``, ``cu130 build``, ``public build``."""
    if dist.editable:
        return "development install"
    label = parse_label(dist.version)
    if dist.vendor:
        return f"{label.stack} vendor build" if label.stack else "vendor build"
    if label.stack:
        return f"{label.stack} build"
    return f"build '{label.local}'" if label.local else "public build"


def row(change: Change, files: Files | None = None) -> tuple[str, str, str, str, str]:
    """Kind, name, version on either side, and what there is to say."""
    old, new = (side.version if side else "" for side in (change.old, change.new))
    return change.kind.value, change.name, old, new, "; ".join(said(change, files))


def said(change: Change, files: Files | None = None) -> list[str]:
    """Everything there is to say about a change, the most important first."""
    parts = ["protected"] if change.protected else []
    old, new = change.old, change.new
    if old is None or new is None:
        known = old or new
        return [*parts, whose(known)] if known else parts
    if change.kind is Kind.REPLACED:
        mine, other = whose(old), whose(new)
        parts.append(f"{mine} -> {other}" if mine != other else f"still a {mine}")
    elif change.kind is Kind.UNREADABLE:
        parts.append(f"cannot be read any more: {new.reason or 'no content'}")
    elif change.kind is Kind.READABLE:
        parts.append(f"could not be read before: {old.reason or 'no content'}")
    elif change.kind is Kind.BYTES:
        parts += _bytes(old, new, files)
    for field in _SAY_IF_REPLACED if change.kind is Kind.REPLACED else _told(change.fields):
        if field in change.fields:
            parts += _SAY.get(field, _value(field, field))(old, new)
    return parts


def _told(fields: Sequence[str]) -> list[str]:
    """The fields in the order in which they are told; a new one needs no words of its own."""
    return sorted(fields, key=lambda name: [*_SAY, name].index(name))


def _bytes(old: Distribution, new: Distribution, files: Files | None) -> list[str]:
    parts = [f"{_short(old.content)} -> {_short(new.content)}"]
    if old.files != new.files:
        parts.append(f"{old.files} -> {new.files} files")
    if files is not None:
        told = (
            ("not as its own RECORD says", files.damaged),
            ("changed", [name for name in files.changed if name not in files.damaged]),
            ("only in A", files.gone),
            ("only in B", files.added),
        )
        parts += [f"{word}: {_names(names)}" for word, names in told if names]
    return parts


def _short(content: str) -> str:
    return content[:19]  # ``sha256:`` and enough digits to tell two apart


def _names(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    shown = ", ".join(f"'{name}'" for name in names[:_NAMED])
    return shown + (f" and {more} more" if more > 0 else "")


def _requires(old: Distribution, new: Distribution) -> list[str]:
    gone, more = _beyond(old.requires, new.requires), _beyond(new.requires, old.requires)
    parts = [f"requires {_names(more)}"] if more else []
    parts += [f"requires no more {_names(gone)}"] if gone else []
    return parts or ["requires the same in another order"]


def _modes(old: Distribution, new: Distribution) -> list[str]:
    lost, got = _beyond(old.executable, new.executable), _beyond(new.executable, old.executable)
    parts = [f"not executable any more: {_names(lost)}"] if lost else []
    parts += [f"executable now: {_names(got)}"] if got else []
    return parts or ["the same exec bits in another order"]


def _beyond(values: Iterable[str], others: Iterable[str]) -> list[str]:
    return list((Counter(values) - Counter(others)).elements())


def _wheel(old: Distribution, new: Distribution) -> list[str]:
    if old.wheel is None or new.wheel is None:
        known = old.wheel or new.wheel
        return [f"a wheel only in {'A' if old.wheel else 'B'}: '{known.file}'"] if known else []
    if old.wheel.sha256 != new.wheel.sha256:
        names = {old.wheel.file, new.wheel.file}
        return [f"another wheel: {_names(sorted(names))}"]
    return ["the same wheel, told otherwise"]


def _flag(words: str, field: str) -> Callable[[Distribution, Distribution], list[str]]:
    return lambda old, new: [words.format(side="A" if getattr(old, field) else "B")]


def _value(name: str, field: str) -> Callable[[Distribution, Distribution], list[str]]:
    def say(old: Distribution, new: Distribution) -> list[str]:
        return [f"{name}: {shown(getattr(old, field))} -> {shown(getattr(new, field))}"]

    return say


def _counted(name: str) -> Callable[[Distribution, Distribution], list[str]]:
    """Said by itself only where the bytes are the same: a manifest that contradicts itself."""
    say = _value(name, name)
    return lambda old, new: say(old, new) if old.content == new.content else []


def _spelled(old: Distribution, new: Distribution) -> list[str]:
    return [f"the same version, written '{old.version}' and '{new.version}'"]


def _reason(old: Distribution, new: Distribution) -> list[str]:
    """Told with the content, where that is not known on one side only."""
    return _value("reason", "reason")(old, new) if bool(old.content) == bool(new.content) else []


def _told_already(old: Distribution, new: Distribution) -> list[str]:
    return []


_SAY: Mapping[str, Callable[[Distribution, Distribution], list[str]]] = {
    "version": _spelled,
    "content": _told_already,
    "executable": _modes,
    "module": _value("its module says", "module"),
    "protected": _flag("protected only in {side}", "protected"),
    "vendor": _value("vendor signals", "vendor"),
    "editable": _flag("a development install only in {side}", "editable"),
    "requires": _requires,
    "reason": _reason,
    "files": _counted("files"),
    "bytes": _counted("bytes"),
    "wheel": _wheel,
}
_SAY_IF_REPLACED = ("protected", "requires")


def shown(value: Any) -> str:
    """A fact for people."""
    if value is None or value == () or value == "":
        return "nothing"
    text = ", ".join(_counted_items(value)) if isinstance(value, tuple) else str(value)
    return text if len(text) <= _LONG else f"{text[: _LONG - 1]}…"


def _counted_items(values: Iterable[Any]) -> list[str]:
    """``8 x BW``: devices of one kind are told once."""
    names = (v.get("name", _item(v)) if isinstance(v, Mapping) else _item(v) for v in values)
    return [text if n == 1 else f"{n} x {text}" for text, n in Counter(names).items()]


def _item(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    if isinstance(value, Mapping):
        return " ".join(str(v) if key == "name" else f"{key} {v}" for key, v in value.items())
    return "nothing" if value is None else str(value)


def fact_row(fact: Fact) -> tuple[str, str, str, str, str]:
    """A fact in the columns of :func:`row`; of long lists only what differs."""
    told = ("fact", fact.subject, shown(fact.old), shown(fact.new))
    if not (isinstance(fact.old, tuple) and isinstance(fact.new, tuple)):
        return (*told, "")
    ours, theirs = (tuple(map(_item, values)) for values in (fact.old, fact.new))
    gone, more = _beyond(ours, theirs), _beyond(theirs, ours)
    parts = [f"{len(gone)} only in A: {_names(gone)}"] if gone else []
    parts += [f"{len(more)} only in B: {_names(more)}"] if more else []
    if len(told[2] + told[3]) < _LONG:  # all there is to see
        return (*told, "" if len(ours) == len(theirs) else "; ".join(parts))
    what = "; ".join(parts) or "the same in another order"
    return ("fact", fact.subject, f"{len(ours)} values", f"{len(theirs)} values", what)


def finding_of(change: Change, files: Files | None = None) -> Finding:
    """A change as a value for scripts: losses of protected builds are errors."""
    level = _LEVELS.get(change.kind, "error" if change.protected else "warning")
    kind, name, old, new, what = row(change, files)
    versions = f"'{old}' -> '{new}'" if old and new and old != new else f"'{old or new}'"
    return Finding(
        code=f"diff.{kind.replace(' ', '-')}",
        subject=name,
        what=f"{kind}: {versions}" + (f": {what}" if what else ""),
        level=level,
    )


def verdict(found: Differences) -> str:
    """The line that answers: ``4 differences, 1 of them in a protected build; …``."""
    compared = _number(found.compared, "distribution")
    if not found.count:
        return f"no difference; {compared} compared"
    protected = sum(change.protected for change in found.changes)
    head = _number(found.count, "difference")
    if protected:
        builds = _number(protected, "protected build")
        head = f"{head}, {builds} among them"
    kinds = Counter(change.kind for change in found.changes)
    parts = [f"{kinds[kind]} {kind.value}" for kind in Kind if kinds[kind]]
    parts += [_number(len(found.facts), "fact")] if found.facts else []
    health = len(found.appeared) + len(found.gone)
    parts += [f"{health} of health"] if health else []
    return f"{head}: {', '.join(parts)}; {compared} compared"


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def to_data(found: Differences, files: Mapping[str, Files]) -> dict[str, Any]:
    """Everything as JSON.

    Args:
        files: what differs in the files of a distribution, by name, where both sides were read.
    """
    return {
        "same": not found.count,
        "compared": found.compared,
        "distributions": [_change_data(one, files.get(one.name)) for one in found.changes],
        "facts": [{"subject": f.subject, "old": f.old, "new": f.new} for f in found.facts],
        "health": {
            "appeared": [asdict(one) for one in found.appeared],
            "gone": [asdict(one) for one in found.gone],
        },
    }


def _change_data(change: Change, files: Files | None) -> dict[str, Any]:
    sides = {"old": change.old, "new": change.new}
    data: dict[str, Any] = {
        "kind": change.kind.value,
        "name": change.name,
        "protected": change.protected,
        "fields": list(change.fields),
        **{key: _dist_data(side) if side else None for key, side in sides.items()},
    }
    if files is not None:
        names = ("changed", "gone", "added", "damaged")
        data["files"] = {name: list(getattr(files, name)) for name in names}
    return data


def _dist_data(dist: Distribution) -> dict[str, Any]:
    return {
        "version": dist.version,
        "build": whose(dist),
        "vendor": list(dist.vendor),
        "protected": dist.protected,
        "content": dist.content,
        "files": dist.files,
        "bytes": dist.bytes,
        "executable": list(dist.executable),
        "requires": list(dist.requires),
        "module": dict(dist.module),
        "wheel": dist.wheel.file if dist.wheel else None,
        "reason": dist.reason,
    }
