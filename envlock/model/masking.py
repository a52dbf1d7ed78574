"""Secrets in text that people see or share."""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

# up to the last '@' before the path: a password may hold an '@' of its own
_USERINFO = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)[^/?#\s\"]+@")
_ABSOLUTE = re.compile(r"'/[^']*/(?P<name>[^'/]+)/?'")


def mask(text: str) -> str:
    """The text with user name and password of every URL replaced by ``****``.

    >>> mask("looked in https://me:secret@example.org/simple")
    'looked in https://****@example.org/simple'
    """
    return _USERINFO.sub(r"\g<scheme>****@", text)


def without_places(text: str, prefix: str) -> str:
    """The text as it may be shared: no path says whose machine this was.

    Paths below the prefix become relative to it; of other quoted ones the last name is left.

    >>> without_places("see '/home/me/venv/lib/x' and '/home/me/y'", "/home/me/venv")
    "see 'lib/x' and '…/y'"
    """
    return _ABSOLUTE.sub(r"'…/\g<name>'", mask(text).replace(prefix.rstrip("/") + "/", ""))


def shareable(url: str) -> str:
    """An http or https URL without user, query (a signature, a token) and fragment; empty for any
    other one, which leads to a file of one machine.

    >>> shareable("https://me:secret@example.org/x.whl?token=1#sha256=0")
    'https://example.org/x.whl'
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return ""
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))
