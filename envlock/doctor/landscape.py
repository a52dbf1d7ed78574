"""The Python landscape: which interpreter, and what else stands on the way of an import. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from envlock.adapters.installed import Installed, Inventory
from envlock.doctor.report import Row, Section, listed, rows
from envlock.model.facts import Finding, Target

_VERSION = re.compile(r"python(\d\.\d+)(?=/|\Z)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Landscape:
    """A target and what is around it.

    Attributes:
        target: as it describes itself.
        named: the path it was found by.
        inventory: what is installed.
        shadows: findings about other copies on ``sys.path``.
        vendor: name to the signals of a vendor build.
        names: that the profile expects to be vendor builds.
        title: of the profile.
        known: name to version of the builds that the manifest protects.
        env: the person's variables.
        python: what ``python3`` means on PATH; empty for nothing.
        pip: the interpreter that ``pip`` on PATH installs for; empty for nothing.
        user: names of the distributions in the user site, where that is active.
        own: envlock's own version, and whether it lives in the target.
    """

    target: Target
    named: str
    inventory: Inventory
    env: Mapping[str, str]
    shadows: tuple[Finding, ...] = ()
    vendor: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    title: str = ""
    known: Mapping[str, str] = field(default_factory=dict)
    python: str = ""
    pip: str = ""
    user: tuple[str, ...] = ()
    own: tuple[str, bool] = ("", False)

    def is_of_target(self, interpreter: str) -> bool:
        """Whether a path is the target's interpreter, or lies beside it."""
        target = self.target
        own = (self.named, target.executable, os.path.join(target.layout.scripts, "python3"))
        folders = {os.path.realpath(os.path.dirname(path)) for path in own}
        return os.path.realpath(os.path.dirname(interpreter)) in folders


def python_section(land: Landscape) -> Section:
    """The interpreter, its builds, and what hides them."""
    target = land.target
    return Section(
        title="python",
        rows=(
            *rows(
                [
                    ("Python", f"{target.python}, {target.executable} (from {target.source})"),
                    ("environment", _kind(target)),
                    ("packages", _packages(land)),
                    ("pip", target.pip or "none; 'envlock guard pip' works all the same"),
                    ("python3 on PATH", _other(land, land.python)),
                    ("pip on PATH", _other(land, land.pip)),
                    ("PYTHONPATH", land.env.get("PYTHONPATH", "")),
                    ("user site", f"active: {listed(land.user)}" if land.user else ""),
                    ("envlock", _envlock(land)),
                ]
            ),
            *_builds(land),
            *(
                Row(name="" if number else "sys.path", value=path, detail=True)
                for number, path in enumerate(target.sys_path)
            ),
        ),
        findings=tuple(
            finding
            for judge in (
                _paths, _user_site, _variables, _managed, _own, _broken, _public, _elsewhere
            )
            for finding in judge(land)
        )
        + land.shadows
        + land.inventory.findings,
        data=_data(land),
    )  # fmt: skip


def no_target_section(what: str, hint: str, *, broken: bool) -> Section:
    """Where there is no Python to look at.

    Args:
        broken: there is one, and it does not answer.
    """
    return Section(
        title="python",
        rows=(Row(name="Python", value="none to look at"),),
        findings=(
            Finding(
                code="python.broken" if broken else "python.none",
                subject="target",
                what=what.removeprefix("target: "),
                why="its packages, its configuration and what protects them were not looked at",
                hint=hint,
                level="error" if broken else "warning",
            ),
        ),
        data={"target": None},
    )


def _kind(target: Target) -> str:
    if target.venv:
        return f"a venv, {target.home}"
    conda = os.sep + "conda" in target.home or "conda" in os.path.basename(target.home)
    kind = "conda's" if conda else "no venv"
    managed = f", managed by others ({target.externally_managed})"
    return f"{kind}, {target.home}{managed if target.externally_managed else ''}"


def _packages(land: Landscape) -> str:
    folders = dict.fromkeys((land.target.layout.purelib, land.target.layout.platlib))
    count = len(land.inventory.distributions)
    return f"{count} in {' and '.join(folders)}"


def _other(land: Landscape, interpreter: str) -> str:
    """What stands on PATH, where it is not the target's."""
    if not interpreter or land.is_of_target(interpreter):
        return ""
    return f"{interpreter}: another Python"


def _envlock(land: Landscape) -> str:
    version, inside = land.own
    where = "installed in the target itself" if inside else "in an environment of its own"
    return f"{version}, {where}"


def _builds(land: Landscape) -> Iterator[Row]:
    """What the profile expects, and every vendor build."""
    for dist in land.inventory.distributions:
        signals = land.vendor.get(dist.name, ())
        if signals or dist.name in (*land.names, *land.known):
            said = ", ".join(signals) or ("protected" if dist.name in land.known else "no sign")
            yield Row(name=dist.name, value=f"{dist.version}  ({said})")


def _paths(land: Landscape) -> Iterator[Finding]:
    """What people type, where it is another Python than envlock looks at."""
    chosen = f"envlock looks at '{land.target.executable}', from {land.target.source}"
    level = "info" if land.target.source == "--python" else "warning"
    if _other(land, land.python):
        yield Finding(
            code="python.other-on-path",
            subject="python3",
            what=f"on PATH it is '{land.python}'",
            why=f"{chosen}: what you start with 'python3' is another one",
            hint="activate the environment you mean, or name the other one with --python PATH",
            level=level,
        )
    if _other(land, land.pip):
        yield Finding(
            code="python.other-pip",
            subject="pip",
            what=f"on PATH it installs for '{land.pip}'",
            why=f"{chosen}: a plain 'pip install' changes another one",
            hint="'envlock guard pip …' means the target, whatever is on PATH",
            level=level,
        )


def _user_site(land: Landscape) -> Iterator[Finding]:
    if not land.user:
        return
    vital = [name for name in land.user if name in (*land.names, *land.known)]
    yield Finding(
        code="python.user-site",
        subject="user site",
        what=f"{len(land.user)} distributions come before the target's: {listed(land.user)}",
        why="import takes those first, and no manifest has them"
        + (f"; builds of the vendor are among them: {listed(vital)}" if vital else ""),
        hint="export PYTHONNOUSERSITE=1 leaves them out",
        level="warning" if vital else "info",
    )


def _variables(land: Landscape) -> Iterator[Finding]:
    if land.env.get("PYTHONHOME"):
        yield Finding(
            code="python.home-variable",
            subject="PYTHONHOME",
            what=f"'{land.env['PYTHONHOME']}'",
            why="every Python that is started here takes its standard library from there",
            hint="unset PYTHONHOME",
        )
    short = land.target.python.rpartition(".")[0]
    for entry in filter(None, land.env.get("PYTHONPATH", "").split(os.pathsep)):
        version = _VERSION.search(entry)
        if version and version[1] != short:
            yield Finding(
                code="python.path-version",
                subject="PYTHONPATH",
                what=f"'{entry}' is for Python {version[1]}, and the target is {short}",
                why="compiled packages found there cannot be loaded",
                hint="take it out of PYTHONPATH",
            )


def _managed(land: Landscape) -> Iterator[Finding]:
    if land.target.externally_managed:
        yield Finding(
            code="python.managed",
            subject="target",
            what=f"'{land.target.externally_managed}' says that somebody else manages it (PEP 668)",
            why="pip from 23.0 on and uv refuse to install, and so does restore",
            hint="a venv on top of it, or --break-system-packages",
            level="info",
        )


def _own(land: Landscape) -> Iterator[Finding]:
    if land.own[1]:
        yield Finding(
            code="python.own-target",
            subject="envlock",
            what="is installed in the target itself",
            why="it works there; what is installed beside it may change what it needs",
            hint="python3 -m venv ~/envlock && ~/envlock/bin/python -m pip install CHECKOUT",
            level="info",
        )


def _broken(land: Landscape) -> Iterator[Finding]:
    bad = [d for d in land.inventory.distributions if d.reason and not d.editable]
    if bad:
        yield Finding(
            code="python.broken-metadata",
            subject=listed(list(dict.fromkeys(d.name for d in bad))),
            what=f"cannot be kept or checked: {bad[0].reason}"
            + (f", and {len(bad) - 1} more" if len(bad) > 1 else ""),
            why="nobody knows which files are theirs",
            hint="'envlock restore' puts them right where a manifest has them; else install them "
            "again",
        )


def _public(land: Landscape) -> Iterator[Finding]:
    for dist in land.inventory.distributions:
        same = land.known.get(dist.name) == dist.version
        if dist.name in land.names and not land.vendor.get(dist.name) and not same:
            yield Finding(
                code="stack.looks-public",
                subject=dist.name,
                what=f"'{dist.version}' carries no sign of a vendor build",
                why=f"{land.title} usually ships its own; it may have been replaced already",
                hint="'envlock restore' if there is a manifest of better days, else ask whoever "
                "made the image",
            )


def _elsewhere(land: Landscape) -> Iterator[Finding]:
    active = land.env.get("VIRTUAL_ENV", "")
    if active and land.target.source == "PATH":
        yield Finding(
            code="python.venv-ignored",
            subject="VIRTUAL_ENV",
            what=f"'{active}' is envlock's own environment",
            why="envlock never looks at itself unless told so",
            hint=f"if it is meant: --python {active}",
            level="info",
        )


def _data(land: Landscape) -> dict[str, object]:
    target = land.target
    builds = [dist for dist in land.inventory.distributions if _is_build(land, dist)]
    return {
        "target": {
            "executable": target.executable,
            "source": target.source,
            "python": target.python,
            "prefix": target.home,
            "purelib": target.layout.purelib,
            "venv": target.venv,
            "pip": target.pip,
            "externally_managed": target.externally_managed,
        },
        "distributions": len(land.inventory.distributions),
        "builds": [
            {"name": d.name, "version": d.version, "vendor": list(land.vendor.get(d.name, ()))}
            for d in builds
        ],
        "python_on_path": land.python,
        "pip_on_path": land.pip,
        "user_site": list(land.user),
        "envlock_inside": land.own[1],
    }


def _is_build(land: Landscape, dist: Installed) -> bool:
    return dist.name in {*land.vendor, *land.names, *land.known}


def user_folders(target: Target, base: str) -> Sequence[str]:
    """The entries of ``sys.path`` that are the person's own.

    Args:
        base: ``$PYTHONUSERBASE``, or ``~/.local``.
    """
    inside = os.path.join(os.path.realpath(base), "")
    prefix = os.path.join(os.path.realpath(target.layout.prefix), "")
    return [
        path
        for path in target.sys_path
        if os.path.realpath(path).startswith(inside) and not inside.startswith(prefix)
        and not os.path.realpath(path).startswith(prefix)
    ]  # fmt: skip
