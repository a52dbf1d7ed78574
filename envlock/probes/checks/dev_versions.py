"""dev.versions: the driver is new enough for the stack. A warning: the vendor warns as well."""

import importlib.util
import os
import re

import harness

tools = harness.sibling("_tools")

_NVIDIA = "/proc/driver/nvidia/version"
_RELEASE = re.compile(r"\d+(?:\.\d+)*")
_CUDA = re.compile(r"^cuda\b[^=\n]*=\s*['\"]([\d.]+)['\"]", re.M)


def numbers(text):
    """``(6, 3, 31)`` of ``6.3.31-V1.5.0a``: of a driver the numeric part counts."""
    found = _RELEASE.search(text)
    return tuple(int(part) for part in found.group().split(".")) if found else ()


def driver(given):
    """The driver's version as the vendor's tool says it; empty when nobody does."""
    if given.get("kind") == "cuda":
        path = tools.tool("nvidia-smi", given)
        wanted = ["--query-gpu=driver_version", "--format=csv,noheader"]
        lines = tools.ask([path, *wanted]).split() if path else []
        return lines[0] if lines else module_version(_read(_NVIDIA))
    for name in given.get("tools") or ():
        path = tools.tool(name, given)
        text = tools.ask([path, "--showdriverversion"]) if path else ""
        found = re.search(r"[Dd]river [Vv]ersion\s*:\s*(\S+)", text)
        if found:
            return found.group(1)
    return ""


def module_version(text):
    found = re.search(r"Kernel Module[^\d]*([\d.]+)", text)
    return found.group(1) if found else ""


def _read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def release(given):
    """Release of the stack; of CUDA the one that torch was built for, read from its files."""
    if given.get("kind") != "cuda":
        return given.get("release", "")
    try:
        found = importlib.util.find_spec("torch")
    except (ImportError, ValueError):
        return ""
    folder = os.path.dirname(found.origin) if found and found.origin else ""
    said = _CUDA.search(_read(os.path.join(folder, "version.py")))
    return said.group(1) if said else ""


def oldest(drivers, wanted):
    """The oldest driver for a release, by the longest entry that fits; None where nobody says."""
    entries = [(numbers(name), drivers[name]) for name in drivers]
    fitting = [entry for entry in entries if wanted[: len(entry[0])] == entry[0]]
    return max(fitting)[1] if fitting else None


def new_enough(found, wanted, drivers):
    needed = oldest(drivers, numbers(wanted))
    metrics = {"driver": found, "release": wanted, "needed": needed}
    if needed is None:
        raise harness.Skip("nobody says which driver '{}' needs".format(wanted))
    if numbers(found) < numbers(needed):
        metrics["warning"] = "driver {} for {}, which needs {} or newer".format(
            found, wanted, needed
        )
    return metrics


def check(context):
    if context.on_cpu:
        raise harness.Skip("no device is asked for")
    found, wanted = driver(context.given), release(context.given)
    context.facts.update(driver=found, release=wanted)
    if not found or not wanted:
        raise harness.Skip(
            "no tool says the version of {}".format("the stack" if found else "the driver")
        )
    yield context.case("driver", new_enough, found, wanted, context.given.get("drivers") or {})
