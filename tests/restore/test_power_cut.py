"""A power cut at any moment: what no sync covers is lost, or not, in any combination.

The operations of one restore are logged from the moment its journal is on the disk. Then the disk
is built as it may be after a cut: everything before the last sync, and any part of what came after
it. ``--recover`` has to find the old environment or the new one there.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from envlock.adapters import files
from envlock.restore.transaction import Changes, Transaction, open_transaction
from tests.support.worlds import World, tree

pytestmark = pytest.mark.integration

Step = Callable[[Path], None]


@dataclass
class Log:
    """What a restore did to the disk; paths relative to the prefix.

    Attributes:
        steps: the operations, and None for each sync.
        start: a copy of the prefix when the journal had been written.
    """

    prefix: Path
    steps: list[Step | None] = field(default_factory=list)
    start: Path | None = None
    quiet: int = 0

    def add(self, step: Step | None) -> None:
        if self.start is not None and not self.quiet:
            self.steps.append(step)

    def inside(self, path: str) -> str:
        return os.path.relpath(os.path.abspath(path), self.prefix)


def record(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs every change that the transaction makes from its journal on."""
    record_names(log, monkeypatch)
    record_doors(log, monkeypatch)
    write_journal = Transaction.write_journal

    def logged_journal(self: Transaction, changes: Changes) -> None:
        write_journal(self, changes)
        log.start = log.prefix.with_name("start")
        copy(log.prefix, log.start)

    monkeypatch.setattr(Transaction, "write_journal", logged_journal)


def record_names(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the transaction asks of the operating system itself."""
    rename, mkdir, rmdir = os.rename, os.mkdir, os.rmdir

    def logged_rename(one: str, other: str) -> None:
        rename(one, other)
        a, b = log.inside(one), log.inside(other)
        log.add(lambda root: rename(root / a, root / b))

    def logged_mkdir(path: str, mode: int = 0o777) -> None:
        mkdir(path, mode)
        a = log.inside(path)
        log.add(lambda root: mkdir(root / a, mode))

    def logged_rmdir(path: str, **more: int) -> None:
        rmdir(path, **more)
        if not more:
            a = log.inside(path)
            log.add(lambda root: rmdir(root / a))

    monkeypatch.setattr(os, "rename", logged_rename)
    monkeypatch.setattr(os, "mkdir", logged_mkdir)
    monkeypatch.setattr(os, "rmdir", logged_rmdir)


def record_doors(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes through the files door: whole trees that go, the journal's lines, syncs."""
    remove_tree, append, sync = files.remove_tree, files.append_line, files.sync_filesystem

    def logged_remove(path: str) -> list[str]:
        a = log.inside(path)
        for one in below(Path(path)) if os.path.lexists(path) else ():
            log.add(lambda root, one=one: remove_one(root / a / one))  # type: ignore[misc]
        log.quiet += 1
        try:
            return remove_tree(path)
        finally:
            log.quiet -= 1

    def logged_append(path: str, line: str) -> None:
        append(path, line)
        a = log.inside(path)
        log.add(lambda root: append(str(root / a), line))
        log.add(None)  # it is on the disk when it returns

    def logged_sync(path: str) -> None:
        sync(path)
        log.add(None)

    monkeypatch.setattr(files, "remove_tree", logged_remove)
    monkeypatch.setattr(files, "append_line", logged_append)
    monkeypatch.setattr(files, "sync_filesystem", logged_sync)


def below(path: Path) -> list[str]:
    """Everything that goes with a path, innermost first; the path itself is ``.``."""
    found = []
    if path.is_dir() and not path.is_symlink():
        for root, folders, names in os.walk(path, topdown=False):
            found += [os.path.relpath(os.path.join(root, name), path) for name in names]
            found += [os.path.relpath(os.path.join(root, name), path) for name in folders]
    return [*found, "."]


def remove_one(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink()


def copy(one: Path, other: Path) -> None:
    subprocess.run(["cp", "-a", str(one), str(other)], check=True)


def disk_after_a_cut(log: Log, moment: int, lost: Callable[[int], bool], there: Path) -> None:
    """Builds what may be left when the power goes after ``moment`` operations.

    Args:
        lost: whether an operation that no sync covers is lost, by its number.
    """
    assert log.start is not None
    copy(log.start, there)
    synced = max((i for i in range(moment) if log.steps[i] is None), default=-1)
    for i, step in enumerate(log.steps[:moment]):
        if step is not None and (i < synced or not lost(i)):
            with suppress(OSError):  # what it would have acted on is not there
                step(there)


def at_random(rng: random.Random) -> Callable[[int], bool]:
    """Each operation is lost with one probability, which differs from cut to cut."""
    share = rng.choice((0.0, 0.1, 0.5, 1.0))
    return lambda _number: rng.random() < share


def recover(prefix: Path, site: str) -> None:
    transaction = open_transaction(str(prefix / site))
    if not os.path.lexists(transaction.folder):
        return
    journal = transaction.read()
    if journal is not None and journal.committed:
        transaction.finish()
    else:
        transaction.undo()


@dataclass(frozen=True)
class Story:
    """A restore's log, and the two environments that may be found after it."""

    log: Log
    old: Mapping[str, str]
    new: Mapping[str, str]
    site: str


@pytest.fixture
def story(broken: World, monkeypatch: pytest.MonkeyPatch) -> Story:
    site = os.path.relpath(os.path.realpath(broken.site), broken.prefix)
    # a file of nobody: its folder is not renamed whole, and files take the place of files
    (broken.site / "torch/mine.txt").write_text("mine\n")
    old = tree(broken.prefix)
    log = Log(broken.prefix)
    with monkeypatch.context() as patched:
        record(log, patched)
        assert broken.restore("-q") == 0
    new = tree(broken.prefix)
    assert log.start is not None
    assert None in log.steps
    assert old != new
    return Story(log, old, new, site)


def kind_after(story: Story, moment: int, lost: Callable[[int], bool], there: Path) -> str:
    """``old``, ``new`` or ``mixed``: what recovery makes of a cut."""
    disk_after_a_cut(story.log, moment, lost, there)
    recover(there, story.site)
    found = tree(there)
    shutil.rmtree(there)
    return "old" if found == story.old else "new" if found == story.new else "mixed"


def test_every_moment(story: Story, tmp_path: Path) -> None:
    rng = random.Random(1)
    moments = range(len(story.log.steps) + 1)
    found = [kind_after(story, moment, at_random(rng), tmp_path / "cut") for moment in moments]
    assert set(found) == {"old", "new"}


def test_one_operation_is_lost(story: Story, tmp_path: Path) -> None:
    """Everything before a sync is on the disk, but for one: a new file over an old one, say, whose
    own move into the stash is not."""
    steps = story.log.steps
    for end in (i for i, step in enumerate(steps) if step is None):
        begin = max((i for i in range(end) if steps[i] is None), default=-1) + 1
        for one in range(begin, end):
            assert kind_after(story, end, one.__eq__, tmp_path / "cut") in ("old", "new"), one


@pytest.mark.long
def test_every_moment_often(
    story: Story, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(2)
    counts = {"old": 0, "new": 0, "mixed": 0}
    for moment in range(len(story.log.steps) + 1):
        for _ in range(25):
            counts[kind_after(story, moment, at_random(rng), tmp_path / "cut")] += 1
    with capsys.disabled():
        print(f"\npower cuts: {counts}")
    assert counts["mixed"] == 0
    assert sum(counts.values()) >= 300


def test_cut_during_the_recovery(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The undo of a cut restore is cut itself, at every moment."""
    rng = random.Random(3)
    moved = next(i for i, step in enumerate(story.log.steps) if step is None) + 3
    first = tmp_path / "first"
    disk_after_a_cut(story.log, moved, at_random(random.Random(5)), first)
    log = Log(first)
    log.start = first.with_name("start-again")
    copy(first, log.start)
    with monkeypatch.context() as patched:
        record(log, patched)
        recover(first, story.site)
    assert tree(first) == story.old
    for moment in range(len(log.steps) + 1):
        there = tmp_path / "cut"
        disk_after_a_cut(log, moment, at_random(rng), there)
        recover(there, story.site)
        assert tree(there) == story.old
        shutil.rmtree(there)
