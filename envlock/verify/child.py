"""One check in a child: its own process group, folders and time limit; judged by its answer."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from envlock.adapters import files, process
from envlock.adapters.interpreter import probes_folder
from envlock.model.check import Case, Check, CheckResult, Status
from envlock.model.devices import chosen
from envlock.model.facts import Target
from envlock.verify.plan import Ground

#: Characters of output kept for a check that passed; the whole tail is kept for the others.
_QUIET_OUTPUT = 2000
_CASE_STATUS = frozenset(
    {Status.PASSED, Status.FAILED, Status.WARNED, Status.SKIPPED, Status.ERROR}
)
# would change what is tested behind our back: the interpreter instead of the device
_DROPPED = frozenset({"TRITON_INTERPRET", "PYTHONSTARTUP", "PYTHONINSPECT"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """What every child has in common.

    Attributes:
        target: whose Python runs the checks.
        env: environment, with the vendor's variables.
        ground: the device and what is expected of it.
        level: goes to the script.
        timeout_scale: factor on time limits.
        scripts: folder of the checks.
        grace: seconds between TERM and KILL once the time is over.
        visible: environment variable of the vendor that chooses devices by number.
        given: what the profile knows of device and runtime; goes to the script.
    """

    target: Target
    env: Mapping[str, str]
    ground: Ground
    level: str
    timeout_scale: float = 1.0
    scripts: Path = probes_folder() / "checks"
    grace: float = process.GRACE
    given: Mapping[str, Any] = field(default_factory=dict)
    visible: str = "CUDA_VISIBLE_DEVICES"

    def run(self, check: Check) -> CheckResult:
        """Runs one check to its end, its time limit or its death. ``required`` is not set yet."""
        with tempfile.TemporaryDirectory(prefix="envlock-", ignore_cleanup_errors=True) as folder:
            request, answer = os.path.join(folder, "request.json"), os.path.join(folder, "answer")
            Path(request).write_text(json.dumps(self._request(check)), encoding="utf-8")
            script = str(self.scripts / check.script)
            harness = str(probes_folder() / "harness.py")
            # -s: no packages of the user's home; never -I, vendor scripts set PYTHONPATH
            flags = ["-s", "-X", "faulthandler"]
            done = process.run(
                [self.target.executable, *flags, harness, script, request, answer],
                env={**self._environment(folder), **self._one_device(check)},
                cwd=_made(folder, "work"),
                timeout=check.timeout * self.timeout_scale,
                grace=self.grace,
            )
            document, problem = read_answer(answer)
        result = judge(check, done, document, problem)
        return replace(result, output=self._private(result))

    def _request(self, check: Check) -> dict[str, Any]:
        return {
            "check": check.id,
            "device": self.ground.device,
            "expected": self.ground.expected,
            "level": self.level,
            "unsupported": list(self.ground.unsupported),
            "arguments": dict(check.arguments),
            "given": dict(self.given),
        }

    def _one_device(self, check: Check) -> dict[str, str]:
        """Leaves one device visible, where a check is for one: no check needs to know which."""
        if check.index is None or self.ground.device == "cpu":
            return {}
        name, value = chosen(self.env, self.visible, check.index) or (self.visible, "-1")
        return {name: value}

    def _environment(self, folder: str) -> dict[str, str]:
        """Empty caches: a stale one gives wrong numbers silently, a warm one hides a compiler that
        no longer works."""
        env = {key: value for key, value in self.env.items() if key not in _DROPPED}
        # a container shows all processors of its host: more threads than its quota only wait
        env.setdefault("OMP_NUM_THREADS", str(files.workers()))
        return {
            **env,
            "TMPDIR": _made(folder, "tmp"),
            "TRITON_CACHE_DIR": _made(folder, "triton"),
            "TORCHINDUCTOR_CACHE_DIR": _made(folder, "inductor"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def _private(self, result: CheckResult) -> str:
        """The tail without the target's own path and the home folder: reports are shared."""
        text = result.output
        if result.status is Status.PASSED:
            text = text[-_QUIET_OUTPUT:]
        home = self.env.get("HOME", "")
        for path, shown in ((self.target.layout.prefix, "PREFIX"), (home, "~")):
            if len(path) > 1:
                text = text.replace(path.rstrip("/") + "/", shown + "/")
        return text


def _made(folder: str, name: str) -> str:
    path = os.path.join(folder, name)
    os.mkdir(path)
    return path


def read_answer(path: str) -> tuple[dict[str, Any], str]:
    """The answer's document, or why there is none to go by."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"), parse_constant=_refuse)
    except FileNotFoundError:
        return {}, "no answer"
    except (OSError, ValueError, RecursionError) as error:
        return {}, f"the answer is not JSON: {error}"
    if not isinstance(found, dict) or not isinstance(found.get("cases"), list):
        return {}, "the answer has no cases"
    return found, ""


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not strict JSON")


def _read_case(value: Any) -> Case:
    try:
        status = Status(value["status"])
        if status not in _CASE_STATUS:
            raise ValueError(status)
        metrics, reason = dict(value.get("metrics") or {}), str(value.get("reason") or "")
        return Case(name=str(value["name"]), status=status, metrics=metrics, reason=reason)
    except (KeyError, TypeError, ValueError):
        return Case(name="?", status=Status.ERROR, reason="not a case")


def judge(
    check: Check, done: process.Finished, document: Mapping[str, Any], problem: str
) -> CheckResult:
    """The result of a child, from how it ended and what it answered.

    How it ended comes first: a child that died has not passed, whatever it had answered before.
    """
    cases = tuple(_read_case(value) for value in document.get("cases", ()))
    facts = document.get("facts")
    status, reason = _ending(check, done) or _answered(done, document, problem, cases)
    return CheckResult(
        id=check.id,
        title=check.title,
        status=status,
        required=True,
        reason=reason,
        seconds=round(done.seconds, 3),
        cases=cases,
        facts=dict(facts) if isinstance(facts, dict) else {},
        output=done.output,
        dropped=done.dropped,
        exit=done.code,
    )


def _ending(check: Check, done: process.Finished) -> tuple[Status, str] | None:
    if done.unkillable:
        return Status.UNKILLABLE, "outlived SIGKILL: it hangs in the kernel"
    if done.timed_out:
        return Status.TIMEOUT, f"no end after {done.seconds:.0f} s"
    if done.code < 0:
        return Status.CRASHED, f"ended by {signal_name(-done.code)}"
    return None


def signal_name(number: int) -> str:
    """``SIGSEGV``, or ``signal 77``."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _answered(
    done: process.Finished, document: Mapping[str, Any], problem: str, cases: tuple[Case, ...]
) -> tuple[Status, str]:
    if problem:
        last = process.last_lines(done.output, 1)
        return Status.ERROR, f"{problem} (exit {done.code})" + (f": {last}" if last else "")
    if document.get("done") is not True:
        return Status.ERROR, f"half an answer (exit {done.code})"
    if document.get("error"):
        return Status.ERROR, str(document["error"])
    if done.code != 0:
        return Status.ERROR, f"exit {done.code} after its answer"
    if document.get("skip") and not cases:
        return Status.SKIPPED, str(document["skip"])
    return summary(cases)


def summary(cases: tuple[Case, ...]) -> tuple[Status, str]:
    """Status of a check from its cases: the worst decides, and zero work is never a pass."""
    if not cases:
        return Status.ERROR, "no case was run"
    for status in (Status.FAILED, Status.ERROR, Status.WARNED):
        bad = [case for case in cases if case.status is status]
        if bad:
            more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
            return status, f"{bad[0].name}: {bad[0].reason}{more}"
    if all(case.status is Status.SKIPPED for case in cases):
        return Status.SKIPPED, cases[0].reason
    return Status.PASSED, ""
