"""Runs one check inside the target's Python. Standard library only, Python 3.8 and newer.

usage: harness.py CHECK REQUEST ANSWER

CHECK is a script with a function ``check(context)`` that yields cases; REQUEST is a JSON document
with the device, the level and the arguments of the check. ANSWER is written after every case,
whole or not at all, so that a crash still shows how far the check came. Nothing is ever read from
standard output: native libraries print there.

A check imports this module as ``harness``. What is under test is called through
:func:`subject`: an exception there is a *failure* of the installation, an exception anywhere else
is an *error* of the check.
"""

import faulthandler
import importlib.util
import json
import math
import os
import signal
import sys
import time
import traceback

if sys.path and os.path.isfile(os.path.join(sys.path[0], "harness.py")):
    sys.path.pop(0)  # the names in this folder must not shadow the target's modules

PASSED, FAILED, WARNED, SKIPPED, ERROR = "passed", "failed", "warned", "skipped", "error"
_TRACEBACK_LINES = 12
_TEXT = 2000  # characters of a message that are kept


class Skip(Exception):
    """The check, or one case of it, cannot run here; the message says why."""


class Failure(Exception):
    """What is under test gave a wrong answer; ``metrics`` are what was measured."""

    def __init__(self, reason, **metrics):
        super().__init__(reason)
        self.metrics = metrics


class Unsound(Exception):
    """A measurement that cannot be right; ``metrics`` are what was measured."""

    def __init__(self, reason, **metrics):
        super().__init__(reason)
        self.metrics = metrics


class OutOfMemory(Exception):
    """The device had no room: says nothing about the installation."""


def describe(error):
    """``RuntimeError: message``, bounded; only the first lines of a long message."""
    text = str(error).strip() or "no message"
    return "{}: {}".format(type(error).__name__, text)[:_TEXT]


def no_room(error):
    """Whether memory ran out, the device's or the host's."""
    kinds = (OutOfMemory, MemoryError)
    return isinstance(error, kinds) or type(error).__name__ == "OutOfMemoryError"


def subject(function, *args, **kwargs):
    """Calls what is under test. Its exceptions become failures of the installation."""
    try:
        return function(*args, **kwargs)
    except (Skip, Failure, Unsound):
        raise
    except Exception as error:
        if no_room(error):
            raise OutOfMemory(describe(error)) from error
        raise Failure("raised " + describe(error)) from error


def plain(value):
    """A value that strict JSON can hold: NaN and infinities become texts."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    return str(value)


def case(name, status, reason="", **metrics):
    """One case as the answer holds it."""
    return {"name": name, "status": status, "reason": reason[:_TEXT], "metrics": plain(metrics)}


class Context:
    """What a check is given.

    device is ``cuda`` or ``cpu``; expected says that a device is known to be there; arguments are
    the registry's; unsupported are features that the profile says such a device has not; given is
    what it knows of device and runtime; facts go into the report as they are.
    """

    def __init__(self, request):
        self.device = request.get("device", "cpu")
        self.level = request.get("level", "standard")
        self.expected = bool(request.get("expected", False))
        self.arguments = request.get("arguments", {})
        self.unsupported = tuple(request.get("unsupported", ()))
        self.given = request.get("given", {})
        self.facts = {}

    @property
    def on_cpu(self):
        return self.device == "cpu"

    def case(self, name, function, *args, **kwargs):
        """Runs one case.

        The function returns its metrics, raises :class:`Failure` or :class:`Skip`; an
        ``AssertionError`` counts as a failure too. Metrics with a ``warning`` make it a warning.
        """
        started = time.perf_counter()
        try:
            metrics = dict(function(*args, **kwargs) or {})
        except Skip as skip:
            return case(name, SKIPPED, str(skip))
        except Failure as failure:
            return case(name, FAILED, str(failure), **failure.metrics)
        except AssertionError as failure:
            return case(name, FAILED, str(failure) or "assertion failed")
        except Unsound as error:
            return case(name, ERROR, str(error), **error.metrics)
        except Exception as error:
            return case(name, ERROR, ending(error))
        warning = metrics.pop("warning", "")
        metrics["seconds"] = round(time.perf_counter() - started, 4)
        return case(name, WARNED if warning else PASSED, warning, **metrics)


def ending(error):
    """What to say of an exception that nobody expected: the end of its traceback."""
    if no_room(error):
        return "out of memory: {}".format(str(error).strip() or "no more could be had")
    lines = traceback.format_exc().strip().splitlines()
    return "\n".join(lines[-_TRACEBACK_LINES:])


class Answer:
    """The answer file: written beside its place and renamed, after every case."""

    def __init__(self, path):
        self.path = path
        self.document = {"schema": 1, "done": False, "skip": "", "error": "", "cases": []}

    def write(self, facts, **fields):
        self.document.update(fields)
        self.document["facts"] = plain(facts)
        part = self.path + ".part"
        with open(part, "w", encoding="utf-8") as file:
            json.dump(self.document, file, allow_nan=False)
        os.replace(part, self.path)


def load(path, name):
    """Imports a script by its path, under a name that cannot shadow a module of the target."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def sibling(name):
    """A helper script in the folder of the checks, loaded once."""
    known = "envlock_check_" + name.strip("_")
    if known in sys.modules:
        return sys.modules[known]
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "checks")
    return load(os.path.join(folder, name + ".py"), known)


def no_core_dumps():
    """A device's core dump has gigabytes; nobody reads one of a check."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, ValueError, OSError):
        pass


def say_where_when_stopped():
    """A check that is stopped at its time limit prints where it hangs, and then ends."""
    try:
        faulthandler.register(signal.SIGTERM, all_threads=True, chain=True)
    except (AttributeError, OSError, ValueError):
        pass


def run(script, request, answer):
    """Runs the check to its end and answers. Never raises an ordinary exception."""
    context = Context(request)
    try:
        module = load(script, "envlock_check")
        for found in module.check(context):
            answer.document["cases"].append(found)
            answer.write(context.facts)
    except Skip as skip:
        return answer.write(context.facts, done=True, skip=str(skip))
    except Failure as failure:
        # outside a case: what every case needs does not work
        name = "prepare"
        answer.document["cases"].append(case(name, FAILED, str(failure), **failure.metrics))
    except Exception as error:
        return answer.write(context.facts, done=True, error=ending(error))
    return answer.write(context.facts, done=True)


def main():
    script, request, answer = sys.argv[1:4]
    no_core_dumps()
    say_where_when_stopped()
    sys.modules["harness"] = sys.modules["__main__"]
    with open(request, encoding="utf-8") as file:
        wanted = json.load(file)
    run(script, wanted, Answer(answer))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # judged by the answer; a runtime that dies while it is torn down is another matter


if __name__ == "__main__":
    main()
