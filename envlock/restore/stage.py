"""Wheels unpacked beside the target, and compared with the manifest before anything moves."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from envlock.adapters.installed import Content, Installed, read_contents, read_inventory
from envlock.adapters.installer import Pinned, Stager
from envlock.adapters.moving import give_like, make_executable
from envlock.errors import RestoreFailed
from envlock.model.dist import Distribution, same_modes
from envlock.model.facts import Target
from envlock.model.label import same_version
from envlock.restore.plan import overlap_problems

Advance = Callable[[int], None]


def unpack(stager: Stager, wheels: Sequence[Pinned], target: Target, stage: str, lock: int) -> None:
    """Unpacks wheels into ``stage`` with what new files of this target look like.

    The backend sees a folder with links to these wheels and no others: a wheelhouse may hold two
    of one version, and an installer that prefers the other one then trips over its hash.

    Raises:
        ProgramFailed: the backend failed.
    """
    folder = f"{stage}-wheels"
    os.mkdir(folder)
    alone = [replace(one, path=os.path.join(folder, os.path.basename(one.path))) for one in wheels]
    for link, one in zip(alone, wheels, strict=True):
        os.symlink(os.path.abspath(one.path), link.path)
    stager.stage(alone, target, stage, lock)
    give_like(stage, target.layout.purelib, time.time())


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What stays beside the staged distributions.

    Attributes:
        files: for each distribution that is right already, sha256 (hexadecimal) by place.
        overlapping: names whose overlaps the healthy image already had.
    """

    files: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    overlapping: Collection[str] = ()


def compare(
    wanted: Sequence[Distribution],
    target: Target,
    stage: str,
    beside: Beside,
    advance: Advance,
) -> None:
    """Reads every staged file and compares content with the manifest; sets its exec bits.

    Raises:
        RestoreFailed: something differs; all of it is named.
    """
    layout = target.layout.moved(stage)
    staged = {dist.name: dist for dist in read_inventory(layout).distributions}
    contents = dict(
        zip(staged, read_contents(list(staged.values()), layout, advance=advance), strict=True)
    )
    for dist in wanted:  # pip runs only scripts whose wheel has an exec bit: the manifest knows
        for place in dist.executable:
            if dist.name in contents and place in contents[dist.name].paths:
                make_executable(contents[dist.name].paths[place])
    unasked = sorted(staged.keys() - {dist.name for dist in wanted})
    wrong = [f"'{name}' was unpacked, and nobody asked for it" for name in unasked]
    for dist in wanted:
        problem = _problem(dist, staged.get(dist.name), contents.get(dist.name))
        if problem:
            wrong.append(f"'{dist.name}' {problem}")
    places = {n: {p: f.hex for p, f in c.files.items()} for n, c in contents.items()}
    clashes = overlap_problems({**beside.files, **places}, beside.overlapping)
    wrong += [f"'{one.subject}': {one.what}" for one in clashes]
    if wrong:
        raise RestoreFailed(
            f"restore: {'; '.join(wrong)}; the target is as it was",
            "check the wheelhouse with 'envlock wheelhouse check'",
        )


def _problem(dist: Distribution, staged: Installed | None, content: Content | None) -> str:
    """How an unpacked distribution is not the one that was wanted; empty when it is."""
    if staged is None or content is None:
        return "was not unpacked"
    if not same_version(staged.version, dist.version):
        return f"came out as '{staged.version}'"
    if content.digest != dist.content:
        return f"has {content.reason or 'other bytes than the manifest has'}"
    surplus = set(content.executable) - set(dist.executable)
    return "" if same_modes((), surplus) else "has other exec bits than the manifest has"
