"""static.pth, static.pyc: does Python import the files that are installed, and no others?"""

from __future__ import annotations

import _imp
import os
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from envlock.adapters.files import names_in
from envlock.adapters.installed import Installed
from envlock.model.check import Case
from envlock.verify.static_ground import Scene, case_of, skipped

_CUSTOM = ("sitecustomize.py", "usercustomize.py")
_MAKERS = frozenset({"_virtualenv.pth"})  # virtualenv and uv put it into what they make
_HEADER = struct.Struct("<4sIII")  # magic, flags, then time and size, or a hash of eight bytes
_HASHED, _CHECKED = 0b01, 0b10  # PEP 552


def shadows(scene: Scene) -> tuple[Case, ...]:
    """static.pth: one case for what each folder on the import path hides, one for start-up files.

    Hiding a build that is protected, or that the profile names: failed. Anything else is a warning.
    """
    failed: list[str] = []
    warned: list[str] = []
    for dist in scene.installed:
        for name, folder in _hidden(scene, dist):
            text = f"'{name}' of {dist.name} {dist.version} is hidden by the one in '{folder}'"
            (failed if _matters(scene, dist) else warned).append(text)
    checked = sum(len(modules(dist)) for dist in scene.installed)
    if not checked:
        return (skipped("import path", "nothing is installed"),)
    starts = [*_start_files(scene)]
    return (
        case_of("import path", failed, warned, modules=checked),
        case_of("start-up files", [], starts, folders=len(scene.sites)),
    )


def _matters(scene: Scene, dist: Installed) -> bool:
    locked = scene.manifest.distributions if scene.manifest else ()
    protected = any(one.name == dist.name and one.protected for one in locked)
    return protected or dist.name in scene.profile.names


def modules(dist: Installed) -> tuple[str, ...]:
    """What a distribution adds to the import path: packages and modules at the top."""
    found = set()
    for row in dist.rows or ():
        top, slash, _ = row.path.partition("/")
        if slash and not top.endswith((".dist-info", ".data", ".libs")) and "." not in top:
            found.add(top)
        elif not slash and top.endswith((".py", ".so")):
            found.add(top.partition(".")[0])
    return tuple(sorted(found - {"__pycache__", "..", "bin"}))


def _path(scene: Scene) -> Iterator[str]:
    """Folders in the order in which Python looks, without its own library."""
    named = scene.env.get("PYTHONPATH", "").split(os.pathsep)
    seen = {os.path.realpath(scene.target.stdlib)} if scene.target.stdlib else set()
    for folder in (*named, *scene.target.sys_path):
        real = os.path.realpath(folder) if folder else ""
        inside = os.path.dirname(real) == os.path.realpath(scene.target.stdlib or os.sep)
        if real and real not in seen and (not inside or real.endswith("-packages")):
            seen.add(real)
            yield folder


def _hidden(scene: Scene, dist: Installed) -> Iterator[tuple[str, str]]:
    """Modules of a distribution that an earlier folder has as well, and that folder."""
    own = os.path.realpath(dist.site)
    for folder in _path(scene):
        if os.path.realpath(folder) == own:
            return
        for name in modules(dist):
            if _provides(folder, name):
                yield name, folder


def _provides(folder: str, name: str) -> bool:
    """Whether Python would import ``name`` from a folder; a bare folder hides nothing."""
    if os.path.isfile(os.path.join(folder, name, "__init__.py")):
        return True
    if os.path.isfile(os.path.join(folder, f"{name}.py")):
        return True
    return any(Path(folder).glob(f"{name}.*.so")) or os.path.isfile(
        os.path.join(folder, f"{name}.so")
    )


def _start_files(scene: Scene) -> Iterator[str]:
    """Files that run at every start and that no distribution brought."""
    owned = {
        os.path.normpath(os.path.join(dist.site, row.path))
        for dist in scene.installed
        for row in dist.rows or ()
        if row.path.endswith((".pth", *_CUSTOM))
    }
    for site in scene.sites:
        for path in sorted(Path(site).glob("*.pth")):
            if str(path) not in owned and path.name not in _MAKERS:
                yield f"'{path.name}' {_what_it_does(path)}, and no distribution brought it"
    for folder in _path(scene):
        for name in _CUSTOM:
            path = Path(folder, name)
            if path.is_file() and str(path) not in owned:
                yield f"'{name}' in '{folder}' runs at every start"


def _what_it_does(path: Path) -> str:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    if any(line.startswith(("import ", "import\t")) for line in lines):
        return "runs code at every start"
    return "adds to the import path"


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A source file and its byte code; places as reports show them."""

    place: str
    source: str
    code: str


def bytecode(scene: Scene) -> tuple[Case, ...]:
    """static.pyc: one case for each distribution with byte code.

    Byte code that Python takes unchecked and that is of another source: failed. What Python sees to
    be of another source it does not use: a warning, since every start compiles it again where it
    cannot be written.
    """
    tag = f"cpython-{scene.target.short.removeprefix('cp')}"
    cases = []
    for dist in scene.installed:
        failed, warned, count = [], [], 0
        for one in _compiled(dist, tag):
            count += 1
            verdict = judge(one.source, one.code)
            if verdict == STALE:
                failed.append(f"'{one.place}': its byte code is of another source, and is used")
            elif verdict == OUTDATED:
                warned.append(f"'{one.place}': its byte code is of another source")
        if count:
            name = f"{dist.name} {dist.version}"
            cases.append(case_of(name, failed, warned, files=count))
    return tuple(cases) or (skipped("byte code", "there is none"),)


def _compiled(dist: Installed, tag: str) -> Iterator[_Compiled]:
    folders: dict[str, Mapping[str, str]] = {}
    for row in dist.rows or ():
        if not row.path.endswith(".py"):
            continue
        source = os.path.normpath(os.path.join(dist.site, row.path))
        folder, name = os.path.split(source)
        if folder not in folders:
            folders[folder] = _cached(os.path.join(folder, "__pycache__"), tag)
        code = folders[folder].get(name[:-3])
        if code:
            yield _Compiled(row.path, source, code)


def _cached(folder: str, tag: str) -> Mapping[str, str]:
    """Byte code for one Python in a cache folder, by module."""
    ending = f".{tag}.pyc"
    names = [name for name in names_in(folder) if name.endswith(ending)]
    return {name.removesuffix(ending): os.path.join(folder, name) for name in names}


GOOD, OUTDATED, STALE = "good", "outdated", "stale"


def judge(source: str, code: str) -> str:
    """Whether byte code is that of its source.

    Returns:
        ``good``; ``outdated``: of another source, which Python sees; ``stale``: of another source,
        and Python uses it. What cannot be read is not used, and good.
    """
    try:
        with open(code, "rb") as file:
            head = file.read(_HEADER.size)
        magic, flags, first, second = _HEADER.unpack(head)
        if flags & _HASHED:
            key = int.from_bytes(magic, "little")
            found = _imp.source_hash(key, Path(source).read_bytes())
            if found == head[8:]:
                return GOOD
            return OUTDATED if flags & _CHECKED else STALE
        status = os.stat(source)
    except (OSError, struct.error):
        return GOOD
    same = (int(status.st_mtime) & 0xFFFFFFFF, status.st_size & 0xFFFFFFFF) == (first, second)
    return GOOD if same else OUTDATED
