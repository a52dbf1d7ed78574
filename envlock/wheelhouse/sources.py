"""What an index has only as a source: found where nothing else is, built where that is safe."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from envlock.adapters.resolving import Builder, OnlySource, Pin, Question, Resolver
from envlock.adapters.wheelfile import WheelFile, inspect_wheel
from envlock.errors import ProgramFailed, Refused
from envlock.model.masking import mask, shareable
from envlock.model.wheels import parse_wheel_name

_WHAT_TO_DO = (
    "build its wheel on the target or a machine like it ('pip wheel'), and name the wheel's folder "
    "with --find-links; or ask for a version that has a wheel"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltWheel:
    """A wheel that was built here, and the pin whose source it was made from."""

    pin: Pin
    wheel: WheelFile

    @property
    def url(self) -> str:
        """Where the source is and what it is, for a manifest."""
        return source_mark(self.pin)


def source_mark(pin: Pin) -> str:
    """Where the source of a pin is, with its sha256; empty for one on this machine."""
    if pin.sdist is None:
        return ""
    url = shareable(pin.sdist.urls[0])
    return f"{url}#sha256={pin.sdist.sha256}" if url and pin.sdist.sha256 else url


def resolve(resolver: Resolver, question: Question) -> tuple[Pin, ...]:
    """The answer with wheels alone; where there is none, with as few sources as possible.

    Raises:
        Refused: there is no solution.
        ProgramFailed: an index cannot be reached, or a program is missing.
    """
    try:
        return resolver.resolve(question)
    except OnlySource as nothing:
        without = nothing
    try:
        found = resolver.resolve(replace(question, sources=True))
        unbuilt: tuple[str, ...] = ()
        # a newer version that is only a source must not win over an older one with a wheel
        for name in _to_build(found):
            try:
                trial = replace(question, sources=True, unbuilt=(*unbuilt, name))
                found, unbuilt = resolver.resolve(trial), trial.unbuilt
            except Refused:
                continue
    except (Refused, ProgramFailed) as error:
        why = f"{without.message}; with sources: {mask(error.message)}"
        raise Refused(why, _WHAT_TO_DO) from error
    return found


def _to_build(pins: Iterable[Pin]) -> list[str]:
    return sorted(pin.name for pin in pins if not pin.wheels and pin.sdist is not None)


def build_pure(builder: Builder, pins: Sequence[Pin], folder: str) -> list[BuiltWheel]:
    """Builds wheels that fit every machine.

    What a build on this machine gives for this machine alone is of no use for another one.

    Raises:
        Refused: some cannot be built, or are no pure Python; names all of them.
    """
    built, bad = [], []
    for pin in pins:
        try:
            path = builder.build(pin, folder)
        except ProgramFailed as error:
            bad.append(f"'{pin.name} {pin.version}' has only a source: {mask(error.message)}")
            continue
        if _is_pure(path):
            built.append(BuiltWheel(pin=pin, wheel=inspect_wheel(path)))
        else:
            what = f"and that is no pure Python: it gives '{os.path.basename(path)}'"
            bad.append(f"'{pin.name} {pin.version}' has only a source, {what}")
    if bad:
        raise Refused(f"wheelhouse: {'; '.join(bad)}", _WHAT_TO_DO)
    return built


def _is_pure(path: str) -> bool:
    tags = parse_wheel_name(os.path.basename(path)).tags
    return any(str(tag) == "py3-none-any" for tag in tags)
