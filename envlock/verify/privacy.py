"""What a report must not say: whose machine it was made on."""

from __future__ import annotations

import getpass
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from envlock.adapters.interpreter import probes_folder
from envlock.model.facts import Target
from envlock.model.masking import mask

# somebody's home on this or on another machine, as tracebacks of a built wheel show it
_HOMES = re.compile(r"(?<![\w.~-])/(?:home|Users)/[^/\s:'\"]+|(?<![\w.~/-])/root(?=[/\s:'\"]|\Z)")
_COMMON = frozenset({"", "root", "user", "localhost"})  # names that say nothing of anybody


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """What is written in place of what.

    Attributes:
        paths: folders and their stand-ins, the longest first.
        host: names of this machine.
        user: names of the person.
    """

    paths: tuple[tuple[str, str], ...] = ()
    host: tuple[str, ...] = ()
    user: tuple[str, ...] = ()

    def text(self, text: str) -> str:
        """A text that can be shared; passwords are masked as well."""
        for path, shown in self.paths:
            text = re.sub(rf"(?<![\w.~-]){re.escape(path)}(?=[/\s:'\"),;]|\Z)", shown, text)
        text = _HOMES.sub("~", text)
        for name in self.host:
            text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", "HOST", text)
        for name in map(re.escape, self.user):
            # as part of a path, an address or an assignment; never a mere word
            part = rf"(?<=[/@=:\\]){name}(?![\w-])|(?<![\w.-]){name}(?=@)"
            text = re.sub(part, "USER", text)
        # a name that is no text in any encoding must not keep a report from being written
        return mask(text).encode("utf-8", "replace").decode("utf-8")

    def value(self, value: Any) -> Any:
        """The same for every text in a JSON value; keys too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value


def hidden(target: Target, env: Mapping[str, str]) -> Hidden:
    """What this target, this person and this machine are called.

    Args:
        env: the caller's environment: home and user.
    """
    layout = target.layout
    prefixes = {layout.prefix: "PREFIX", target.home: "PREFIX", env.get("HOME", ""): "~"}
    prefixes[str(probes_folder().parent)] = "ENVLOCK"  # tracebacks of checks begin there
    paths = {path.rstrip("/"): shown for path, shown in prefixes.items() if len(path) > 1}
    node = platform.node()
    hosts = {node, node.partition(".")[0]}
    users = {env.get(name, "") for name in ("USER", "LOGNAME", "USERNAME")} | {_user()}
    return Hidden(
        paths=tuple(sorted(paths.items(), key=lambda pair: -len(pair[0]))),
        host=_names(hosts),
        user=_names(users),
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # containers run with user ids that nobody has
        return ""


def _names(names: set[str]) -> tuple[str, ...]:
    return tuple(sorted((n for n in names if n.lower() not in _COMMON), key=lambda n: -len(n)))
