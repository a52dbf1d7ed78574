"""Interrupts that wait for the moment somebody can act on them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest

from envlock.adapters.interrupts import INTERRUPTS, Interrupts
from envlock.adapters.process import run, run_as_typed
from tests.support.processes import is_alive


@pytest.fixture
def seen() -> Iterator[list[int]]:
    """Numbers that reached the handlers that were there before."""
    numbers: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        numbers.append(number)

    before = {number: signal.signal(number, note) for number in INTERRUPTS}
    yield numbers
    for number, handler in before.items():
        signal.signal(number, handler)


def test_held_until_delivered(seen: list[int]) -> None:
    with Interrupts() as interrupts:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
        assert seen == []
        interrupts.deliver()
        assert seen == [signal.SIGTERM, signal.SIGINT]
        signal.raise_signal(signal.SIGHUP)
        assert seen == interrupts.came == [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
    signal.raise_signal(signal.SIGINT)
    assert len(seen) == 4
    assert len(interrupts.came) == 3


def test_never_lost(seen: list[int]) -> None:
    with Interrupts():
        signal.raise_signal(signal.SIGINT)
    assert seen == [signal.SIGINT]


def test_one_inside_another(seen: list[int]) -> None:
    with Interrupts() as outer, Interrupts() as inner:
        signal.raise_signal(signal.SIGINT)
        inner.deliver()
        assert seen == []
        outer.deliver()
        assert seen == [signal.SIGINT]


def test_ignored_and_default_stay(seen: list[int]) -> None:
    """What a person asked for with nohup holds, and a program inherits it."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with Interrupts():
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_one_that_comes_while_it_is_put_in_place(
    seen: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It acts as before, and so does everything after it: Ctrl-C never goes dead."""
    real = signal.signal

    def interrupted(number: int, handler: object) -> object:
        if number == signal.SIGTERM:
            raise KeyboardInterrupt
        return real(number, handler)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(signal, "signal", interrupted)
        with pytest.raises(KeyboardInterrupt), Interrupts():
            pass
    signal.raise_signal(signal.SIGINT)
    assert seen == [signal.SIGINT]


def test_other_threads_are_never_interrupted(seen: list[int]) -> None:
    before = [signal.getsignal(number) for number in INTERRUPTS]
    inside: list[object] = []

    def work() -> None:
        with Interrupts() as interrupts:
            inside.extend(signal.getsignal(number) for number in INTERRUPTS)
            interrupts.deliver()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert inside == before


@pytest.fixture
def interrupted() -> Iterator[None]:
    """INT, TERM and HUP raise, as they do in a command."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in INTERRUPTS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Processes that ``Popen`` made; the signal in front of the list comes once it made one."""
    real = subprocess.Popen._execute_child  # type: ignore[attr-defined]
    pids: list[int] = []

    def make(popen: subprocess.Popen[bytes], *args: object) -> None:
        real(popen, *args)
        number = pids[0]
        pids.append(popen.pid)
        signal.raise_signal(number)

    monkeypatch.setattr(subprocess.Popen, "_execute_child", make)
    return pids


@pytest.mark.parametrize("number", INTERRUPTS)
def test_interrupt_while_a_program_starts(
    number: signal.Signals, interrupted: None, started: list[int]
) -> None:
    """The process is there and ``Popen`` has not returned: it must not be left behind."""
    started.append(number)
    before = [signal.getsignal(one) for one in INTERRUPTS]
    with pytest.raises(KeyboardInterrupt):
        run([sys.executable, "-c", "import time; time.sleep(60)"], env={}, grace=5.0)
    assert not is_alive(started[1])
    assert [signal.getsignal(one) for one in INTERRUPTS] == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_interrupt_while_a_typed_program_starts(
    number: signal.Signals, interrupted: None, started: list[int]
) -> None:
    """Only this process was told: it tells the program, which does not see its time out."""
    started.append(number)
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_as_typed([sys.executable, "-c", "import time; time.sleep(20)"], env={})
    assert not is_alive(started[1])
    assert time.monotonic() - begin < 15


def test_ctrl_c_while_a_typed_program_starts(
    interrupted: None, started: list[int], tmp_path: Path
) -> None:
    """The terminal gives it to the program too: its end is waited for, and it is not stopped."""
    started.append(signal.SIGINT)
    code = f"import time; time.sleep(0.5); open({str(tmp_path / 'end')!r}, 'w').close()"
    with pytest.raises(KeyboardInterrupt):
        run_as_typed([sys.executable, "-c", code], env={})
    assert (tmp_path / "end").exists()
    assert not is_alive(started[1])


@pytest.mark.parametrize("start", [run, run_as_typed])
def test_interrupt_of_a_program_that_does_not_start(
    start: Callable[..., object],
    interrupted: None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """An interrupt that was held back is not forgotten."""

    def fail(*_args: object, **_more: object) -> None:
        signal.raise_signal(signal.SIGINT)
        raise FileNotFoundError(2, "No such file")

    monkeypatch.setattr(subprocess, "Popen", fail)
    with pytest.raises(KeyboardInterrupt):
        start([str(tmp_path / "none")], env={})


@pytest.mark.parametrize("start", [run, run_as_typed])
def test_programs_inherit_no_held_signal(
    start: Callable[..., object], interrupted: None, tmp_path: Path
) -> None:
    """Held back is not blocked: a tool that cannot be interrupted would go on for ever."""

    def signals_of(text: str) -> list[str]:
        return [line for line in text.splitlines() if line.startswith(("SigBlk", "SigIgn"))]

    shown, plain = tmp_path / "shown", tmp_path / "plain"
    cat = 'cat /proc/self/status > "$0"'
    start(["/bin/sh", "-c", cat, str(shown)], env=dict(os.environ))
    subprocess.run(["/bin/sh", "-c", cat, str(plain)], check=True)
    assert signals_of(shown.read_text()) == signals_of(plain.read_text()) != []


def test_term_alone_reaches_a_typed_program(tmp_path: Path) -> None:
    """A service manager tells the parent only; the tool must not outlive its grace unwarned."""
    parent = (
        "import sys\nfrom envlock.adapters.process import run_as_typed\n"
        "from envlock.cli import _interrupt_on\nimport signal\n_interrupt_on(signal.SIGTERM)\n"
        "code = \"print('up', flush=True); import time; time.sleep(20); print('late')\"\n"
        "try: run_as_typed([sys.executable, '-c', code], env={})\n"
        "except KeyboardInterrupt: sys.exit(130)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdout=subprocess.PIPE, start_new_session=True
    ) as both:
        assert both.stdout is not None
        assert both.stdout.readline() == b"up\n"
        both.terminate()
        assert both.wait(15) == 130
        assert both.stdout.read() == b""
