"""What starts one process on every host: the protocol, and any command that a person names."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from envlock.errors import ProgramFailed

_ELSEWHERE = "192.0.2.1"  # of no network (RFC 5737)


class Launcher(Protocol):
    """Starts the same words once on every host, and ends when all of them have ended."""

    @property
    def env(self) -> Mapping[str, str]:
        """The environment that it is started with."""
        ...

    @property
    def expected(self) -> tuple[str, ...]:
        """The nodes that it will start on, where that is known before; else none."""
        ...

    def command(self, words: Sequence[str]) -> list[str]:
        """The command that starts ``words`` everywhere.

        Raises:
            ProgramFailed: there is no such program.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyLauncher:
    """``mpirun --npernode 1``, ``pdsh -w n[1-4]``: words that are written before ours.

    Attributes:
        words: the launcher and its own options.
        env: its environment.
        expected: never known.
    """

    words: tuple[str, ...]
    env: Mapping[str, str]
    expected: tuple[str, ...] = ()

    def command(self, words: Sequence[str]) -> list[str]:
        """As the protocol has it."""
        need(self.words[0], self.env)
        return [*self.words, *words]


def need(
    program: str, env: Mapping[str, str], hint: str = "check its name, or load its module"
) -> str:
    """Path of a program.

    Raises:
        ProgramFailed: it is not on PATH.
    """
    found = shutil.which(program, path=env.get("PATH"))
    if found is None:
        raise ProgramFailed(f"{program}: not found", hint)
    return found


def into_file(words: Sequence[str], path: str) -> list[str]:
    """The same command with its standard output in a file: what is read there is never mixed with
    what a program says to people, which goes to standard error. Its process id is in ``PATH.pid``.
    """
    return ["/bin/sh", "-c", 'echo $$ >"$0.pid" && exec "$@" >"$0"', path, *words]


def interrupt(path: str) -> bool:
    """Sends what Ctrl-C sends to a command of :func:`into_file`; whether there was one."""
    try:
        os.kill(int(Path(f"{path}.pid").read_text(encoding="ascii")), signal.SIGINT)
    except (OSError, ValueError):
        return False
    return True


def host_name() -> str:
    """This host's name without its domain."""
    return platform.node().partition(".")[0] or "localhost"


def own_address(towards: str) -> str:
    """The address at which this host is reached from where ``towards`` is; empty when unknown.

    Nothing is sent: a UDP socket is only told where it would send to.

    Args:
        towards: an address; empty for wherever the default route leads.
    """
    family = socket.AF_INET6 if ":" in towards else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((towards or _ELSEWHERE, 9))
            return str(probe.getsockname()[0])
    except OSError:
        return ""
