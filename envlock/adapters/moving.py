"""Moving installed files: renames, and what new files look like."""

from __future__ import annotations

import errno
import os
import shutil
import stat

from envlock.adapters import files


def part_of(target: str) -> str:
    """Where a file waits beside its place while it is copied from another file system."""
    return f"{target}.envlock-part"


def move(source: str, target: str) -> None:
    """Renames; a file on another file system is copied beside its place and renamed there.

    Raises:
        OSError: it cannot be done. A folder that cannot be renamed is EXDEV; nothing has changed.
    """
    try:
        os.rename(source, target)
        return
    except OSError as error:
        if error.errno != errno.EXDEV or (os.path.isdir(source) and not os.path.islink(source)):
            raise
    _copy_whole(source, target)
    os.unlink(source)


def _copy_whole(source: str, target: str) -> None:
    """Copies a file or link; on the disk before the caller takes the only other copy away."""
    part = part_of(target)
    try:
        shutil.copy2(source, part, follow_symlinks=False)
        status = os.lstat(source)
        if os.geteuid() == 0:
            os.lchown(part, status.st_uid, status.st_gid)
        if not stat.S_ISLNK(status.st_mode):
            os.chmod(part, stat.S_IMODE(status.st_mode))  # a new owner costs the special bits
            _sync(part)
        os.replace(part, target)
    except BaseException:
        files.remove_tree(part)
        raise
    files.sync_folder(os.path.dirname(target))


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def can_rename_folder(folder: str, beside: str) -> bool:
    """Whether a folder can be renamed at all; nothing is changed by asking.

    Renaming onto a folder that is not empty fails in either case: with EXDEV where the folder lies
    in a lower layer of an overlay, which ``st_dev`` does not show, else with ENOTEMPTY. A link to
    a folder is renamed as a file is.

    Args:
        beside: an existing folder on the same file system that is not empty.
    """
    if os.path.islink(folder):
        return True
    try:
        os.rename(folder, beside)
    except OSError as error:
        return error.errno in (errno.ENOTEMPTY, errno.EEXIST)
    raise AssertionError(f"'{beside}' was empty")


def remove_empty_folders(tree: str) -> None:
    """Removes a folder that holds nothing but folders.

    Raises:
        OSError: there is a file in it.
    """
    for root, _, _ in os.walk(tree, topdown=False):
        os.rmdir(root)


def make_folder(folder: str, model: str) -> None:
    """Makes a folder and what is missing above it, with the owner and permissions of ``model``."""
    if os.path.isdir(folder):
        return
    make_folder(os.path.dirname(folder), model)
    os.mkdir(folder)
    _give(folder, os.lstat(folder), os.stat(model), os.geteuid() == 0)


def give_like(tree: str, model: str, moment: float, *, itself: bool = False) -> None:
    """Gives everything below ``tree`` the owner, group and permissions of the folder ``model``.

    Files keep their exec bits; times become ``moment`` (seconds since the epoch), the time of
    installation: wheels carry their build's date, and byte code is checked against it.

    Args:
        itself: the folder ``tree`` too.
    """
    like = os.stat(model)
    root = os.geteuid() == 0
    if itself:
        _give(tree, os.lstat(tree), like, root)
    todo = [tree]
    while todo:
        with os.scandir(todo.pop()) as entries:
            for entry in entries:
                if _give(entry.path, entry.stat(follow_symlinks=False), like, root):
                    os.utime(entry.path, (moment, moment))
                elif entry.is_dir(follow_symlinks=False):
                    todo.append(entry.path)


def _give(path: str, status: os.stat_result, like: os.stat_result, root: bool) -> bool:
    """Owner, group and permissions of a folder for a file or folder; whether it is a file.

    Args:
        root: whether this process may give things away.
    """
    owner = (like.st_uid, like.st_gid)
    if root and owner != (status.st_uid, status.st_gid):
        os.lchown(path, *owner)
    if stat.S_ISLNK(status.st_mode):
        return False
    regular = stat.S_ISREG(status.st_mode)
    runs = 0o111 if status.st_mode & stat.S_IXUSR else 0
    wanted = stat.S_IMODE(like.st_mode) & (0o666 | runs if regular else 0o7777)
    if stat.S_IMODE(status.st_mode) != wanted:
        os.chmod(path, wanted)
    return regular


def make_executable(path: str) -> None:
    """Lets everybody run a file who may read it."""
    mode = stat.S_IMODE(os.stat(path).st_mode)
    wanted = mode | (mode & 0o444) >> 2
    if mode != wanted:
        os.chmod(path, wanted)
