"""Wheel files: everything there is to say about one, through one open descriptor."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from zipfile import ZipInfo

from packaging.utils import canonicalize_name

from envlock.adapters.files import Hashed, workers
from envlock.adapters.wheeldirectory import read_directory, regular_members
from envlock.adapters.wheelmembers import MemberJob, damaged_members, hash_members
from envlock.adapters.zipmember import (
    DAMAGED,
    NO_ZIP,
    hash_descriptor,
    is_executable,
    open_shared,
    read_at,
    read_member,
)
from envlock.model.dist import Metadata, parse_metadata
from envlock.model.facts import Finding
from envlock.model.label import same_version
from envlock.model.record import (
    Row,
    content_digest,
    entry_point_names,
    is_content,
    parse_record,
)
from envlock.model.wheels import (
    MemberFacts,
    WheelInfo,
    WheelName,
    decode_hash,
    dist_info_folder,
    foreign_data,
    parse_wheel_info,
    parse_wheel_name,
    printable,
    record_problems,
    wheel_place,
)

#: Findings of one code that are told one by one; the rest is a number.
MOST = 20
_MOST_TEXT = 64 * 1024 * 1024  # METADATA or RECORD; torch's RECORD is 1 MB


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelFile:
    """A wheel file as it is.

    Attributes:
        path: where it was read.
        file: its file name.
        name: canonical name, from the file name; empty when that is none of a wheel.
        version: raw, as METADATA says; the file name's where there is no METADATA.
        sha256: of the whole file, hexadecimal; empty when it cannot be read.
        size: bytes.
        tags: of the file name, sorted.
        requires: raw Requires-Dist values.
        requires_python: raw Requires-Python; empty when there is none.
        content: content digest ``sha256:…``; empty when a member cannot be read, or was not.
        files: each file of the content by place (``SCHEME/PATH``).
        executable: places of the content with an exec bit; scripts always have one, though pip
            sets it only where the wheel does.
        recorded: what RECORD says of each place (``ALGORITHM=VALUE``), metadata included.
        problems: all that is wrong; ``warning`` where pip and uv install it all the same.
    """

    path: str
    file: str
    name: str = ""
    version: str = ""
    sha256: str = ""
    size: int = 0
    tags: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    requires_python: str = ""
    content: str = ""
    files: Mapping[str, Hashed] = field(default_factory=dict)
    executable: tuple[str, ...] = ()
    recorded: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Finding, ...] = ()

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The problems that forbid to install it."""
        return tuple(problem for problem in self.problems if problem.level == "error")


def inspect_wheel(path: str, *, members: bool = True, inflate: bool = False) -> WheelFile:
    """Reads a wheel file to its last byte and judges it. Never raises for what is in the file.

    Args:
        path: the file; opened once, so what was judged is what was read.
        members: inflate and hash every member. Without it ``content`` and ``files`` are empty and
            only the file's own sha256, its directory, its metadata and what RECORD lists are
            checked: enough where the sha256 is then compared with one that was written down after
            a full inspection.
        inflate: without ``members``, still inflate every one against its size and CRC: enough for
            who has just written the file and knows the digests.
    """
    file = os.path.basename(path)
    problems = _Problems(file)
    try:
        descriptor = open_shared(path)
    except OSError as error:
        problems.add("unreadable", f"cannot be read: {error.strerror or error}")
        return WheelFile(path=path, file=file, problems=problems.all())
    try:
        with ThreadPoolExecutor(workers()) as pool:
            return _Inspection(path, descriptor, pool, problems).run(members, inflate)
    finally:
        os.close(descriptor)


class _Problems:
    """Findings about one wheel; at most :data:`MOST` of a code, then how many more."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._found: list[Finding] = []
        self._count: Counter[str] = Counter()

    def add(self, code: str, what: str, level: str = "error") -> None:
        self._count[code] += 1
        if self._count[code] <= MOST:
            self._found.append(
                Finding(code=f"wheel.{code}", subject=self._file, what=printable(what), level=level)
            )

    def all(self) -> tuple[Finding, ...]:
        more = [
            Finding(
                code=f"wheel.{code}",
                subject=self._file,
                what=f"and {count - MOST} more like this",
                level="error",
            )
            for code, count in self._count.items()
            if count > MOST
        ]
        return tuple(self._found + more)


class _Inspection:
    """One wheel under inspection: its descriptor, the workers, the problems so far."""

    def __init__(
        self, path: str, descriptor: int, pool: ThreadPoolExecutor, problems: _Problems
    ) -> None:
        self._path, self._descriptor = path, descriptor
        self._pool, self._problems = pool, problems
        self._name: WheelName | None = None
        self._dist_info = ""

    def run(self, members: bool, inflate: bool) -> WheelFile:
        file = os.path.basename(self._path)
        status = os.fstat(self._descriptor)
        total = self._pool.submit(hash_descriptor, self._descriptor)
        self._name = self._read_name(file)
        infos = self._read_directory()
        regular = regular_members(infos, self._problems.add)
        metadata = self._read_metadata(regular) if self._name and infos else Metadata("", "", ())
        files: dict[str, Hashed] = {}
        whole = members and self._dist_info != ""
        rows = self._record(regular) if self._dist_info else ()
        places = self._places(regular) if self._dist_info else {}
        if whole:
            files, whole = self._read_members(regular, rows, places)
        elif self._dist_info:
            sizes = {name: MemberFacts({}, info.file_size) for name, info in regular.items()}
            self._judge_record(rows, sizes)
        if inflate and not members:
            for name, fault in damaged_members(
                self._descriptor, list(regular.values()), self._pool
            ):
                self._problems.add("damaged", f"'{name}': {fault}")
        return WheelFile(
            path=self._path,
            file=file,
            name=self._name.name if self._name else "",
            version=metadata.version or (self._name.version if self._name else ""),
            sha256=self._hash_of_file(total),
            size=status.st_size,
            tags=tuple(sorted(map(str, self._name.tags))) if self._name else (),
            requires=metadata.requires,
            requires_python=metadata.requires_python,
            content=content_digest((p, f.hex) for p, f in files.items()) if whole else "",
            files=files,
            executable=tuple(sorted(p for p, f in files.items() if f.executable)),
            recorded={places[row.path]: row.hash for row in rows if row.path in places},
            problems=self._problems.all(),
        )

    def _hash_of_file(self, total: Future[str]) -> str:
        try:
            return total.result()
        except OSError as error:
            self._problems.add("unreadable", f"cannot be read: {error.strerror or error}")
            return ""

    def _read_name(self, file: str) -> WheelName | None:
        try:
            return parse_wheel_name(file)
        except ValueError as error:
            self._problems.add("name", f"file name: {error}")
            return None

    def _read_directory(self) -> list[ZipInfo]:
        try:
            return read_directory(self._descriptor, self._problems.add)
        except NO_ZIP as error:
            cut = read_at(self._descriptor, 4, 0) == b"PK\3\4"
            self._problems.add(
                "zip",
                f"the zip archive is cut short or damaged: {error}" if cut else f"no zip: {error}",
            )
            return []

    def _read_metadata(self, regular: Mapping[str, ZipInfo]) -> Metadata:
        assert self._name is not None
        try:
            self._dist_info = dist_info_folder(regular, self._name.name, self._name.version)
        except ValueError as error:
            self._problems.add("dist-info", str(error))
            return Metadata("", "", ())
        for folder in foreign_data(regular, self._name.name, self._name.version):
            self._problems.add(
                "scheme", f"'{folder}' does not belong to '{self._name.name} {self._name.version}'"
            )
        metadata = parse_metadata(self._text(regular, "METADATA") or "")
        if metadata.name and canonicalize_name(metadata.name) != self._name.name:
            self._problems.add("metadata", f"METADATA names another project: '{metadata.name}'")
        if not metadata.version:
            self._problems.add("metadata", "METADATA has no version")
        elif not same_version(metadata.version, self._name.version):
            self._problems.add(
                "metadata",
                f"METADATA has version '{metadata.version}', the file name '{self._name.version}'",
            )
        self._judge_wheel_info(parse_wheel_info(self._text(regular, "WHEEL") or ""))
        return metadata

    def _judge_wheel_info(self, info: WheelInfo) -> None:
        assert self._name is not None
        if not info.version.startswith("1."):
            self._problems.add("format", f"Wheel-Version is '{info.version}', not 1.x")
        # installers go by the file name: odd Tag lines are worth a word, no refusal
        if not info.tags:
            self._problems.add("tags", "WHEEL has no Tag line", "warning")
        elif info.tag_set != self._name.tags:
            self._problems.add(
                "tags",
                f"WHEEL has other tags than the file name: {', '.join(info.tags)}",
                "warning",
            )

    def _text(self, regular: Mapping[str, ZipInfo], name: str, needed: bool = True) -> str | None:
        """A file of the dist-info folder as text."""
        info = regular.get(f"{self._dist_info}/{name}")
        if info is None:
            if needed:
                self._problems.add("dist-info", f"no {name} in '{self._dist_info}'")
            return None
        if info.file_size > _MOST_TEXT:
            self._problems.add("dist-info", f"{name} has {info.file_size} bytes")
            return None
        try:
            data = b"".join(read_member(self._descriptor, info))
        except DAMAGED:
            return None  # told when all members are read
        return data.decode("utf-8", "surrogateescape")

    def _places(self, regular: Mapping[str, ZipInfo]) -> dict[str, str]:
        """Where each member is installed; two at one place are a problem."""
        assert self._name is not None
        taken: set[str] = set()
        found: dict[str, str] = {}
        for member in regular:
            try:
                place = wheel_place(member, self._name.name)
            except ValueError as error:
                self._problems.add("scheme", f"'{member}': {error}")
                continue
            if place in taken:
                self._problems.add("duplicate", f"two members are installed as '{place}'")
                continue
            taken.add(place)
            found[member] = place
        return found

    def _read_members(
        self, regular: Mapping[str, ZipInfo], rows: Sequence[Row], places: Mapping[str, str]
    ) -> tuple[dict[str, Hashed], bool]:
        """Every member read; the content by place, and whether nothing of it is missing."""
        assert self._name is not None
        name = self._name.name
        algorithms = dict(_other_algorithms(rows))
        scripts = entry_point_names(self._text(regular, "entry_points.txt", False) or "")
        jobs = [
            MemberJob(info, places.get(member, "").startswith("bin/"), algorithms.get(member, ""))
            for member, info in regular.items()
        ]
        read = hash_members(self._descriptor, jobs, self._pool)
        files: dict[str, Hashed] = {}
        for member, found in read.items():
            place = places.get(member, "")
            if found.facts is None:
                self._problems.add("damaged", f"'{member}': {found.error}")
            elif place and is_content(place, self._dist_info, name, scripts):
                runs = is_executable(regular[member]) or ".data/scripts/" in member
                files[place] = Hashed(found.content_hex, found.content_size, runs)
        facts = {member: one.facts for member, one in read.items() if one.facts is not None}
        damaged = read.keys() - facts.keys()
        self._judge_record([row for row in rows if row.path not in damaged], facts)
        return files, not damaged

    def _judge_record(self, rows: Sequence[Row], facts: Mapping[str, MemberFacts]) -> None:
        for level, what in record_problems(rows, facts, self._dist_info):
            self._problems.add("record", what, level)

    def _record(self, regular: Mapping[str, ZipInfo]) -> tuple[Row, ...]:
        try:
            return parse_record(self._text(regular, "RECORD") or "")
        except ValueError as error:
            self._problems.add("record", f"RECORD cannot be read: {error}")
            return ()


def _other_algorithms(rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """Members whose RECORD line needs another digest than sha256."""
    for row in rows:
        if row.hash and not row.hash.startswith("sha256="):
            try:
                yield row.path, decode_hash(row.hash)[0]
            except ValueError:
                continue
