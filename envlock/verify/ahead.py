"""Runs checks that do not disturb each other several at a time; their results are taken in order.

Most of a check's time goes into importing torch and into the reference on the processor, while the
device waits. What measures speed or takes much of the device's memory runs alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor

from envlock.adapters.process import while_waiting
from envlock.model.check import BAD, Check, CheckResult, Status, base_id

#: Most at one time; processors, and bytes of the device's memory, that each has to itself.
MOST, PROCESSORS, MEMORY = 8, 2, 8 << 30
#: Fewer processors than this have enough to do with one check.
FEWEST = 8
_FAMILIES = frozenset({"smoke", "num", "sdpa", "fa", "tri", "cmp", "trn"})
#: They look at how much memory is left or taken, or need much of it.
ALONE = frozenset({"num.poison", "num.large_index", "sdpa.no_math", "tri.offsets", "fa.race"})
_TICK = 0.02  # seconds between two looks at whether the run was given up
#: What may have taken others with it.
_HARSH = frozenset({Status.CRASHED, Status.TIMEOUT, Status.UNKILLABLE})

Run = Callable[[Check], CheckResult]


class GivenUp(Exception):
    """The whole run ends; nobody wants the result."""


def width(processors: int, free: int | None) -> int:
    """How many checks at a time: 1 where there are few processors or little or unknown memory.

    Args:
        processors: that this process may use.
        free: bytes of memory of the smallest device; None where it is not known, or somebody
            uses it.
    """
    if processors < FEWEST or free is None:
        return 1
    return max(1, min(MOST, processors // PROCESSORS, free // MEMORY))


def may_share(check: Check) -> bool:
    """Whether others may run at the same time."""
    name = base_id(check.id)
    return bool(check.script) and name.partition(".")[0] in _FAMILIES and name not in ALONE


class Ahead:
    """Children that were started before their turn.

    All that may share are started when the first of them has its turn. When one that has to be
    alone has its turn, all of them have ended.
    """

    def __init__(
        self,
        beside: Callable[[int], Run],
        alone: Run,
        checks: Sequence[Check],
        workers: Callable[[], int],
    ) -> None:
        """beside: gives what runs a check beside so many; alone: with the machine to itself.

        workers: asked when the first check that may share has its turn.
        """
        self._beside, self._alone, self._checks = beside, alone, checks
        self._workers, self._asked = workers, False
        self._run = alone
        self._pool: ThreadPoolExecutor | None = None
        self._started: dict[str, Future[CheckResult]] = {}
        self._stopped = threading.Event()

    def take(self, check: Check) -> CheckResult:
        """The result of a check whose turn it is."""
        if not may_share(check) or not self._is_open():
            self.wait()
            return self._alone(check)
        result = self._started[check.id].result()
        bad = result.status in BAD or result.status is Status.ERROR
        if bad and self._was_disturbed(check, result):
            return self._alone(check)
        return result

    def wait(self) -> None:
        """Until nothing runs."""
        for name in self._started:
            self._ended(name)

    def drop(self, check: Check) -> None:
        """Its result is not wanted: something before it failed."""
        if check.id in self._started:
            self._started[check.id].cancel()

    def stop(self) -> None:
        """Ends what still runs."""
        self._stopped.set()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def _is_open(self) -> bool:
        if not self._asked:
            self._asked, workers = True, self._workers()
            if workers > 1:
                self._run = self._beside(workers)
                self._pool = ThreadPoolExecutor(workers)
                sharing = (check for check in self._checks if may_share(check))
                self._started = {c.id: self._pool.submit(self._in_a_thread, c) for c in sharing}
        return self._pool is not None

    def _in_a_thread(self, check: Check) -> CheckResult:
        with while_waiting(self._heed()):
            return self._run(check)

    def _heed(self) -> Iterator[None]:
        while not self._stopped.wait(_TICK):
            yield
        raise GivenUp

    def _was_disturbed(self, check: Check, result: CheckResult) -> bool:
        """Whether another may be the reason: none is left running where this is asked."""
        if not _lacked_memory(result) and result.status in _HARSH:
            return False
        others = [self._ended(name) for name in self._started if name != check.id]
        return _lacked_memory(result) or any(o and o.status in _HARSH for o in others)

    def _ended(self, name: str) -> CheckResult | None:
        try:
            return self._started[name].result()
        except CancelledError:
            return None


def _lacked_memory(result: CheckResult) -> bool:
    reasons = (result.reason, *(case.reason for case in result.cases))
    return any("out of memory" in reason.lower() for reason in reasons)
