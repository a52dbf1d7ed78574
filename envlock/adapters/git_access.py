"""How git would reach a server over HTTPS, as its own configuration says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from envlock.adapters import process
from envlock.errors import ProgramFailed
from envlock.model.triage import Access

_SECONDS = 1.0


def git_access(url: str, env: Mapping[str, str]) -> tuple[str, str, Access]:
    """The URL that git asks in the place of one, where that is configured, and how it gets there.

    Nothing of it where there is no git.
    """
    rewritten, origin = _instead_of(url, env)
    # named by "http.proxy" or, for some servers alone, by "http.URL.proxy"
    values = dict(_pairs(["--get-urlmatch", "http", rewritten], env))
    proxy = values.get("http.proxy", "")
    host = rewritten.partition("://")[2].partition("/")[0].rpartition("@")[2].partition(":")[0]
    access = Access(
        proxy=proxy,
        proxy_origin="git:http.proxy" if proxy else "",
        cert=env.get("GIT_SSL_CAINFO") or values.get("http.sslcainfo", ""),
        trusted=(host,) if _is_off(env, values) else (),
    )
    return rewritten, origin, access


def _is_off(env: Mapping[str, str], values: Mapping[str, str]) -> bool:
    off = values.get("http.sslverify", "").lower() in ("false", "no", "off", "0")
    return bool(env.get("GIT_SSL_NO_VERIFY")) or off


def _instead_of(url: str, env: Mapping[str, str]) -> tuple[str, str]:
    """A mirror: the longest beginning that ``url.BASE.insteadOf`` names is replaced by BASE."""
    best = ("", "")
    for key, begins in _pairs(["--get-regexp", r"^url\..*\.insteadof$"], env):
        base = key[len("url.") : -len(".insteadof")]
        longer = len(begins) > len(best[0])
        if f"{url}/".startswith(begins) and base.startswith("http") and longer:
            best = (begins, base)
    begins, base = best
    return (base + f"{url}/"[len(begins) :], "git:url.insteadOf") if begins else (url, "default")


def _pairs(words: Sequence[str], env: Mapping[str, str]) -> list[tuple[str, str]]:
    try:
        done = process.run(["git", "config", *words], env=env, timeout=_SECONDS)
    except ProgramFailed:
        return []
    if done.code != 0:  # nothing of that kind is configured, or it cannot be read
        return []
    found = (line.partition(" ") for line in done.output.splitlines())
    return [(key, value.strip()) for key, space, value in found if space]
