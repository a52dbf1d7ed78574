"""static.ldd, static.cxxabi, static.onehip: would every shared object load, and with what?

Nothing is loaded for it. What Python can import, or what that needs, has to load: failed where it
would not. Others than the vendor's builds bring modules for libraries that are not everywhere
(another MPI, another pool of threads): a missing one is a warning there. What only its own
distribution opens may be for other hardware (a network, a profiler): where it wants a library that
nobody here has, that is a note in the metrics, else a warning.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from envlock.adapters.loader import Loaded, Scope
from envlock.model.check import Case
from envlock.model.label import parse_label
from envlock.verify.static_ground import UNOWNED, Link, Owned, Scene, case_of, skipped

_SHOWN = 3  # names of symbols in one problem
_STRING = b"NSt7__cxx1112basic_string"  # std::string of the new C++ ABI, in mangled names
_OLD_STRING = b"Ss"  # std::string of the old one is abbreviated
_FOLDERS = ("lib", "lib64", "hip/lib")


Weight = str
FAILS, WARNS, IS_NOTED = "fails", "warns", "is noted"


@dataclass(slots=True)
class _Problems:
    """Problems by owner, each told once."""

    failed: dict[str, dict[str, None]] = field(default_factory=dict)
    warned: dict[str, dict[str, None]] = field(default_factory=dict)
    noted: dict[str, dict[str, None]] = field(default_factory=dict)

    def add(self, owner: str, text: str, weight: Weight) -> None:
        into = {FAILS: self.failed, WARNS: self.warned, IS_NOTED: self.noted}[weight]
        into.setdefault(owner, {})[text] = None

    def cases(self, objects: Iterable[Owned]) -> tuple[Case, ...]:
        """One case for each owner of an object."""
        counts: dict[str, int] = {}
        for one in objects:
            counts[one.owner] = counts.get(one.owner, 0) + 1
        if not counts:
            return (skipped("shared objects", "there are none"),)
        return tuple(
            case_of(
                owner,
                [*self.failed.get(owner, ())],
                self._weaker(owner),
                objects=count,
                **({"unusable": [*self.noted[owner]]} if owner in self.noted else {}),
            )
            for owner, count in sorted(counts.items())
        )

    def _weaker(self, owner: str) -> list[str]:
        known = self.failed.get(owner, {})
        return [text for text in self.warned.get(owner, ()) if text not in known]


def unresolved(scene: Scene) -> tuple[Case, ...]:
    """static.ldd: one case for each distribution with shared objects."""
    problems = _Problems()
    places = _places(scene)
    for link in scene.links:
        for path, text, weight in (
            *_missing(scene, link, places),
            *_undefined(scene, link, places),
        ):
            problems.add(_owner_of(places, path, link), text, weight)
    return problems.cases(scene.objects)


Problem = tuple[str, str, Weight]  # path of the object, what is wrong, how much that matters


def _places(scene: Scene) -> dict[str, Owned]:
    return {one.loaded.path: one for one in scene.objects}


def _owner_of(places: dict[str, Owned], path: str, link: Link) -> str:
    return places[path].owner if path in places else link.owned.owner


def _shown(path: str, places: dict[str, Owned]) -> str:
    return places[path].place if path in places else path


def _missing(scene: Scene, link: Link, places: dict[str, Owned]) -> Iterator[Problem]:
    for lost in link.scope.missing:
        shown = _shown(lost.needed_by, places)
        text = f"'{shown}' needs '{lost.name}', which is not found"
        yield lost.needed_by, text, _weight_of(scene, link, lost.name)
    for one in link.scope.objects.values():
        if one.elf.reason:
            # half a file is no question of the machine
            yield one.path, f"'{_shown(one.path, places)}': {one.elf.reason}", FAILS


def _weight_of(scene: Scene, link: Link, library: str) -> Weight:
    """How much a missing library matters to the one that needs it."""
    if link.reached:
        mild = library in scene.profile.runtime.driver_libraries or not scene.matters(link.owned)
        return WARNS if mild else FAILS
    stem = library.partition(".so")[0] + ".so"
    here = stem in scene.profile.runtime.libraries or any(
        library in (one.loaded.elf.soname, os.path.basename(one.place)) for one in scene.objects
    )
    return WARNS if here else IS_NOTED


def _undefined(scene: Scene, link: Link, places: dict[str, Owned]) -> Iterator[Problem]:
    if link.scope.missing or any(one.elf.reason for one in link.scope.objects.values()):
        return  # what is missing would have had them
    for one in _judged(link):
        lost = sorted(name for name in one.elf.undefined if not _is_defined(name, link))
        if not lost:
            continue
        names = ", ".join(name.decode("utf-8", "replace") for name in lost[:_SHOWN])
        more = f" and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
        text = f"'{_shown(one.path, places)}': undefined symbol: {names}{more}"
        # some set RTLD_GLOBAL before they import: others of the process may have it
        elsewhere = all(scene.host.defines(name) for name in lost)
        told = text + (" (only torch has it, not linked)" if elsewhere else "")
        yield one.path, told, FAILS if link.reached and not elsewhere else WARNS


def _judged(link: Link) -> Iterator[Loaded]:
    """What comes with the object; a plugin's libraries are judged where they belong."""
    if not link.reached:
        yield link.owned.loaded
        return
    settled = {path for scope in link.around for path in scope.objects}
    yield from (one for path, one in link.scope.objects.items() if path not in settled)


def _is_defined(name: bytes, link: Link) -> bool:
    return link.scope.defines(name) or any(scope.defines(name) for scope in link.around)


def versions(scene: Scene) -> tuple[Case, ...]:
    """static.cxxabi: versions of the C and C++ libraries and of others; tags; the C++ ABI."""
    problems = _Problems()
    places = _places(scene)
    for link in scene.links:
        for one in _judged(link):
            for text in _version_problems(scene, one, link, places):
                weight = FAILS if link.reached else WARNS
                problems.add(_owner_of(places, one.path, link), text, weight)
    for owner, text in (*_foreign_tags(scene), *_other_abi(scene)):
        problems.add(owner, text, FAILS)
    return problems.cases(scene.objects)


def _version_problems(
    scene: Scene, one: Loaded, link: Link, places: dict[str, Owned]
) -> Iterator[str]:
    for library, version in one.elf.version_needs:
        path = _provider(library, link)
        if not path:
            continue  # static.ldd names it
        have = scene.loader.object(path).elf.versions
        # a library without any versions is taken as it is, with a word on stderr
        if have and version not in have:
            newest = _newest(have, version)
            known = f", which has {newest} at most" if newest else ""
            yield f"'{_shown(one.path, places)}' needs {version} of '{library}'{known}"


def _provider(library: str, link: Link) -> str:
    scopes: tuple[Scope, ...] = (link.scope, *link.around)
    return next((scope.names[library] for scope in scopes if scope.names.get(library)), "")


def _newest(have: frozenset[str], wanted: str) -> str:
    """The newest version of the same kind: ``GLIBC_2.36`` for ``GLIBC_2.38``."""
    kind = wanted.rpartition("_")[0]
    same = [v for v in have if v.rpartition("_")[0] == kind and v[len(kind) + 1 :][:1].isdigit()]
    return max(same, key=_numbers, default="")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.rpartition("_")[2].split(".") if part.isdigit())


def _foreign_tags(scene: Scene) -> Iterator[tuple[str, str]]:
    """Extension modules that are named for another Python: ``x.cpython-310-….so``."""
    short = scene.target.short.removeprefix("cp")
    for one in scene.objects:
        parts = os.path.basename(one.place).split(".")
        tag = next((part for part in parts[1:] if part.startswith("cpython-")), "")
        found = tag.removeprefix("cpython-").partition("-")[0].rstrip("tdmu")
        if found and found != short and one.owner != UNOWNED and not _has_twin(scene, one, tag):
            yield one.owner, f"'{one.place}' is for Python {found[0]}.{found[1:]}"


def _has_twin(scene: Scene, one: Owned, tag: str) -> bool:
    """Whether the same module is there for this Python: some wheels carry several."""
    stem = one.place.partition(f".{tag}")[0]
    tags = (f".cpython-{scene.target.short.removeprefix('cp')}", ".abi3.so")
    return any(other.place.startswith(stem + mark) for other in scene.objects for mark in tags)


def _other_abi(scene: Scene) -> Iterator[tuple[str, str]]:
    """The C++ ABI that a label promises against the one that the symbols show."""
    for dist in scene.installed:
        promised = parse_label(dist.version).abi
        mine = [one for one in scene.objects if one.name == dist.name]
        if promised is None or not mine:
            continue
        found = _abi_of(mine)
        if found is not None and found != promised:
            text = f"its label says C++ ABI {promised}, its symbols are of ABI {found}"
            yield f"{dist.name} {dist.version}", text


def _abi_of(objects: Iterable[Owned]) -> int | None:
    """1 where symbols of torch or of its own pass the new string, 0 where only the old one."""
    names = [name for one in objects for name in one.loaded.elf.defined | one.loaded.elf.undefined]
    passing = [name for name in names if name.startswith((b"_ZN3c10", b"_ZN2at", b"_ZN5torch"))]
    if any(_STRING in name for name in passing):
        return 1
    return 0 if any(name.endswith(_OLD_STRING) for name in passing) else None


def runtimes(scene: Scene) -> tuple[Case, ...]:
    """static.onehip: one case for each of the vendor's runtime libraries that is loaded."""
    found = _loaded_runtimes(scene)
    if not found:
        return (skipped("runtime libraries", "nothing here needs one"),)
    return tuple(_one_runtime(scene, stem, files) for stem, files in sorted(found.items()))


def _loaded_runtimes(scene: Scene) -> dict[str, dict[str, str]]:
    """By library, without its version: path of each file that something loads, and who does."""
    found: dict[str, dict[str, str]] = {}
    for link in scene.links:
        if not link.reached:
            continue
        for path, one in link.scope.objects.items():
            name = one.elf.soname or os.path.basename(path)
            stem = name.partition(".so")[0] + ".so"
            if stem in scene.profile.runtime.libraries:
                found.setdefault(stem, {}).setdefault(os.path.realpath(path), link.owned.place)
    return found


def _one_runtime(scene: Scene, stem: str, files: dict[str, str]) -> Case:
    sonames: dict[str, list[str]] = {}
    for path in files:
        name = scene.loader.object(path).elf.soname or os.path.basename(path)
        sonames.setdefault(name, []).append(path)
    two = [
        f"two are loaded as '{name}': " + _together(scene, paths, files)
        for name, paths in sorted(sonames.items())
        if len(paths) > 1
    ]
    two += [
        f"'{_relative(scene, path)}' is loaded, and the stack has its own: '{own}'"
        for name, paths in sorted(sonames.items())
        for path in paths
        if len(paths) == 1 and (own := _of_the_stack(scene, name, path))
    ]
    several = []
    if len(sonames) > 1:
        several.append("more than one version is loaded: " + ", ".join(sorted(sonames)))
    # only where a script activates the stack are wheels made for the stack's own libraries
    failed, warned = (two, several) if scene.profile.env_script else ([], [*two, *several])
    return case_of(stem, failed, warned, files=[_relative(scene, path) for path in sorted(files)])


def _together(scene: Scene, paths: Iterable[str], files: dict[str, str]) -> str:
    return " and ".join(f"'{_relative(scene, p)}' (by '{files[p]}')" for p in sorted(paths))


def _relative(scene: Scene, path: str) -> str:
    """Reports are shared: the target's own path stays out."""
    prefix = os.path.realpath(scene.target.layout.prefix)
    return os.path.relpath(path, prefix) if path.startswith(prefix + os.sep) else path


def _of_the_stack(scene: Scene, name: str, path: str) -> str:
    """The stack's own library of that name, where another one is loaded."""
    real = os.path.realpath(scene.root) if scene.root and scene.profile.env_script else ""
    if not real or path.startswith(real + os.sep):
        return ""
    own = (os.path.join(scene.root, folder, name) for folder in _FOLDERS)
    return next((one for one in own if os.path.exists(one) and os.path.realpath(one) != path), "")
