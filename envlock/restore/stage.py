"""Wheels unpacked beside the target, and compared with the manifest before anything moves."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from envlock.adapters.files import Hashed
from envlock.adapters.installed import Content, Installed, read_contents, read_inventory
from envlock.adapters.installer import Pinned, Stager
from envlock.adapters.moving import give_like, make_executable
from envlock.errors import RestoreFailed
from envlock.model.dist import Distribution, same_modes
from envlock.model.facts import Target
from envlock.model.label import same_version
from envlock.restore.plan import overlap_problems

Advance = Callable[[int], None]


def unpack(
    stager: Stager, wheels: Sequence[Pinned], target: Target, stage: str, lock: int
) -> Mapping[str, Hashed]:
    """Unpacks wheels into ``stage`` with what new files of this target look like.

    The backend sees a folder with links to these wheels and no others: a wheelhouse may hold two
    of one version, and an installer that prefers the other one then trips over its hash.

    Returns:
        Digests by absolute path, of what the backend hashed in the pass that wrote it.

    Raises:
        ProgramFailed: the backend failed.
    """
    folder = f"{stage}-wheels"
    os.mkdir(folder)
    alone = [replace(one, path=os.path.join(folder, os.path.basename(one.path))) for one in wheels]
    for link, one in zip(alone, wheels, strict=True):
        os.symlink(os.path.abspath(one.path), link.path)
    written = stager.stage(alone, target, stage, lock)
    if not (written and _alike(stage, target.layout.purelib)):
        give_like(stage, target.layout.purelib, time.time())
    return written


def _alike(folder: str, model: str) -> bool:
    """Whether what this process makes has the owner and permissions of the folder ``model``.

    Args:
        folder: one that it made a moment ago.
    """
    made, like = os.stat(folder), os.stat(model)
    same = (made.st_uid, made.st_gid) == (like.st_uid, like.st_gid)
    return same and stat.S_IMODE(made.st_mode) == stat.S_IMODE(like.st_mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What stays beside the staged distributions.

    Attributes:
        files: for each distribution that is right already, sha256 (hexadecimal) by place.
        overlapping: names whose overlaps the healthy image already had.
        extra: for each distribution that is not in the manifest, what RECORD says of each place.
        written: what :func:`unpack` answered.
    """

    files: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    overlapping: Collection[str] = ()
    extra: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    written: Mapping[str, Hashed] = field(default_factory=dict)


def compare(
    wanted: Sequence[Distribution],
    target: Target,
    stage: str,
    beside: Beside,
    advance: Advance,
) -> list[Installed]:
    """Compares the content of what was staged with the manifest; sets its exec bits.

    Every file is read, but for those whose bytes the backend hashed while it wrote them: a write
    that fails is seen by whoever writes, and reading the page cache back proves no more.

    Returns:
        What was staged.

    Raises:
        RestoreFailed: something differs; all of it is named.
    """
    layout = target.layout.moved(stage)
    staged = {dist.name: dist for dist in read_inventory(layout).distributions}
    read = read_contents(list(staged.values()), layout, known=beside.written, advance=advance)
    contents = dict(zip(staged, read, strict=True))
    if not beside.written:  # who hashes each file that it writes has written no other
        _drop_litter(stage, staged.values())
    for dist in wanted:  # pip runs only scripts whose wheel has an exec bit: the manifest knows
        for place in dist.executable:
            if dist.name in contents and place in contents[dist.name].paths:
                make_executable(contents[dist.name].paths[place])
    unasked = sorted(staged.keys() - {dist.name for dist in wanted})
    wrong = [f"'{name}' was unpacked, and nobody asked for it" for name in unasked]
    for dist in wanted:
        problem = _problem(dist, staged.get(dist.name), contents.get(dist.name), beside.written)
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
    return list(staged.values())


def _drop_litter(stage: str, dists: Iterable[Installed]) -> None:
    """Removes what belongs to nobody: a folder that is moved whole would take it along."""
    owned = {
        os.path.normpath(os.path.join(os.path.realpath(dist.site), row.path))
        for dist in dists
        for row in dist.rows or ()
    }
    for root, folders, names in os.walk(stage, topdown=False):
        real = os.path.realpath(root)
        for name in names:
            if os.path.join(real, name) not in owned:
                os.unlink(os.path.join(root, name))
        for name in folders:
            with suppress(OSError):  # it has something in it, or is a link
                os.rmdir(os.path.join(root, name))


def _problem(
    dist: Distribution,
    staged: Installed | None,
    content: Content | None,
    written: Mapping[str, Hashed],
) -> str:
    """How an unpacked distribution is not the one that was wanted; empty when it is.

    Args:
        written: what :func:`unpack` answered; what came through from there was seen as a file.
    """
    if staged is None or content is None:
        return "was not unpacked"
    if not same_version(staged.version, dist.version):
        return f"came out as '{staged.version}'"
    if content.digest != dist.content:
        return f"has {content.reason or 'other bytes than the manifest has'}"
    links = [
        place
        for place, path in content.paths.items()
        if content.files.get(place) is not written.get(path) and os.path.islink(path)
    ]
    if links:  # no wheel has one; the bytes behind it may go with the stage
        return f"has a link where a file has to be: '{links[0]}'"
    surplus = set(content.executable) - set(dist.executable)
    return "" if same_modes((), surplus) else "has other exec bits than the manifest has"
