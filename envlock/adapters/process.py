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
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass

from envlock.adapters.interrupts import Interrupts
from envlock.errors import ProgramFailed

#: Bytes of output kept, from the end.
KEEP = 64 * 1024
#: Seconds between TERM and KILL, and between KILL and giving up.
GRACE = 30.0
LAST_GRACE = 10.0
_KILLED = -9  # what outlives SIGKILL, which not every host has
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


#: Work of the caller's that is done while programs run.
_work: ContextVar[Iterator[object]] = ContextVar("work", default=iter(()))  # noqa: B039 - stays empty


@contextmanager
def while_waiting(steps: Iterator[object]) -> Iterator[None]:
    """Has work done, step by step, while programs that are started inside the block run.

    In this thread and not in another one: the two would take the interpreter from each other, for
    5 ms each time. What is left when the programs have ended is left to the caller.

    Args:
        steps: a millisecond or so each; a program's output and its end are looked at between them.
    """
    before = _work.set(steps)
    try:
        yield
    finally:
        _work.reset(before)


def _did_a_step() -> bool:
    return next(_work.get(), _work) is not _work


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

    def __init__(self, start: Callable[[], subprocess.Popen[bytes]], keep: int) -> None:
        self.tail = _Tail(keep)
        self._selector = selectors.DefaultSelector()
        try:
            self.process = start()  # the last step that can fail
        except BaseException:
            self._selector.close()
            raise
        assert self.process.stdout is not None
        self._pipe = self.process.stdout.fileno()
        os.set_blocking(self._pipe, False)
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
            self._drain(0.0 if _did_a_step() else _TICK)
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


class _ThreadedChild(_Child):
    """The same on a host that cannot wait for pipes, and has no process groups (Windows)."""

    def __init__(self, start: Callable[[], subprocess.Popen[bytes]], keep: int) -> None:
        self.tail = _Tail(keep)
        self.process = start()
        assert self.process.stdout is not None
        self._pipe = self.process.stdout.fileno()
        self._open = True
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with suppress(OSError):
            while chunk := os.read(self._pipe, 1 << 18):
                self.tail.add(chunk)
        self._open = False

    def _drain(self, seconds: float) -> None:
        if self._open:
            self._reader.join(seconds)
        else:
            super()._drain(seconds)

    def stop(self, grace: float) -> bool:
        """Ends the program; whether it is gone."""
        self.process.terminate()
        if self.wait(grace):
            return True
        self.process.kill()
        return self.wait(LAST_GRACE)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        assert self.process.stdout is not None
        if not self._reader.is_alive():  # else something it left running has the other end
            self.process.stdout.close()


def _child(start: Callable[[], subprocess.Popen[bytes]], keep: int) -> _Child:
    kind = _Child if hasattr(os, "killpg") else _ThreadedChild
    return kind(start, keep)


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
    gone, timed_out = True, False
    with Interrupts() as interrupts:
        child = _child(lambda: _start(argv, env, cwd, pass_fds), KEEP)
        try:
            interrupts.deliver()
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
        code=child.process.returncode if gone else _KILLED,
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
    What was sent to this process alone (TERM, HUP) is passed on.

    Args:
        cwd: its working folder.
        to_stderr: its output goes to standard error: the caller's own output is a document.

    Returns:
        The exit code as a shell would say it (128 + signal).

    Raises:
        ProgramFailed: it cannot be started.
    """
    with Interrupts() as interrupts:
        try:
            child = subprocess.Popen(
                list(argv), env=dict(env), cwd=cwd, stdout=2 if to_stderr else None
            )
        except OSError as error:
            raise _no_start(argv, error) from error
        with child:
            try:
                interrupts.deliver()
                code = child.wait()
            except BaseException as error:
                if not isinstance(error, KeyboardInterrupt) or _was_told_to_end(interrupts):
                    child.terminate()
                _let_end(child)
                raise
    return 128 - code if code < 0 else code


def _was_told_to_end(interrupts: Interrupts) -> bool:
    """Whether it was more than Ctrl-C, which the terminal gives to everybody."""
    return any(number != signal.SIGINT for number in interrupts.came)


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
