"""The swap on trees made by chance: undone it is the old tree exactly, done it is the new one."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from envlock.adapters import moving
from envlock.adapters.files import remove_tree
from envlock.adapters.installed import read_installed
from envlock.errors import RestoreFailed
from envlock.model.facts import Layout
from envlock.restore import units
from envlock.restore.transaction import Transaction, open_transaction
from envlock.restore.units import Planner, Swap
from tests.support.fake_manifest import fake_layout
from tests.support.worlds import tree

SITE = "lib/python3.11/site-packages"
#: Roots that everybody shares, and one folder that a distribution may have to itself.
ROOTS = [SITE, f"{SITE}/pkg", f"{SITE}/pkg/sub", "bin", "share"]

paths = st.builds(
    "{}/{}".format, st.sampled_from(ROOTS), st.sampled_from(["a", "b.py", "sub", "sub/c"])
)
owned = st.frozensets(paths, max_size=6)


def conflict(some: Iterable[str], others: Iterable[str]) -> bool:
    """Whether a path of one side is a folder of the other."""
    return any(
        one.startswith(f"{other}/") or other.startswith(f"{one}/")
        for one in some
        for other in others
    )


@dataclass(frozen=True)
class Case:
    """Files of what goes, of what comes, of what stays, and of nobody."""

    old: frozenset[str]
    new: frozenset[str]
    kept: frozenset[str]
    stray: frozenset[str]

    @property
    def there(self) -> frozenset[str]:
        return self.old | self.kept | self.stray

    @property
    def others(self) -> frozenset[str]:
        return self.kept | (self.stray - self.old)

    @property
    def expected(self) -> Mapping[str, str]:
        """Content by path once everything is done: what comes wins."""
        stays = dict.fromkeys(self.others, "old")
        return stays | dict.fromkeys(self.new, "new")


cases = st.builds(Case, old=owned, new=owned, kept=owned, stray=owned)


def put(prefix: Path, name: str, version: str, files: Iterable[str], text: str) -> None:
    """A distribution with a RECORD of files anywhere below a prefix."""
    info = prefix / SITE / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    rows = [f"{info.name}/METADATA", f"{info.name}/RECORD", *(f"../../../{path}" for path in files)]
    (info / "RECORD").write_text("".join(f"{row},,\n" for row in rows))
    for path in files:
        write(prefix / path, text)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@dataclass(frozen=True)
class Scene:
    """A target, its layout, and a transaction with a stage that is ready."""

    prefix: Path
    layout: Layout
    transaction: Transaction

    def plan(self) -> Swap:
        dists = read_installed(self.layout)
        going = [dist for dist in dists if dist.name == "pkg"]
        staying = [dist for dist in dists if dist.name != "pkg"]
        folder = self.transaction.folder
        return Planner(self.layout, going, staying, folder).plan(
            self.transaction.stage, read_installed(self.layout.moved(self.transaction.stage))
        )

    def tree(self) -> Mapping[str, str]:
        return tree(self.prefix, leave_out=[".envlock-txn"])


@contextmanager
def scene(case: Case) -> Iterator[Scene]:
    folder = Path(tempfile.mkdtemp())
    try:
        prefix = folder / "venv"
        layout = fake_layout(prefix)
        write(prefix / "bin/python", "the interpreter")
        for path in case.stray:
            write(prefix / path, "old")
        put(prefix, "stay", "1.0", case.kept, "old")
        put(prefix, "pkg", "1.0", case.old, "old")
        transaction = open_transaction(layout.purelib)
        transaction.begin()
        put(Path(transaction.stage), "pkg", "2.0", case.new, "new")
        yield Scene(prefix, layout, transaction)
    finally:
        shutil.rmtree(folder)


def fail_after(allowed: int) -> Callable[[str, str], None]:
    calls = [0]

    def move(source: str, target: str) -> None:
        calls[0] += 1
        if calls[0] > allowed:
            raise OSError(errno.ENOSPC, "No space left on device", target)
        real(source, target)

    real = moving.move
    return move


def texts(prefix: Path) -> Mapping[str, str]:
    """Content by path of everything but metadata and the interpreter."""
    return {
        str(path.relative_to(prefix)): path.read_text()
        for path in prefix.rglob("*")
        if path.is_file() and ".dist-info" not in str(path) and path.name != "python"
    }


@given(cases, st.booleans(), st.integers(0, 12))
def test_swap(case: Case, copies: bool, allowed: int) -> None:
    assume(not conflict(case.there, case.there))
    assume(not conflict(case.new, case.new))
    blocked = conflict(case.new, case.others)
    with (
        scene(case) as here,
        mock.patch.object(
            units, "can_rename_folder", (lambda *_: False) if copies else moving.can_rename_folder
        ),
    ):
        before = here.tree()
        if blocked:
            with pytest.raises(RestoreFailed, match="of others"):
                here.plan()
            assert here.tree() == before
            return
        swap = here.plan()
        assert here.tree() == before
        here.transaction.write_journal(swap.changes)
        with mock.patch.object(moving, "move", fail_after(allowed)):
            failed = True
            try:
                here.transaction.swap(swap.changes)
                failed = False
            except OSError:
                pass
        if failed:
            here.transaction.undo()
            assert here.tree() == before
            assert not Path(here.transaction.folder).exists()
            return
        here.transaction.commit()
        assert here.transaction.finish() == []
        assert texts(here.prefix) == case.expected
        folders = {
            str(path.relative_to(here.prefix)) for path in here.prefix.rglob("*") if path.is_dir()
        }
        empty = [f for f in folders if not any((here.prefix / f).iterdir())]
        assert empty == []


@given(cases, st.integers(0, 6), st.integers(0, 6))
def test_undo_that_is_cut_is_begun_again(case: Case, allowed: int, undone: int) -> None:
    assume(not conflict(case.there, case.there) and not conflict(case.new, case.new))
    assume(not conflict(case.new, case.others))
    with scene(case) as here:
        before = here.tree()
        swap = here.plan()
        here.transaction.write_journal(swap.changes)
        with mock.patch.object(moving, "move", fail_after(allowed)), suppress(OSError):
            here.transaction.swap(swap.changes)
        with mock.patch.object(moving, "move", cut_after(undone)), suppress(Cut):
            here.transaction.undo()
        if Path(here.transaction.folder).exists():
            here.transaction.undo()
        assert here.tree() == before


class Cut(BaseException):
    """The plug is pulled."""


def cut_after(allowed: int) -> Callable[[str, str], None]:
    calls = [0]

    def move(source: str, target: str) -> None:
        calls[0] += 1
        if calls[0] > allowed:
            raise Cut
        real(source, target)

    real = moving.move
    return move


# --- by hand ----------------------------------------------------------------------------------


def case(**sides: Iterable[str]) -> Case:
    empty: dict[str, Iterable[str]] = {"old": (), "new": (), "kept": (), "stray": ()}
    return Case(**{name: frozenset(files) for name, files in (empty | sides).items()})


def test_platlib_of_its_own_name(tmp_path: Path) -> None:
    """lib64 is a link to lib, and platlib is spelled through it: one folder, not two."""
    prefix = tmp_path / "venv"
    put(prefix, "pkg", "1.0", [f"{SITE}/pkg/a", f"{SITE}/pkg/b"], "old")
    (prefix / "lib64").symlink_to("lib")
    layout = fake_layout(prefix)
    site64 = str(prefix / "lib64/python3.11/site-packages")
    layout = Layout(prefix=layout.prefix, purelib=layout.purelib, platlib=site64,
                    scripts=layout.scripts, headers=layout.headers, data=layout.data)  # fmt: skip
    transaction = open_transaction(layout.purelib)
    transaction.begin()
    # a stage has both folders, and one package in two halves
    stage = Path(transaction.stage)
    put(stage, "pkg", "2.0", [f"{SITE}/pkg/a", "lib64/python3.11/site-packages/pkg/b"], "new")
    swap = Scene(prefix, layout, transaction).plan()
    transaction.write_journal(swap.changes)
    transaction.swap(swap.changes)
    transaction.commit()
    assert transaction.finish() == []
    assert texts(prefix) == {f"{SITE}/pkg/a": "new", f"{SITE}/pkg/b": "new"}


def test_folder_behind_a_link_to_another_file_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that comes cannot be renamed through a link to another disk: its files are."""
    with scene(case(new=[f"{SITE}/shared/new/x"], kept=[f"{SITE}/shared/kept/x"])) as here:
        swap = here.plan()
        assert any(entry.target.endswith("shared/new") for entry in swap.changes.entries)
        monkeypatch.setattr(Planner, "_same_file_system", lambda *_: False)
        swap = here.plan()
        assert any(entry.target.endswith("shared/new/x") for entry in swap.changes.entries)


def test_environment_that_was_moved_after_a_kill(tmp_path: Path) -> None:
    """Paths in the journal are relative: what is mended is the tree it lies in."""
    with scene(case(old=[f"{SITE}/pkg/a"], new=[f"{SITE}/pkg/a"])) as here:
        before = here.tree()
        swap = here.plan()
        here.transaction.write_journal(swap.changes)
        here.transaction.swap(swap.changes)
        copy = tmp_path / "elsewhere/venv"
        shutil.copytree(here.prefix, copy, symlinks=True)
        swapped = here.tree()
        open_transaction(str(copy / SITE)).undo()
        assert tree(copy) == before
        assert here.tree() == swapped


def test_full_disk_does_not_undo_the_undo(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with scene(case(old=[f"{SITE}/pkg/a"], new=[f"{SITE}/pkg/a"])) as here:
        before = here.tree()
        swap = here.plan()
        here.transaction.write_journal(swap.changes)
        here.transaction.swap(swap.changes)
        monkeypatch.setattr("envlock.adapters.files.append_line", full)
        assert here.transaction.undo() == []
        assert here.tree() == before


def test_what_cannot_be_deleted_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(path: str) -> list[str]:
        return [path] if path.endswith("stash") else remove_tree(path)

    with scene(case(old=[f"{SITE}/pkg/a"])) as here:
        swap = here.plan()
        here.transaction.write_journal(swap.changes)
        here.transaction.swap(swap.changes)
        here.transaction.commit()
        monkeypatch.setattr("envlock.adapters.files.remove_tree", busy)
        aside = Path(here.transaction.site, ".envlock-left-0")
        assert here.transaction.finish() == [str(aside / "stash")]
        assert not Path(here.transaction.folder).exists()
        monkeypatch.undo()
        assert here.transaction.sweep() == []
        assert not aside.exists()
