"""Every member of a wheel, inflated by all workers: hashed, or only proven whole."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from zipfile import ZipInfo

from envlock.adapters.zipmember import DAMAGED, read_member
from envlock.model.record import HEAD_BYTES, script_head
from envlock.model.wheels import MemberFacts

_BATCH = 200  # small members a worker takes at once
_SMALL = 1024 * 1024


@dataclass(frozen=True, slots=True)
class MemberJob:
    """A member to hash; ``script`` has its first line read as content reads it, ``also`` names a
    second algorithm that RECORD uses for it."""

    info: ZipInfo
    script: bool = False
    also: str = ""


@dataclass(frozen=True, slots=True)
class MemberRead:
    """A member read to its end: its digests, and digest and size of it as content; or an error."""

    facts: MemberFacts | None
    content_hex: str = ""
    content_size: int = 0
    error: str = ""


def hash_members(
    descriptor: int, jobs: Sequence[MemberJob], pool: ThreadPoolExecutor
) -> dict[str, MemberRead]:
    """Hashes members; one that is damaged is a result with a reason.

    Args:
        descriptor: of the open wheel; its position is neither used nor moved.

    Returns:
        A result for each member, by name.
    """
    by_name = {job.info.filename: job for job in jobs}
    batches = _batches([job.info for job in jobs])

    def work(batch: Sequence[ZipInfo]) -> list[tuple[str, MemberRead]]:
        return [(i.filename, _hash_one(descriptor, by_name[i.filename])) for i in batch]

    return {name: read for done in pool.map(work, batches) for name, read in done}


def _batches(infos: Sequence[ZipInfo]) -> list[Sequence[ZipInfo]]:
    """Work for one worker each. Largest first, so that none starts on a library of 400 MB when
    the others are done."""
    ordered = sorted(infos, key=lambda info: -info.file_size)
    large = [[info] for info in ordered if info.file_size > _SMALL]
    small = ordered[len(large) :]
    return [*large, *(small[i : i + _BATCH] for i in range(0, len(small), _BATCH))]


def _hash_one(descriptor: int, job: MemberJob) -> MemberRead:
    total, size, surplus = hashlib.sha256(), 0, 0
    as_content = hashlib.sha256() if job.script else total
    further = hashlib.new(job.also) if job.also else None
    try:
        for piece in read_member(descriptor, job.info):
            total.update(piece)
            if further:
                further.update(piece)
            if job.script:
                shown, length = script_head(piece[:HEAD_BYTES]) if size == 0 else (b"", 0)
                as_content.update(shown + piece[length:])
                surplus += length - len(shown)
            size += len(piece)
    except DAMAGED as error:
        return MemberRead(None, error=str(error) or type(error).__name__)
    digests = {"sha256": total.hexdigest()}
    if further:
        digests[job.also] = further.hexdigest()
    return MemberRead(MemberFacts(digests, size), as_content.hexdigest(), size - surplus)


def damaged_members(
    descriptor: int, infos: Sequence[ZipInfo], pool: ThreadPoolExecutor
) -> list[tuple[str, str]]:
    """Inflates members against their sizes and CRCs: half the work of hashing them.

    Returns:
        Name and fault of each that is damaged.
    """
    done = pool.map(lambda batch: _drain(descriptor, batch), _batches(infos))
    return [fault for batch in done for fault in batch]


def _drain(descriptor: int, batch: Sequence[ZipInfo]) -> list[tuple[str, str]]:
    faults = []
    for info in batch:
        try:
            for _ in read_member(descriptor, info):
                pass
        except DAMAGED as error:
            faults.append((info.filename, str(error) or type(error).__name__))
    return faults
