"""Asks one check script, as the runner does, with tools and a torch that are made for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from envlock.adapters.interpreter import probes_folder

Answer = dict[str, Any]


class Asked:
    """A folder with fake tools on PATH and fake modules on the import path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tools, self.modules = folder / "bin", folder / "modules"
        self.tools.mkdir()
        self.modules.mkdir()
        self.env = {
            "PATH": os.pathsep.join([str(self.tools), "/usr/bin", "/bin"]),
            "PYTHONPATH": str(self.modules),
        }

    def tool(self, name: str, **outputs: str) -> None:
        """A program that prints what it is asked for; ``_`` is what it prints by default.

        A key is a word of its arguments without dashes.
        """
        cases = [
            f"*--{key}*) cat <<'EOF'\n{text}\nEOF\n;;"
            for key, text in outputs.items()
            if key != "_"
        ]
        rest = f"*) cat <<'EOF'\n{outputs['_']}\nEOF\n;;" if "_" in outputs else "*) exit 2;;"
        self.script(name, 'case "$*" in\n' + "\n".join([*cases, rest]) + "\nesac\n")

    def script(self, name: str, text: str) -> None:
        path = self.tools / name
        path.write_text(f"#!/bin/sh\n{text}")
        path.chmod(0o755)

    def module(self, name: str, text: str) -> None:
        (self.modules / f"{name}.py").write_text(text)

    def ask(
        self, check: str, given: Mapping[str, Any], device: str = "cuda", **more: Any
    ) -> Answer:
        """The answer of ``CHECK.py``; ``expected`` and ``arguments`` go into the request."""
        request, answer = self.folder / "request.json", self.folder / "answer.json"
        request.write_text(json.dumps({"device": device, "given": given, **more}))
        probes = probes_folder()
        script = str(probes / "checks" / f"{check}.py")
        command = [
            sys.executable,
            "-s",
            str(probes / "harness.py"),
            script,
            str(request),
            str(answer),
        ]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        found: Answer = json.loads(answer.read_text())
        assert not found["error"], found["error"]
        return found


def statuses(answer: Answer) -> dict[str, str]:
    """Status by name of the case; a skipped check has ``skip``."""
    if answer["skip"] and not answer["cases"]:
        return {"skip": answer["skip"]}
    return {case["name"]: case["status"] for case in answer["cases"]}


def reason(answer: Answer) -> str:
    """All reasons in one text."""
    return "; ".join(case["reason"] for case in answer["cases"] if case["reason"])
