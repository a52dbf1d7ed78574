"""One wheel as the native backend installs it: what goes where, its scripts, its RECORD."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from configparser import ConfigParser
from configparser import Error as ConfigError
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from zipfile import ZipInfo

from installer.records import Hash, RecordEntry
from installer.scripts import Script
from installer.utils import Scheme, construct_record_file

from envlock.adapters.files import seal
from envlock.adapters.installer import Pinned
from envlock.adapters.native_write import Damaged, Task, Written, urlsafe, write_file
from envlock.adapters.zipmember import (
    NO_ZIP,
    hash_descriptor,
    is_executable,
    kind_problem,
    open_archive,
    read_member,
)
from envlock.model.facts import Layout
from envlock.model.record import Row, parse_record
from envlock.model.wheels import dist_info_folder, parse_wheel_info, unsafe_path

_INSTALLER = b"envlock\n"
#: Written here and not taken from the wheel, as pip and uv have it.
_OWN = ("RECORD", "INSTALLER", "REQUESTED")
_ROOT = ""


@contextmanager
def opened(pinned: Pinned) -> Iterator[int]:
    """A descriptor of a wheel.

    Raises:
        OSError: it cannot be opened.
    """
    descriptor = os.open(pinned.path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """An open wheel and where its files go.

    Attributes:
        folders: of the stage, by scheme; the empty one is for what has none.
        members: regular files by name; each may be unpacked.
        scripts: entry points for which a script is written.
        seal: of the file when it was known to be the right one.
    """

    pinned: Pinned
    descriptor: int
    folders: Mapping[str, str]
    members: Mapping[str, ZipInfo]
    dist_info: str
    scripts: Sequence[Script] = ()
    rows: Mapping[str, Row] = field(default_factory=dict)
    seal: tuple[int, ...] = ()

    def check(self) -> None:
        """Whether the file is still as it was.

        Raises:
            Damaged: somebody wrote to it.
        """
        if seal(os.fstat(self.descriptor)) != self.seal:
            raise Damaged("it changed while it was unpacked")

    @property
    def site(self) -> str:
        """The folder that RECORD is relative to."""
        return self.folders[_ROOT]


def read_wheel(pinned: Pinned, descriptor: int, layout: Layout) -> Wheel:
    """Reads what an installer needs to know of a wheel.

    A file that still has the seal it had when its sha256 was computed is not read again for it.

    Args:
        layout: of the stage.

    Raises:
        Damaged: it is another file than the one that was looked at, or must not be unpacked.
        one of DAMAGED: it cannot be read.
    """
    sealed = seal(os.fstat(descriptor))
    if sealed != pinned.seal and hash_descriptor(descriptor) != pinned.sha256:
        raise Damaged("it has another sha256 than it had when it was looked at")
    members = _members(descriptor)
    try:
        dist_info = dist_info_folder(members, pinned.name, pinned.version)
        rows = parse_record(_text(descriptor, members.get(f"{dist_info}/RECORD")))
    except ValueError as error:
        raise Damaged(str(error)) from error
    info = parse_wheel_info(_text(descriptor, members.get(f"{dist_info}/WHEEL")))
    return Wheel(
        pinned=pinned,
        descriptor=descriptor,
        folders={
            _ROOT: layout.purelib if info.purelib else layout.platlib,
            "purelib": layout.purelib,
            "platlib": layout.platlib,
            "scripts": layout.scripts,
            "headers": os.path.join(layout.headers, pinned.name),
            "data": layout.data,
        },
        members=members,
        dist_info=dist_info,
        scripts=_scripts(_text(descriptor, members.get(f"{dist_info}/entry_points.txt"))),
        rows={row.path: row for row in rows},
        seal=sealed,
    )


def _members(descriptor: int) -> dict[str, ZipInfo]:
    try:
        with open_archive(descriptor) as archive:
            infos = archive.infolist()
    except NO_ZIP as error:
        raise Damaged(f"the zip archive cannot be read: {error}") from error
    found: dict[str, ZipInfo] = {}
    for info in infos:
        name = info.orig_filename
        bad = unsafe_path(name) or kind_problem(info)
        if bad or info.filename in found:
            raise Damaged(f"'{name}': {bad or 'is in the archive twice'}")
        if not info.is_dir():
            found[info.filename] = info
    return found


def _text(descriptor: int, info: ZipInfo | None) -> str:
    """A member as text; empty when there is none."""
    data = b"".join(read_member(descriptor, info)) if info else b""
    return data.decode("utf-8", "surrogateescape")


def _scripts(entry_points: str) -> list[Script]:
    """What entry_points.txt declares, in the form that the installer library writes.

    Raises:
        Damaged: it cannot be read, or names no function.
    """
    parser = ConfigParser(delimiters=("=",), strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[method-assign,assignment]  # names are case-sensitive
    try:
        parser.read_string(entry_points)
    except ConfigError as error:
        raise Damaged(f"entry_points.txt cannot be read: {error}") from error
    # on Linux a script with a window is like any other
    return [
        _script(name, value)
        for group in ("console_scripts", "gui_scripts")
        if parser.has_section(group)
        for name, value in parser[group].items()
    ]


def _script(name: str, value: str) -> Script:
    entry = EntryPoint(name, value, "console_scripts")
    # EntryPoint has no error of its own for a value that is none
    if not entry.pattern.match(value) or not entry.attr or "/" in name or unsafe_path(name):
        raise Damaged(f"entry_points.txt: '{name} = {value}' is no script")
    return Script(name, entry.module, entry.attr, "console")


def plan_tasks(wheel: Wheel, executable: str) -> list[Task]:
    """A task for each member that is installed as it is.

    Args:
        executable: the target's interpreter.

    Raises:
        Damaged: a scheme that does not exist, or two members for one file.
    """
    own = {f"{wheel.dist_info}/{name}" for name in _OWN}
    # what entry points give is written last, and pip and uv have it win
    taken = {os.path.join(wheel.folders["scripts"], script.name) for script in wheel.scripts}
    first_line = _first_lines(executable)
    found: dict[str, Task] = {}
    for name, info in wheel.members.items():
        scheme, rest = _scheme(name)
        if scheme not in wheel.folders:
            raise Damaged(f"'{name}': unknown scheme '{scheme}'")
        path = f"{wheel.folders[scheme]}/{rest}"
        if path in found:
            raise Damaged(f"two members are installed as '{rest}'")
        if name in own or path in taken:
            continue
        script = scheme == "scripts"
        found[path] = Task(
            descriptor=wheel.descriptor,
            wheel=os.path.basename(wheel.pinned.path),
            info=info,
            path=path,
            row=wheel.rows.get(name),
            executable=script or is_executable(info),
            first_line=first_line if script else b"",
        )
    return list(found.values())


def _scheme(member: str) -> tuple[str, str]:
    """Scheme and path of a member; a ``.data`` folder of any name is one, as in pip."""
    top, _, rest = member.partition("/")
    if not top.endswith(".data"):
        return _ROOT, member
    scheme, _, path = rest.partition("/")
    return scheme or "none", path


def _first_lines(executable: str) -> bytes:
    """What stands above a script: ``#!``, or three lines for a path with spaces or too long.

    The installer library has no way to ask for these alone.
    """
    _, data = Script("name", "module", "function", "console").generate(executable, "posix")
    head, mark, _ = data.partition(b"# -*- coding")
    assert mark
    return bytes(head)


def finish(wheel: Wheel, written: Sequence[Written], executable: str) -> None:
    """Writes the scripts of entry points, INSTALLER, REQUESTED, and RECORD over everything.

    Args:
        written: what came of :func:`plan_tasks`.

    Raises:
        OSError: a file cannot be written.
    """
    site, info = wheel.site, os.path.join(wheel.site, wheel.dist_info)
    entries = [_entry(site, w.path, urlsafe(w.digest), w.size) for w in written]
    own: dict[str, bytes] = {}
    for script in wheel.scripts:
        name, data = script.generate(executable, "posix")
        own[os.path.join(wheel.folders["scripts"], name)] = data
    scripts = len(own)
    own |= {os.path.join(info, "INSTALLER"): _INSTALLER, os.path.join(info, "REQUESTED"): b""}
    for number, (path, data) in enumerate(own.items()):
        write_file(path, data, executable=number < scripts)
        digest = urlsafe(hashlib.sha256(data).digest())
        entries.append(_entry(site, path, digest, len(data)))
    record = f"{wheel.dist_info}/RECORD"
    rows = [(Scheme(_ROOT), entry) for entry in [*entries, RecordEntry(record, None, None)]]
    with construct_record_file(rows) as stream:
        write_file(os.path.join(site, record), stream.read())


def _entry(site: str, path: str, digest: str, size: int) -> RecordEntry:
    inside = path.startswith(site + "/")
    relative = path[len(site) + 1 :] if inside else os.path.relpath(path, site)
    return RecordEntry(relative, Hash("sha256", digest), size)
