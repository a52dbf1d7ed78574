"""Local version labels of vendor builds, every era of them.

A label is the part of a version after ``+``. Some builds have two of them, some have none and
underscores instead, some wheels say one thing in the file name and another in their metadata.
Nothing here raises: a strange version is a value whose ``raw`` is kept. Labels are compared for
equality only: neither strings (``dtk25042`` > ``dtk2604``) nor PEP 440 segments order them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A version's label, parsed as far as it can be.

    Attributes:
        raw: the version string as the metadata says it.
        public: the part before the label.
        local: the label itself, as written; empty when there is none.
        stack: ``dtk2604``, ``rocm6.4``, ``cu130``, ``nv24.08``, ``cpu``; None when not named.
        release: DTK release as ``(yymm, patch)``, the only order DTK releases have; None elsewhere.
        torch: the torch release a build belongs to, ``2.10.0``; None when not named.
        abi: libstdc++ CXX11 ABI, 0 or 1; None when not named.
        das: the vendor's software set, ``1.1``, ``185`` or empty; None when not named.
        stamp: build date or time as written, 8, 10 or 12 digits; None when not named.
        commit: hexadecimal commit without its ``g`` or ``git``; None when not named.
        rest: segments that are none of these, in order.
    """

    raw: str
    public: str
    local: str = ""
    stack: str | None = None
    release: tuple[int, int] | None = None
    torch: str | None = None
    abi: int | None = None
    das: str | None = None
    stamp: str | None = None
    commit: str | None = None
    rest: tuple[str, ...] = ()


# Typed by hand or copied out of a web page that ate the plus: "0.18.1das.dtk2604".
_LOST_PLUS = re.compile(r"^(\d[\d.]*)(das(?:[.\d].*)?)$")
# The dtk22 era: "0.1_gita38191a_dtk22.04.2", "1.10.0a0_gitc7f69d6_dtk22.04.2".
_UNDERSCORES = re.compile(r"^(\d[^_+]*)_((?:git|dtk).*)$")

_DTK = re.compile(r"(?:^|[.+_-])dtk(\d{2})\.?(\d{2}|\d(?=\.))(?:\.?(\d{1,2}))?(?=$|[._+-])")
_TORCH_DIGITS = re.compile(r"(?:^|[.+_-])torch(\d)(\d{2}|\d)(\d)(?=$|[._+-])")
_TORCH_SHORT = re.compile(r"(?:^|[.+_-])torch(\d)(\d)(?=$|[._+-])")
# parts of one or two digits: what follows "torch2100." is a build stamp
_TORCH_DOTTED = re.compile(r"(?:^|[.+_-])torch(\d\.\d{1,2}(?:\.\d{1,2})?)(?=$|[._+-])")
_ABI = re.compile(r"(?:^|[.+_-])abi([01])(?=$|[._+-])")
_DAS = re.compile(r"(?:^|[.+_-])das(\d+(?:\.\d{1,2})?)?(?=$|[._+-])")
_ROCM = re.compile(r"(?:^|[.+_-])(rocm\d+(?:\.\d{1,2})*|rocmsdk\d{8})(?=$|[._+-])")
_CUDA = re.compile(r"(?:^|[.+_-])(cu\d{2,4})(?=$|[._+-])")
# NVIDIA's builds for Jetson and its images by year and month, and what is made for one image
_NV = re.compile(r"(?:^|[.+_-])(nv\d{2}\.\d{2}|ngcpytorch\d{4})(?=$|[._+-])")
_CPU = re.compile(r"^cpu(?=$|[._+-])")
_STAMP = re.compile(r"(?:^|[.+_-])(20\d{6}|20\d{10}|2\d{9})(?=$|[._+-])")
_COMMIT_NAMED = re.compile(r"(?:^|[.+_-])(?:git|g)([0-9a-f]{6,12}|[0-9a-f]{40})(?=$|[._+-])")
# "d20260401" is a date (setuptools-scm writes it for a dirty tree), though all hexadecimal
_COMMIT_BARE = re.compile(r"(?:^|[.+_-])(?!d20\d{6}(?:$|[._+-]))([0-9a-f]{7,12})(?=$|[._+-])")


def split_version(version: str) -> tuple[str, str]:
    """``(public, local)`` of any version string; the label may be empty.

    >>> split_version("2.1.0+das1.0+git00661e0.abi0.dtk2404")
    ('2.1.0', 'das1.0+git00661e0.abi0.dtk2404')
    """
    if "+" in version:
        public, _, local = version.partition("+")
        return public, local
    for pattern in (_LOST_PLUS, _UNDERSCORES):
        found = pattern.match(version)
        if found:
            return found[1], found[2]
    return version, ""


def _take(pattern: re.Pattern[str], text: str) -> tuple[re.Match[str] | None, str]:
    """The first match and the text without it, its separators kept as one dot."""
    found = pattern.search(text)
    if found is None:
        return None, text
    return found, f"{text[: found.start()]}.{text[found.end() :]}".strip(".")


def _torch_release(text: str) -> tuple[str | None, str]:
    """``torch271`` is 2.7.1, ``torch2100`` 2.10.0, ``torch29`` 2.9, ``torch2.1.0`` itself."""
    for pattern in (_TORCH_DOTTED, _TORCH_DIGITS, _TORCH_SHORT):
        found, rest = _take(pattern, text)
        if found:
            return ".".join(found.groups()), rest
    return None, text


def _stack(text: str) -> tuple[str | None, tuple[int, int] | None, str]:
    found, rest = _take(_DTK, text)
    if found:
        year, month, patch = found.groups()
        month = month.zfill(2)
        return f"dtk{year}{month}{patch or ''}", (int(year + month), int(patch or 0)), rest
    for pattern in (_ROCM, _CUDA, _NV):
        found, rest = _take(pattern, text)
        if found:
            return found[1], None, rest
    found, rest = _take(_CPU, text)
    return ("cpu", None, rest) if found else (None, None, text)


def parse_label(version: str) -> Label:
    """Reads a version of any era; see :class:`Label` for what comes out. Never raises."""
    public, local = split_version(version)
    stack, release, rest = _stack(local.lower())
    torch, rest = _torch_release(rest)
    abi, rest = _take(_ABI, rest)
    das, rest = _take(_DAS, rest)
    stamp, rest = _take(_STAMP, rest)
    commit, rest = _take(_COMMIT_NAMED, rest)
    if commit is None:
        commit, rest = _take(_COMMIT_BARE, rest)
    return Label(
        raw=version,
        public=public,
        local=local,
        stack=stack,
        release=release,
        torch=torch,
        abi=int(abi[1]) if abi else None,
        das=(das[1] or "") if das else None,
        stamp=stamp[1] if stamp else None,
        commit=commit[1] if commit else None,
        rest=tuple(part for part in re.split(r"[.+_-]+", rest) if part),
    )


def is_version(text: str) -> bool:
    """Whether PEP 440 knows a version; some vendors' it does not."""
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def same_version(one: str, other: str) -> bool:
    """Whether two version strings name the same build.

    Normalised per PEP 440 where both are valid (``dtk23.04.1`` is written ``dtk23.4.1`` by some
    tools), else compared as written.
    """
    if one == other:
        return True
    try:
        return Version(one) == Version(other)
    except InvalidVersion:
        return False
