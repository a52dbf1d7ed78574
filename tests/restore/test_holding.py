"""One interrupt, one lock, one end."""

from __future__ import annotations

import errno
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from envlock.errors import RestoreFailed, UnusableInput
from envlock.model.facts import Target
from envlock.restore.holding import all_or_nothing, locked, one_interrupt
from envlock.restore.transaction import Changes, Transaction, open_transaction


@pytest.fixture
def another_thread() -> Iterator[None]:
    """A progress bar has a thread of its own, and the kernel may give the signal to that one."""
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    yield
    stop.set()
    thread.join()


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)
    time.sleep(0.01)  # Python runs the handler between two instructions


@pytest.fixture
def transaction(tmp_path: Path) -> Transaction:
    return open_transaction(str(tmp_path))


@pytest.mark.usefixtures("another_thread")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_second_interrupt_waits_for_the_undo(
    transaction: Transaction, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, undone = Transaction.undo, []

    def undo(self: Transaction) -> list[str]:
        send(number)
        send(signal.SIGINT)
        left = real(self)
        undone.append(self.folder)
        return left

    monkeypatch.setattr(Transaction, "undo", undo)
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), all_or_nothing(transaction):
        send(number)
    assert undone == [transaction.folder]
    assert not os.path.exists(transaction.folder)
    assert signal.getsignal(number) == before


@pytest.mark.usefixtures("another_thread")
def test_interrupt_after_the_commit_changes_nothing(
    transaction: Transaction, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Transaction.finish

    def finish(self: Transaction) -> list[str]:
        send(signal.SIGTERM)
        return real(self)

    monkeypatch.setattr(Transaction, "finish", finish)
    with all_or_nothing(transaction):
        transaction.write_journal(Changes())
    assert not os.path.exists(transaction.folder)


def test_ignored_signals_stay_ignored() -> None:
    """As under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with one_interrupt():
            send(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_other_threads_may_restore(transaction: Transaction) -> None:
    """Handlers can be set in the main thread alone."""
    done = []

    def work() -> None:
        with all_or_nothing(transaction):
            transaction.write_journal(Changes())
        done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]


def test_folder_that_is_made_half_is_taken_away(
    transaction: Transaction, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.mkdir

    def mkdir(path: str, mode: int = 0o777) -> None:
        if path.endswith("stash"):
            raise OSError(errno.ENOSPC, "No space left on device", path)
        real(path, mode)

    monkeypatch.setattr(os, "mkdir", mkdir)
    said = "cannot be written: No space left"
    with pytest.raises(UnusableInput, match=said), all_or_nothing(transaction):
        raise AssertionError("not reached")
    assert not os.path.lexists(transaction.folder)


def test_interrupt_while_the_folder_is_made(
    transaction: Transaction, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Transaction.begin

    def begin(self: Transaction) -> None:
        real(self)
        send(signal.SIGINT)

    monkeypatch.setattr(Transaction, "begin", begin)
    with pytest.raises(KeyboardInterrupt), all_or_nothing(transaction):
        raise AssertionError("not reached")
    assert not os.path.lexists(transaction.folder)


def test_disk_that_is_full_at_the_commit(
    transaction: Transaction, monkeypatch: pytest.MonkeyPatch
) -> None:
    from envlock.adapters import files

    real = files.append_line

    def full(path: str, line: str) -> None:
        if line == "commit":
            raise OSError(errno.ENOSPC, "No space left on device", path)
        real(path, line)

    monkeypatch.setattr(files, "append_line", full)
    said = "No space left on device; the target is as it was"
    with pytest.raises(RestoreFailed, match=said), all_or_nothing(transaction):
        transaction.write_journal(Changes())
    assert not os.path.lexists(transaction.folder)


@pytest.fixture
def target(tmp_path: Path) -> Target:
    from tests.support.fake_manifest import fake_layout

    return Target(
        executable="python", source="test", python="3.11.7", markers={}, tags=(),
        layout=fake_layout(tmp_path), sys_path=(), glibc=None, venv=True, pip=None,
        externally_managed=None,
    )  # fmt: skip


def test_site_packages_that_is_not_there(target: Target) -> None:
    layout = replace(target.layout, purelib=target.layout.purelib + "/none")
    with pytest.raises(UnusableInput, match="No such file"), locked(replace(target, layout=layout)):
        raise AssertionError("not reached")
