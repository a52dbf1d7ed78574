"""What the target's own torch says of its devices. Only where somebody asks for it: importing torch
takes seconds, and longer than anybody waits where a driver is stuck."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from envlock.adapters import process
from envlock.adapters.activation import read_stack
from envlock.adapters.interpreter import probes_folder
from envlock.errors import ProgramFailed
from envlock.model.facts import Device, Finding, Target
from envlock.model.profile import Profile

#: Seconds for the import and all questions.
SECONDS = 60.0
_GRACE = 2.0
_HINT = "see what 'envlock verify' says of the device"


def ask_torch(
    target: Target, profile: Profile, env: Mapping[str, str], seconds: float = SECONDS
) -> tuple[tuple[Device, ...], tuple[Finding, ...]]:
    """Devices in torch's order, all of them: variables that hide some are left out.

    Args:
        profile: whose stack's variables torch is given, whether the shell has them or not.
        env: the caller's environment.

    Returns:
        The devices, and why there is none.
    """
    stack = read_stack(profile, env)
    given = (stack.variables if stack else None) or env
    hidden = {*profile.runtime.visible, profile.visible}
    clean = {name: value for name, value in given.items() if name not in hidden}
    with tempfile.TemporaryDirectory(prefix="envlock-") as folder:
        answer = os.path.join(folder, "answer.json")
        argv = [target.executable, str(probes_folder() / "torch_devices.py"), answer]
        try:
            quiet = {**clean, "PYTHONDONTWRITEBYTECODE": "1"}
            done = process.run(argv, env=quiet, cwd=folder, timeout=seconds, grace=_GRACE)
            said: dict[str, Any] = json.loads(Path(answer).read_text(encoding="utf-8"))
        except ProgramFailed as error:
            return (), (_silent(error.message),)
        except (OSError, ValueError):
            if done.timed_out:
                return (), (_silent(f"no answer within {seconds:.0f} s"),)
            ending = process.last_lines(done.output, 1) or "it printed nothing"
            return (), (_silent(f"exit {done.code}: {ending}"),)
    found = tuple(_device(one) for one in said["devices"])
    return found, (() if found else (_silent(str(said["reason"])),))


def _device(said: Mapping[str, Any]) -> Device:
    known = {item.name for item in fields(Device)}
    return Device(**{name: value for name, value in said.items() if name in known})


def _silent(what: str) -> Finding:
    return Finding(
        code="torch.silent",
        subject="torch",
        what=f"the target's torch tells of no device: {what}",
        why="what only torch knows of a device is not in the manifest",
        hint=_HINT,
    )
