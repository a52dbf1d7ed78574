"""``pylock.toml`` (PEP 751): what a resolver answers, and what a wheelhouse carries."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

import tomli_w
from packaging.markers import Marker, default_environment
from packaging.pylock import (
    Package,
    PackageArchive,
    PackageSdist,
    PackageWheel,
    Pylock,
    PylockValidationError,
)
from packaging.specifiers import SpecifierSet
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from envlock.adapters.resolving import Pin, RemoteFile
from envlock.errors import ProgramFailed, Refused
from envlock.model.dist import Distribution, WheelRef
from envlock.model.health import evaluates
from envlock.model.label import is_version
from envlock.model.manifest import LockedTarget
from envlock.model.wheels import rank

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: The version of the standard that is written.
LOCK_VERSION = Version("1.0")
#: Packages that a preference names, before the answer is known.
_PREFERRED = "lock-version = '1.0'\ncreated-by = 'envlock'\n"


def read_pins(path: Path, target: LockedTarget) -> tuple[Pin, ...]:
    """The pins of a lock file that was made for a target.

    An entry whose marker says no is none of them, where all markers of the target are known: one
    that is not would be read off this machine.

    Raises:
        ProgramFailed: it is no lock file.
        Refused: an entry is no file with a version.
    """
    try:
        lock = Pylock.from_dict(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, tomllib.TOMLDecodeError, PylockValidationError) as error:
        raise ProgramFailed(f"{path.name}: {error}", "report this") from error
    known = default_environment().keys() <= target.markers.keys()
    return tuple(
        _pin(package, target.tags)
        for package in lock.packages
        if not known or evaluates(package.marker, target.markers)
    )


def _pin(package: Package, tags: Sequence[str]) -> Pin:
    if package.version is None or package.vcs or package.directory:
        raise Refused(
            f"'{package.name}' is not resolved to a version on an index",
            "make a wheel of it, and name the wheel",
        )
    name, version = str(package.name), str(package.version)
    if package.archive is not None:
        return _named(name, version, package.archive)
    wheels = fitting((_file(wheel) for wheel in package.wheels or ()), tags)
    return Pin(
        name,
        version,
        hashes=tuple(sorted({wheel.sha256 for wheel in wheels if wheel.sha256})),
        wheels=wheels,
        sdist=None if package.sdist is None else _file(package.sdist),
    )


def fitting(wheels: Iterable[RemoteFile], tags: Sequence[str]) -> tuple[RemoteFile, ...]:
    """Wheels that a target takes, best tag first; one of two files with the same bytes, with the
    addresses of both.

    Args:
        tags: of the target, best first.
    """
    found: dict[tuple[str, str], RemoteFile] = {}
    for wheel in wheels:
        key = (wheel.file, wheel.sha256)
        urls = found[key].urls + wheel.urls if wheel.sha256 and key in found else wheel.urls
        size = wheel.size if wheel.size is not None or key not in found else found[key].size
        found[key] = RemoteFile(
            file=wheel.file, urls=tuple(dict.fromkeys(urls)), sha256=wheel.sha256, size=size
        )
    ranked = [(place, one) for one in found.values() if (place := rank(one.file, tags)) is not None]
    return tuple(one for _, one in sorted(ranked, key=lambda pair: pair[0]))


def _named(name: str, version: str, archive: PackageArchive) -> Pin:
    """A file that the request names itself."""
    file = _file(archive)
    origin = "file" if urlsplit(file.urls[0]).scheme == "file" else "url"
    if not file.file.endswith(".whl"):
        return Pin(name, version, sdist=file, origin=origin)
    return Pin(name, version, hashes=(file.sha256,), wheels=(file,), origin=origin)


def _file(entry: PackageWheel | PackageSdist | PackageArchive) -> RemoteFile:
    url = entry.url or Path(entry.path or "").absolute().as_uri()
    name = unquote(urlsplit(url).path.rpartition("/")[2])
    return RemoteFile(
        file=name,
        urls=(url,),
        sha256=entry.hashes.get("sha256", "").lower(),
        size=entry.size,
    )


def preferences(dists: Iterable[Distribution]) -> str:
    """A lock file that a resolver reads its preferred versions from; nothing can be installed
    from it."""
    packages = [{"name": d.name, "version": d.version, "wheels": []} for d in dists]
    return _PREFERRED + tomli_w.dumps({"packages": packages})


def beside(wheel: WheelRef) -> str:
    """The place of a wheel that lies beside its lock."""
    return wheel.file


def lock_text(
    dists: Iterable[Distribution],
    markers: Mapping[str, str],
    where: Callable[[WheelRef], str] = beside,
) -> str:
    """A lock of wheels.

    What :func:`unlockable` has a reason for is left out.

    Args:
        markers: of the target; a tool refuses the lock on another one.
        where: path of a wheel from the lock's folder, with ``/``, or its URL.
    """
    packages = [package for dist in dists if (package := _package(dist, where)) is not None]
    python = ".".join(markers.get("python_version", "3").split(".")[:2])
    names = ("python_version", "sys_platform", "platform_machine", "implementation_name")
    clauses = [f"{name} == '{markers[name]}'" for name in names if markers.get(name)]
    lock = Pylock(
        lock_version=LOCK_VERSION,
        environments=[Marker(" and ".join(clauses))] if clauses else None,
        requires_python=_same_python(python),
        created_by="envlock",
        packages=packages,
    )
    return tomli_w.dumps(dict(lock.to_dict()))


def _same_python(python: str) -> SpecifierSet:
    return SpecifierSet(f"=={python}.*")


def unlockable(dist: Distribution) -> str:
    """Why a distribution cannot stand in a lock; empty where it can.

    A reader refuses the whole lock for one wheel whose file name is not that of the package (PEP
    751), and some vendors' are not: two ``+``, a label that the metadata does not have.
    """
    if not is_version(dist.version):
        return f"'{dist.version}' is no version that PEP 440 knows"
    if dist.wheel is None:
        return "no wheel of it is known"
    try:
        name, version, *_ = parse_wheel_filename(dist.wheel.file)
    except InvalidWheelFilename:
        return f"'{dist.wheel.file}' is no name of a wheel that tools can read"
    if name != canonicalize_name(dist.name) or version != Version(dist.version):
        return f"the name of '{dist.wheel.file}' says another build than its metadata"
    return ""


def _package(dist: Distribution, where: Callable[[WheelRef], str]) -> Package | None:
    if dist.wheel is None or unlockable(dist):
        return None
    place = where(dist.wheel)
    wheel = PackageWheel(
        name=dist.wheel.file,
        path=None if "://" in place else place,
        url=place if "://" in place else None,
        size=dist.wheel.size,
        hashes={"sha256": dist.wheel.sha256},
    )
    return Package(name=canonicalize_name(dist.name), version=Version(dist.version), wheels=[wheel])
