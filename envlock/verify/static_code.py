"""static.gfx: do the vendor's builds have code for the device's architecture?"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from envlock.adapters.fatbin import Code, read_code
from envlock.model.check import Case
from envlock.verify.static_ground import Owned, Scene, case_of, skipped

_NODES = "/sys/class/kfd/kfd/topology/nodes"
_VERSION = re.compile(r"^gfx_target_version\s+(\d+)", re.M)
# kernels that the stack keeps as files, and how they are named
_LIBRARIES = (
    ("rocblas", "lib/rocblas/library", "TensileLibrary*{}*"),
    ("hipblaslt", "lib/hipblaslt/library", "TensileLibrary*{}*"),
)


def code_objects(scene: Scene, nodes: str = _NODES) -> tuple[Case, ...]:
    """One case for each distribution with code for devices, one for each library of kernels.

    Args:
        scene: the target.
        nodes: folder of the driver that says which devices there are.
    """
    here = architectures(nodes)
    wanted = here or scene.profile.architectures
    if not wanted:
        return (skipped("device code", "the profile has no device"),)
    cases = list(_distributions(scene, wanted, every=bool(here)))
    return (*cases, *_kernel_files(scene, wanted, every=bool(here)))


def architectures(nodes: str) -> tuple[str, ...]:
    """What the driver says is in this machine: 90306 is ``gfx936``, 90010 is ``gfx90a``.

    A file of the kernel: nothing is started for it, and a hung device does not hang it.
    """
    found = set()
    for path in sorted(Path(nodes).glob("*/properties")):
        try:
            said = _VERSION.search(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            continue
        number = int(said[1]) if said else 0
        if number:  # a processor has none
            major, minor, step = number // 10_000, number // 100 % 100, number % 100
            found.add(f"gfx{major}{minor:x}{step:x}")
    return tuple(sorted(found))


def _distributions(scene: Scene, wanted: Iterable[str], every: bool) -> Iterator[Case]:
    judged: dict[str, list[tuple[Owned, Code]]] = {}
    for one in scene.objects:
        code = read_code(one.loaded.path)
        if code.sections and code.targets:
            judged.setdefault(one.owner, []).append((one, code))
    for owner, objects in sorted(judged.items()):
        problems = [
            f"'{one.place}' has code for {_names(code.targets)}, not for {_names(lost)}"
            for one, code in objects
            if (lost := lacking(code.targets, wanted, every))
        ]
        targets = sorted({target for _, code in objects for target in code.targets})
        if not lacking(targets, wanted, every):
            # a distribution may have an object for each kind of device
            more = {"others": problems} if problems else {}
            yield case_of(owner, [], objects=len(objects), targets=targets, **more)
            continue
        # what is not the vendor's may be for devices that are not here
        failed, warned = (problems, []) if _matters(scene, objects[0][0]) else ([], problems)
        yield case_of(owner, failed, warned, objects=len(objects), targets=targets)
    for dist in scene.installed:
        owner = f"{dist.name} {dist.version}"
        if dist.name == "torch" and owner not in judged and _has_objects(scene, owner):
            yield case_of(owner, ["no object has code for any device: a build for processors"])


def _matters(scene: Scene, one: Owned) -> bool:
    named = one.name in scene.profile.names
    return named or scene.profile.knows_label(one.owner.rpartition(" ")[2])


def _has_objects(scene: Scene, owner: str) -> bool:
    return any(one.owner == owner for one in scene.objects)


def lacking(targets: Iterable[str], wanted: Iterable[str], every: bool) -> list[str]:
    """Architectures that no code is for.

    Args:
        targets: what there is code for.
        wanted: what is needed.
        every: all of them, because they are in this machine; else one is enough.
    """
    have, names = list(targets), list(wanted)
    lost = [name for name in names if not any(_runs(target, name) for target in have)]
    return lost if every or len(lost) == len(names) else []


def _runs(target: str, name: str) -> bool:
    """Whether code for a target runs on an architecture.

    NVIDIA's binaries run on the same major version from their minor one on, and PTX is compiled for
    anything newer.
    """
    if target == name:
        return True
    kind, _, code = target.partition("_")
    wanted = name.partition("_")[2]
    if not (name.startswith("sm_") and code.isdigit() and wanted.isdigit()):
        return False
    same = int(code) // 10 == int(wanted) // 10
    return int(code) <= int(wanted) and (kind == "compute" or (kind == "sm" and same))


def _names(values: Iterable[str]) -> str:
    return ", ".join(sorted(values))


def _kernel_files(scene: Scene, wanted: Iterable[str], every: bool) -> Iterator[Case]:
    for name, folder, pattern in _LIBRARIES if scene.root else ():
        path = Path(scene.root, folder)
        if not path.is_dir():
            continue
        have = [arch for arch in wanted if any(path.glob(pattern.format(arch)))]
        lost = [arch for arch in wanted if arch not in have]
        bad = lost if every or not have else []
        text = [f"'{os.path.join(folder, pattern.format(arch))}' is not there" for arch in bad]
        yield case_of(f"{name} of the stack", text, targets=have)
