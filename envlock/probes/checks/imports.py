"""imp.*: a module and its working parts can be imported. Arguments: module, names."""

import os
import sys
import time

import harness

#: A first import of 20 s is normal on some machines; over this it is worth a word.
SLOW_SECONDS = 60.0
_MARKS = ("__hcu_version__", "__dcu_version__")


def below_prefix(path):
    """Relative to the environment where it is inside: a report may be shared."""
    relative = os.path.relpath(path, sys.prefix)
    return path if relative.startswith("..") else relative


def imported(module, names):
    """Imports the module and looks at each name; seconds."""
    started = time.perf_counter()
    found = __import__(module)
    for name in names:
        getattr(found, name)
    return time.perf_counter() - started


def without_device(context):
    """Whether nobody can expect this machine to have a device."""
    torch = sys.modules.get("torch")
    return context.on_cpu or (
        not context.expected and torch is not None and not torch.cuda.is_available()
    )


def missing_where_no_device(context, module, names):
    """Some vendors' modules leave their functions out where no device is visible."""
    loaded = sys.modules.get(module)
    absent = loaded is not None and not all(hasattr(loaded, name) for name in names)
    return absent and without_device(context)


def facts_of(module):
    found = sys.modules[module]
    version = getattr(found, "__version__", None)
    facts = {"module_version": None if version is None else str(version)}
    facts["loaded_from"] = below_prefix(getattr(found, "__file__", None) or "")
    for mark in _MARKS:
        if hasattr(found, mark):
            facts[mark.strip("_")] = str(getattr(found, mark))
    runtime = getattr(getattr(found, "version", None), "hip", None)
    if runtime is not None:
        facts["hip"] = str(runtime)
    return facts


def one_import(context, module, names):
    try:
        seconds = harness.subject(imported, module, names)
    except harness.Failure as failure:
        if missing_where_no_device(context, module, names):
            text = "without a device it leaves out {}".format(", ".join(names))
            raise harness.Skip(text) from failure
        raise
    context.facts.update(facts_of(module))
    metrics = {"import_seconds": round(seconds, 3), "limit": SLOW_SECONDS}
    if seconds > SLOW_SECONDS:
        metrics["warning"] = "took {:.0f} s".format(seconds)
    return metrics


def check(context):
    module = context.arguments["module"]
    names = context.arguments.get("names", [])
    shown = ["{}.{}".format(module, name) for name in names] or [module]
    yield context.case("import " + ", ".join(shown), one_import, context, module, names)
