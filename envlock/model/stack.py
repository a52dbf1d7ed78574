"""The vendor's stack on a machine, and the shell that looks at it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from envlock.model.facts import Finding
from envlock.model.hardware import Silence, hung
from envlock.model.profile import Profile
from envlock.model.runtime import numbers

_HIP = re.compile(r"^(?:HIP version:\s*)?(\d+\.\d+[\w.+-]*)\s*$", re.M)
# "dcc version: 25.10.0-0", "clang version 17.0.0", "release 13.0, V13.0.88"
_COMPILERS = (
    ("dcc", re.compile(r"\bdcc version:?\s*(\S+)")),
    ("clang", re.compile(r"\bclang version\s+(\S+)")),
    ("nvcc", re.compile(r"\brelease [\d.]+, V(\d[\d.]*)")),
)


def hip_version(text: str) -> str:
    """What ``hipconfig --version`` or ``hipcc --version`` says of HIP; empty when nothing."""
    found = _HIP.search(text)
    return found[1] if found else ""


def compiler_version(text: str) -> str:
    """``dcc 25.10.0-0, clang 17.0.0``, out of what the vendor's compiler says of itself."""
    found = ((name, pattern.search(text)) for name, pattern in _COMPILERS)
    return ", ".join(f"{name} {one[1].rstrip(',')}" for name, one in found if one)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """How this shell stands to the stack.

    Attributes:
        script: path of the script that activates it; empty where the vendor has none.
        there: whether that is there.
        works: whether sourcing it gave an environment.
        active: whether this shell has it already.
        loaded: modules of the stack that are loaded (``LOADEDMODULES``).
        available: modules of the stack that could be, the newest last (``MODULEPATH``).
    """

    script: str = ""
    there: bool = False
    works: bool = False
    active: bool = True
    loaded: tuple[str, ...] = ()
    available: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A variable that names a stack.

    Attributes:
        there: whether its value is a folder.
        same: whether that is the stack in use.
        link: path of the link to the same folder, where the value is the folder itself.
    """

    variable: str
    value: str
    there: bool = True
    same: bool = True
    link: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackFacts:
    """The vendor's toolkit as it was found.

    Attributes:
        profile: whose.
        root: its folder as linked, not resolved; empty where it is not on this machine.
        target: real name of that folder, where the root is a link.
        releases: version file to its first line, in the order in which they count; ``""`` for the
            link's real name.
        hip: what its compiler says of HIP; torch says another version, and rightly.
        compiler: ``dcc 25.10.0-0, clang 17.0.0``.
        driver: version of the devices' driver; empty where nobody says.
        variables: those that name a stack.
        lacking: folders outside the root that it needs and that are not there.
        others: other stacks beside the root.
        silent: programs of the stack that gave no answer in time.
    """

    profile: Profile
    root: str = ""
    target: str = ""
    releases: Mapping[str, str] = field(default_factory=dict)
    hip: str = ""
    compiler: str = ""
    driver: str = ""
    variables: tuple[Named, ...] = ()
    lacking: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    shell: Shell = field(default_factory=Shell)
    silent: tuple[Silence, ...] = ()

    @property
    def release(self) -> str:
        """Of the first version file, else the link's real name."""
        return next(iter(self.releases.values()), "")

    @property
    def needed_driver(self) -> str:
        """The oldest driver for this release; empty where the profile does not say."""
        return self.profile.runtime.oldest_driver(self.release)

    @property
    def active(self) -> bool:
        """Whether this shell has the stack: sourced, loaded, or nothing to do for it."""
        return bool(self.root) and self.shell.active if self.profile.env_script else True

    @property
    def line(self) -> str:
        """What to type in this shell to have it; empty where nothing helps or has to."""
        shell = self.shell
        if self.active:
            return ""
        if self.root:
            return f"source {shell.script}" if shell.works else ""
        return f"module load {shell.available[-1]}" if shell.available else ""

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Rows for a table: what it is, and the value; what nobody says is left out."""
        shell = self.shell
        linked = f"{self.root} -> {self.target}" if self.target else self.root
        needed = f" (needs {self.needed_driver} or newer)" if self.needed_driver else ""
        named = (f"{one.variable}={one.value}" for one in self.variables)
        rows = [
            ("stack", self.profile.title),
            ("stack root", linked),
            ("stack release", self.release),
            ("HIP", self.hip),
            ("compiler", self.compiler),
            ("stack driver", f"{self.driver}{needed}" if self.driver else ""),
            ("stack variables", ", ".join(named)),
            ("modules", ", ".join(shell.loaded)),
            ("other stacks", ", ".join(self.others)),
            ("this shell", self._shell()),
        ]
        return tuple((name, value) for name, value in rows if value)

    def _shell(self) -> str:
        if not self.profile.env_script or not (self.root or self.line):
            return ""
        if self.active:
            return "activated"
        return f"not activated; type: {self.line}" if self.line else "not activated"

    def findings(self) -> tuple[Finding, ...]:
        """What is not as it should be."""
        judges = (_absence, _activation, _variables, _versions, _companions, _driver)
        found = [finding for judge in judges for finding in judge(self)]
        return (*found, *(hung(one) for one in self.silent))


def newest(names: Sequence[str]) -> tuple[str, ...]:
    """Names with versions in them, the newest last."""
    return tuple(sorted(names, key=lambda name: (numbers(name), name)))


def _absence(stack: StackFacts) -> Iterator[Finding]:
    profile = stack.profile
    if stack.root or not profile.env_script:
        return
    if stack.shell.available:
        yield Finding(
            code="stack.not-loaded",
            subject=profile.name,
            what=f"no {profile.title} in this shell; its modules are here: "
            f"{', '.join(stack.shell.available)}",
            why="vendor builds do not find their libraries without it",
            hint=f"type: {stack.line}",
        )
        return
    places = ", ".join((*(f"${name}" for name in profile.root_variables), *profile.roots))
    yield Finding(
        code="stack.missing",
        subject=profile.name,
        what=f"{profile.title} is not on this machine: looked in {places}",
        why="vendor builds do not find their libraries without it",
        hint="take the vendor's image, or name the folder in a profile of your own",
    )


def _activation(stack: StackFacts) -> Iterator[Finding]:
    shell = stack.shell
    if not stack.root or not stack.profile.env_script or stack.active:
        return
    if shell.works:
        yield Finding(
            code="stack.not-activated",
            subject=stack.profile.name,
            what=f"this shell does not have what '{shell.script}' sets",
            why="torch then finds no device, or not even its libraries; nothing is broken",
            hint=f"type: {stack.line}",
        )
    else:
        yield Finding(
            code="stack.no-script",
            subject=stack.profile.name,
            what=f"'{shell.script}' "
            + ("gives no environment when it is sourced" if shell.there else "is not there"),
            why="nobody can tell whether this shell has the stack's variables",
            hint=f"see what 'source {shell.script}' says" if shell.there else "",
        )


def _variables(stack: StackFacts) -> Iterator[Finding]:
    for one in stack.variables:
        shown = f"{one.variable}='{one.value}'"
        if not one.there:
            yield Finding(
                code="stack.variable-gone",
                subject=one.variable,
                what=f"{shown} names no folder",
                hint=f"type: unset {one.variable}",
            )
        elif not one.same:
            yield Finding(
                code="stack.variables-differ",
                subject=one.variable,
                what=f"{shown} is another stack than '{stack.root}'",
                why="parts of two stacks in one process do not work together",
                hint=f"type: export {one.variable}={stack.root}",
            )
        elif one.link:
            yield Finding(
                code="stack.unlinked",
                subject=one.variable,
                what=f"{shown} names the folder itself and not the link '{one.link}'",
                why="Triton takes another compiler where the folder is called by another name",
                hint=f"type: export {one.variable}={one.link}",
            )


def _versions(stack: StackFacts) -> Iterator[Finding]:
    said = {name or stack.target: numbers(text) for name, text in stack.releases.items()}
    known = {name: found for name, found in said.items() if found}
    shortest = min(map(len, known.values()), default=0)
    if len({found[:shortest] for found in known.values()}) > 1:
        texts = (f"{name or 'link'}: '{text}'" for name, text in stack.releases.items())
        yield Finding(
            code="stack.versions-differ",
            subject=stack.root,
            what=f"it does not agree with itself about its release: {', '.join(texts)}",
            why="builds pick their libraries by it",
            hint="ask whoever made the image which release it is",
        )


def _companions(stack: StackFacts) -> Iterator[Finding]:
    for folder in stack.lacking if stack.root else ():
        yield Finding(
            code="stack.no-companion",
            subject=folder,
            what=f"'{folder}' is not there",
            why="it comes from the host, and libraries of the driver are in it: torch cannot be "
            "imported without them",
            hint=f"have the container started with '-v {folder}:{folder}:ro'",
        )


def _driver(stack: StackFacts) -> Iterator[Finding]:
    needed = stack.needed_driver
    if stack.driver and needed and numbers(stack.driver) < numbers(needed):
        yield Finding(
            code="driver.too-old",
            subject=stack.profile.name,
            what=f"driver {stack.driver}; '{stack.release}' needs {needed} or newer",
            why="by the vendor's table; calls that a driver does not know fail when they are made",
            hint="the driver is the host's: ask for a newer one, or take the image of an older "
            "release",
        )
