"""Check scripts that misbehave, each in its own way."""

from __future__ import annotations

from pathlib import Path

from envlock.model.check import Check

_BODY = """
import ctypes, json, os, signal, subprocess, sys, time
import harness

def check(context):
    {body}
"""

#: Bodies by name. What each is expected to end as is in the tests.
BODIES = {
    "right": "yield context.case('one', lambda: {'value': 1.0})",
    "wrong": "yield context.case('one', failing)",
    "warns": "yield context.case('one', lambda: {'warning': 'slow'})",
    "raises": "raise ValueError('the check is broken')",
    "raises_in_case": "yield context.case('one', lambda: 1 / 0)",
    "subject_raises": "yield context.case('one', harness.subject, int, 'x')",
    "skips": "raise harness.Skip('not here')",
    "skips_case": "yield context.case('one', skipping)",
    "no_cases": "return iter(())",
    "segfault": "yield context.case('one', dict); ctypes.string_at(0)",
    "abort": "os.abort(); yield",
    "killed": "os.kill(os.getpid(), signal.SIGKILL); yield",
    "hangs": "time.sleep(600); yield",
    "ignores_term": "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600); yield",
    "exits": "os._exit(0); yield",
    "system_exit": "sys.exit(0); yield",
    "exits_3": "os._exit(3); yield",
    "half_answer": "yield context.case('one', dict); os._exit(0)",
    "bad_json": "bad('{\"cases\": [')",
    "not_finite": 'bad(\'{"done": true, "cases": [], "facts": {"x": NaN}}\')',
    "no_list": "bad('{\"done\": true}')",
    "strange_case": 'bad(\'{"done": true, "cases": [{"name": 1}]}\')',
    "noisy": "noise(); yield context.case('one', dict)",
    "grandchild": "orphan(); yield context.case('one', dict)",
    "out_of_memory": "yield context.case('one', harness.subject, eat)",
    "out_of_memory_in_check": "yield context.case('one', dict); eat()",
    "device_out_of_memory": "yield context.case('one', harness.subject, full)",
    "stops_itself": "os.kill(os.getpid(), signal.SIGSTOP); yield",
    "daemon": "orphan(start_new_session=True); yield context.case('one', dict)",
    "answers_a_folder": "os.mkdir(sys.argv[3]); os._exit(0); yield",
    "measures_nan": "yield context.case('one', lambda: {'value': float('nan')})",
}

_HELPERS = """
def failing():
    raise harness.Failure("off by one", max_abs=1.0, limit=0.5)

def skipping():
    raise harness.Skip("no such thing here")

def bad(text):
    with open(sys.argv[3], "w") as file:
        file.write(text)
    os._exit(0)

def noise():
    line = b"x" * 999 + b"\\n"
    for _ in range(100_000):
        os.write(1, line)

def orphan(**how):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)"], **how)

def eat():
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, resource.RLIM_INFINITY))
    bytearray(1 << 33)

class OutOfMemoryError(RuntimeError):
    pass  # the name of the one that torch raises

def full():
    raise OutOfMemoryError("HIP out of memory: tried to allocate 64.00 GiB")
"""


def write_checks(folder: Path, *names: str, **bodies: str) -> None:
    """Writes scripts ``NAME.py`` for names of :data:`BODIES` and for bodies given here."""
    folder.mkdir(exist_ok=True)
    for name, body in {**{name: BODIES[name] for name in names}, **bodies}.items():
        text = _BODY.format(body=body) + _HELPERS
        (folder / f"{name}.py").write_text(text, encoding="utf-8")


def fake_check(name: str, subject: str = "", timeout: float = 60.0, prefix: str = "fake") -> Check:
    """A registry line for the script ``NAME.py``, id ``fake.NAME``."""
    return Check(
        id=f"{prefix}.{name}",
        title=name,
        level="quick",
        subject=subject,
        script=f"{name}.py",
        timeout=timeout,
    )
