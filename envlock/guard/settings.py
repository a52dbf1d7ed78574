"""Variables and configuration files that steer pip and uv become options of the request. Pure.

Sources of the rules: pip's ``cli/parser.py`` and ``configuration.py`` ("Configuration" in its
documentation), uv's reference for settings and environment variables.
"""

from __future__ import annotations

import configparser
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from envlock.guard.options import Parsed, Table

_TRUE = frozenset({"y", "yes", "t", "true", "on", "1"})
_FALSE = frozenset({"n", "no", "f", "false", "off", "0"})

#: ``PIP_NO_BUILD_ISOLATION=0`` disables the isolation: the value is that of the attribute
#: behind the option, which the option sets to false (pypa/pip#5735).
_INVERTED = frozenset({"--no-build-isolation", "--no-compile", "--no-user", "--no-warn-conflicts",
                       "--no-warn-script-location", "--no-python-version-warning"})  # fmt: skip
#: Options of pip that take one value after the other; a variable splits at spaces.
_SEVERAL = frozenset({"--requirement", "--constraint", "--build-constraint", "--editable",
                      "--find-links", "--extra-index-url", "--trusted-host", "--group",
                      "--platform", "--abi", "--use-feature", "--config-settings"})  # fmt: skip
#: Which environment is meant is told elsewhere; these steer no choice of packages.
_APART = frozenset({"--python", "--system", "--no-system", "--help", "--version", "--isolated",
                    "--config-file", "--no-config", "--directory", "--project",
                    "--python-executable"})  # fmt: skip
#: What uv takes from its command line alone: it would change nothing.
_TYPED_ONLY = ("--dry-run", "--check")
#: Variables of uv whose name is not that of the option.
_UV_NAMES = {"UV_CONSTRAINT": "--constraints", "UV_BUILD_CONSTRAINT": "--build-constraints",
             "UV_OVERRIDE": "--overrides", "UV_EXCLUDE": "--excludes"}  # fmt: skip

#: Parameters of pip-tools whose name is not that of the option.
_PIP_TOOLS = {"pip-args-str": "pip-args", "user-only": "user"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """An option that nobody typed.

    Attributes:
        option: canonical name.
        values: what it is given; nothing for a flag.
        origin: the variable, or the file and its section.
    """

    option: str
    values: tuple[str, ...] = ()
    origin: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A configuration file: its path, as messages show it, and its text."""

    path: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What steers a tool apart from its command line.

    Attributes:
        env: the person's environment.
        files: configuration files that the tool reads, strongest last.
    """

    env: Mapping[str, str]
    files: tuple[Source, ...] = ()


def pip_settings(around: Surroundings, table: Table, subcommand: str) -> list[Setting]:
    """pip's: ``[global]`` of every file, the subcommand's section of every file, variables.

    A stronger source replaces the whole value of a weaker one, lists too. Options that the
    subcommand does not have are passed over, as pip does.
    """
    found: dict[str, Setting] = {}
    sections = [(file.path, _sections(file.text)) for file in around.files]
    for section in ("global", subcommand):
        for path, parsed in sections:
            for key, value in parsed.get(section, {}).items():
                _take(found, key, value, f"{path} [{section}]", table)
    for name, value in sorted(around.env.items()):
        if name.startswith("PIP_") and name == name.upper():
            _take(found, name[len("PIP_") :].lower(), value, name, table)
    return [found[option] for option in sorted(found)]


def _sections(text: str) -> dict[str, dict[str, str]]:
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(text)
    except configparser.Error:
        return {}  # pip itself ends with an error
    return {name: dict(parser.items(name)) for name in parser.sections()}


def _take(found: dict[str, Setting], key: str, value: str, origin: str, table: Table) -> None:
    option = table.names.get(f"--{key.replace('_', '-').lower()}")
    if option is None or option in _APART or not value:
        return
    if option in table.valued:
        values = tuple(value.split()) if option in _SEVERAL else (value,)
        found[option] = Setting(option=option, values=values, origin=origin)
        return
    word = value.strip().lower()
    on = word in (_FALSE if option in _INVERTED else _TRUE)
    found.pop(option, None)
    if option == "--no-user":  # false is "not the user's folder", true is "the user's folder"
        option, on = "--user", word in _TRUE
        found.pop(option, None)
    if on:
        found[option] = Setting(option=option, origin=origin)


def uv_settings(
    around: Surroundings,
    table: Table,
    parsed: Sequence[tuple[str, Mapping[str, Any]]],
    *,
    project: bool = False,
) -> list[Setting]:
    """uv's: top level and ``[pip]`` of every file, then variables.

    Args:
        parsed: path and content of each configuration file, strongest last.
        project: ``[pip]`` is for ``uv pip`` alone.
    """
    found: dict[str, Setting] = {}
    for path, content in parsed:
        own = {} if project else content.get("pip", {})
        for section, entries in (("", content), ("[pip]", own)):
            for key, value in entries.items() if isinstance(entries, Mapping) else ():
                _take_toml(found, key, value, f"{path} {section}".strip(), table)
    for name, value in sorted(around.env.items()):
        if name.startswith("UV_") and value:
            named = _UV_NAMES.get(name, f"--{name[len('UV_') :].lower().replace('_', '-')}")
            _take_variable(found, named, value, name, table)
    return [found[option] for option in sorted(found) if option not in _TYPED_ONLY]


def pip_tools_settings(
    table: Table, parsed: Sequence[tuple[str, Mapping[str, Any]]]
) -> list[Setting]:
    """pip-sync's: ``[tool.pip-tools]`` and its part for ``sync``, under the options' names or
    those of pip-tools' own parameters."""
    found: dict[str, Setting] = {}
    for path, content in parsed:
        own = content.get("sync", {})
        for section, entries in (("", content), ("[sync]", own)):
            for key, value in entries.items() if isinstance(entries, Mapping) else ():
                name = _PIP_TOOLS.get(key.replace("_", "-"), key.replace("_", "-"))
                origin = f"{path} {section}".strip()
                if name == "python-executable":  # it is told nowhere else
                    found[f"--{name}"] = Setting(
                        option=f"--{name}", values=(str(value),), origin=origin
                    )
                _take_toml(found, name, value, origin, table)
    return [found[option] for option in sorted(found)]


def _take_toml(
    found: dict[str, Setting], key: str, value: object, origin: str, table: Table
) -> None:
    option = table.names.get(f"--{key}")
    if option is None or option in _APART:
        return
    if key == "index":  # an array of tables
        for one in value if isinstance(value, list) else ():
            if not isinstance(one, Mapping):
                continue  # uv says that it cannot read the file
            named = "--default-index" if one.get("default") else "--index"
            before = found[named].values if named in found else ()
            urls = (*before, str(one.get("url", "")))
            found[named] = Setting(option=named, values=urls, origin=origin)
    elif option in table.valued:
        values = tuple(str(v) for v in value) if isinstance(value, list) else (str(value),)
        found[option] = Setting(option=option, values=values, origin=origin)
    elif value is True:
        found[option] = Setting(option=option, origin=origin)
    elif value is False:
        found.pop(option, None)


def _take_variable(
    found: dict[str, Setting], named: str, value: str, origin: str, table: Table
) -> None:
    option = table.names.get(named)
    if option is None or option in _APART:
        return
    if option in table.valued:
        found[option] = Setting(option=option, values=tuple(value.split()), origin=origin)
    elif value.lower() in _TRUE:
        found[option] = Setting(option=option, origin=origin)
    else:
        found.pop(option, None)


#: What a typed option takes back.
_AGAINST = {"--no-user": "--user", "--no-upgrade": "--upgrade", "--no-reinstall": "--reinstall",
            "--inexact": "--exact", "--build-isolation": "--no-build-isolation"}  # fmt: skip


def overrule(option: str, origin: str, tool: str) -> tuple[dict[str, str | None], list[str]]:
    """How a command goes without an option that nobody typed: variables, and words to type.

    pip has no option against most of its flags; a variable is stronger than a file. Nothing where
    only the setting itself can be taken out.
    """
    if tool == "pip" and option == "--upgrade-strategy":
        return {}, [option, "only-if-needed"]
    if tool == "pip" and option not in _SEVERAL:
        return {f"PIP_{option.strip('-').replace('-', '_').upper()}": "0"}, []
    against = [flag for flag, meant in _AGAINST.items() if meant == option]
    if tool == "uv" and against:
        return {}, against
    return ({origin: None}, []) if origin.isidentifier() else ({}, [])


def merge(
    typed: Parsed, settings: Iterable[Setting], *, adds: bool
) -> tuple[Parsed, dict[str, str]]:
    """The command line with what steers it from outside, and where each such option is from.

    Args:
        adds: typed values stand beside those of a list that is set elsewhere (pip); else they
            replace them (uv).
    """
    against = {_AGAINST[flag] for flag in typed.flags if flag in _AGAINST}
    flags, values, origins = set(typed.flags), dict(typed.values), {}
    for setting in settings:
        option = setting.option
        if option in against or option in typed.flags:
            continue
        if option in typed.values and not (adds and option in _SEVERAL):
            continue
        if setting.values:
            values[option] = setting.values + typed.value(option)
        else:
            flags.add(option)
        origins[option] = setting.origin
    merged = Parsed(flags=frozenset(flags), values=values, words=typed.words, unknown=typed.unknown)
    return merged, origins
