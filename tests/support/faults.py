"""A restore on a small file system that turns against it at a given step.

usage: python -m tests.support.faults FAULT AT PREFIX WHEELS

PREFIX is a venv in which something has to be restored from WHEELS. FAULT is ``full`` (no bytes
left), ``inodes`` (none left), ``read-only`` (remounted), ``closed`` (no right to write) or
``immutable``. AT is ``stage``, ``journal``, ``swap``, ``commit``, or the number of a move. Prints
one JSON document: exit codes and texts, and whether the tree is the old one, before and after the
fault is mended and ``--recover`` was run.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from envlock.adapters import moving
from envlock.restore import run
from envlock.restore.transaction import Transaction
from tests.support.worlds import World, tree


def fill(world: World) -> None:
    with contextlib.suppress(OSError), open(world.prefix.parent / "filler", "wb", 0) as file:
        while True:
            file.write(bytes(4096))


def use_up(world: World) -> None:
    folder = world.prefix.parent / "filler.d"
    folder.mkdir()
    with contextlib.suppress(OSError):
        for number in range(1_000_000):
            (folder / str(number)).touch()


def remount(options: str) -> Callable[[World], None]:
    def act(world: World) -> None:
        there = str(world.prefix.parent)
        subprocess.run(["mount", "-o", f"remount,{options}", there], check=True)

    return act


def close(mode: int) -> Callable[[World], None]:
    def act(world: World) -> None:
        os.chmod(world.site, mode)

    return act


def immutable(sign: str) -> Callable[[World], None]:
    def act(world: World) -> None:
        subprocess.run(["chattr", f"{sign}i", str(world.site)], check=True)

    return act


def free(world: World) -> None:
    subprocess.run(f"rm -rf '{world.prefix.parent}'/filler*", shell=True, check=True)


FAULTS: dict[str, tuple[Callable[[World], None], Callable[[World], None]]] = {
    "full": (fill, free),
    "inodes": (use_up, free),
    "read-only": (remount("ro"), remount("rw")),
    "closed": (close(0o555), close(0o755)),
    "immutable": (immutable("+"), immutable("-")),
}


def arm(at: str, act: Callable[[], None]) -> None:
    """Calls ``act`` once, before a step."""
    armed = [True]

    def once() -> None:
        if armed:
            armed.pop()
            act()

    def before(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def step(*args: Any) -> Any:
            once()
            return real(*args)

        setattr(owner, name, step)

    if at == "stage":
        before(run, "unpack")
    elif at == "journal":
        before(Transaction, "write_journal")
    elif at in ("swap", "commit"):
        before(Transaction, at)
    else:
        real, calls = moving.move, [0]

        def move(source: str, target: str) -> None:
            calls[0] += 1
            if calls[0] == int(at):
                once()
            real(source, target)

        moving.move = move


def said(call: Callable[[], int]) -> tuple[int, str]:
    text = io.StringIO()
    with contextlib.redirect_stderr(text), contextlib.redirect_stdout(io.StringIO()):
        code = call()
    return code, text.getvalue()


def main(fault: str, at: str, prefix: str, wheels: str) -> None:
    world = World(Path(prefix, "bin/python"), Path(wheels))
    world.site.stat()
    harm, mend = FAULTS[fault]
    before = tree(world.prefix)
    left_out = ("__pycache__", ".envlock-txn")
    arm(at, lambda: harm(world))
    code, text = said(world.restore)
    same = tree(world.prefix, left_out) == before
    mend(world)
    recovered, told = said(lambda: world.run("restore", "--recover"))
    found = tree(world.prefix)
    after = found == before
    differs = sorted(found.items() ^ before.items())
    again, last = said(world.restore)
    right, _ = said(lambda: world.restore("--plan"))
    answer = {
        "code": code, "text": text, "same": same, "recovered": recovered, "told": told,
        "after": after, "again": again, "last": last, "right": right,
        "differs": differs,
    }  # fmt: skip
    print(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
