"""How ``envlock fleet`` starts a command on every node."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from envlock.adapters.launching import own_address
from envlock.adapters.slurm import Srun
from envlock.cli.telling import Telling, tell
from envlock.errors import UsageProblem
from envlock.fleet.job import KIT, MANIFEST, MOST, Job, encode
from envlock.fleet.launch import Ended, claim_folder, launch, new_run, worst
from envlock.model.facts import Finding

if TYPE_CHECKING:
    from envlock.adapters.launching import Launcher
    from envlock.cli.options import Common

#: On each node: envlock's part of the run where there is an envlock, else a word about it.
_SHELL = """\
node=${SLURMD_NODENAME:-$(uname -n)}
if ! "$1" -c 'import envlock.errors' 2>/dev/null; then
    echo "@envlock-sh $node missing 127"
    exit 127
fi
exec "$1" -m envlock fleet node "$2"
"""
#: The same with the envlock of a kit, which goes again with all that was unpacked.
_KIT_SHELL = """\
node=${SLURMD_NODENAME:-$(uname -n)} kit=$3 folder=$3.d
trap 'rm -rf "$folder" "$kit"' EXIT
trap 'exit 143' TERM INT HUP
python=$(command -v "$1" || command -v python3)
if ! "$python" "$kit" "$folder" >&2; then
    echo "@envlock-sh $node kit 4"
    exit 4
fi
"$folder/envlock/bin/python" -m envlock fleet node "$2" --kit "$folder"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the person asked for.

    Attributes:
        words: envlock's command for every node.
        python: the target on each node, with ``{node}``; None for the node's own choice.
        launcher: in the place of srun; ``nodes``: who has to answer then.
        kit: is broadcast, and brings the envlock that is used; it goes to ``scratch``.
        seconds: limit of each node; 0 for none.
        beside: ending of a file that the command writes beside its report.
    """

    words: Sequence[str]
    out: str
    python: str | None = None
    launcher: str | None = None
    nodes: str | None = None
    srun_options: Sequence[str] = ()
    kit: str | None = None
    scratch: str | None = None
    seconds: float = 0.0
    beside: str = ""


def restoring_words(
    wheelhouse: str | None, scratch: str | None, kit: str | None, more: Sequence[str]
) -> list[str]:
    """The command that restores on a node: from a kit, from a copy of the wheelhouse where one is
    named, else from what the node remembers."""
    if kit is not None and wheelhouse is not None:
        raise UsageProblem("command line: a kit has its wheelhouse inside", "leave one of them out")
    if kit is not None:
        return ["fleet", "pull", "--wheelhouse", f"{KIT}/wheels", "--carried", *more]
    if wheelhouse is None:
        return ["restore", *more]
    words = ["fleet", "pull", "--wheelhouse", os.path.abspath(wheelhouse)]
    return [*words, *(["--scratch", scratch] if scratch else []), *more]


def other(common: Common, command: str, asked: Asked) -> int:
    """A command that prints one document on each node; the node that ended worst decides."""
    ended, _ = run(common, asked)
    return tell(common, command, ended, ended.worst)


def verify(common: Common, asked: Asked, collective: str = "") -> int:
    """``fleet verify``: the reports, their merge, and the nodes together.

    Args:
        collective: the device for that; empty for none.
    """
    from envlock.cli.fleet_report import show
    from envlock.fleet.merge import merge_reports

    ended, out = run(common, asked, reports=True)
    codes, findings = [ended.whole], list[Finding]()
    if collective:
        from envlock.cli import collective as together

        code, findings = together.collective(common, asked, collective, ended.nodes, out)
        codes.append(code)
    merged = merge_reports(out, ended.expected)
    show(common.screen, merged)
    return tell(common, "fleet verify", ended, worst([merged.exit_code, *codes]), findings)


def run(
    common: Common, asked: Asked, *, reports: bool = False, title: str = ""
) -> tuple[Ended, str]:
    """Starts the command on every node, and shows each as it ends.

    Returns:
        How they ended, and the absolute folder of their reports.
    """
    launcher = _launcher(common, asked)
    kit = _kit(common, asked)
    job = Job(
        run=new_run(),
        out=os.path.abspath(asked.out),
        words=(*asked.words, *_target_words(asked)),
        reports=reports,
        beside=asked.beside,
        seconds=asked.seconds,
        towards=own_address(""),
        slurm=asked.launcher is None,
    )
    job = _with_manifest(common, job, kit is not None and reports)
    out = claim_folder(asked.out)  # last: what is refused before leaves no folder
    full: Sequence[str] = ()
    if kit is not None and isinstance(launcher, Srun):
        launcher, full = kit.carried(common, launcher, out)
    words = _node_words(asked, encode(job), kit)
    with common.screen.progress(title or f"envlock {asked.words[0]}") as advance:
        watch = Telling(common, advance, brief=bool(title)).watch()
        ended = launch(launcher, words, job, watch, full)
    return ended, out


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kit:
    """A kit to broadcast: its file, its path on nodes, the Python it is for, the room it needs."""

    path: str
    target: str
    python: str
    need: int

    def carried(self, common: Common, srun: Srun, out: str) -> tuple[Srun, tuple[str, ...]]:
        """Starts on the nodes that have it now; and those that have no room."""
        from envlock.fleet.kits import carry, only

        with common.screen.progress("sending the kit"):
            found = carry(self.path, self.target, self.need, srun, out)
        return only(srun, found.nodes), found.full


#: Room for envlock itself, unpacked.
_TOOL = 120_000_000


def _kit(common: Common, asked: Asked) -> _Kit | None:
    from envlock.adapters.kitfile import open_kit, read_contents
    from envlock.adapters.slurm import in_allocation
    from envlock.wheelhouse.kit_read import total

    if asked.kit is None:
        return None
    if asked.launcher is not None or not in_allocation(common.env):
        again = f"salloc --no-kill -N 4 envlock fleet … --kit {asked.kit}"
        raise UsageProblem("--kit: sbcast needs an allocation of Slurm around it", f"type: {again}")
    with open_kit(asked.kit) as file:
        python = read_contents(file, asked.kit).python
    need = os.path.getsize(asked.kit) + total(asked.kit) + _TOOL
    target = os.path.join(asked.scratch or "/tmp", f"envlock-{new_run()}.kit")
    return _Kit(path=asked.kit, target=target, python=f"python{python}", need=need)


def _target_words(asked: Asked) -> list[str]:
    return ["--python", asked.python] if asked.python else []


def _launcher(common: Common, asked: Asked) -> Launcher:
    from envlock.adapters.launching import AnyLauncher

    if asked.nodes and asked.launcher is None:
        raise UsageProblem("--nodes: Slurm knows the nodes", "choose them with -- -w LIST")
    if asked.launcher is None:
        return Srun(options=tuple(asked.srun_options), caller=common.env)
    words = tuple(_split(asked.launcher))
    if not words or asked.srun_options:
        raise UsageProblem(
            "command line: options after '--' are srun's, and '--launcher' takes its place",
            "write the launcher's own options into --launcher 'CMD …'",
        )
    return AnyLauncher(words=words, env=common.env, expected=_expected(asked))


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageProblem(f"--launcher: {error}", "quote it as a shell needs it") from error


def _expected(asked: Asked) -> tuple[str, ...]:
    from envlock.fleet.roll import named

    return named(asked.nodes) if asked.nodes else ()


def _node_words(asked: Asked, job: str, kit: _Kit | None) -> list[str]:
    if kit is not None:
        return ["/bin/sh", "-c", _KIT_SHELL, "sh", kit.python, job, kit.target]
    if asked.launcher is not None:  # through ssh and a second shell: nothing that one would read
        return [sys.executable, "-m", "envlock", "fleet", "node", job]
    return ["/bin/sh", "-c", _SHELL, "sh", sys.executable, job]


def _with_manifest(common: Common, job: Job, from_kit: bool) -> Job:
    """The job with the manifest's text in it, so that no node has to see the file; one that is too
    long for a command line is named, and has to lie where all nodes see it."""
    from envlock.adapters.state import read_manifest
    from envlock.model.manifest import dump

    path = common.named_manifest or common.variable_manifest
    if path is None and from_kit:
        return replace(job, words=(*job.words, "--manifest", f"{KIT}/wheels/envlock.yaml"))
    if path is None:
        return job
    text = dump(read_manifest(path))
    carried = replace(job, words=(*job.words, "--manifest", MANIFEST), manifest=text)
    if len(encode(carried)) < MOST:
        return carried
    return replace(job, words=(*job.words, "--manifest", os.path.abspath(path)))
