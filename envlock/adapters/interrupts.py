"""What a person or a machine interrupts a run with, held back until somebody can act on it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType

#: What ends a run early. Windows has no HUP.
INTERRUPTS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)

_Handler = Callable[[int, FrameType | None], object]


class Interrupts:
    """Keeps interrupts from being raised until :meth:`deliver`, and remembers which came.

    Python calls a handler between any two steps of its own code. One that raises while ``Popen``
    has made a process and not returned it leaves a process that nobody waits for or stops.

    Nothing is blocked or ignored: a program that is started would inherit that, and a mask is one
    thread's while the kernel picks any. What is ignored or has no handler of Python stays so. Only
    the main thread is ever interrupted; in another one this does nothing.

    Attributes:
        came: numbers of the signals that came, in order.
    """

    def __init__(self) -> None:
        self.came: list[int] = []
        self._holding = False
        self._before: dict[int, _Handler] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            found = {number: signal.getsignal(number) for number in INTERRUPTS}
            self._before = {int(n): handler for n, handler in found.items() if callable(handler)}
        # until all are in place a signal acts as before, so that one that comes now leaves nothing
        # behind but a handler that passes it on
        for number in self._before:
            signal.signal(number, self._note)
        self._holding = True
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.came.append(number)
        if not self._holding:
            self._before[number](number, frame)

    def deliver(self) -> None:
        """Acts on what came, and at once on what comes from now on."""
        self._holding = False
        for number in tuple(self.came):
            self._before[number](number, None)

    def __exit__(self, *_: object) -> None:
        held, self._holding = self._holding, False
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if held:  # nothing was started: they are not lost
            self.deliver()
