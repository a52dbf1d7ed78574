"""What uv is to believe of installed distributions, in place of their own metadata.

``dependency-metadata`` of uv's settings holds for what is installed as well
(https://docs.astral.sh/uv/reference/settings/#dependency-metadata). There is no option for it and
no variable: the person's settings are read from a copy with these lines behind them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from envlock.adapters import files
from envlock.adapters.installer import Stated
from envlock.adapters.managed import read
from envlock.adapters.uv_toml import overruled, quoted, stand_in, user_config
from envlock.model.health import parse_requirement
from envlock.model.label import is_version

#: Options that choose the settings, and how many values each takes: the copy stands in for them.
CHOOSING = {"--config-file": 1, "--no-config": 0}


def believing(
    stated: Sequence[Stated], words: Sequence[str], env: Mapping[str, str], folder: str
) -> dict[str, str]:
    """The environment of a uv that believes it; the options of :data:`CHOOSING` have to go.

    Args:
        words: of the command line, which may choose the settings.
        folder: an existing empty one, for the copy.
    """
    more = "".join(map(_table, stated)).encode()
    named = _named(words) or ("" if "--no-config" in words else env.get("UV_CONFIG_FILE", ""))
    if not named and not (overruled(env) or "--no-config" in words):
        path = user_config(env)
        return {**env, **stand_in(path, (read(path) or b"") + more, folder)}
    copy = os.path.join(folder, "uv.toml")
    files.write_whole(copy, ((read(named) or b"") if named else b"") + more)
    left = {name: value for name, value in env.items() if name != "UV_NO_CONFIG"}
    return {**left, "UV_CONFIG_FILE": copy}


def _named(words: Sequence[str]) -> str:
    """The value of ``--config-file``; empty without one."""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word.startswith("--config-file="):
            return word.partition("=")[2]
        if word == "--config-file":
            return following
    return ""


def _table(one: Stated) -> str:
    """One entry; none for a version that uv cannot read, which stops it anyway."""
    if not is_version(one.version):
        return ""
    requires = ", ".join(quoted(raw) for raw in one.requires if parse_requirement(raw))
    extras = ", ".join(map(quoted, one.extras))
    return (
        f"\n[[dependency-metadata]]\nname = {quoted(one.name)}\nversion = {quoted(one.version)}\n"
        f"requires-dist = [{requires}]\nprovides-extra = [{extras}]\n"
    )
