"""The vendor's stack on this machine, and its devices: found, asked, judged in two seconds."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

from envlock.adapters import activation
from envlock.adapters.hardware import hardware_of, question, questions, silence
from envlock.adapters.limits import read_limits
from envlock.adapters.machine import find_root, read_machine, read_releases, under
from envlock.adapters.together import Answer, Question, ask_together, paths_of
from envlock.model.facts import Finding, Machine
from envlock.model.hardware import Hardware
from envlock.model.manifest import Stack
from envlock.model.profile import Profile
from envlock.model.stack import (
    Named,
    Shell,
    StackFacts,
    compiler_version,
    hip_version,
    newest,
)

#: Seconds for everything that is asked; of these, the script's at most, the tools' at least.
SECONDS = 2.0
_SCRIPT, _TOOLS = 0.4, 0.5
_PATIENCE = 10.0
#: Entries of a module system that are looked at, and seconds for it.
_ENTRIES = 5000
_MOMENT = 0.5
_DEEP = 3
_COMPILERS = {"hip": ("hipcc", "hipconfig"), "cuda": ("nvcc",)}


def read_accelerator(
    profile: Profile, env: Mapping[str, str], root: str = "/", seconds: float = SECONDS
) -> tuple[Hardware, StackFacts]:
    """The vendor's devices and its stack.

    Args:
        profile: what the vendor's things are called and where they may be.
        env: the caller's environment. Tools are asked with the stack's variables, whether this
            shell has them or not, and without those that hide devices.
        root: the folder that stands for ``/``.
        seconds: for everything; what does not answer is told in the findings.
    """
    started = time.monotonic()
    shell = activation.read_stack(profile, env, seconds * _SCRIPT, root)
    given = (shell.variables if shell else None) or env
    place = find_root(profile, env, root)
    asked = {**questions(profile, given, root), **_compilers(profile, given, place, root)}
    hidden = {*profile.runtime.visible, profile.visible}  # what is hidden is here all the same
    clean = {name: value for name, value in given.items() if name not in hidden}
    left = seconds - (time.monotonic() - started)
    answers = ask_together(asked, clean, max(left, seconds * _TOOLS))
    hardware = hardware_of(profile, answers, root)
    stack = StackFacts(
        profile=profile,
        root=place,
        target=_target(place, root),
        releases=read_releases(profile, place, root),
        hip=_hip(answers),
        compiler=compiler_version(answers.get("hipcc", answers.get("nvcc", Answer())).text),
        driver=hardware.driver,
        variables=tuple(_named(profile, env, place, root)),
        lacking=tuple(one for one in profile.companions if not _is_folder(one, root)),
        others=_others(place, root),
        shell=_shell(profile, env, shell, root),
        silent=tuple(
            silence(one, root)
            for name in ("hipcc", "hipconfig", "nvcc")
            if (one := answers.get(name, Answer())).hung
        ),
    )
    return hardware, stack


def read_hardware(
    profile: Profile, env: Mapping[str, str], root: str = "/", seconds: float = SECONDS
) -> Hardware:
    """The devices alone; see :func:`read_accelerator`."""
    return read_accelerator(profile, env, root, seconds)[0]


def read_stack(
    profile: Profile, env: Mapping[str, str], root: str = "/", seconds: float = SECONDS
) -> StackFacts:
    """The stack alone; see :func:`read_accelerator`."""
    return read_accelerator(profile, env, root, seconds)[1]


def describe(
    profile: Profile, env: Mapping[str, str], root: str = "/"
) -> tuple[Machine, Stack, tuple[Finding, ...]]:
    """The machine and its stack, as a manifest keeps them; and which tools gave no answer.

    Tools have more time here: a manifest without devices, because a tool was slow once, would look
    like another machine.
    """
    hardware, stack = read_accelerator(profile, env, root, _PATIENCE)
    machine = replace(
        read_machine(root),
        devices=hardware.devices,
        driver=hardware.driver,
        tool=hardware.tool,
        hip=stack.hip,
        compiler=stack.compiler,
        topology=hardware.topology,
        limits=(read_limits() if root == "/" else read_limits(root)).document(),
    )
    found = (*hardware.findings(), *stack.findings())
    hung = tuple(one for one in found if one.code == "tool.hangs")
    return machine, Stack(root=stack.root, release=stack.release), hung


def _is_folder(path: str, below: str) -> bool:
    return os.path.isdir(under(below, path))


def _compilers(
    profile: Profile, env: Mapping[str, str], place: str, root: str
) -> dict[str, Question]:
    """Questions by the program's own name. Where there is no stack, nobody's compiler is asked."""
    folders = [os.path.join(place, "bin"), os.path.join(place, "hip", "bin")] if place else []
    asked = {}
    for name in _COMPILERS.get(profile.runtime.kind, ()):
        tries = tuple((path, "--version") for path in paths_of(name, folders, root))
        read = hip_version if name == "hipconfig" else compiler_version
        if tries:
            asked[name] = question(tries, read)
    return asked


def _hip(answers: Mapping[str, Answer]) -> str:
    said = (hip_version(answers.get(name, Answer()).text) for name in ("hipconfig", "hipcc"))
    return next(filter(None, said), "")


def _target(place: str, root: str) -> str:
    real = os.path.basename(os.path.realpath(under(root, place))) if place else ""
    return real if real != os.path.basename(place) else ""


def _others(place: str, root: str) -> tuple[str, ...]:
    """Folders beside the root that are called like it: ``dtk-25.04.4`` beside ``dtk-26.04``."""
    real = os.path.realpath(under(root, place)) if place else ""
    folder, stem = os.path.dirname(real), re.split(r"[-\d]", os.path.basename(real))[0]
    if not stem:
        return ()
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return ()
    alike = [name for name in names if re.match(rf"{re.escape(stem)}-?\d", name)]
    own = os.path.dirname(place)
    paths = (os.path.join(own, name) for name in alike)
    return tuple(one for one in paths if os.path.realpath(under(root, one)) != real)


def _named(profile: Profile, env: Mapping[str, str], place: str, root: str) -> Iterator[Named]:
    real = os.path.realpath(under(root, place)) if place else ""
    links = [
        one
        for one in profile.roots
        if os.path.islink(under(root, one)) and os.path.realpath(under(root, one)) == real
    ]
    for variable in profile.root_variables:
        value = env.get(variable, "").rstrip("/")
        if not value:
            continue
        there = _is_folder(value, root)
        same = not place or os.path.realpath(under(root, value)) == real
        plain = there and same and not os.path.islink(under(root, value))
        link = next(iter(links), "") if plain else ""
        yield Named(variable=variable, value=value, there=there, same=same, link=link)


def _shell(
    profile: Profile, env: Mapping[str, str], found: activation.Stack | None, root: str
) -> Shell:
    loaded = [one for one in env.get("LOADEDMODULES", "").split(":") if _ours(profile, one)]
    if found is None:
        available = _available(profile, env, root)
        return Shell(active=bool(loaded), loaded=tuple(loaded), available=available)
    return Shell(
        script=found.script,
        there=os.path.isfile(under(root, found.script)),
        works=found.variables is not None,
        active=found.active or bool(loaded),
        loaded=tuple(loaded),
    )


def _ours(profile: Profile, name: str) -> bool:
    return bool(profile.module_names) and re.search(profile.module_names, name, re.I) is not None


def _available(profile: Profile, env: Mapping[str, str], root: str) -> tuple[str, ...]:
    """The stack's modules that are found in a moment: the disk of a module system may be another
    machine's, and that may be gone."""
    found: list[str] = []

    def look() -> None:
        for name in _modules(profile, env, root):
            found.append(name)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(_MOMENT)
    return newest(tuple(found))


def _modules(profile: Profile, env: Mapping[str, str], root: str) -> Iterator[str]:
    """The stack's module files, by the name that ``module load`` takes."""
    left = _ENTRIES
    for top in env.get("MODULEPATH", "").split(":") if profile.module_names else ():
        place = under(root, top)
        for folder, folders, names in os.walk(place) if os.path.isabs(top) else ():
            left -= len(folders) + len(names)
            depth = os.path.relpath(folder, place).count(os.sep) + 1
            if left < 0 or depth >= _DEEP:
                folders.clear()
            for name in names:
                found = os.path.relpath(os.path.join(folder, name), place).removesuffix(".lua")
                if _ours(profile, found) and not name.startswith("."):
                    yield found
