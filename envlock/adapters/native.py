"""envlock's own backend: every member inflated, checked, hashed and written in one pass."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from envlock.adapters.files import Hashed
from envlock.adapters.installer import Pinned
from envlock.adapters.native_wheel import Wheel, finish, opened, plan_tasks, read_wheel
from envlock.adapters.native_write import Damaged, Task, write_members
from envlock.adapters.zipmember import DAMAGED
from envlock.errors import ProgramFailed
from envlock.model.facts import Target

_FAULTS: tuple[type[Exception], ...] = (*DAMAGED, Damaged)


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeStager:
    """Stages with threads of this process: no program is started, no setting of pip or uv is read.

    The lock needs no heir, since the threads end with the process.
    """

    name: str = "native"

    def stage(
        self, wheels: Sequence[Pinned], target: Target, stage: str, lock: int | None
    ) -> Mapping[str, Hashed]:
        """See :class:`envlock.adapters.installer.Stager`.

        Raises:
            OSError: a file of the stage cannot be written, or a wheel cannot be opened.
        """
        try:
            with ExitStack() as stack:
                return _stage(wheels, target, stage, stack)
        except Damaged as error:
            raise ProgramFailed(f"native: {error}", "try again with --backend uv") from error


def _stage(
    wheels: Sequence[Pinned], target: Target, stage: str, stack: ExitStack
) -> dict[str, Hashed]:
    layout = target.layout.moved(stage)
    read: list[tuple[Wheel, Sequence[Task]]] = []
    for pinned in wheels:
        descriptor = stack.enter_context(opened(pinned))
        with _about(pinned):
            wheel = read_wheel(pinned, descriptor, layout)
            read.append((wheel, plan_tasks(wheel, target.executable)))
    tasks = [task for _, some in read for task in some]
    written = {one.path: one for one in write_members(tasks)}
    for wheel, some in read:
        for folder in _own_folders(wheel):
            os.makedirs(folder, exist_ok=True)
        finish(wheel, [written[task.path] for task in some], target.executable)
        with _about(wheel.pinned):
            wheel.check()
    return {
        task.path: Hashed(written[task.path].digest.hex(), written[task.path].size, task.executable)
        for task in tasks
    }


def _own_folders(wheel: Wheel) -> Iterator[str]:
    yield os.path.join(wheel.site, wheel.dist_info)
    if wheel.scripts:
        yield wheel.folders["scripts"]


@contextmanager
def _about(pinned: Pinned) -> Iterator[None]:
    """Says which wheel it was.

    Raises:
        Damaged: for whatever damaged bytes lead to.
    """
    try:
        yield
    except _FAULTS as error:
        file = os.path.basename(pinned.path)
        raise Damaged(f"'{file}': {error or type(error).__name__}") from error
