"""envlock snapshot."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from envlock.cli import options, wiring
from envlock.cli.show import count, size

if TYPE_CHECKING:
    from envlock.model.facts import Finding, Target
    from envlock.model.manifest import Manifest
    from envlock.model.profile import Profile
    from envlock.snapshot import Request


Output = Annotated[
    str | None,
    typer.Option("-o", "--output", metavar="FILE", help="Default: manifests/TAG-cpXY.yaml."),
]
ProfileName = Annotated[
    str, typer.Option(metavar="NAME", help="dtk, rocm, cuda, ascend, cpu, auto, or a YAML file.")
]
Protect = Annotated[
    list[str] | None,
    typer.Option(metavar="DIST", help="Protect this distribution too; may be repeated."),
]
TrustRecord = Annotated[
    bool, typer.Option("--trust-record", help="Take digests from RECORD; read no file.")
]
AskTorch = Annotated[
    bool,
    typer.Option(
        "--ask-torch",
        help="Ask the target's torch about its devices too: compute units, bfloat16. Imports it, "
        "for a minute at most.",
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Write even if a protected build vanished or changed; "
        "forget what was protected before.",
    ),
]


def snapshot(
    output: Output = None,
    profile: ProfileName = "auto",
    protect: Protect = None,
    trust_record: TrustRecord = False,
    ask_torch: AskTorch = False,
    force: Force = False,
    python: options.Python = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Lock what is installed: every distribution with its hashes, into a manifest."""
    from envlock.adapters import state
    from envlock.snapshot import take

    common = options.common(python, None, json=json, quiet=quiet, verbose=verbose)
    target = wiring.open_target(common)
    memory = wiring.memory(common, target)
    request = replace(
        wiring.snapshot_request(common, target, profile),
        protect=_names(protect),
        trust_record=trust_record,
        known=None if force else memory.known(),
    )
    request, unheard = _asked(common, target, request) if ask_torch else (request, ())
    with common.screen.progress(f"reading {target.layout.prefix}") as advance:
        manifest, findings = take(target, request, advance)
    findings += unheard
    if profile == "auto":
        findings += _devices_of_others(common, request.profile)
    path = output or os.path.join("manifests", f"{manifest.name}.yaml")
    common.screen.findings(findings)
    forgotten = state.keep_manifest(path, manifest, memory, force=force)
    common.screen.findings(forgotten)
    findings += forgotten
    _show(common, manifest, path, request.protect)
    data = {"manifest": os.path.abspath(path), "protected": [str(d) for d in manifest.protected]}
    common.screen.document("snapshot", 0, findings, data)
    return 0


def _asked(
    common: options.Common, target: Target, request: Request
) -> tuple[Request, tuple[Finding, ...]]:
    """The request with what torch says of the machine's devices."""
    from envlock.adapters.torch_devices import ask_torch
    from envlock.model.hardware import with_torch

    with common.screen.progress("asking torch"):
        devices, unheard = ask_torch(target, request.profile, common.env)
    return replace(request, machine=with_torch(request.machine, devices)), unheard


def _devices_of_others(common: options.Common, chosen: Profile) -> tuple[Finding, ...]:
    """Vendors whose devices are here while all that is installed is for a processor: that is how
    an environment looks whose vendor builds were replaced."""
    from envlock.adapters.profiles import bundled_profiles, present_profiles
    from envlock.adapters.sysfs import device_nodes
    from envlock.model.facts import Finding

    if chosen.device != "cpu":
        return ()
    present = present_profiles(common.env, common.root)
    return tuple(
        Finding(
            code="stack.processor-builds",
            subject=one.title,
            what="its devices are here, and no build for them is installed",
            why="were they replaced before anything was locked?",
            hint=f"restore the vendor's builds; 'envlock snapshot --profile {one.name}' names them",
        )
        for one in bundled_profiles()
        if one.name in present and one.runtime.nodes and not device_nodes(one, common.root).missing
    )


def _show(common: options.Common, manifest: Manifest, path: str, protect: tuple[str, ...]) -> None:
    screen = common.screen
    kept = [dist for dist in manifest.distributions if dist.content]
    screen.verdict(
        f"locked {count(len(kept), 'distribution')}, {count(sum(d.files for d in kept), 'file')}, "
        f"{size(sum(d.bytes for d in kept))} in '{path}'"
    )
    editable = [dist.name for dist in manifest.distributions if dist.editable]
    if editable:
        screen.say(f"  not kept, since installed in development mode: {', '.join(editable)}")
    for dist in manifest.protected:
        screen.say(f"  protected: {dist} ({', '.join(dist.vendor) or 'by name'})")
    for name in protect:
        if manifest.find(name) is None:
            screen.note(f"'{name}' is to be protected, but is not installed")
    screen.say(f"keep the wheels too: envlock wheelhouse harvest{_same_target(common)}")


def _same_target(common: options.Common) -> str:
    return f" --python {shlex.quote(common.python)}" if common.python else ""


def _names(protect: list[str] | None) -> tuple[str, ...]:
    from packaging.utils import canonicalize_name

    return tuple(canonicalize_name(name) for name in protect or ())
