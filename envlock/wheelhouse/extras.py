"""What travels with a wheelhouse and is no wheel: models, sources, reports."""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from envlock.errors import UnusableInput
from envlock.model.kit import EXTRAS
from envlock.model.wheels import unsafe_path


@dataclass(frozen=True, slots=True)
class Extra:
    """A file to carry: where it is, its path in the unpacked folder, bytes, its exec bit."""

    path: str
    name: str
    size: int
    executable: bool = False


def find_extras(paths: Sequence[str], more: Sequence[Extra] = ()) -> tuple[Extra, ...]:
    """Every file that is named, or lies in a folder that is named.

    Links are followed: a folder of models is often nothing but links to where they are.

    Args:
        more: what travels unasked; where a named file has its place, the named one does.

    Raises:
        UnusableInput: one is not there or cannot be read, has no portable name, or two cannot be
            unpacked side by side; names all of them.
    """
    found: dict[str, Extra] = {}
    bad: list[str] = []
    for path in paths:
        for extra in _below(os.path.abspath(path), bad):
            if extra.name in found and found[extra.name].path != extra.path:
                bad.append(f"'{extra.path}' and '{found[extra.name].path}' have the same name")
            found[extra.name] = extra
    bad += _clashes(found.values())
    if bad:
        raise UnusableInput(
            f"--with: {'; '.join(bad)}", "name files and folders that can be read, each once"
        )
    for extra in more:
        if not _clashes([*found.values(), extra]) and extra.name not in found:
            found[extra.name] = extra
    return tuple(found[name] for name in sorted(found))


def _clashes(extras: Iterable[Extra]) -> list[str]:
    """Files of which one is in the other's place when they are unpacked: a file where the other
    needs a folder, or one name to a file system that does not tell upper from lower case."""
    found: list[str] = []
    seen: dict[str, Extra] = {}
    for extra in extras:
        other = seen.setdefault(_folded(extra.name), extra)
        if other is not extra:
            found.append(f"'{extra.path}' and '{other.path}' have the same name but for case")
    for name, extra in seen.items():
        for at in (at for at, letter in enumerate(name) if letter == "/"):
            if above := seen.get(name[:at]):
                found.append(f"'{extra.path}' needs a folder where '{above.path}' is a file")
    return found


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def report_extra(path: str | os.PathLike[str]) -> list[Extra]:
    """A verify report to carry, under a name of its own; nothing where there is none."""
    try:
        size = os.stat(path).st_size
    except OSError:
        return []
    return [Extra(os.fspath(path), f"{EXTRAS}verify-report.json", size)]


def _below(path: str, bad: list[str]) -> Iterator[Extra]:
    base = os.path.dirname(path)
    if not os.path.isdir(path):
        yield from _file(path, base, bad)
        return
    seen: set[str] = set()
    for folder, folders, names in os.walk(
        path, followlinks=True, onerror=lambda error: bad.append(_why(error.filename, error))
    ):
        real = os.path.realpath(folder)
        if real in seen:
            folders.clear()  # a link that leads back, or to the same folder again
            bad.append(f"'{folder}' leads to a folder that is carried already")
            continue
        seen.add(real)
        for name in sorted(names):
            yield from _file(os.path.join(folder, name), base, bad)


def _file(path: str, base: str, bad: list[str]) -> Iterator[Extra]:
    name = EXTRAS + os.path.relpath(path, base).replace(os.sep, "/")
    try:
        name.encode()
        status = os.stat(path)
        readable = os.access(path, os.R_OK)
    except UnicodeEncodeError:
        bad.append(f"{path!r}: its name is not UTF-8")
    except OSError as error:
        bad.append(_why(path, error))
    else:
        if not stat.S_ISREG(status.st_mode) or not readable or unsafe_path(name):
            bad.append(f"'{path}' is no file that can be carried")
        else:
            yield Extra(path, name, status.st_size, bool(status.st_mode & stat.S_IXUSR))


def _why(path: str, error: OSError) -> str:
    return f"'{path}': {error.strerror or error}"
