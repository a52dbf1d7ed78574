"""One check script at a time: asked as the runner does, or loaded to look inside."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from envlock.adapters.interpreter import probes_folder
from tests.support.asking import Asked


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(tmp_path)


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """A check script as a module, beside a harness of its own."""
    from importlib.util import module_from_spec, spec_from_file_location

    def _load(path: Path, name: str) -> ModuleType:
        spec = spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    def load(name: str) -> ModuleType:
        _load(probes_folder() / "harness.py", "harness")
        return _load(probes_folder() / "checks" / f"{name}.py", f"check_{name}")

    return load
