"""The one door to other programs, with children that misbehave."""

from __future__ import annotations

import _thread
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from envlock.adapters import process
from envlock.adapters.process import KEEP, Finished, last_lines, run, run_as_typed, while_waiting
from envlock.errors import ProgramFailed
from tests.support.processes import wait_until_gone

NOISY = """
import sys, threading
def write(stream, text):
    for _ in range(4000):
        stream.write(text * 100 + "\\n"); stream.flush()
threads = [threading.Thread(target=write, args=a) for a in ((sys.stdout, "o"), (sys.stderr, "e"))]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("the end")
"""
STUBBORN = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); "


def python(
    code: str,
    *,
    timeout: float | None = 30.0,
    grace: float = 5.0,
    env: dict[str, str] | None = None,
) -> Finished:
    return run(
        [sys.executable, "-c", code],
        env={"PATH": os.environ["PATH"]} if env is None else env,
        timeout=timeout,
        grace=grace,
    )


def test_both_streams_in_one() -> None:
    done = python("import sys; print('out'); sys.stdout.flush(); print('err', file=sys.stderr)")
    assert (done.code, done.output, done.dropped) == (0, "out\nerr\n", 0)
    assert not done.timed_out
    assert not done.unkillable


def test_noisy_on_both_streams() -> None:
    """Filling one pipe while the other is read is what hangs a careless parent."""
    done = python(NOISY)
    assert done.code == 0
    assert done.output.endswith("the end\n")


def test_a_hundred_megabytes_are_bounded() -> None:
    code = "import sys\nfor _ in range(100): sys.stdout.write('x' * 1_000_000)\nprint('end')"
    done = python(code)
    assert len(done.output) == KEEP
    assert done.output.endswith("xend\n")
    assert done.dropped + KEEP == 100_000_004


def test_output_of_exactly_what_is_kept() -> None:
    done = python(f"print('x' * {KEEP}, end='')")
    assert (len(done.output), done.dropped) == (KEEP, 0)


def test_output_that_is_no_text() -> None:
    done = python("import sys; sys.stdout.buffer.write(b'\\xff\\x00ok')")
    assert done.output == "\N{REPLACEMENT CHARACTER}\0ok"


@pytest.mark.parametrize("code", [0, 1, 77, 255])
def test_exit_code(code: int) -> None:
    assert python(f"raise SystemExit({code})").code == code


def test_ended_by_a_signal() -> None:
    assert python("import os; os.kill(os.getpid(), 11)").code == -signal.SIGSEGV


def test_no_input() -> None:
    assert python("print(repr(input()) if 0 else open(0).read() == '')").output == "True\n"


def test_environment_is_the_whole_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAK", "yes")
    done = python(
        "import os; print(os.environ.get('LEAK'), os.environ['GIVEN'])", env={"GIVEN": "1"}
    )
    assert done.output == "None 1\n"


def test_folder(tmp_path: Path) -> None:
    done = run([sys.executable, "-c", "import os; print(os.getcwd())"], env={}, cwd=str(tmp_path))
    assert done.output == f"{os.path.realpath(tmp_path)}\n"


def test_time_limit_begins_with_term() -> None:
    code = (
        "import signal, sys, time\n"
        "signal.signal(15, lambda *_: (print('tidy', flush=True), sys.exit(3)))\n"
        "print('up', flush=True); time.sleep(60)"
    )
    done = python(code, timeout=2.0)
    assert done.timed_out
    assert done.output == "up\ntidy\n"
    assert done.code == 3
    assert done.seconds < 10


def test_time_limit_ends_with_kill() -> None:
    done = python(STUBBORN + "time.sleep(60)", timeout=1.0, grace=0.3)
    assert done.timed_out
    assert done.code == -signal.SIGKILL
    assert not done.unkillable
    assert 1.3 <= done.seconds < 10


def test_stopping_reaches_grandchildren(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(note)!r}, 'w').write(str(child.pid)); time.sleep(60)"
    )
    assert python(code, timeout=2.0, grace=0.3).timed_out
    wait_until_gone(int(note.read_text()))


def test_grandchild_that_holds_the_pipe_does_not_hang(tmp_path: Path) -> None:
    """The program has ended: what it left behind is not waited for, and does not stay."""
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print(child.pid)"
    )
    done = python(code)
    assert done.code == 0
    assert done.seconds < 10
    wait_until_gone(int(done.output))


def test_child_that_closes_its_output_and_goes_on() -> None:
    done = python("import os, time; os.close(1); os.close(2); time.sleep(0.5); os._exit(4)")
    assert done.code == 4
    assert done.seconds >= 0.5


def test_unkillable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child in uninterruptible sleep cannot be made here: KILL is made to do nothing."""
    real = process._signal_group
    sent: list[int] = []

    def deaf(child: subprocess.Popen[bytes], number: int) -> None:
        sent.append(number)
        if len(sent) > 2:  # the last one, on closing, goes through
            real(child, number)

    monkeypatch.setattr(process, "_signal_group", deaf)
    monkeypatch.setattr(process, "LAST_GRACE", 0.2)
    with pytest.warns(ResourceWarning, match="still running"):
        done = python("import time; time.sleep(60)", timeout=0.2, grace=0.2)
        gc.collect()
    assert (done.unkillable, done.timed_out, done.code) == (True, True, -signal.SIGKILL)
    assert sent == [signal.SIGTERM, signal.SIGKILL, signal.SIGKILL]


@pytest.mark.parametrize("start", [run, run_as_typed])
def test_missing_program(start: object, tmp_path: Path) -> None:
    plain = tmp_path / "plain.txt"
    plain.write_text("text")
    for path, why in ((tmp_path / "none", "No such file"), (plain, "Permission denied")):
        with pytest.raises(ProgramFailed, match=f"cannot be started: {why}") as caught:
            start([str(path)], env={})  # type: ignore[operator]
        assert caught.value.exit_code == 5
        assert caught.value.hint


def test_descriptor_is_inherited(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as file:
        number = file.fileno()
        argv = [sys.executable, "-c", f"import os; os.write({number}, b'held')"]
        assert run(argv, env={}, pass_fds=[number]).code == 0
        assert run(argv, env={}).code == 1
    assert (tmp_path / "lock").read_text() == "held"


def test_interrupt_kills_the_group(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = STUBBORN + f"import os; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(60)"

    def interrupt() -> None:
        deadline = time.monotonic() + 20
        while not (note.exists() and note.read_text()) and time.monotonic() < deadline:
            time.sleep(0.02)
        _thread.interrupt_main()

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        python(code, timeout=None, grace=0.3)
    wait_until_gone(int(note.read_text()))


def test_work_while_a_program_runs(tmp_path: Path) -> None:
    """It is done before the program has to end, and a noisy program does not wait for all of it."""
    note = tmp_path / "note"
    code = (
        f"import os, time\nprint('x' * 1_000_000)\n"
        f"while not os.path.exists({str(note)!r}): time.sleep(0.01)\nprint('end')"
    )

    def work() -> Iterator[None]:
        for number in range(1_000_000_000):
            if number == 3:
                note.touch()
            yield

    steps = work()
    with while_waiting(steps):
        done = python(code)
    assert (done.code, done.output[-5:]) == (0, "\nend\n")
    left = next(steps, "over")
    python("pass")
    assert left is None
    assert next(steps, "over") is None


def test_work_that_fails_stops_the_program(tmp_path: Path) -> None:
    note = tmp_path / "pid"

    def work() -> Iterator[None]:
        while not (note.exists() and note.read_text()):
            time.sleep(0.01)
            yield
        raise LookupError

    code = f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    with pytest.raises(LookupError), while_waiting(work()):
        python(code)
    wait_until_gone(int(note.read_text()))


@pytest.mark.parametrize(
    ("code", "shell"), [("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 15)", 143)]
)
def test_as_typed(code: str, shell: int) -> None:
    assert run_as_typed([sys.executable, "-c", code], env={}) == shell


def test_as_typed_uses_the_callers_streams(capfd: pytest.CaptureFixture[str]) -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr)"
    assert run_as_typed([sys.executable, "-c", code], env={}) == 0
    assert capfd.readouterr() == ("out\n", "err\n")


def test_as_typed_lets_the_program_tidy_up(tmp_path: Path) -> None:
    """Ctrl-C reaches both; a tool in the middle of an uninstall puts back what it moved."""
    note = tmp_path / "tidy"
    tool = (
        "import time\n"
        "try:\n print('up', flush=True); time.sleep(60)\n"
        f"except KeyboardInterrupt:\n time.sleep(1); open({str(note)!r}, 'w').write('done')"
    )
    parent = (
        "import sys\nfrom envlock.adapters.process import run_as_typed\n"
        f"try: run_as_typed([sys.executable, '-c', {tool!r}], env={{}})\n"
        "except KeyboardInterrupt: sys.exit(130)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdout=subprocess.PIPE, start_new_session=True
    ) as both:
        assert both.stdout is not None
        assert both.stdout.readline() == b"up\n"
        os.killpg(both.pid, signal.SIGINT)
        assert both.wait(20) == 130
    assert note.read_text() == "done"


@pytest.mark.parametrize(
    ("output", "line"),
    [("", ""), ("\n \n", ""), ("a\n\n b \nc\n\nd\n", "b | c | d"), ("a", "a")],
)
def test_last_lines(output: str, line: str) -> None:
    assert last_lines(output) == line
