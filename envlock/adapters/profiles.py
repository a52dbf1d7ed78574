"""The profiles that come with envlock, and a person's own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path

from envlock.adapters.machine import find_root
from envlock.adapters.together import paths_of
from envlock.errors import UnusableInput
from envlock.model.manifest import parse_yaml
from envlock.model.profile import Profile, read_profile

#: In the order in which ``--profile auto`` prefers them.
BUNDLED = ("dtk", "rocm", "cuda", "ascend", "cpu")


def load_profile(named: str) -> Profile:
    """A bundled profile by name, or a file by its path.

    Raises:
        UnusableInput: no such profile, or its document is wrong.
    """
    if named in BUNDLED:
        return _bundled(named)
    if os.sep not in named and not named.endswith((".yaml", ".yml")):
        raise UnusableInput(
            f"profile: there is no '{named}'",
            f"one of {', '.join(BUNDLED)}, auto, or the path of a YAML file",
        )
    try:
        text = Path(named).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        what = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise UnusableInput(f"profile: '{named}': {what}", "name a readable file") from error
    return read_profile(parse_yaml(text, named))


@cache
def _bundled(name: str) -> Profile:
    text = (resources.files("envlock") / "profiles" / f"{name}.yaml").read_text("utf-8")
    return read_profile(parse_yaml(text, f"{name}.yaml"))


def present_profiles(env: Mapping[str, str], below: str = "/") -> set[str]:
    """Names of the bundled profiles whose stack, or whose own tool, is on this machine.

    Args:
        env: the caller's environment.
        below: the folder that stands for ``/``.
    """
    return {one.name for one in bundled_profiles() if _present(one, env, below)}


def _present(profile: Profile, env: Mapping[str, str], below: str) -> bool:
    folders = (*env.get("PATH", "").split(os.pathsep), *profile.tool_folders)
    # the first tool is the vendor's own; others may be another vendor's as well
    tools = (paths_of(name, folders, below) for name in profile.tools[:1])
    return bool(find_root(profile, env, below)) or any(tools)


def bundled_profiles() -> list[Profile]:
    """All profiles that come with envlock, in order of preference."""
    return [load_profile(name) for name in BUNDLED]
