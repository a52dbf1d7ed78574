"""Settings of pip and uv that nobody types and that decide what an install does. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from envlock.doctor.report import Row, Section
from envlock.model.facts import Finding

#: Options that send an install elsewhere than to the target.
_ELSEWHERE = ("--target", "--prefix", "--root", "--user")
#: Options with which a plain install moves what is there.
_MOVING = ("--upgrade", "--force-reinstall", "--ignore-installed", "--reinstall")
_INDEXES = ("--index-url", "--default-index", "--extra-index-url", "--index")
_BOUNDS = ("--constraint", "--constraints")
#: What guard and restore have to know of; the rest is for those who ask for details.
_TELLING = frozenset({
    *_ELSEWHERE, *_MOVING, *_INDEXES, *_BOUNDS, "--find-links", "--no-index", "--upgrade-strategy",
    "--requirement", "--overrides", "--excludes", "--no-binary", "--only-binary", "--pre",
    "--prerelease", "--no-build-isolation", "--break-system-packages", "--require-virtualenv",
    "--require-hashes", "--trusted-host", "--proxy", "--offline",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """An option that a variable or a file sets.

    Attributes:
        tool: ``pip`` or ``uv``.
        option: canonical name.
        values: what it is given; nothing for a flag.
        origin: the variable, or the file and its section.
        missing: those of the values that name a file which is not there.
    """

    tool: str
    option: str
    values: tuple[str, ...] = ()
    origin: str = ""
    missing: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        return f"{self.option.lstrip('-')} = {' '.join(self.values) or 'yes'}"


def configuration_section(
    settings: Sequence[Setting], files: Sequence[tuple[str, str]], broken: Sequence[Finding] = ()
) -> Section:
    """What pip and uv are told before anybody types.

    Args:
        files: tool and path of each configuration file that is read, strongest last.
        broken: files that a tool cannot read.
    """
    rows = [
        Row(
            name=one.tool,
            value=f"{one.shown}  ({one.origin})",
            detail=one.option not in _TELLING,
        )
        for one in settings
    ]
    if all(row.detail for row in rows):
        nothing = "nothing is set that changes what an install does"
        rows.insert(0, Row(name="pip, uv", value=nothing))
    return Section(
        title="configuration",
        rows=(*rows, *(Row(name=f"{tool} reads", value=path, detail=True) for tool, path in files)),
        findings=(*broken, *(f for judge in _JUDGES for f in judge(settings))),
        data={
            "settings": [
                {"tool": s.tool, "option": s.option, "values": list(s.values), "origin": s.origin}
                for s in settings
            ],
            "files": [{"tool": tool, "path": path} for tool, path in files],
        },
    )


def unreadable_finding(tool: str, path: str, why: str) -> Finding:
    """Of a configuration file that its tool cannot read."""
    return Finding(
        code="config.unreadable",
        subject=tool,
        what=f"'{path}' cannot be read: {why}",
        why=f"every command of {tool} fails",
        hint="mend or remove it",
        level="error",
    )


def _of(settings: Sequence[Setting], *options: str) -> list[Setting]:
    return [one for one in settings if one.option in options]


def _elsewhere(settings: Sequence[Setting]) -> Iterator[Finding]:
    for one in _of(settings, *_ELSEWHERE):
        yield Finding(
            code="config.elsewhere",
            subject=one.tool,
            what=f"'{one.shown}' is set by {one.origin}",
            why="a plain install goes beside the target, and may hide its builds there",
            hint=f"take it out of {one.origin}",
        )


def _moving(settings: Sequence[Setting]) -> Iterator[Finding]:
    eager = [one for one in _of(settings, "--upgrade-strategy") if one.values == ("eager",)]
    for one in (*_of(settings, *_MOVING), *eager):
        yield Finding(
            code="config.moves",
            subject=one.tool,
            what=f"'{one.shown}' is set by {one.origin}",
            why="every plain install may replace what is there, vendor builds too",
            hint=f"take it out of {one.origin}; 'envlock guard' judges with it",
        )


def _bounds(settings: Sequence[Setting]) -> Iterator[Finding]:
    for one in _of(settings, *_BOUNDS):
        for path in one.missing:
            yield Finding(
                code="config.constraint-missing",
                subject=one.tool,
                what=f"{one.origin} names '{path}', which is not there",
                why=f"every install with {one.tool} fails",
                hint=f"take it out of {one.origin}, or write the file again",
                level="error",
            )
    held = [one for one in _of(settings, *_BOUNDS) if one.tool == "pip"]
    if held and not [one for one in _of(settings, *_BOUNDS) if one.tool == "uv"]:
        yield Finding(
            code="config.constraint-pip-only",
            subject="uv",
            what=f"the constraints of {held[0].origin} are pip's alone",
            why="uv reads no setting of pip: 'uv pip install' is not bound by them",
            hint="'envlock guard uv pip install …', or UV_CONSTRAINT",
            level="info",
        )


def _indexes(settings: Sequence[Setting]) -> Iterator[Finding]:
    found = {one.tool for one in _of(settings, *_INDEXES, "--find-links", "--no-index")}
    if found != {"pip"}:
        return
    one = _of(settings, *_INDEXES, "--find-links", "--no-index")[0]
    yield Finding(
        code="config.index-pip-only",
        subject="uv",
        what=f"the index of {one.origin} is pip's alone",
        why="uv reads no setting of pip, and asks the public index",
        hint="UV_DEFAULT_INDEX=URL for the same one",
        level="info",
    )


def _isolation(settings: Sequence[Setting]) -> Iterator[Finding]:
    """What is built from source on an image of a vendor has to be built against its torch."""
    for one in _of(settings, "--no-binary", "--no-build-isolation"):
        if one.option == "--no-binary" and one.tool == "pip":
            yield Finding(
                code="config.no-binary",
                subject=one.tool,
                what=f"'{one.shown}' is set by {one.origin}",
                why="packages are built from source, in an environment with the public torch",
                hint=f"take it out of {one.origin}",
                level="info",
            )


_JUDGES = (_elsewhere, _moving, _bounds, _indexes, _isolation)
