"""static.labels, static.vendor_mark: are these the vendor's builds, and do they belong together?"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from envlock.adapters.installed import Installed
from envlock.adapters.modules import assigned
from envlock.model.check import Case
from envlock.model.label import Label, parse_label
from envlock.verify.static_ground import Scene, case_of, skipped

_TORCH = "torch"
_MODULES = {"flash-attn": "flash_attn"}
_RELEASE = re.compile(r"(\d{2})\.(\d{1,2})(?:\.(\d{1,2}))?")  # of "DTK-26.04-DCC2602-0317"


def agreement(scene: Scene) -> tuple[Case, ...]:
    """static.labels: one case for each labelled build, against torch's own label and the stack."""
    labels = {
        f"{dist.name} {dist.version}": label
        for dist in scene.installed
        if _counts(scene, dist, label := parse_label(dist.version))
    }
    if not labels:
        return (skipped("labels", "no build has a label"),)
    torch = next((d for d in scene.installed if d.name == _TORCH), None)
    leading = parse_label(torch.version) if torch else next(iter(labels.values()))
    cases = [_one(scene, name, label, leading) for name, label in sorted(labels.items())]
    return tuple(cases)


def _counts(scene: Scene, dist: Installed, label: Label) -> bool:
    """Vendor builds, and builds of the same kind for another stack."""
    if label.stack is None and label.torch is None:
        return False
    return scene.profile.knows_label(dist.version) or dist.name in scene.profile.names


def _one(scene: Scene, name: str, label: Label, leading: Label) -> Case:
    failed: list[str] = []
    warned: list[str] = []
    for text, fails in (*_stacks(scene, label, leading), *_torches(label, leading)):
        (failed if fails else warned).append(text)
    if None not in (label.abi, leading.abi) and label.abi != leading.abi:
        failed.append(f"is of C++ ABI {label.abi}, torch of {leading.abi}")
    return case_of(name, failed, warned, stack=label.stack, torch=label.torch, abi=label.abi)


def _stacks(scene: Scene, label: Label, leading: Label) -> Iterator[tuple[str, bool]]:
    """Another stack than torch's, or than the one on this machine.

    Of one vendor's releases, a patch apart is a warning: the vendor itself ships such sets.
    """
    if None not in (label.stack, leading.stack) and label.stack != leading.stack:
        close = _close(label.release, leading.release)
        yield f"is of {label.stack}, torch of {leading.stack}", not close
    here = stack_release(scene.release)
    if label.release and here and label.release != here:
        text = f"is of {label.stack}, the stack on this machine is '{scene.release}'"
        yield text, not _close(label.release, here)


def _close(one: tuple[int, int] | None, other: tuple[int, int] | None) -> bool:
    return one is not None and other is not None and one[0] == other[0]


def stack_release(text: str) -> tuple[int, int] | None:
    """``(2604, 0)`` of ``DTK-26.04-DCC2602-0317``; None where it names no release."""
    found = _RELEASE.search(text)
    if found is None:
        return None
    year, month, patch = found.groups()
    return int(year + month.zfill(2)), int(patch or 0)


def _torches(label: Label, leading: Label) -> Iterator[tuple[str, bool]]:
    """``torch29`` belongs to any 2.9.x, ``torch290`` to 2.9.0."""
    if label.torch is None:
        return
    wanted, found = label.torch.split("."), leading.public.split(".")
    if wanted != found[: len(wanted)]:
        yield f"is built for torch {label.torch}, not {leading.public}", True


def marks(scene: Scene) -> tuple[Case, ...]:
    """static.vendor_mark: torch is a build for this runtime, and the vendor's modules say so.

    Read from the files: importing them may hang without a device.
    """
    runtime = scene.profile.runtime
    cases = [
        _mark(scene, dist)
        for dist in scene.installed
        if dist.name == _TORCH
        or (runtime.marks and scene.profile.knows_label(dist.version) and _module(dist))
    ]
    return tuple(cases) or (skipped("vendor mark", "no build of the vendor is installed"),)


def _module(dist: Installed) -> str:
    """Folder of the module with a version file; empty when there is none."""
    name = _MODULES.get(dist.name, dist.name.replace("-", "_"))
    folder = os.path.join(dist.site, name)
    return folder if os.path.isfile(os.path.join(folder, "version.py")) else ""


def _mark(scene: Scene, dist: Installed) -> Case:
    shown, folder = f"{dist.name} {dist.version}", _module(dist)
    if not folder:
        return case_of(shown, ["has no version file"])
    said = assigned(os.path.join(folder, "version.py"))
    failed = [*_kind(scene, said)] if dist.name == _TORCH else [*_contradictions(dist, said)]
    wanted = scene.profile.runtime.marks
    found = {mark.strip("_"): said.get(mark) for mark in wanted if _mentions(folder, mark)}
    warned = [] if found or not wanted else [f"defines none of {', '.join(wanted)}"]
    facts = {key: said[key] for key in ("hip", "cuda", "git_version", "version") if key in said}
    return case_of(shown, failed, warned, **facts, **found)


def _mentions(folder: str, mark: str) -> bool:
    """Whether the module or its version file has the name; some make it from other values."""
    for name in ("version.py", "__init__.py"):
        try:
            if mark in Path(folder, name).read_text(encoding="utf-8", errors="replace"):
                return True
        except OSError:
            continue
    return False


def _kind(scene: Scene, said: dict[str, object]) -> Iterator[str]:
    kind = scene.profile.runtime.kind
    built = next((name for name in ("hip", "cuda") if said.get(name)), "")
    if kind and kind != built:  # what is built for a device computes on a processor as well
        words = {"": "the processor alone", "hip": "HIP", "cuda": "CUDA"}
        yield f"is a build for {words[built]}, not for {words[kind]}"


def _contradictions(dist: Installed, said: dict[str, object]) -> Iterator[str]:
    """What the module says of its build against its label; its own version may differ, and does."""
    label = parse_label(dist.version)
    stack = re.sub(r"\D", "", str(said.get("dtk") or ""))
    if stack and label.release and f"dtk{stack}" != label.stack:
        yield f"its version file says dtk {said['dtk']}, its label {label.stack}"
    torch = str(said.get("torch_version") or "").partition("+")[0]
    if (
        torch
        and label.torch
        and torch.split(".")[: len(label.torch.split("."))] != (label.torch.split("."))
    ):
        yield f"its version file says torch {torch}, its label {label.torch}"
