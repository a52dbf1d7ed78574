"""The manifest: the lock of a target, as a YAML document."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import yaml
from packaging.utils import canonicalize_name

from envlock.errors import UnusableInput
from envlock.model.dist import ORIGINS, Distribution, WheelRef
from envlock.model.facts import Device, Finding, Machine
from envlock.model.reading import Node
from envlock.model.wheels import is_file_name

SCHEMA = "1.1"
_SURROGATE = re.compile("[\ud800-\udfff]")
#: A document between these marks is whole: one cut off between two lines would still be YAML.
_START, _END = "---\n", "...\n"
_HINT = "make it again with 'envlock snapshot', or name another one with --manifest"
_MACHINE = ("os", "kernel", "cpu", "driver", "tool", "hip", "compiler", "topology")
_STACK = ("tag", "root", "release")
_DEVICE_TEXTS = ("name", "architecture", "features", "bus", "link", "driver")
_DEVICE_FIGURES = ("memory_mib", "compute_units", "wavefront", "clock_mhz")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """The vendor's toolkit: tag of the labels, root as linked (not resolved), release."""

    tag: str = ""
    root: str = ""
    release: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedTarget:
    """What another machine needs to resolve for the target; paths relative to its prefix."""

    python: str
    markers: Mapping[str, str]
    tags: tuple[str, ...]
    paths: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A target, its machine and every distribution, sorted; ``load(dump(m)) == m``."""

    name: str
    created: str
    tool: str
    profile: str
    stack: Stack
    target: LockedTarget
    machine: Machine
    health: tuple[Finding, ...] = ()
    distributions: tuple[Distribution, ...] = ()
    schema: str = SCHEMA

    @property
    def protected(self) -> tuple[Distribution, ...]:
        """What guard refuses to lose."""
        return tuple(dist for dist in self.distributions if dist.protected)

    def find(self, name: str) -> Distribution | None:
        """The distribution of that canonical name."""
        return next((dist for dist in self.distributions if dist.name == name), None)


class _Flow(list[Any]):
    """A list written in one flowing line."""


class _FlowMap(dict[str, Any]):
    """A mapping written in one flowing line."""


class _Dumper(yaml.CSafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    """Bytes of a file name that are no UTF-8 have no place in YAML: U+FFFD stands for them."""
    shown = _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)
    return dumper.represent_scalar("tag:yaml.org,2002:str", shown)


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(
    _Flow, lambda dumper, data: dumper.represent_sequence("tag:yaml.org,2002:seq", data, True)
)
_Dumper.add_representer(
    _FlowMap, lambda dumper, data: dumper.represent_mapping("tag:yaml.org,2002:map", data, True)
)


def parse_yaml(text: str, file: str = "", hint: str = "") -> Node:
    """A YAML document with every scalar as text.

    Raises:
        UnusableInput: it is not YAML; names the line.
    """
    try:
        return Node(yaml.load(text, Loader=yaml.CBaseLoader), "", file, hint)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise UnusableInput(
            f"{file or 'document'}: {line}{error.problem or error}", hint
        ) from error
    except (yaml.YAMLError, RecursionError, UnicodeError) as error:
        why = str(error).partition("\n")[0]
        raise UnusableInput(f"{file or 'document'}: not YAML: {why}", hint) from error


def dump_yaml(document: Any) -> str:
    """Block style, keys in the order given, as people review it in git."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=96)


def _without_empty(**values: Any) -> dict[str, Any]:
    # not by truth: a size of 0 is a value
    empty: tuple[Any, ...] = ("", (), [])
    return {
        key: value
        for key, value in values.items()
        if value is not None and value is not False and value not in empty
    }


def _dump_distribution(dist: Distribution) -> dict[str, Any]:
    wheel = dist.wheel
    counted = bool(dist.content or dist.files or dist.bytes)
    return {"name": dist.name, "version": dist.version} | _without_empty(
        vendor=_Flow(dist.vendor),
        protected=dist.protected,
        editable=dist.editable,
        reason=dist.reason,
        module=dict(dist.module) or None,
        requires=list(dist.requires),
        content=dist.content,
        files=dist.files if counted else None,
        bytes=dist.bytes if counted else None,
        executable=list(dist.executable),
        wheel=None
        if wheel is None
        else _without_empty(
            file=wheel.file,
            sha256=wheel.sha256,
            size=wheel.size,
            origin=wheel.origin,
            url=wheel.url,
            compressor=wheel.compressor,
        ),
    )


def _dump_finding(finding: Finding) -> dict[str, str]:
    needed = {name: getattr(finding, name) for name in ("code", "subject", "what")}
    return needed | _without_empty(why=finding.why, hint=finding.hint, level=finding.level)


def _dump_machine(machine: Machine) -> dict[str, Any]:
    facts = {name: getattr(machine, name) for name in _MACHINE}
    limits = {k: int(v) if v == int(v) else v for k, v in machine.limits.items()} or None
    return _without_empty(**facts, limits=limits, devices=[*map(_dump_device, machine.devices)])


def _dump_device(device: Device) -> dict[str, Any]:
    known = {item.name: getattr(device, item.name) for item in fields(device)}
    unknown: tuple[Any, ...] = ("", None)
    figures = {name: known[name] or None for name in _DEVICE_FIGURES}  # of nothing that is real
    return {k: v for k, v in {**known, **figures}.items() if v not in unknown}


def to_document(manifest: Manifest) -> dict[str, Any]:
    """Plain values in the fixed key order."""
    target, stack, machine = manifest.target, manifest.stack, manifest.machine
    return {
        "schema": manifest.schema,
        "name": manifest.name,
        "created": manifest.created,
        "tool": manifest.tool,
        "profile": manifest.profile,
        "stack": _FlowMap(_without_empty(**{name: getattr(stack, name) for name in _STACK})),
        "target": {
            "python": target.python,
            "markers": dict(target.markers),
            "paths": dict(target.paths),
            "tags": _Flow(target.tags),
        },
        "machine": _dump_machine(machine),
        "health": [_dump_finding(finding) for finding in manifest.health],
        "distributions": [_dump_distribution(dist) for dist in manifest.distributions],
    }


def dump(manifest: Manifest) -> str:
    """The manifest as YAML text, marked at both ends."""
    return f"{_START}{dump_yaml(to_document(manifest))}{_END}"


def _read_machine(node: Node) -> Machine:
    facts = {name: node.get(name).text("") for name in _MACHINE}
    limits, devices = node.get("limits").figures(), node.get("devices").each(_read_device)
    return Machine(**facts, limits=limits, devices=devices)


def _read_device(node: Node) -> Device:
    numa, bf16 = node.get("numa"), node.get("bf16")
    texts = {name: node.get(name).text("") for name in _DEVICE_TEXTS}
    figures: dict[str, Any] = {name: node.get(name).integer(0) for name in _DEVICE_FIGURES}
    return Device(
        **{**figures, **texts},
        numa=numa.integer() if numa.present else None,
        bf16=bf16.boolean() if bf16.present else None,
    )


def _read_wheel(node: Node) -> WheelRef | None:
    if not node.present:
        return None
    size = node.get("size")
    return WheelRef(
        file=_read_file_name(node.get("file")),
        sha256=node.get("sha256").sha256(),
        size=size.integer() if size.present else None,
        origin=node.get("origin").choice(*ORIGINS),
        compressor=node.get("compressor").text(""),
        url=_read_url(node.get("url")),
    )


def _read_url(node: Node) -> str:
    """Fetched by whoever builds a wheelhouse: never a path, nor another protocol."""
    url = node.text("")
    if url and not url.startswith(("https://", "http://")):
        raise node.bad("an http or https URL")
    return url


def _read_file_name(node: Node) -> str:
    """A wheel's file name is a name, never a path: it is joined to a folder later."""
    name = node.text()
    if not is_file_name(name) or not name.endswith(".whl"):
        raise node.bad("a wheel's file name")
    return name


def _read_name(node: Node) -> str:
    """Names files, and stands on a line of its own in files for other tools; so does a version."""
    name = node.text()
    if not is_file_name(name) or canonicalize_name(name) != name:
        raise node.bad("a canonical name")
    return name


def _read_version(node: Node) -> str:
    """Any that a vendor thought of, also one that PEP 440 does not know."""
    version = node.text()
    if version and not is_file_name(version):
        raise node.bad("a version")
    return version


def _read_distribution(node: Node) -> Distribution:
    return Distribution(
        name=_read_name(node.get("name")),
        version=_read_version(node.get("version")),
        vendor=node.get("vendor").texts(),
        protected=node.get("protected").boolean(False),
        requires=node.get("requires").texts(),
        content=node.get("content").content(),
        files=node.get("files").integer(0),
        bytes=node.get("bytes").integer(0),
        executable=node.get("executable").texts(),
        wheel=_read_wheel(node.get("wheel")),
        module=tuple(node.get("module").mapping().items()),
        editable=node.get("editable").boolean(False),
        reason=node.get("reason").text(""),
    )


def _read_finding(node: Node) -> Finding:
    return Finding(
        code=node.get("code").text(),
        subject=node.get("subject").text(),
        what=node.get("what").text(),
        why=node.get("why").text(""),
        hint=node.get("hint").text(""),
        level=node.get("level").choice("error", "warning", "info"),
    )


def _read_target(node: Node) -> LockedTarget:
    tags = node.get("tags").texts()
    if not tags:
        raise node.get("tags").bad("a list of wheel tags")
    return LockedTarget(
        python=node.get("python").text(),
        markers=node.get("markers").mapping(),
        tags=tags,
        paths=node.get("paths").mapping(),
    )


def _check_schema(node: Node) -> str:
    schema = node.text()
    major = schema.split(".")[0]
    if major != SCHEMA.split(".")[0]:
        raise UnusableInput(
            f"{node.file or 'manifest'}: schema: '{schema}' is not one this envlock reads",
            f"this envlock reads {SCHEMA.split('.')[0]}.x; use the envlock that wrote it",
        )
    return schema


def load(text: str, file: str = "") -> Manifest:
    """Reads a manifest.

    Args:
        text: the YAML document.
        file: its name, for messages.

    Raises:
        UnusableInput: not YAML, an unknown major schema, or a bad value (named by its path).
    """
    node = parse_yaml(text, file, _HINT)
    if text.startswith(_START) and not text.rstrip().endswith(f"\n{_END.strip()}"):
        raise UnusableInput(
            f"{file or 'manifest'}: cut off: it starts with '---' and does not end with '...'",
            _HINT,
        )
    if not isinstance(node.value, Mapping):
        raise node.bad("a manifest")
    schema = _check_schema(node.get("schema"))
    stack, machine = node.get("stack"), node.get("machine")
    distributions = node.get("distributions")
    if not distributions.present:
        raise distributions.bad("a list")
    return Manifest(
        schema=schema,
        name=node.get("name").text(),
        created=node.get("created").text(),
        tool=node.get("tool").text(),
        profile=node.get("profile").text(),
        stack=Stack(**{key: stack.get(key).text("") for key in _STACK}),
        target=_read_target(node.get("target")),
        machine=_read_machine(machine),
        health=node.get("health").each(_read_finding),
        distributions=distributions.each(_read_distribution),
    )


def is_newer_minor(manifest: Manifest) -> bool:
    """Whether it was written by a newer envlock: read, with a warning."""
    minor = manifest.schema.partition(".")[2]
    return minor.isdecimal() and int(minor) > int(SCHEMA.partition(".")[2])


def with_wheels(manifest: Manifest, wheels: Mapping[str, WheelRef]) -> Manifest:
    """The manifest with the wheel of each named distribution replaced."""
    return replace(
        manifest,
        distributions=tuple(
            replace(dist, wheel=wheels[dist.name]) if dist.name in wheels else dist
            for dist in manifest.distributions
        ),
    )
