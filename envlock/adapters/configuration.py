"""Where pip and uv keep their settings, and what is in those files."""

from __future__ import annotations

import configparser
import importlib
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from envlock.adapters.network import config_folders

#: Path and text of a file that exists.
File = tuple[str, str]


def _existing(paths: Iterable[str]) -> list[File]:
    found = []
    for path in paths:
        try:
            text = Path(path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        found.append((path, text))
    return found


def pip_files(env: Mapping[str, str], prefix: str, *, isolated: bool = False) -> list[File]:
    """pip's configuration files, strongest last: machine, person, target, ``PIP_CONFIG_FILE``.

    The person's are not read where ``PIP_CONFIG_FILE`` names a file that exists, nor with
    ``--isolated``; the null device switches all of them off (pip's ``configuration.py``).
    """
    named = env.get("PIP_CONFIG_FILE", "")
    if named == os.devnull:
        return []
    home = env.get("HOME") or os.path.expanduser("~")
    *machine, person = config_folders(env)
    paths = [os.path.join(folder, "pip", "pip.conf") for folder in machine] + ["/etc/pip.conf"]
    if not isolated and not (named and os.path.exists(named)):
        paths += [os.path.join(home, ".pip", "pip.conf"), os.path.join(person, "pip", "pip.conf")]
    return _existing([*paths, os.path.join(prefix, "pip.conf"), *([named] if named else [])])


def uv_files(env: Mapping[str, str], *, ignored: bool = False, named: str = "") -> list[File]:
    """uv's configuration files, strongest last: machine, person, project.

    Args:
        ignored: ``--no-config``.
        named: ``--config-file``; else ``UV_CONFIG_FILE``. It stands in for all others.
    """
    if ignored or env.get("UV_NO_CONFIG", "").lower() not in ("", "0", "false", "no", "off"):
        return []
    named = named or env.get("UV_CONFIG_FILE", "")
    if named:
        return _existing([named])
    *machine, person = config_folders(env)
    shared = [os.path.join(folder, "uv", "uv.toml") for folder in machine]
    found = _existing(["/etc/uv/uv.toml", *shared, os.path.join(person, "uv", "uv.toml")])
    here = working_folder()
    return [*found, *(_project_file(here) if here else [])]


def working_folder() -> str:
    """Where this process works; empty where that folder is gone."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def pip_tools_files(*, ignored: bool = False, named: str = "") -> list[File]:
    """The configuration file of pip-tools: the one named, or the first that is in this folder.

    Args:
        ignored: ``--no-config``.
        named: ``--config``.
    """
    if ignored:
        return []
    names = (named,) if named else (".pip-tools.toml", "pyproject.toml")
    return _existing([os.path.abspath(name) for name in names])[:1]


def _project_file(folder: str) -> list[File]:
    """The nearest ``uv.toml`` or ``pyproject.toml`` with a table for uv, upwards."""
    for parent in (folder, *map(str, Path(folder).parents)):
        for name in ("uv.toml", "pyproject.toml"):
            found = _existing([os.path.join(parent, name)])
            if found and (name == "uv.toml" or "[tool.uv" in found[0][1]):
                return found
    return []


def read_pip_tools(files: Iterable[File]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The table for pip-tools in its files; pip-tools itself reports what cannot be parsed."""
    for path, text in files:
        found = parse_toml(text).get("tool", {}).get("pip-tools", {})
        yield path, found if isinstance(found, Mapping) else {}


def read_toml(files: Iterable[File]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What is in uv's files; of a ``pyproject.toml`` its table for uv. uv itself reports a file
    that cannot be parsed."""
    for path, text in files:
        content = parse_toml(text)
        if os.path.basename(path) == "pyproject.toml":
            content = content.get("tool", {}).get("uv", {})
        yield path, content


def is_lock(path: str) -> bool:
    """Whether pip and uv read a file as a lock (PEP 751), by its name."""
    return bool(re.fullmatch(r"pylock(\.[^.]+)?\.toml", os.path.basename(path)))


def unreadable(tool: str, path: str, text: str) -> str:
    """Why ``pip`` or ``uv`` cannot read one of its files; empty when it can."""
    if tool == "pip":
        try:
            configparser.RawConfigParser().read_string(text, path)
        except configparser.Error as error:
            return " ".join(str(error).split())
        return ""
    said = [line for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]
    return "it is not TOML" if said and not parse_toml(text) else ""


def parse_toml(text: str) -> dict[str, Any]:
    """A TOML document; empty when it is none."""
    # part of Python from 3.11 on; pip carries it for older ones
    name = "tomllib" if sys.version_info[:2] >= (3, 11) else "pip._vendor.tomli"
    try:
        found: dict[str, Any] = importlib.import_module(name).loads(text)
    except (ImportError, ValueError):
        return {}
    return found
