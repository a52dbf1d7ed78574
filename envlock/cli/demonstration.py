"""The loop that ``envlock demo`` shows, on a compiled distribution that is here anyway.

envlock's own PyYAML, with its compiled ``_yaml``, is rebuilt under a vendor label. The "index" is a
folder with a newer build without the compiled part: what an index would give in its place.
"""

from __future__ import annotations

import os
import shlex
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from envlock.adapters import files, process
from envlock.adapters.environment import new_environment
from envlock.adapters.installed import content_paths, read_inventory
from envlock.adapters.installer import Pinned, without_settings
from envlock.adapters.interpreter import Named, read_target
from envlock.adapters.wheelwriter import Member, write_wheel
from envlock.cli import wiring
from envlock.cli.options import Common
from envlock.errors import ProgramFailed, UnusableInput
from envlock.model.facts import Target

_LABEL = "das.opt1.dtk2604"
_PUBLIC = "99.0"
_COMPUTES = 'import yaml; print(yaml.load("six: 7", yaml.CSafeLoader))'


@dataclass(frozen=True, slots=True, kw_only=True)
class _Act:
    """One command of the demonstration, and what it must end with."""

    title: str
    words: Sequence[str]
    code: int = 0


@dataclass(slots=True)
class _Stage:
    """The scratch folder, and what was seen in it."""

    common: Common
    folder: str
    env: Mapping[str, str]
    wrong: list[str] = field(default_factory=list)

    def path(self, *parts: str) -> str:
        return os.path.join(self.folder, *parts)

    def act(self, act: _Act) -> None:
        """Shows a command, runs it and notes when it does not end as it must."""
        screen = self.common.screen
        screen.say(f"\n# {act.title}\n$ {shlex.join(act.words)}")
        # in the scratch folder, so that the commands that are shown name short paths
        code = process.run_as_typed(
            self._command(act.words),
            env=self.env,
            cwd=self.folder,
            to_stderr=screen.json,
        )
        if act.code:
            screen.say(f"(exit {code})")
        if code != act.code:
            self.wrong.append(f"'{shlex.join(act.words)}' ended with {code}, not {act.code}")

    def _command(self, words: Sequence[str]) -> list[str]:
        """What a typed command is in the scratch environment, where nothing is activated."""
        target = self.path("venv", "bin", "python")
        if words[0] == "envlock":
            return [sys.executable, "-m", "envlock", *words[1:]]
        if words[0] == "pip":
            return [sys.executable, "-m", "pip", "--python", target, *words[1:]]
        return [target, *words[1:]]


def run(common: Common, folder: str | None) -> int:
    """Plays the demonstration; 3 when anything ended otherwise than it must."""
    scratch = os.path.abspath(folder) if folder else tempfile.mkdtemp(prefix="envlock-demo-")
    os.makedirs(scratch, exist_ok=True)
    if os.listdir(scratch):
        raise UnusableInput(f"--folder: '{folder}' is not empty", "name a new one")
    env = without_settings(common.env) | {
        "VIRTUAL_ENV": os.path.join(scratch, "venv"),
        "XDG_STATE_HOME": os.path.join(scratch, "state"),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": os.path.join(scratch, "index"),
    }
    stage = _Stage(common, scratch, env)
    base = os.path.realpath(sys.executable)
    with new_environment(base, stage.path("venv"), common.env) as python:
        target = read_target(Named(python, "demo"), env)
        _furnish(stage, target)
        for act in _acts():
            stage.act(act)
    return _verdict(stage)


def _acts() -> list[_Act]:
    return [
        _Act(
            title="lock what is installed",
            words=["envlock", "snapshot"],
        ),
        _Act(title="keep its wheels", words=["envlock", "wheelhouse", "harvest", "wheels"]),
        _Act(
            title="an install that would cost the vendor build is refused",
            words=["envlock", "guard", "pip", "install", "-U", "pyyaml"],
            code=3,
        ),
        _Act(
            title="one that cannot hurt runs as usual",
            words=["envlock", "guard", "pip", "install", "demo-tool"],
        ),
        _Act(
            title="somebody installs without the guard, and the compiled part is gone",
            words=["pip", "install", "-q", "-U", "pyyaml"],
        ),
        _Act(title="it does not compute any more", words=["python", "-c", _COMPUTES], code=1),
        _Act(
            title="what is broken?", words=["envlock", "verify", "--level", "static"], code=3
        ),
        _Act(
            title="put it back, without any network",
            words=["envlock", "restore", "--wheelhouse", "wheels"],
        ),
        _Act(title="every file is as locked", words=["envlock", "verify", "--level", "static"]),
        _Act(title="and it computes", words=["python", "-c", _COMPUTES]),
    ]  # fmt: skip


def _furnish(stage: _Stage, target: Target) -> None:
    """Installs the vendor build, and fills the folder that stands for an index."""
    wheel, version = _vendor_wheel(stage)
    pinned = Pinned("pyyaml", version, files.sha256(wheel), wheel)
    wiring.stager(stage.common).stage([pinned], target, target.layout.prefix, None)
    index = stage.path("index")
    os.mkdir(index)
    _small_wheel(stage, index, "PyYAML", _PUBLIC, "yaml.py")
    _small_wheel(stage, index, "demo_tool", "1.0", "demo_tool.py")


def _vendor_wheel(stage: _Stage) -> tuple[str, str]:
    """envlock's own PyYAML under a vendor label: path and version."""
    own = read_target(Named(sys.executable, "envlock"), stage.common.env)
    found = read_inventory(own.layout).named("pyyaml")
    if len(found) != 1 or found[0].reason:
        raise ProgramFailed(
            "demo: envlock's own PyYAML cannot be read", "install envlock into a fresh environment"
        )
    dist = found[0]
    version = f"{dist.version.partition('+')[0]}+{_LABEL}"
    info = f"pyyaml-{version}.dist-info"
    members = []
    for place, path in content_paths(dist, own.layout)[0].items():
        name = place.removeprefix("lib/").replace(dist.dist_info, info)
        if name == f"{info}/METADATA":
            path = _relabelled(stage, path, dist.version, version)
        members.append(Member(name=name, path=path, executable=name.endswith(".so")))
    tag = f"{own.short}-{own.tags[0].split('-')[1]}-{_platform()}"
    wheel = stage.path("vendor", f"pyyaml-{version}-{tag}.whl")
    os.mkdir(stage.path("vendor"))
    write_wheel(wheel, members, info)
    return wheel, version


def _platform() -> str:
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def _relabelled(stage: _Stage, path: str, old: str, new: str) -> str:
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return _scratch_file(
        stage, "METADATA", text.replace(f"Version: {old}\n", f"Version: {new}\n", 1)
    )


def _scratch_file(stage: _Stage, name: str, text: str) -> str:
    os.makedirs(stage.path("parts"), exist_ok=True)
    path = stage.path("parts", name)
    files.write_whole(path, text)
    return path


def _small_wheel(stage: _Stage, folder: str, name: str, version: str, module: str) -> None:
    """A build of one Python module: what an index gives where the vendor's is compiled."""
    info = f"{name}-{version}.dist-info"
    texts = {
        module: f'"""{name} {version}, without a compiled part."""\n',
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: envlock demo\n"
        "Root-Is-Purelib: true\nTag: py3-none-any\n",
    }
    members = [
        Member(name=member, path=_scratch_file(stage, f"{name}-{number}", text))
        for number, (member, text) in enumerate(texts.items())
    ]
    write_wheel(os.path.join(folder, f"{name}-{version}-py3-none-any.whl"), members, info)


def _verdict(stage: _Stage) -> int:
    screen = stage.common.screen
    for line in stage.wrong:
        screen.note(line)
    if not stage.wrong:
        screen.say(
            "\nproven: a compiled build under a vendor label was locked, guarded, lost, put back "
            "without network,\nand is byte for byte what was locked"
        )
    screen.say(f"look at: {stage.folder}\n  manifests/  the lock\n  wheels/     the kept wheels")
    code = 3 if stage.wrong else 0
    screen.verdict("demo: it works here" if code == 0 else "demo: something is wrong here")
    screen.document("demo", code, [], {"folder": stage.folder, "wrong": stage.wrong})
    return code
