"""Why a dry run failed: a build in isolation that asks for a protected build, found out before it
is made, or an answer that did not come.

A dry run builds what has no metadata, against whatever its index has: a public torch of gigabytes.
With the protected builds as build constraints such a build ends at once, since no index has them,
and the tool names it. This knows what the build backend asks for, and what that requires in turn,
which no file tells.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from packaging.version import InvalidVersion, Version

from envlock.adapters.installer import Ask, Blocked

#: uv 0.13: "Failed to download and build `NAME==VERSION`"; pip 25.3: "Failed to build 'NAME' when".
_FAILED = re.compile(r"^error: Failed to (?:\w+ and )?build [`'](.+?)[`']", re.M | re.I)


#: uv 0.13 and pip 9.0 to 26.3 of a server that is silent, breaks off, or has too much to do.
_NO_ANSWER = re.compile(
    r"timed out|\btimeout\b|Timeout(?:Error)?\(|error sending request|request failed after"
    r"|are you offline|connection (?:\w+ )?(?:reset|refused|closed|aborted|error|broken)"
    r"|dns error|name resolution|max retries exceeded|incompleteread|error decoding response"
    r"|unexpected (?:eof|end)|\((?:408|425|429|5\d\d) |\b5\d\d server error",
    re.I,
)


def unanswered(output: str) -> bool:
    """Whether a dry run failed since an answer did not come: whoever waits longer, or asks again,
    may get one."""
    return _NO_ANSWER.search(output) is not None


def isolated(ask: Ask) -> bool:
    """Whether anything is built in an environment of its own: build constraints mean only that,
    and nothing of what ``--no-build-isolation-package`` names."""
    return "--no-build-isolation" not in ask.flags


def blocked(output: str, builds: Sequence[tuple[str, str]]) -> tuple[Blocked, ...]:
    """What a tool could not build since these builds were its build constraints.

    Args:
        output: of a dry run that failed.
        builds: canonical name and raw version of each.
    """
    failed = _FAILED.search(output)
    names = frozenset(name for name, version in builds if _names(output, name, version))
    return (Blocked(raw=failed[1], requires=names),) if failed and names else ()


def _names(output: str, name: str, version: str) -> bool:
    """Whether a tool names exactly this build, as a constraint spells it."""
    try:
        shown = str(Version(version))
    except InvalidVersion:
        shown = version
    # pip 25.3 writes all constraints of a name as one: "torch<3,==2.10.0+das"
    pin = rf"{re.escape(name)}(?:\S*,)?={{2,3}}{re.escape(shown)}"
    spelled = rf"(?<![\w.-]){pin}(?![\w+]|\.\w)"
    return re.search(spelled, output) is not None
