"""imp.order, imp.reverse: the modules in one process, in an order; one runtime in it afterwards.

Whoever comes first decides which runtime is loaded and who initialises it. Argument: modules. Those
that are not installed are left out.
"""

import importlib
import importlib.util
import os

import harness

MAPS = "/proc/self/maps"


def installed(modules):
    found = []
    for name in modules:
        try:
            if importlib.util.find_spec(name) is not None:
                found.append(name)
        except (ImportError, ValueError):
            continue
    return found


def mapped(libraries, maps=MAPS):
    """Files by library, without its version, that this process has mapped."""
    found = {}
    try:
        with open(maps, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return {}
    for line in lines:
        path = line.split(None, 5)[5] if len(line.split(None, 5)) > 5 else ""
        stem = os.path.basename(path).partition(".so")[0] + ".so"
        if stem in libraries:
            found.setdefault(stem, set()).add(path)
    return {stem: sorted(paths) for stem, paths in sorted(found.items())}


def one_of_each(given):
    """Of each runtime library one file; two is two runtimes that know nothing of each other.

    A failure where a script activates one stack for all; wheels that bring their own are warned of.
    """
    libraries = given.get("libraries") or ()
    if not libraries:
        raise harness.Skip("the profile names no runtime")
    found = mapped(libraries)
    twice = {stem: paths for stem, paths in found.items() if len(paths) > 1}
    if twice:
        text = "; ".join(
            "{}: {}".format(stem, " and ".join(paths)) for stem, paths in twice.items()
        )
        if given.get("env_script"):
            raise harness.Failure("loaded twice: " + text)
        return {"warning": "loaded twice: " + text}
    return {"libraries": found}


def imported(name):
    importlib.import_module(name)
    return {}


def check(context):
    modules = installed(context.arguments["modules"])
    if len(modules) < 2:
        raise harness.Skip(
            "fewer than two of {} are installed".format(context.arguments["modules"])
        )
    for name in modules:
        yield context.case("import " + name, harness.subject, imported, name)
    yield context.case("one runtime", one_of_each, context.given)
