"""The devices of this machine: what its tools are asked, and what their answers make."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence

from envlock.adapters.machine import shown
from envlock.adapters.sysfs import device_nodes, module_version, read_nodes, read_slots
from envlock.adapters.together import Answer, Question, paths_of
from envlock.model import devices
from envlock.model.agents import agents, topology
from envlock.model.facts import Device
from envlock.model.hardware import KERNEL, Hardware, Silence, merged, placed
from envlock.model.profile import Profile

_NVIDIA = "nvidia-smi"
_CSV = "--format=csv,noheader,nounits"
_RUNTIME = "rocminfo"
_NAMES = ("--showproductname", "--showmeminfo", "vram")


def hardware_of(profile: Profile, answers: Mapping[str, Answer], root: str = "/") -> Hardware:
    """The devices, from what the tools answered and the kernel wrote down."""
    if profile.device == "cpu":
        return Hardware(profile=profile)
    slots, doors = read_slots(profile.runtime, root), device_nodes(profile, root)
    # the kernel tells a container of the host's devices too, and of other vendors': what counts can
    # be reached, and is this vendor's
    own = ("", *profile.runtime.vendors)
    nodes = [one for one in read_nodes(root) if one.vendor in own and not doors.missing]
    told = _told(answers, [one for node in nodes if (one := node.device)])
    tool = answers.get("names", Answer())
    noise = devices.noise(tool.text)
    return Hardware(
        profile=profile,
        devices=placed(merged(told.values()), slots),
        driver=_driver(answers) or module_version(profile.runtime, root),
        tool=_tool(answers),
        topology=topology(nodes),
        slots=slots,
        told=told,
        silent=tuple(_silent(answers, root)),
        noise={_name(tool): noise} if noise else {},
        nodes=doors,
    )


def questions(profile: Profile, env: Mapping[str, str], root: str = "/") -> dict[str, Question]:
    """What the vendor's tools are asked, for :func:`hardware_of`.

    Args:
        env: where the tools are; with the stack's variables more of them are found.
        root: the folder that stands for ``/``.
    """
    folders = (*env.get("PATH", "").split(os.pathsep), *profile.tool_folders)
    found = [path for name in profile.tools for path in paths_of(name, folders, root)]
    nvidia = [path for path in found if os.path.basename(path) == _NVIDIA]
    smi = [path for path in found if path not in nvidia]
    runtime = paths_of(_RUNTIME, folders, root) if profile.runtime.kind == "hip" else ()
    asked = {
        "names": _smi(smi, _NAMES, devices.smi_devices),
        "buses": _smi(smi, ("--showbus",), devices.smi_buses),
        "driver": _ask(smi, [("--showdriverversion",)], devices.smi_driver),
        "version": _ask(smi, [("--version",)], devices.smi_version),
        "runtime": _ask(runtime, [()], agents),
    }
    if nvidia:
        asked["names"] = _ask(
            nvidia, _nvidia_queries(), lambda text: devices.nvidia_devices(text)[0]
        )
    return {name: question for name, question in asked.items() if question.tries}


def _nvidia_queries() -> list[tuple[str, ...]]:
    columns = (devices.NVIDIA_MORE, devices.NVIDIA_COLUMNS)
    return [(f"--query-gpu={','.join(names)}", _CSV) for names in columns]


def _smi(paths: Sequence[str], flags: tuple[str, ...], read: Callable[[str], object]) -> Question:
    """In JSON; in lines, where the tool knows no JSON; the plain table, which at least counts."""
    plainest = [()] if flags == _NAMES else []
    return _ask(paths, [(*flags, "--json"), flags, *plainest], read)


def _ask(
    paths: Sequence[str], flags: Sequence[tuple[str, ...]], read: Callable[[str], object]
) -> Question:
    return question([(path, *arguments) for path in paths for arguments in flags], read)


def question(tries: Iterable[tuple[str, ...]], read: Callable[[str], object]) -> Question:
    """Command lines, and what reads an answer out of their output."""
    return Question(tries=tuple(tries), enough=lambda text: bool(read(text)))


def silence(answer: Answer, root: str = "/") -> Silence:
    """A question that got no answer, for a finding."""
    return Silence(
        program=shown(root, answer.program),
        hung=answer.hung,
        said=answer.said,
        seconds=answer.seconds,
    )


def _name(answer: Answer) -> str:
    return os.path.basename(answer.program)


def _told(answers: Mapping[str, Answer], kernel: Sequence[Device]) -> dict[str, tuple[Device, ...]]:
    """Sources that tell of devices, the one with the vendor's names first."""
    tool, runtime = answers.get("names", Answer()), answers.get("runtime", Answer())
    if _name(tool) == _NVIDIA:
        named = devices.nvidia_devices(tool.text)[0]
    else:
        named = devices.smi_devices(tool.text, answers.get("buses", Answer()).text)
    told = {_name(tool): named, _RUNTIME: agents(runtime.text), KERNEL: tuple(kernel)}
    return {name: found for name, found in told.items() if found}


def _driver(answers: Mapping[str, Answer]) -> str:
    tool = answers.get("names", Answer())
    if _name(tool) == _NVIDIA:
        return devices.nvidia_devices(tool.text)[1]
    return devices.smi_driver(answers.get("driver", Answer()).text)


def _tool(answers: Mapping[str, Answer]) -> str:
    tool, version = answers.get("names", Answer()), answers.get("version", Answer())
    same = version.program == tool.program
    return " ".join(filter(None, (_name(tool), devices.smi_version(version.text) if same else "")))


def _silent(answers: Mapping[str, Answer], root: str) -> list[Silence]:
    """Each program once; one that only does not know a question is not worth a word."""
    found: dict[str, Silence] = {}
    for name in ("names", "buses", "driver", "version", "runtime"):
        one = answers.get(name, Answer())
        if one.text or not (one.hung or (one.program and name in ("names", "runtime"))):
            continue
        if one.program not in found or one.hung:
            found[one.program] = silence(one, root)
    return list(found.values())
