"""A vendor's build in the place of a public one: what guard has no reason to refuse. Pure."""

from __future__ import annotations

from collections.abc import Callable

from envlock.guard.asked import Asked
from envlock.guard.case import Protected
from envlock.guard.command import Request


def without_rescued(
    protected: tuple[Protected, ...], request: Request, knows_label: Callable[[str], bool]
) -> tuple[Protected, ...]:
    """The protected set without what the command puts a vendor's build in place of.

    Args:
        knows_label: whether a version carries the label of the vendor whose stack this is.
    """
    rescued = {
        asked.name
        for asked in request.asked
        if request.subcommand == "install" and any(map(knows_label, _versions(asked)))
    }
    return tuple(build for build in protected if not (build.by_name and build.name in rescued))


def _versions(asked: Asked) -> list[str]:
    """Versions that are named and no others: a pin, or the file name of a wheel."""
    specifier = asked.requirement.specifier if asked.requirement else ()
    pins = [one.version for one in specifier if one.operator in ("==", "===")]
    return [*pins, *filter(None, [asked.version])]
