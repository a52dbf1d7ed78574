"""What doctor looks at: every part at the same time, each read by whoever knows it."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING

from envlock.cli import protecting, wiring
from envlock.errors import EnvlockError, UnusableInput

if TYPE_CHECKING:
    from envlock.adapters.installed import Inventory
    from envlock.cli.options import Common
    from envlock.cli.show import Advance
    from envlock.doctor.configuration import Setting
    from envlock.doctor.landscape import Landscape
    from envlock.doctor.remembered import Knowledge
    from envlock.doctor.report import Report, Section
    from envlock.model.facts import Finding, Target
    from envlock.model.profile import Profile

#: For what the vendor's tools are asked: the whole takes two seconds, whatever hangs.
_TOOLS = 1.5
#: For the target's Python: one on a slow disk may take seconds to start.
_PYTHON = 10.0
#: How many parts there are, for a progress bar.
PARTS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the person wants to know.

    Attributes:
        profile: name, file or ``auto``.
        network: whether servers are asked.
    """

    profile: str = "auto"
    network: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    """What all parts need.

    Attributes:
        target: None where there is none, and then ``absent`` says why.
        named: path of its interpreter as it was found.
    """

    common: Common
    profile: Profile
    target: Target | None
    named: str = ""
    absent: Section | None = None

    @property
    def env(self) -> Mapping[str, str]:
        return self.common.env

    @property
    def home(self) -> str:
        return self.env.get("HOME") or os.path.expanduser("~")


def examine(common: Common, asked: Asked, advance: Advance) -> Report:
    """Looks at the machine, the target and the network.

    Args:
        advance: told of every part that is ready.

    Raises:
        UnusableInput: what the person named cannot be used: a target, a manifest, a profile.
    """
    from envlock.doctor.report import TITLES, Report

    scene = _open(common, asked)
    parts: list[Callable[[_Scene], list[Section]]] = [
        _machine, _python, _configuration, _disk, _network if asked.network else _no_network,
    ]  # fmt: skip
    advance(1)
    sections: list[Section] = []
    for found in _together(parts, scene):
        sections += found
        advance(1)
    return Report(sections=tuple(sorted(sections, key=lambda one: TITLES.index(one.title))))


def _together(
    parts: Sequence[Callable[[_Scene], list[Section]]], scene: _Scene
) -> Iterator[list[Section]]:
    """The answer of each part as it comes. Nobody waits for their threads: a person who presses
    Ctrl-C before a disk that hangs gets the shell back."""
    ended: SimpleQueue[Future[list[Section]]] = SimpleQueue()

    def work(part: Callable[[_Scene], list[Section]], future: Future[list[Section]]) -> None:
        try:
            future.set_result(part(scene))
        except BaseException as error:  # noqa: BLE001 - raised by whoever asks for the result
            future.set_exception(error)
        ended.put(future)

    for part in parts:
        threading.Thread(target=work, args=(part, Future()), daemon=True).start()
    for _ in parts:
        yield ended.get().result()


def _open(common: Common, asked: Asked) -> _Scene:
    from envlock.adapters.interpreter import find_python, read_target
    from envlock.doctor.landscape import no_target_section

    target, named, absent = None, "", None
    try:
        found = find_python(common.python, common.env)
        named = found.path
        target = read_target(found, common.env, _PYTHON)
    except UnusableInput as error:
        if common.python and not named:
            raise  # a slip of the pen, and nothing to diagnose
        absent = no_target_section(error.message, error.hint, broken=bool(named))
    profile = _profile(common, asked.profile, target)
    return _Scene(common=common, profile=profile, target=target, named=named, absent=absent)


def _profile(common: Common, named: str, target: Target | None) -> Profile:
    """As for a snapshot; but where builds for a processor stand on a machine of a vendor, it is
    the vendor's that is looked at: that is how a replaced torch looks."""
    from envlock.adapters.profiles import bundled_profiles, load_profile, present_profiles
    from envlock.model.profile import choose_profile

    if named != "auto":
        return load_profile(named)
    present = present_profiles(common.env, common.root)
    if target is not None:
        chosen = wiring.choose_profile(common, named, target)
        if chosen.device != "cpu" or not present:
            return chosen
    return load_profile(choose_profile(bundled_profiles(), {}, present))


# --- the machine ----------------------------------------------------------------------------


def _machine(scene: _Scene) -> list[Section]:
    from envlock.adapters.limits import read_limits, read_sockets
    from envlock.adapters.machine import read_machine
    from envlock.adapters.stack import read_accelerator
    from envlock.doctor import machine

    root = scene.common.root
    limits = read_limits(root)
    hardware, stack = read_accelerator(scene.profile, scene.env, root, _TOOLS)
    count = max(1, len(hardware.devices))
    return [
        machine.machine_section(read_machine(root), limits, read_sockets(root)),
        machine.limits_section(limits, scene.env, count),
        machine.devices_section(hardware),
        machine.stack_section(stack),
    ]


# --- the target -----------------------------------------------------------------------------


def _python(scene: _Scene) -> list[Section]:
    from envlock.adapters.installed import read_inventory
    from envlock.doctor.landscape import python_section
    from envlock.doctor.remembered import envlock_section

    if scene.target is None:
        assert scene.absent is not None
        return [scene.absent]
    inventory = read_inventory(scene.target.layout)
    vendor = _signals(inventory, scene.profile)
    known = _knowledge(scene, scene.target, inventory, vendor)
    land = _landscape(scene, scene.target, inventory, vendor, known)
    return [python_section(land), envlock_section(known)]


def _signals(inventory: Inventory, profile: Profile) -> dict[str, tuple[str, ...]]:
    from envlock.snapshot import signals

    found = {dist.name: signals(dist, profile) for dist in inventory.distributions}
    return {name: signs for name, signs in found.items() if signs}


def _landscape(
    scene: _Scene, target: Target, inventory: Inventory,
    vendor: Mapping[str, tuple[str, ...]], known: Knowledge,
) -> Landscape:  # fmt: skip
    from envlock import __version__
    from envlock.adapters.installed import names_of
    from envlock.adapters.interpreter import is_own
    from envlock.adapters.pip import python_of
    from envlock.doctor.landscape import Landscape, user_folders
    from envlock.snapshot import shadowed

    path = scene.env.get("PATH", "")
    pip = shutil.which("pip", path=path) or shutil.which("pip3", path=path)
    base = scene.env.get("PYTHONUSERBASE") or os.path.join(scene.home, ".local")
    protected = known.manifest.protected if known.manifest else ()
    return Landscape(
        target=target,
        named=scene.named,
        inventory=inventory,
        env=scene.env,
        shadows=tuple(shadowed(target, inventory)),
        vendor=vendor,
        names=scene.profile.names,
        title=scene.profile.title,
        known={dist.name: dist.version for dist in protected},
        python=shutil.which("python3", path=path) or "",
        pip=python_of(pip) if pip else "",
        user=tuple(name for folder in user_folders(target, base) for name in names_of(folder)),
        own=(__version__, is_own(target.executable)),
    )


def _knowledge(
    scene: _Scene, target: Target, inventory: Inventory, vendor: Mapping[str, tuple[str, ...]]
) -> Knowledge:
    from envlock.doctor.remembered import Knowledge

    common, memory = scene.common, wiring.memory(scene.common, target)
    found, unreadable = None, ""
    try:
        found = wiring.find_manifest(common, target)
    except UnusableInput as error:
        if common.named_manifest or common.variable_manifest:
            raise
        unreadable = error.message
    held, holding = _held(scene, target, unreadable)
    return Knowledge(
        manifest=found.manifest if found else None,
        source=found.source if found else "",
        unreadable=unreadable,
        wheels=str(memory.wheels() or ""),
        report=_last_report(str(memory.report_path)),
        unfinished=_unfinished(target),
        installed={dist.name: dist.version for dist in inventory.distributions},
        vendor=tuple(vendor),
        held=held,
        holding=holding,
    )


def _held(scene: _Scene, target: Target, unreadable: str) -> tuple[str, tuple[Finding, ...]]:
    """Whether plain installs keep the builds, as ``guard --status`` says it."""
    from envlock.guard.always import inspect

    if unreadable:
        return "", ()
    protected = protecting.protected_set(scene.common, target)
    if not protected:
        return "", ()
    try:
        found = inspect(wiring.places(scene.common, target), protected)
    except EnvlockError as error:
        return f"not known: {error.message}", ()
    if any(finding.code == "always.off" for finding in found):
        return "not held; 'envlock guard --enable' would hold them", ()
    wrong = any(finding.level == "error" for finding in found)
    return "not held any more" if wrong else "held by pip's configuration", tuple(found)


def _last_report(path: str) -> str:
    from envlock.verify.saved import load

    if not os.path.exists(path):
        return ""
    try:
        report = load(path)
    except UnusableInput:
        return ""
    said, level = report.document.get("said", ""), report.document.get("level", "")
    return f"{said} (level {level}, {report.document.get('started', '')})"


def _unfinished(target: Target) -> tuple[str, str]:
    from envlock.adapters.state import refuse_unfinished

    try:
        refuse_unfinished(target.layout)
    except UnusableInput as error:
        return error.message.removeprefix("target: "), error.hint
    return "", ""


# --- what steers pip and uv -----------------------------------------------------------------


def _configuration(scene: _Scene) -> list[Section]:
    from envlock.adapters.configuration import pip_files, unreadable, uv_files
    from envlock.doctor.configuration import configuration_section, unreadable_finding

    if scene.target is None:
        return []
    prefix = scene.target.home or scene.target.layout.prefix
    files = {"pip": pip_files(scene.env, prefix), "uv": uv_files(scene.env)}
    settings: list[Setting] = []
    beyond = []
    for words in (["pip", "install"], ["uv", "pip", "install"]):
        try:
            settings += _settings(scene, scene.target, words)
        except EnvlockError as error:  # a list of constraints that is a stream, say
            where, _, why = error.message.partition(": ")
            beyond.append(unreadable_finding(words[0], where, why))
    broken = [
        unreadable_finding(tool, path, why)
        for tool, found in files.items()
        for path, text in found
        if (why := unreadable(tool, path, text))
    ]
    paths = [(tool, path) for tool, found in files.items() for path, _ in found]
    return [configuration_section(settings, paths, [*broken, *beyond])]


def _settings(scene: _Scene, target: Target, words: list[str]) -> list[Setting]:
    """What guard would judge such a command with, though nobody typed it."""
    from envlock.cli.surroundings import configured
    from envlock.doctor.configuration import Setting
    from envlock.guard.command import parse

    request = configured(scene.common, parse(words), target)
    return [
        Setting(
            tool=request.tool,
            option=option,
            values=request.given.value(option),
            origin=origin,
            missing=tuple(filter(_is_missing, request.given.value(option))),
        )
        for option, origin in request.origins.items()
    ]


def _is_missing(value: str) -> bool:
    path = value.removeprefix("file://")
    return "://" not in path and path != os.devnull and not os.path.exists(path)


# --- disks and servers ----------------------------------------------------------------------


def _disk(scene: _Scene) -> list[Section]:
    from envlock.adapters.configuration import working_folder
    from envlock.adapters.rooms import read_rooms
    from envlock.doctor.disk import disk_section, places

    target = scene.target.layout.purelib if scene.target else ""
    asked = places(scene.env, scene.home, target, working_folder())
    return [disk_section(asked, read_rooms([place.path for place in asked]))]


def _network(scene: _Scene) -> list[Section]:
    from envlock.adapters.places import configured_places
    from envlock.adapters.triage import triage
    from envlock.doctor.network import network_section

    places = configured_places(scene.env, scene.target.home if scene.target else "")
    return [network_section(triage(places, env=scene.env))]


def _no_network(_scene: _Scene) -> list[Section]:
    from envlock.doctor.network import network_section

    return [network_section(None)]
