"""What holds a restore together: the target's lock, one interrupt, and an end that is whole."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from envlock.adapters.interrupts import INTERRUPTS
from envlock.adapters.locking import HeldError, lock_folder, refusal
from envlock.errors import EnvlockError, RestoreFailed, UndoIncomplete, UnusableInput
from envlock.model.facts import Target
from envlock.restore.transaction import Transaction


@contextmanager
def locked(target: Target) -> Iterator[int]:
    """Holds the target's one lock; yields a descriptor of it that children may inherit.

    Raises:
        UnusableInput: somebody else holds it, or purelib cannot be opened.
    """
    purelib = os.path.realpath(target.layout.purelib)
    try:
        lock = lock_folder(purelib)
    except OSError as error:
        raise UnusableInput(
            f"target: '{purelib}' cannot be locked: {error.strerror}", "name another target"
        ) from error
    except HeldError as error:
        raise refusal(purelib, error) from error
    try:
        yield lock.descriptor
    finally:
        lock.release()


@contextmanager
def one_interrupt() -> Iterator[Callable[[], None]]:
    """INT, TERM and HUP interrupt the block once; yields a function after which they do not.

    By handlers and not by a mask: a mask is one thread's, the kernel gives the signal to another
    one (a progress bar has one), and Python then interrupts the main thread all the same.
    """
    held = False

    def hold() -> None:
        nonlocal held
        held = True

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        nonlocal held
        if not held:
            held = True
            raise KeyboardInterrupt

    main = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in INTERRUPTS} if main else {}
    try:
        for number, handler in before.items():
            if handler not in (signal.SIG_IGN, None):
                signal.signal(number, interrupt)
        yield hold
    finally:
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, handler)


@contextmanager
def all_or_nothing(transaction: Transaction) -> Iterator[list[str]]:
    """Commits when the block ends well, undoes everything when it does not.

    Yields:
        A list that holds, afterwards, the paths that could not be deleted.
    """
    left: list[str] = []
    begun = False
    with one_interrupt() as hold:
        try:
            transaction.begin()
            begun = True
            yield left
            hold()  # an interrupt after the commit must not undo it
            transaction.commit()
        except BaseException as error:
            try:  # noqa: SIM105  # entering suppress() could itself be interrupted
                hold()  # an undo that is interrupted is no undo
            except KeyboardInterrupt:
                pass  # came on the way there, and there is none after it
            transaction.undo()
            raise _and_what_stays(_as_failure(error, transaction, begun), transaction) from error
        left += transaction.finish()


def _as_failure(error: BaseException, transaction: Transaction, begun: bool) -> BaseException:
    """What is said once everything is as it was: a failed restore, whatever failed in it."""
    if isinstance(error, OSError) and not begun:
        return UnusableInput(
            f"target: '{transaction.site}' cannot be written: {error.strerror}",
            "run as the user who owns it, or name another target",
        )
    if isinstance(error, OSError):
        return RestoreFailed(
            f"restore: {error.filename or transaction.site}: {error.strerror or error}; "
            "the target is as it was",
            "make room or mend the permissions, and run it again",
        )
    if isinstance(error, EnvlockError) and not isinstance(error, RestoreFailed | UndoIncomplete):
        return RestoreFailed(f"restore: {error.message}; the target is as it was", error.hint)
    return error


def _and_what_stays(error: BaseException, transaction: Transaction) -> BaseException:
    """The same, with a word for a folder that could not be deleted after the undo: the next
    command will find it, and it holds nothing that is needed."""
    if not isinstance(error, RestoreFailed) or not os.path.lexists(transaction.folder):
        return error
    return RestoreFailed(
        f"{error.message}, but '{transaction.folder}' could not be deleted",
        "mend the permissions, and run 'envlock restore --recover'",
    )
