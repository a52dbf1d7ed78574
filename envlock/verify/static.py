"""static.lock: are the installed files those of the manifest? Done without the target's Python.

Missing: failed. Other bytes at the same version: failed. Another version: failed where the build
is protected, else a warning, since guard lets people upgrade tqdm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from envlock.adapters.installed import Content, Installed, read_contents
from envlock.model.check import Case, Status
from envlock.model.dist import Distribution
from envlock.model.facts import Layout
from envlock.model.label import same_version
from envlock.model.manifest import Manifest

_NAMED = 5  # files named in a reason; the metrics hold more of them
_LISTED = 200


def compare(
    manifest: Manifest,
    installed: Sequence[Installed],
    layout: Layout,
    advance: Callable[[int], None] | None = None,
) -> tuple[Case, ...]:
    """One case for each distribution of the manifest.

    Args:
        manifest: what should be there.
        installed: what is there.
        layout: the target's.
        advance: called with the number of files read since the last call.
    """
    found = _by_name(installed)
    readable = [
        twins[0]
        for dist in manifest.distributions
        if len(twins := found.get(dist.name, ())) == 1
        and same_version(dist.version, twins[0].version)
        and not twins[0].reason
    ]
    contents = read_contents(readable, layout, advance=advance)
    read = dict(zip((one.path for one in readable), contents, strict=True))
    return tuple(_judge(dist, found.get(dist.name, ()), read) for dist in manifest.distributions)


def extra(manifest: Manifest, installed: Sequence[Installed]) -> list[str]:
    """What is installed and not in the manifest, ``name version``."""
    known = {dist.name for dist in manifest.distributions}
    return sorted(f"{one.name} {one.version}" for one in installed if one.name not in known)


def _by_name(installed: Sequence[Installed]) -> dict[str, tuple[Installed, ...]]:
    found: dict[str, tuple[Installed, ...]] = {}
    for one in installed:
        found[one.name] = (*found.get(one.name, ()), one)
    return found


def _judge(dist: Distribution, twins: tuple[Installed, ...], read: Mapping[str, Content]) -> Case:
    weak = Status.FAILED if dist.protected else Status.WARNED
    if not twins:
        return _case(dist, Status.FAILED, "not installed")
    if len(twins) > 1:
        folders = ", ".join(f"'{one.dist_info}'" for one in twins)
        return _case(dist, weak, f"more than one is installed: {folders}")
    one = twins[0]
    if not same_version(dist.version, one.version):
        return _case(dist, weak, f"is {one.version}, not {dist.version}", found=one.version)
    if not dist.content:
        why = dist.reason or "the manifest has no content for it"
        return _case(dist, Status.SKIPPED, f"not compared: {why}")
    content = read.get(one.path)
    if content is None:
        return _case(dist, Status.FAILED, one.reason)
    return _judge_content(dist, content)


def _judge_content(dist: Distribution, content: Content) -> Case:
    metrics = {"files": len(content.files), "bytes": content.size}
    if content.missing:
        reason = f"missing: {_names(content.missing)}"
        return _case(dist, Status.FAILED, reason, missing=list(content.missing[:_LISTED]))
    if content.reason:
        return _case(dist, Status.FAILED, content.reason)
    if content.digest != dist.content:
        return _other_bytes(dist, content, metrics)
    lost = sorted(set(dist.executable) - set(content.executable))
    if lost:
        status = Status.FAILED if dist.protected else Status.WARNED
        return _case(dist, status, f"not executable any more: {_names(lost)}", **metrics)
    return _case(dist, Status.PASSED, "", **metrics)


def _other_bytes(dist: Distribution, content: Content, metrics: Mapping[str, int]) -> Case:
    """Damage where files differ from their own RECORD, else another build of the same version."""
    changed = list(content.mismatched[:_LISTED])
    if changed:
        reason = f"changed: {_names(content.mismatched)}"
        return _case(dist, Status.FAILED, reason, changed=changed, **metrics)
    expected, found = dist.files, len(content.files)
    counted = f" ({found} files, not {expected})" if expected != found else ""
    reason = f"other bytes at the same version: another build, or changed scripts{counted}"
    return _case(dist, Status.FAILED, reason, **metrics)


def _names(places: Sequence[str]) -> str:
    more = len(places) - _NAMED
    shown = ", ".join(f"'{place}'" for place in places[:_NAMED])
    return shown + (f" and {more} more" if more > 0 else "")


def _case(dist: Distribution, status: Status, reason: str, **metrics: object) -> Case:
    return Case(name=str(dist), status=status, reason=reason, metrics=metrics)
