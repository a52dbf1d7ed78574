"""What can be compared with what: manifests, wheelhouses, the live target, reports."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from envlock.cli import wiring
from envlock.cli.options import Common
from envlock.errors import UnusableInput, UsageProblem

if TYPE_CHECKING:
    from envlock.model.diff import Differences
    from envlock.model.diff_words import Files
    from envlock.model.dist import Distribution
    from envlock.model.facts import Finding, Target
    from envlock.model.manifest import Manifest
    from envlock.verify.saved import Report

#: The word for the live target; a file or folder of that name is ``./env``.
LIVE = "env"
_HINT = (
    "name a report that 'envlock verify --report' wrote, a manifest, a wheelhouse, or 'env' for "
    "the target"
)
_LIKE_A_MANIFEST = re.compile(r"^(---|schema[ \t]*:|distributions[ \t]*:)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two that are compared.

    Attributes:
        kind: ``manifest``, ``wheelhouse``, ``target`` or ``report``.
        name: as it was typed; ``env`` for the target.
        folder: of a wheelhouse.
        target: of a live one.
    """

    kind: str
    name: str
    manifest: Manifest | None = None
    report: Report | None = None
    folder: str = ""
    target: Target | None = None

    def head(self) -> dict[str, object]:
        """What it is, for a document."""
        head: dict[str, object] = {"kind": self.kind, "name": self.name}
        if self.manifest is not None:
            head |= {"manifest": self.manifest.name, "created": self.manifest.created}
        return head

    def told(self) -> str:
        """What it is, for the head of a table."""
        if self.target is not None:
            return f"the target {self.target.layout.prefix} (Python {self.target.python}), now"
        created = self.manifest.created if self.manifest is not None else ""
        return f"{self}, made {created}"

    def __str__(self) -> str:
        return "the target" if self.kind == "target" else f"{self.kind} '{self.name}'"


def sides(common: Common, named: tuple[str | None, str | None], trust_record: bool) -> list[Side]:
    """The two that are compared; what is not named is the good state that is remembered, then the
    target (of a report: the last one of the target).

    Raises:
        UsageProblem: the pair makes no sense.
        UnusableInput: one of them cannot be used.
    """
    first = _of_manifest(common) if named[0] is None else _read(named[0])
    second = _read(named[1]) if named[1] is not None else _left_out(common, first)
    found = [first, second]
    kinds = [one.kind for one in found]
    if kinds == ["target", "target"]:
        raise UsageProblem(
            "command line: there is one target to compare", "name a manifest or a wheelhouse"
        )
    if kinds.count("report") == 1:
        raise UsageProblem(
            f"command line: {first} and {second} have nothing in common",
            "a report is compared with a report: 'envlock verify --report FILE' writes one",
        )
    known = next((one.manifest for one in found if one.manifest is not None), None)
    return [_live(common, known, trust_record) if s.kind == "target" else s for s in found]


def _left_out(common: Common, first: Side) -> Side:
    if first.kind != "report":
        return Side(kind="target", name=LIVE)
    target = wiring.open_target(common)
    path = wiring.memory(common, target).report_path
    if not path.exists():
        raise UnusableInput(
            "report: none is remembered for this target", "run 'envlock verify', or name a second"
        )
    return _read(str(path))


def _of_manifest(common: Common) -> Side:
    found = wiring.need_manifest(common, wiring.open_target(common))
    return Side(kind="manifest", name=found.source, manifest=found.manifest)


def _read(named: str) -> Side:
    if named == LIVE:
        return Side(kind="target", name=named)
    if os.path.isdir(named):
        return _read_folder(named)
    return _read_file(named)


def _read_folder(folder: str) -> Side:
    from envlock.adapters.state import read_manifest
    from envlock.wheelhouse.folder import MANIFEST

    path = os.path.join(folder, MANIFEST)
    if not os.path.exists(path):
        environment = os.path.exists(os.path.join(folder, "pyvenv.cfg"))
        raise UnusableInput(
            f"{folder}: no '{MANIFEST}' in it: no wheelhouse",
            "'env' with --python names an environment" if environment else _HINT,
        )
    manifest = read_manifest(path)
    lying = replace(manifest, health=(*manifest.health, *_lying(folder, manifest)))
    return Side(kind="wheelhouse", name=folder, manifest=lying, folder=folder)


def _lying(folder: str, manifest: Manifest) -> list[Finding]:
    """What lies in a wheelhouse and should not, and the other way round."""
    from envlock.model.facts import Finding
    from envlock.wheelhouse.folder import strangers, wheel_files

    there = set(wheel_files(folder))
    missing = [
        Finding(
            code="wheelhouse.missing",
            subject=dist.name,
            what=f"'{dist.wheel.file}' is not there",
            level="error" if dist.protected else "warning",
        )
        for dist in manifest.distributions
        if dist.wheel is not None and dist.wheel.file not in there
    ]
    return [*missing, *strangers(folder, manifest)]


def _read_file(path: str) -> Side:
    """What a file is is found in it, never in its name."""
    from envlock.model.manifest import load
    from envlock.verify import saved

    text = _text(path)
    if text.lstrip("\ufeff \t\r\n").startswith("{") and not _is_json_manifest(text):
        return Side(kind="report", name=path, report=saved.load(path))
    if not _LIKE_A_MANIFEST.search(text) and not text.lstrip().startswith("{"):
        raise UnusableInput(f"{path}: neither a manifest nor a report", _HINT)
    return Side(kind="manifest", name=path, manifest=load(text, path))


def _is_json_manifest(text: str) -> bool:
    """JSON is YAML, too."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and "distributions" in document


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise UnusableInput(f"{path}: cannot be read: {error.strerror}", _HINT) from error
    except UnicodeDecodeError as error:
        import zipfile

        kit = "unpack it first: envlock wheelhouse unpack KIT DIR"
        what = "a kit" if zipfile.is_zipfile(path) else "neither a manifest nor a report"
        raise UnusableInput(f"{path}: {what}", kit if what == "a kit" else _HINT) from error


def _live(common: Common, known: Manifest | None, trust_record: bool) -> Side:
    """The target as it is now, read with the profile of what it is compared with."""
    from envlock.snapshot import take

    target = wiring.open_target(common)
    request = replace(
        wiring.snapshot_request(common, target, _profile(known)),
        trust_record=trust_record,
        known=known,
    )
    with common.screen.progress(f"reading {target.layout.prefix}") as advance:
        manifest, _ = take(target, request, advance)
    return Side(kind="target", name=LIVE, manifest=manifest, target=target)


def _profile(known: Manifest | None) -> str:
    """A person's own profile is a file that nobody named here."""
    from envlock.adapters.profiles import bundled_profiles

    named = known.profile if known is not None else ""
    return named if named in {profile.name for profile in bundled_profiles()} else "auto"


# --- files of the same version --------------------------------------------------------------


def files_of(found: Differences, both: Sequence[Side]) -> dict[str, Files]:
    """Which files differ in distributions of the same version, where both sides can be read; of a
    target alone, which ones are not what its own RECORD says."""
    from envlock.model.diff import Kind

    changed = [change for change in found.changes if change.kind is Kind.BYTES]
    readable = all(side.folder for side in both) or any(side.target for side in both)
    if not changed or not readable:
        return {}
    damaged: dict[str, tuple[str, ...]] = {}
    read = [
        _in_wheels(side, dists) if side.folder else _in_target(side, dists, damaged)
        for side, dists in zip(
            both, ([c.old for c in changed], [c.new for c in changed]), strict=True
        )
    ]
    return {
        name: _compared(read[0].get(name), read[1].get(name), damaged.get(name, ()))
        for name in (change.name for change in changed)
        if damaged.get(name) or (name in read[0] and name in read[1])
    }


_Places = Mapping[str, str]  # sha256 of each place, as content counts it


def _in_wheels(side: Side, dists: Iterable[Distribution | None]) -> dict[str, _Places]:
    from envlock.adapters.wheelfile import inspect_wheel

    found: dict[str, _Places] = {}
    for dist in dists:
        path = os.path.join(side.folder, dist.wheel.file) if dist and dist.wheel else ""
        if dist and path and os.path.exists(path):
            wheel = inspect_wheel(path)
            if wheel.content:
                found[dist.name] = {place: file.hex for place, file in wheel.files.items()}
    return found


def _in_target(
    side: Side, dists: Iterable[Distribution | None], damaged: dict[str, tuple[str, ...]]
) -> dict[str, _Places]:
    """Files of a target; none of anything else.

    Args:
        damaged: filled with the places of each distribution that are not what RECORD says.
    """
    from envlock.adapters.installed import read_contents, read_installed

    if side.target is None:
        return {}
    names = {dist.name for dist in dists if dist}
    layout = side.target.layout
    installed = [one for one in read_installed(layout) if one.name in names and not one.reason]
    contents = read_contents(installed, layout)
    named = dict(zip((one.name for one in installed), contents, strict=True))
    damaged |= {name: content.mismatched for name, content in named.items()}
    return {
        name: {place: file.hex for place, file in content.files.items()}
        for name, content in named.items()
    }


def _compared(old: _Places | None, new: _Places | None, damaged: tuple[str, ...]) -> Files:
    from envlock.model.diff_words import Files

    if old is None or new is None:
        return Files(damaged=damaged)
    return Files(
        changed=tuple(sorted(place for place in old if new.get(place, old[place]) != old[place])),
        gone=tuple(sorted(set(old) - set(new))),
        added=tuple(sorted(set(new) - set(old))),
        damaged=damaged,
    )
