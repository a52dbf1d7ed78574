"""What differs between two manifests."""

from __future__ import annotations

from envlock.model.dist import Distribution
from envlock.model.facts import Finding
from envlock.model.label import same_version
from envlock.model.manifest import Manifest


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
    if not same_version(now.version, dist.version):
        return f"'{dist.version}' is now '{now.version}'"
    return f"'{dist.version}' has other bytes" if dist.content else ""


def _loss(dist: Distribution, what: str) -> Finding:
    return Finding(code="manifest.loss", subject=dist.name, what=what, level="error")
