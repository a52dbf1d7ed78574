"""What a server's answer means for a file of which a part is already here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import mktime_tz, parsedate_tz
from urllib.parse import urlsplit, urlunsplit

# no file is larger than 18 digits say, and longer numbers take time to read
_NUMBER = re.compile(r"[0-9]{1,18}\Z")
_RANGE = re.compile(r"bytes\s+(?:([0-9]{1,18})-([0-9]{1,18})|\*)/([0-9]{1,18}|\*)\Z")
#: Answers after which the same question may be answered otherwise (RFC 9110, 6585).
_FOR_NOW = (408, 425, 429, 500, 502, 503, 504)
#: Without a word from the server the pauses grow up to this.
LONGEST_PAUSE = 30.0


@dataclass(frozen=True, slots=True)
class ContentRange:
    """Which bytes an answer holds: the first, one past the last, and how many the whole file has.

    ``start`` is None where none are given (``bytes */SIZE``), ``total`` where nobody knows.
    """

    start: int | None
    stop: int | None
    total: int | None


def content_range(value: str) -> ContentRange | None:
    """A ``Content-Range`` field (RFC 9110, 14.4); None where it is none, or contradicts itself.

    >>> content_range("bytes 10-19/20")
    ContentRange(start=10, stop=20, total=20)
    """
    found = _RANGE.match(value.strip())
    if found is None:
        return None
    total = None if found[3] == "*" else int(found[3])
    if found[1] is None:
        return ContentRange(None, None, total)
    start, stop = int(found[1]), int(found[2]) + 1
    if stop <= start or (total is not None and stop > total):
        return None
    return ContentRange(start, stop, total)


def retry_after(value: str, now: float) -> float | None:
    """Seconds that a ``Retry-After`` field asks to wait: a number or a date (RFC 9110, 10.2.3).

    Args:
        now: seconds since 1970.
    """
    text = value.strip()
    if _NUMBER.match(text):
        return float(text)
    try:
        date = parsedate_tz(text)
        return None if date is None else max(0.0, mktime_tz(date) - now)
    except (ValueError, OverflowError):  # the year 99999
        return None


def pause(failures: int) -> float:
    """Seconds to wait after so many failures in a row."""
    return float(min(LONGEST_PAUSE, 0.5 * 2 ** min(failures - 1, 10)))


def is_for_now(status: int) -> bool:
    """Whether asking again may help."""
    return status in _FOR_NOW


def question(have: int, tag: str) -> dict[str, str]:
    """The header fields that ask for what is missing.

    Args:
        have: bytes that are here.
        tag: the ``ETag`` under which they came; a weak one proves nothing and is left out.
    """
    asked = {"Accept-Encoding": "identity"}
    if have:
        asked["Range"] = f"bytes={have}-"
        if tag.startswith('"'):
            asked["If-Range"] = tag
    return asked


@dataclass(frozen=True, slots=True)
class Body:
    """Where the bytes of an answer belong.

    Attributes:
        start: offset in the file; never beyond what is here, so that no gap can arise.
        total: bytes of the whole file as the server says, None where it does not.
    """

    start: int
    total: int | None


def place_of(have: int, status: int, headers: Mapping[str, str]) -> Body | None:
    """Where the body of an answer to :func:`question` belongs; None where it belongs nowhere and
    the file has to be asked for from its beginning.

    Args:
        headers: names in small letters.
    """
    if status == 200:
        # a coded body has another length than the file
        length = "" if is_coded(headers) else headers.get("content-length", "").strip()
        return Body(0, int(length) if _NUMBER.match(length) else None)
    given = content_range(headers.get("content-range", ""))
    if status != 206 or given is None or given.start is None or given.start > have:
        return None
    # a range of a coded body is no range of the file
    return None if is_coded(headers) else Body(given.start, given.total)


def is_coded(headers: Mapping[str, str]) -> bool:
    """Whether the body is compressed for the way, though nobody asked for it."""
    return headers.get("content-encoding", "").strip().lower() not in ("", "identity")


def shown(url: str) -> str:
    """A URL for people: without credentials, and without a query, which may hold a signature.

    >>> shown("https://me:pw@a.invalid/x.whl?sig=1#sha256=0")
    'https://a.invalid/x.whl'
    """
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
