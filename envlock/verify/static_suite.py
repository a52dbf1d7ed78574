"""The checks that envlock does itself, without a child and without a device."""

from __future__ import annotations

from collections.abc import Callable

from envlock.model.check import Case
from envlock.verify import static_code, static_labels, static_objects, static_paths
from envlock.verify.static_ground import Scene

#: By id; each judges the target as it lies on the disk.
STATIC: dict[str, Callable[[Scene], tuple[Case, ...]]] = {
    "static.labels": static_labels.agreement,
    "static.vendor_mark": static_labels.marks,
    "static.ldd": static_objects.unresolved,
    "static.cxxabi": static_objects.versions,
    "static.onehip": static_objects.runtimes,
    "static.gfx": static_code.code_objects,
    "static.pth": static_paths.shadows,
    "static.pyc": static_paths.bytecode,
}
