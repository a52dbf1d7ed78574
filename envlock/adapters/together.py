"""Programs that are asked at the same time, with one limit for all of them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from envlock.adapters import process
from envlock.adapters.machine import under
from envlock.errors import ProgramFailed
from envlock.model.devices import plain

#: Seconds between TERM and KILL, and for what is left when the time is over.
_GRACE = 0.1
_LATE = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Command lines that ask the same, the best first.

    Attributes:
        tries: the next is run where one does not answer.
        enough: whether an output, without colours, is an answer.
    """

    tries: tuple[tuple[str, ...], ...]
    enough: Callable[[str], bool] = bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of a question.

    Attributes:
        program: path of the one that answered, or that was asked last.
        text: the answer; empty when there is none.
        said: the last output that was no answer.
        hung: the program was stopped, or outlived that.
        seconds: that there were.
    """

    program: str = ""
    text: str = ""
    said: str = ""
    hung: bool = False
    seconds: float = 0.0


@dataclass(slots=True)
class _Asking:
    question: Question
    env: Mapping[str, str]
    seconds: float
    answer: Answer = field(default_factory=Answer)

    def work(self) -> None:
        deadline = time.monotonic() + self.seconds
        for argv in self.question.tries:
            left = deadline - time.monotonic()
            if left <= 0:
                break
            # until it has answered it is the one that hangs
            self.answer = Answer(program=argv[0], hung=True, seconds=self.seconds)
            try:
                done = process.run(argv, env=self.env, timeout=left, grace=_GRACE)
            except ProgramFailed as error:
                self.answer = Answer(program=argv[0], said=error.message)
                continue
            if done.timed_out:
                break
            text = plain(done.output)
            if done.code == 0 and self.question.enough(text):
                self.answer = Answer(program=argv[0], text=text)
                break
            self.answer = Answer(program=argv[0], said=process.last_lines(text, 1))


def ask_together(
    questions: Mapping[str, Question], env: Mapping[str, str], seconds: float
) -> dict[str, Answer]:
    """Asks all at once.

    Args:
        seconds: for everything, also for ending what does not answer. A program that even KILL does
            not end (one that waits for a device does not) is left behind and not waited for.

    Returns:
        One answer for each question, by its name.
    """
    budget = max(0.1, seconds - _GRACE - _LATE)
    asked = {name: _Asking(one, env, budget) for name, one in questions.items()}
    threads = [threading.Thread(target=one.work, daemon=True) for one in asked.values()]
    end = time.monotonic() + seconds
    try:
        for thread in threads:
            thread.start()
    finally:  # interrupted or not: nothing is left running that could be ended
        _wait(threads, end)
    return {name: one.answer for name, one in asked.items()}


def _wait(threads: Sequence[threading.Thread], end: float) -> None:
    """For those that were started, interrupted or not."""
    left = [thread for thread in threads if thread.ident is not None]
    try:
        for thread in left:
            thread.join(max(0.0, end - time.monotonic()))
    except BaseException:
        for thread in left:
            thread.join(max(0.0, end - time.monotonic()))
        raise


def paths_of(name: str, folders: Sequence[str], below: str = "/") -> tuple[str, ...]:
    """Every program of a name that is in one of the folders, in their order; once, where several
    folders lead to it.

    Args:
        folders: as on the machine; what is no absolute path is left out.
        below: the folder that stands for ``/``.
    """
    absolute = (under(below, one) for one in folders if os.path.isabs(one))
    found: dict[str, str] = {}
    for path in (os.path.join(folder, name) for folder in absolute):
        if os.path.isfile(path) and os.access(path, os.X_OK):
            found.setdefault(os.path.realpath(path), path)
    return tuple(found.values())
