"""What guard must not let go: the protected set of a target, and of what shows through in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envlock.cli import wiring

if TYPE_CHECKING:
    from envlock.adapters.installed import Inventory
    from envlock.cli.options import Common
    from envlock.cli.wiring import Found
    from envlock.guard.command import Request
    from envlock.guard.decide import Protected
    from envlock.model.facts import Target
    from envlock.model.profile import Profile


def at_stake(
    common: Common, request: Request, target: Target, inventory: Inventory, found: Found | None
) -> tuple[Protected, ...]:
    """The protected set, without public builds that the command puts the vendor's in place of."""
    from envlock.guard.rescue import without_rescued

    protected = _protected(common, target, inventory, found)
    if not request.names & {build.name for build in protected if build.by_name}:
        return protected
    profile = _profile_here(common, inventory, found)
    return without_rescued(protected, request, profile.knows_label)


def _protected(
    common: Common, target: Target, inventory: Inventory, found: Found | None
) -> tuple[Protected, ...]:
    """The protected set: the manifest's, else the vendor builds that are there now."""
    from envlock.adapters.installer import counting
    from envlock.guard.decide import Protected

    now = {dist.name: dist for dist in inventory.distributions}
    if found is not None:
        return tuple(
            Protected(
                name=dist.name,
                version=dist.version,
                installed=now[dist.name].version if dist.name in now else None,
                sha256=dist.wheel.sha256 if dist.wheel else "",
                requires=counting(dist.requires, target.markers),
                by_name=not dist.vendor,
            )
            for dist in found.manifest.protected
        )
    return _vendor_builds(common, target, inventory)


def builds_above(common: Common, target: Target) -> tuple[Protected, ...]:
    """The vendor builds of environments that show through in the target: a venv with system
    site-packages, or with a ``.pth`` that leads to another one."""
    import os
    from dataclasses import replace

    from envlock.adapters.installed import read_inventory, site_folders

    own = {os.path.realpath(folder) for folder in site_folders(target.layout)}
    found: dict[str, Protected] = {}
    for folder in target.sys_path:
        if os.path.realpath(folder) in own or not os.path.isdir(folder):
            continue
        layout = replace(target.layout, purelib=folder, platlib=folder)
        for build in _vendor_builds(common, target, read_inventory(layout)):
            found.setdefault(build.name, build)
    return tuple(found.values())


def _profile_here(common: Common, inventory: Inventory, found: Found | None) -> Profile:
    """The manifest's profile where it is one of envlock's own, else the one that fits best."""
    from envlock.adapters.profiles import BUNDLED, load_profile

    if found is not None and found.manifest.profile in BUNDLED:
        return load_profile(found.manifest.profile)
    return wiring.fitting_profile(common, inventory.distributions)


def _vendor_builds(common: Common, target: Target, inventory: Inventory) -> tuple[Protected, ...]:
    """What no index can give back, by its label, its origin or its name."""
    from envlock.adapters.installer import counting
    from envlock.guard.decide import Protected
    from envlock.snapshot import original_wheel, signals

    now = {dist.name: dist for dist in inventory.distributions}
    if not now:
        return ()
    chosen = _profile_here(common, inventory, None)
    wheels = {name: original_wheel(dist.direct_url) for name, dist in now.items()}
    signed = {name: bool(signals(dist, chosen)) for name, dist in now.items()}
    return tuple(
        Protected(
            name=name,
            version=dist.version,
            installed=dist.version,
            sha256=wheel.sha256 if (wheel := wheels[name]) else "",
            requires=counting(dist.metadata.requires, target.markers),
            by_name=not signed[name],
        )
        for name, dist in now.items()
        if signed[name] or name in (*chosen.names, *chosen.public)
    )


def protected_set(common: Common, target: Target) -> tuple[Protected, ...]:
    """What must not be lost in a target: the manifest's set, else what is there now.

    Raises:
        UnusableInput: the manifest cannot be used.
    """
    from envlock.adapters.installed import read_inventory

    return _protected(
        common, target, read_inventory(target.layout), wiring.find_manifest(common, target)
    )
