"""Where uv would get things from: its dry run does not say, its resolver does.

``uv pip compile --format pylock.toml`` of exactly the versions that are planned, without their
dependencies, from the indexes of the command line; the metadata is in uv's cache by then.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from packaging.utils import canonicalize_name

from envlock.adapters import files, process
from envlock.adapters.installer import Ask, Plan, pins
from envlock.model.facts import Target
from envlock.model.wheels import WheelName, parse_wheel_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: Options of ``uv pip install`` that say where distributions come from; 1: with a value.
_KEPT = {
    "--index": 1, "--default-index": 1, "-i": 1, "--index-url": 1, "--extra-index-url": 1,
    "-f": 1, "--find-links": 1, "--index-strategy": 1, "--keyring-provider": 1,
    "--allow-insecure-host": 1, "--trusted-host": 1, "--config-file": 1, "--cache-dir": 1,
    "--directory": 1, "--project": 1, "--only-binary": 1, "--no-binary": 1, "--exclude-newer": 1,
    "--no-index": 0, "--offline": 0, "--no-config": 0, "--native-tls": 0, "--system-certs": 0,
    "--no-build": 0,
}  # fmt: skip
#: It is only worth a moment: what is not known then is looked at after the command.
_SECONDS = 3.0


def with_sources(
    plan: Plan, program: str, ask: Ask, target: Target, env: Mapping[str, str]
) -> Plan:
    """The plan with the URL of each new distribution that comes from an index.

    No URL where uv does not answer; a wheel that is named by its file is not looked for.
    """
    wheels = (_wheel(word.split("#")[0]) for word in ask.after)
    named = {wheel.name for wheel in wheels if wheel}
    wanted = [(c.name, c.new) for c in plan.changes if c.new and c.name not in named]
    if not wanted:
        return plan
    with tempfile.TemporaryDirectory(prefix="envlock-") as folder:
        listed, found = os.path.join(folder, "wanted.txt"), os.path.join(folder, "pylock.toml")
        files.write_whole(listed, "".join(f"{line}\n" for line in pins(wanted, arbitrary=False)))
        command = [program, *_kept(ask.before), "pip", "compile", listed, "--no-deps", "-q", "-o"]
        command += [found, "--python", target.executable, *_kept(ask.after)]
        command += _kept(ask.unsaid)
        done = process.run(command, env=env, timeout=_SECONDS)
        urls = _urls(found, target) if done.code == 0 else {}
    return replace(
        plan,
        changes=tuple(
            replace(c, url=urls.get((c.name, c.new), c.url)) if c.new else c for c in plan.changes
        ),
    )


def _kept(words: Sequence[str]) -> list[str]:
    kept: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        name, equals, _ = word.partition("=")
        if name in _KEPT:
            kept += [word, *(left[:1] if _KEPT[name] and not equals else [])]
    return kept


def _wheel(url: str) -> WheelName | None:
    try:
        return parse_wheel_name(unquote(os.path.basename(url)))
    except ValueError:
        return None


def _urls(path: str, target: Target) -> dict[tuple[str, str | None], str]:
    """URL by name and version (PEP 751): of the best wheel, else of the source archive."""
    try:
        lock: dict[str, Any] = tomllib.loads(Path(path).read_text("utf-8"))
        return {
            (canonicalize_name(one["name"]), one["version"]): url
            for one in lock["packages"]
            if (url := _best(one, target))
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _best(package: Mapping[str, Any], target: Target) -> str:
    order = {tag: index for index, tag in enumerate(target.tags)}
    ranked = []
    for wheel in package.get("wheels", ()):
        found = _wheel(wheel.get("url", ""))
        if found is not None:
            ranks = [order[str(tag)] for tag in found.tags if str(tag) in order]
            ranked += [(min(ranks), wheel["url"])] if ranks else []
    source: str = package.get("sdist", {}).get("url", "")
    return min(ranked)[1] if ranked else source
