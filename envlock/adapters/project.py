"""Which environment ``uv add``, ``uv sync`` and ``uv run`` work on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from envlock.adapters.configuration import parse_toml


def _table(folder: str) -> Mapping[str, object] | None:
    """uv's table of the ``pyproject.toml`` in a folder; None where there is no such file."""
    try:
        text = Path(folder, "pyproject.toml").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = parse_toml(text).get("tool", {}).get("uv", {}) if "uv" in text else {}
    return found if isinstance(found, dict) else {}


def find_root(folder: str) -> str | None:
    """The project that a folder lies in, or the workspace that it belongs to; None without one."""
    start = os.path.abspath(folder)
    nearest = None
    for parent in (start, *map(str, Path(start).parents)):
        table = _table(parent)
        if table is None:
            continue
        nearest = nearest or parent
        if "workspace" in table:
            return parent
    return nearest


def project_environment(
    env: Mapping[str, str], *, active: bool = False, project: str = "", directory: str = ""
) -> str | None:
    """The environment's folder; None where there is no project.

    ``UV_PROJECT_ENVIRONMENT`` (relative to the workspace), else ``.venv`` in the workspace; with
    ``--active``, ``$VIRTUAL_ENV`` before both (uv's "Projects: the project environment").
    """
    here = os.path.join(os.getcwd(), directory or env.get("UV_WORKING_DIR", ""))
    root = find_root(os.path.join(here, project or env.get("UV_PROJECT", "")))
    if root is None:
        return None
    if active and env.get("VIRTUAL_ENV"):
        return env["VIRTUAL_ENV"]
    return os.path.join(root, env.get("UV_PROJECT_ENVIRONMENT") or ".venv")
