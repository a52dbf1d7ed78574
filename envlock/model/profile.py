"""A vendor as data."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields

from packaging.utils import canonicalize_name

from envlock.model.label import parse_label
from envlock.model.reading import Node
from envlock.model.runtime import Runtime, read_runtime


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks:
    """What one kind of device can do at most, and what a healthy one was measured at.

    Attributes:
        name: regular expression for the whole name that torch gives the device.
        compute_units: 0 for any; where one name is given to several products.
        values: resource to figure: ``fp16``, ``bf16``, ``fp32``, ``fp64`` in TFLOPS; ``memory`` and
            ``host`` (between host and device) in GB/s. The maker's, not measured.
        measured: name of a performance case to figure, in the unit of its rate.
    """

    name: str
    compute_units: int
    values: Mapping[str, float]
    measured: Mapping[str, float]

    def fits(self, name: str, compute_units: int) -> bool:
        """Whether this is the device."""
        wanted = self.compute_units in (0, compute_units)
        return wanted and re.fullmatch(self.name, name) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What envlock knows about a vendor.

    Attributes:
        name: ``dtk``, ``cpu``.
        title: for people.
        labels: regular expressions searched in the local version; a match is a vendor signal.
        names: canonical names that are protected even without a signal.
        public: names that are protected too, though an index gives them back: they are no sign that
            something was replaced.
        known_by: names of which one tells that an image is this vendor's.
        roots: folders where the stack is installed, first found wins.
        root_variables: environment variables that name the root, before ``roots``.
        root_signs: patterns below the root, one of which is there in a stack of this vendor; asked
            of a root that a variable names, since vendors share variables.
        companions: folders outside the root without which the stack does not work.
        module_names: what the stack is called in a module system, a regular expression.
        release_files: files below the root whose first line is the stack's release.
        env_script: shell script, relative to the root, that activates the stack; may be empty.
        device: how checks name the device: ``cuda`` or ``cpu``.
        architectures: device architectures of this stack, ``gfx936``.
        unsupported: features that a device of this kind does not have, ``fp8``.
        tools: programs that tell of devices, clocks and power; the first found is asked.
        tool_folders: where they are when they are not on PATH.
        visible: environment variable that chooses devices by number.
        peaks: kinds of device; the first that fits counts.
        runtime: its libraries, device nodes and variables.
    """

    name: str
    title: str
    labels: tuple[str, ...]
    names: tuple[str, ...]
    public: tuple[str, ...] = ()
    known_by: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    root_variables: tuple[str, ...] = ()
    root_signs: tuple[str, ...] = ()
    companions: tuple[str, ...] = ()
    module_names: str = ""
    release_files: tuple[str, ...] = ()
    env_script: str = ""
    device: str = "cuda"
    architectures: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    tool_folders: tuple[str, ...] = ()
    visible: str = "CUDA_VISIBLE_DEVICES"
    peaks: tuple[Peaks, ...] = ()
    runtime: Runtime = field(default_factory=Runtime)

    def peaks_of(self, name: str, compute_units: int) -> Peaks | None:
        """What is known of a device, by what torch says of it."""
        return next((one for one in self.peaks if one.fits(name, compute_units)), None)

    def knows_label(self, version: str) -> bool:
        """Whether the version's label is one of this vendor's."""
        local = parse_label(version).local
        return bool(local) and any(re.search(pattern, local, re.I) for pattern in self.labels)


def read_profile(node: Node) -> Profile:
    """A profile from its document.

    Raises:
        UnusableInput: a value is missing or of the wrong kind, a pattern does not compile, or there
            is a key that no profile has; the message names its path.
    """
    node.only(*(item.name for item in fields(Profile)))
    for pattern in node.get("labels").items():
        _expression(pattern)
    return Profile(
        name=node.get("name").text(),
        title=node.get("title").text(),
        labels=node.get("labels").texts(),
        names=node.get("names").each(_read_name),
        public=node.get("public").each(_read_name),
        known_by=node.get("known_by").each(_read_name),
        roots=node.get("roots").each(_read_folder),
        root_variables=node.get("root_variables").texts(),
        root_signs=node.get("root_signs").texts(),
        companions=node.get("companions").each(_read_folder),
        module_names=_expression(node.get("module_names"), ""),
        release_files=node.get("release_files").texts(),
        env_script=node.get("env_script").text(""),
        device=node.get("device").choice("cuda", "cpu"),
        architectures=node.get("architectures").texts(),
        unsupported=node.get("unsupported").texts(),
        tools=node.get("tools").texts(),
        tool_folders=node.get("tool_folders").each(_read_folder),
        visible=node.get("visible").text("CUDA_VISIBLE_DEVICES"),
        peaks=node.get("peaks").each(_read_peaks),
        runtime=read_runtime(node.get("runtime")),
    )


def _read_name(node: Node) -> str:
    """As people write it: ``Flash_Attn`` is ``flash-attn``."""
    return canonicalize_name(node.text())


def _read_folder(node: Node) -> str:
    path = node.text()
    if not path.startswith("/"):
        raise node.bad("an absolute path")
    return path


def _expression(node: Node, default: str | None = None) -> str:
    text = node.text(default)
    try:
        re.compile(text)
    except re.error as error:
        raise node.bad(f"a regular expression ({error})") from error
    return text


def _read_peaks(node: Node) -> Peaks:
    node.only(*(item.name for item in fields(Peaks)))
    return Peaks(
        name=_expression(node.get("name")),
        compute_units=node.get("compute_units").integer(0),
        values=_figures(node.get("values")),
        measured=_figures(node.get("measured")),
    )


def _figures(node: Node) -> dict[str, float]:
    """Names and what each is at most; more than zero, since results are divided by them."""
    figures = {name: node.get(name).number() for name in node.mapping()}
    for name, value in figures.items():
        if not 0 < value < float("inf"):
            raise node.get(name).bad("a number above zero")
    return figures


def choose_profile(
    profiles: Iterable[Profile], installed: Mapping[str, str], present: Collection[str]
) -> str:
    """The profile for ``--profile auto``: a distribution that tells, then most labels recognised,
    then a stack or a tool that is there.

    Args:
        profiles: in order of preference.
        installed: canonical name of each installed distribution to its version.
        present: names of the profiles whose stack or tool exists on this machine.

    Returns:
        The profile's name; ``cpu`` when nothing speaks for any.
    """
    best, name = (False, 0, False), "cpu"
    for one in profiles:
        told = any(known in installed for known in one.known_by)
        labels = sum(map(one.knows_label, installed.values()))
        # a profile that is known by a distribution is nobody's without it
        rank = (told, labels if told or not one.known_by else 0, one.name in present)
        if rank > best:
            best, name = rank, one.name
    return name
