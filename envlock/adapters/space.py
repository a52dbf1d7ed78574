"""What a file system has room for, and where this user may write."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterable

_KEEP_SIZE = 1  # FALLOC_FL_KEEP_SIZE of <linux/falloc.h>
#: What says that there is no room; anything else says that nobody can be asked this way.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def nearest(path: str) -> str:
    """The path, or the nearest folder above it that exists."""
    path = os.path.abspath(path)
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return os.path.realpath(path)


def free(folder: str) -> tuple[int | None, int | None]:
    """Free bytes and inodes for this user; None where the file system does not say.

    Some (btrfs, many network file systems) have no fixed number of inodes and say 0 of 0.
    """
    try:
        status = os.statvfs(folder)
    except OSError:
        return None, None
    known = status.f_blocks > 0
    return (
        status.f_bavail * status.f_frsize if known else None,
        status.f_favail if status.f_files > 0 else None,
    )


def why_no_room(folder: str, size: int) -> str:
    """Why a file system does not take ``size`` bytes more; empty when it does, or cannot tell.

    Quotas are not in what it says of itself: a file without a name is given that room and goes at
    once. Nothing is ever visible in the folder.
    """
    if size <= 0:
        return ""
    try:
        descriptor = os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except (OSError, AttributeError):
        return ""
    try:
        return _reserve(descriptor, size)
    finally:
        os.close(descriptor)


def _reserve(descriptor: int, size: int) -> str:
    libc = ctypes.CDLL(None, use_errno=True)
    call = getattr(libc, "fallocate64", None) or getattr(libc, "fallocate", None)
    if call is None:
        return ""
    call.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    if call(descriptor, _KEEP_SIZE, 0, size) == 0:
        return ""
    code = ctypes.get_errno()
    return os.strerror(code) if code in _NO_ROOM else ""


def closed(folders: Iterable[str]) -> dict[str, str]:
    """Those of the folders that exist and that this user cannot make files in, and why."""
    there = dict.fromkeys(map(os.path.realpath, filter(os.path.isdir, folders)))
    return {folder: why for folder in there if (why := _why_closed(folder))}


def _why_closed(folder: str) -> str:
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        return os.strerror(errno.EROFS)
    if not os.access(folder, os.W_OK | os.X_OK):
        return os.strerror(errno.EACCES)
    try:  # an immutable folder, and some network file systems, say yes and mean no
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except AttributeError:
        return ""
    except OSError as error:
        mean_no = (errno.EACCES, errno.EPERM, errno.EROFS)
        return os.strerror(error.errno) if error.errno in mean_no else ""
    return ""
