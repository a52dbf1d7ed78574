"""Which commands of the docs are run, which cannot be, and what counts as the same output."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.docs.blocks import LEFT_OUT, Command
from tests.docs.world import Ran, alike

#: Pages whose commands another test runs: on a Slurm, simulated reports, recorded machines.
ELSEWHERE = {
    "docs/fleet.md": "tests/fleet/test_docs.py",
    "docs/fleet-report.md": "tests/fleet/test_report.py",
    "docs/doctor.md": "tests/doctor/test_docs.py",
}

#: Commands that are not run here, and why.
NOT_RUN = {
    r"pip install -q \. .* demo": "test_demo_command_on_a_new_checkout runs it",
    r"pip install -q -e \. .* -m tests": "CI runs it: it is all of the tests",
    r"python3 -m venv ~/envlock": "the same as the command before it, without the demo",
    r"^source /opt/dtk": "the vendor's stack is not on this machine",
    r"^envlock verify\b(?!.*--only static\.lock)": "needs a device and a real torch: tests/device",
    r"^envlock doctor": "says what this machine is; tests/doctor has recorded ones",
    r"--install-completion": "writes into the shell's own files",
}

#: Pages whose commands are run in another language.
LANGUAGE = {"README.zh-CN.md": "zh_CN.UTF-8"}


def why_not(command: Command) -> str:
    """Why a command is not run; empty where it is."""
    text = " ".join(command.text.split())
    return next((why for pattern, why in NOT_RUN.items() if re.search(pattern, text)), "")


def runnable(command: Command) -> bool:
    """Whether it is run."""
    return not why_not(command)


def as_shown(command: Command, done: Ran) -> bool:
    """Whether a command ended and printed as the page says."""
    if command.shown is None:
        return done.code == command.code
    return done.code == command.code and same(command.shown, done.lines)


def same(shown: Sequence[str], printed: Sequence[str]) -> bool:
    """Whether what was printed is what is shown; ``[…]`` stands for any number of lines."""
    parts: list[list[str]] = [[]]
    for line in shown:
        if line.strip() == LEFT_OUT:
            parts.append([])
        else:
            parts[-1].append(alike(line))
    rest = [alike(line) for line in printed]
    first, *others = parts
    if rest[: len(first)] != first:
        return False
    rest = rest[len(first) :]
    for number, part in enumerate(others):
        last = number == len(others) - 1
        places = [len(rest) - len(part)] if last else range(len(rest) - len(part) + 1)
        at = next((at for at in places if at >= 0 and rest[at : at + len(part)] == part), None)
        if at is None:
            return False
        rest = rest[at + len(part) :]
    return bool(others) or not rest
