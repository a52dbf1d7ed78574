"""The one door to other programs.

Programs run without a shell, in a process group of their own, with standard output and standard
error merged into one pipe that is always drained: reading one pipe to its end before the other
hangs when a child fills the second. Answers come back in files, never through output.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from envlock.errors import ProgramFailed

#: Bytes of output kept, from the end.
KEEP = 64 * 1024
#: Seconds between TERM and KILL, and between KILL and giving up.
GRACE = 30.0
LAST_GRACE = 10.0
_TICK = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a program ended.

    Attributes:
        code: exit code; negative signal number when a signal ended it.
        output: the last :data:`KEEP` bytes of what it printed, decoded.
        dropped: bytes printed before those.
        seconds: wall time.
        timed_out: it was stopped at its time limit.
        unkillable: it outlived SIGKILL and is still there.
    """

    code: int
    output: str
    dropped: int = 0
    seconds: float = 0.0
    timed_out: bool = False
    unkillable: bool = False


class _Tail:
    """The end of a stream, and how much went before it."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._data = bytearray()
        self.dropped = 0

    def add(self, chunk: bytes) -> None:
        self._data += chunk
        surplus = len(self._data) - self._keep
        if surplus > self._keep:  # cut rarely, so that 100 MB of output cost no quadratic copying
            del self._data[:surplus]
            self.dropped += surplus

    def text(self) -> str:
        surplus = max(0, len(self._data) - self._keep)
        self.dropped += surplus
        del self._data[:surplus]
        return self._data.decode("utf-8", "replace")


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return


class _Child:
    """A running program, its output and its time limit."""

    def __init__(self, process: subprocess.Popen[bytes], keep: int) -> None:
        assert process.stdout is not None
        self.process = process
        self.tail = _Tail(keep)
        self._pipe = process.stdout.fileno()
        os.set_blocking(self._pipe, False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._pipe, selectors.EVENT_READ)
        self._open = True

    def _drain(self, seconds: float) -> None:
        if not self._open:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(seconds)
            return
        if not self._selector.select(seconds):
            return
        try:
            chunk = os.read(self._pipe, 1 << 18)
        except BlockingIOError:
            return
        if chunk:
            self.tail.add(chunk)
        else:
            self._open = False

    def wait(self, seconds: float | None) -> bool:
        """Whether it ended within the time."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while self.process.poll() is None:
            if deadline is not None and time.monotonic() >= deadline:
                return False
            self._drain(_TICK)
        # a grandchild may hold the pipe for ever: take what is there and leave
        deadline = time.monotonic() + 2 * _TICK
        while self._open and time.monotonic() < deadline:
            self._drain(_TICK)
        return True

    def stop(self, grace: float) -> bool:
        """TERM, then KILL, for the whole group; whether it is gone."""
        _signal_group(self.process, signal.SIGTERM)
        if self.wait(grace):
            return True
        _signal_group(self.process, signal.SIGKILL)
        return self.wait(LAST_GRACE)

    def close(self) -> None:
        _signal_group(self.process, signal.SIGKILL)  # what it left running
        self._selector.close()
        assert self.process.stdout is not None
        self.process.stdout.close()


def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | None = None,
    timeout: float | None = None,
    grace: float = GRACE,
    pass_fds: Sequence[int] = (),
) -> Finished:
    """Runs a program to its end or its time limit, quietly.

    Args:
        argv: program and arguments.
        env: its whole environment.
        cwd: its working folder.
        timeout: seconds; None waits for ever.
        grace: seconds between TERM and KILL once the time is over.
        pass_fds: descriptors it inherits (a lock that an orphan must still hold).

    Raises:
        ProgramFailed: it cannot be started.
    """
    started = time.monotonic()
    child = _Child(_start(argv, env, cwd, pass_fds), KEEP)
    gone, timed_out = True, False
    try:
        if not child.wait(timeout):
            timed_out = True
            gone = child.stop(grace)
    except BaseException:
        child.stop(grace)
        raise
    finally:
        child.close()
    output = child.tail.text()
    return Finished(
        code=child.process.returncode if gone else -signal.SIGKILL,
        output=output,
        dropped=child.tail.dropped,
        seconds=time.monotonic() - started,
        timed_out=timed_out,
        unkillable=not gone,
    )


def _start(
    argv: Sequence[str], env: Mapping[str, str], cwd: str | None, pass_fds: Sequence[int]
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            list(argv),
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=tuple(pass_fds),
        )
    except OSError as error:
        raise _no_start(argv, error) from error


def run_as_typed(
    argv: Sequence[str], *, env: Mapping[str, str], cwd: str | None = None, to_stderr: bool = False
) -> int:
    """Runs a program on the caller's own terminal: output, colours, progress and input are its own.

    Ctrl-C reaches the program as well, and it is given the time to put its half-done work right.

    Args:
        cwd: its working folder.
        to_stderr: its output goes to standard error: the caller's own output is a document.

    Returns:
        The exit code as a shell would say it (128 + signal).

    Raises:
        ProgramFailed: it cannot be started.
    """
    try:
        child = subprocess.Popen(
            list(argv), env=dict(env), cwd=cwd, stdout=2 if to_stderr else None
        )
    except OSError as error:
        raise _no_start(argv, error) from error
    with child:
        try:
            code = child.wait()
        except KeyboardInterrupt:
            _let_end(child)
            raise
        except BaseException:
            child.terminate()
            _let_end(child)
            raise
    return 128 - code if code < 0 else code


def _let_end(child: subprocess.Popen[bytes]) -> None:
    """Waits for it; kills it when its time is over or a person presses Ctrl-C again."""
    try:
        with suppress(subprocess.TimeoutExpired):
            child.wait(GRACE)
    finally:
        child.kill()  # does nothing to a child that has ended
        child.wait()


def _no_start(argv: Sequence[str], error: OSError) -> ProgramFailed:
    return ProgramFailed(
        f"{argv[0]}: cannot be started: {error.strerror or error}",
        "check that the file exists and may be executed",
    )


def last_lines(output: str, count: int = 3) -> str:
    """The last lines of a program's output that say something, joined, for a message."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return " | ".join(lines[-count:])
