"""The profiles that come with envlock, and a person's own."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path

from envlock.errors import UnusableInput
from envlock.model.manifest import parse_yaml
from envlock.model.profile import Profile, read_profile

#: In the order in which ``--profile auto`` prefers them.
BUNDLED = ("dtk", "cuda", "cpu")


def load_profile(named: str) -> Profile:
    """A bundled profile by name, or a file by its path.

    Raises:
        UnusableInput: no such profile, or its document is wrong.
    """
    if named in BUNDLED:
        text = (resources.files("envlock") / "profiles" / f"{named}.yaml").read_text("utf-8")
        return read_profile(parse_yaml(text, f"{named}.yaml"))
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


def bundled_profiles() -> list[Profile]:
    """All profiles that come with envlock, in order of preference."""
    return [load_profile(name) for name in BUNDLED]
