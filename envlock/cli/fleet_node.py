"""What ``envlock fleet`` starts on each node. Nobody types these."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from envlock.cli import options, wiring
from envlock.cli.restore import Backend, Exact, Into, Managed, Only, StackChange
from envlock.cli.show import size

if TYPE_CHECKING:
    from envlock.cli.options import Common
    from envlock.cli.restoring import Asked
    from envlock.model.facts import Target

JobWord = Annotated[str, typer.Argument(metavar="JOB")]
KitFolder = Annotated[str, typer.Option("--kit", metavar="DIR")]
House = Annotated[str, typer.Option("--wheelhouse", metavar="DIR")]
Scratch = Annotated[str, typer.Option("--scratch", metavar="DIR")]


def node(job: JobWord, kit: KitFolder = "") -> int:
    """One node's part of a run."""
    from envlock.fleet.job import decode
    from envlock.fleet.node import work

    common = options.common(None, None, json=False)
    return work(decode(job), common.env, common.screen.verdict, kit)


def pull(
    wheelhouse: House,
    scratch: Scratch = "",
    carried: Annotated[bool, typer.Option("--carried")] = False,
    into: Into = None,
    only: Only = None,
    exact: Exact = False,
    stack_change: StackChange = False,
    managed: Managed = False,
    backend: Backend = "auto",
    python: options.Python = None,
    manifest: options.ManifestFile = None,
    json: options.Json = False,
) -> int:
    """restore, from a copy of the wheelhouse on this node's own disk."""
    from envlock.cli import restoring
    from envlock.restore.refusals import Insist

    common = options.common(python, manifest, json=json)
    target = wiring.open_target(common)
    asked = restoring.Asked(
        wheelhouse=wheelhouse, into=into, only=only or [], exact=exact, backend=backend,
        insist=Insist(stack_change=stack_change, managed=managed),
    )  # fmt: skip
    if carried:  # a kit has put it on this node's disk, and takes it away again
        return restoring.restore(common, target, replace(asked, kept=""))
    return _pulled(common, target, asked, scratch)


def _pulled(common: Common, target: Target, asked: Asked, scratch: str) -> int:
    from envlock.cli import restoring
    from envlock.fleet import herd
    from envlock.wheelhouse.folder import parse_sums

    house = os.path.abspath(asked.wheelhouse or "")
    wanted = restoring.wheels_wanted(common, target, asked)
    sums, _ = parse_sums(herd.read_sums(house))
    parent = scratch or common.env.get("TMPDIR") or tempfile.gettempdir()
    with herd.scratch_folder(parent) as folder:
        copied = herd.copy(house, folder, {**wanted, **sums}, wanted)
        common.screen.say(f"{size(copied)} copied to '{parent}'")
        return restoring.restore(common, target, replace(asked, wheelhouse=folder, kept=house))


def link(
    plan: Annotated[str, typer.Option("--plan", metavar="WORD")],
    name: Annotated[str, typer.Option("--node", metavar="NAME")],
    device: Annotated[str, typer.Option("--device", metavar="WHICH")] = "auto",
    python: options.Python = None,
    manifest: options.ManifestFile = None,
    json: options.Json = False,
) -> int:
    """This node's part of a collective."""
    from envlock.fleet.links import own_group, take_part
    from envlock.verify.activation import activate

    common = options.common(python, manifest, json=json)
    group = own_group(plan, name)
    if group is None:
        common.screen.document("link", 0, (), {"rests": True})
        return 0
    target = wiring.open_target(common)
    profile = wiring.choose_profile(common, "auto", target)
    env = activate(profile, common.env).env
    part = take_part(target.executable, group, name, env, device == "cpu")
    code = 3 if part.why else 0
    common.screen.verdict(part.why or "exact")
    met = {name: {"why": one.why, "gbps": dict(one.gbps)} for name, one in part.met.items()}
    data = {"why": part.why, "error": part.error, "began": part.began, "with": met}
    common.screen.document("link", code, (), data)
    return code
