"""A vendor as data."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from envlock.model.label import parse_label
from envlock.model.reading import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What envlock knows about a vendor.

    Attributes:
        name: ``dtk``, ``cpu``.
        title: for people.
        labels: regular expressions searched in the local version; a match is a vendor signal.
        names: canonical names that are protected even without a signal.
        roots: folders where the stack is installed, first found wins.
        root_variables: environment variables that name the root, before ``roots``.
        release_files: files below the root whose first line is the stack's release.
        env_script: shell script, relative to the root, that activates the stack; may be empty.
        device: how checks name the device: ``cuda`` or ``cpu``.
        architectures: device architectures of this stack, ``gfx936``.
        unsupported: features that a device of this kind does not have, ``fp8``.
    """

    name: str
    title: str
    labels: tuple[str, ...]
    names: tuple[str, ...]
    roots: tuple[str, ...] = ()
    root_variables: tuple[str, ...] = ()
    release_files: tuple[str, ...] = ()
    env_script: str = ""
    device: str = "cuda"
    architectures: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()

    def knows_label(self, version: str) -> bool:
        """Whether the version's label is one of this vendor's."""
        local = parse_label(version).local
        return bool(local) and any(re.search(pattern, local, re.I) for pattern in self.labels)


def read_profile(node: Node) -> Profile:
    """A profile from its document.

    Raises:
        UnusableInput: a value is missing or of the wrong kind, or a label pattern does not compile.
    """
    for pattern in node.get("labels").items():
        try:
            re.compile(pattern.text())
        except re.error as error:
            raise pattern.bad(f"a regular expression ({error})") from error
    return Profile(
        name=node.get("name").text(),
        title=node.get("title").text(),
        labels=node.get("labels").texts(),
        names=node.get("names").texts(),
        roots=node.get("roots").texts(),
        root_variables=node.get("root_variables").texts(),
        release_files=node.get("release_files").texts(),
        env_script=node.get("env_script").text(""),
        device=node.get("device").choice("cuda", "cpu"),
        architectures=node.get("architectures").texts(),
        unsupported=node.get("unsupported").texts(),
    )


def choose_profile(
    profiles: Iterable[Profile], versions: Iterable[str], roots: Iterable[str]
) -> str:
    """The profile for ``--profile auto``: most labels recognised, then an existing root.

    Args:
        profiles: in order of preference.
        versions: versions of the installed distributions.
        roots: names of the profiles whose stack root exists on this machine.

    Returns:
        The profile's name; ``cpu`` when nothing speaks for any.
    """
    known, present = list(versions), set(roots)
    ranked = [(sum(p.knows_label(v) for v in known), p.name in present, p.name) for p in profiles]
    best = max(ranked, key=lambda row: row[:2], default=(0, False, "cpu"))
    return best[2] if best[0] or best[1] else "cpu"
