"""dev.visible: the variables that choose devices do not contradict each other or hide them all."""

import glob
import re

import harness

_NUMBER = re.compile(r"\d+\Z")
_NAMED = re.compile(r"(GPU|MIG)-?[0-9a-fA-F/-]+\Z")
#: Different names for one choice, each read by some libraries.
SAME = ("HIP_VISIBLE_DEVICES", "HCU_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
#: Where the driver lists its devices, by kind of runtime.
_LISTS = {
    "cuda": "/proc/driver/nvidia/gpus/*",
    "hip": "/sys/class/kfd/kfd/topology/nodes/*/gpu_id",
}


def devices(kind):
    """Number of devices that the driver has, or 0 where it does not say."""
    paths = glob.glob(_LISTS.get(kind, ""))
    if kind != "hip":
        return len(paths)
    return sum(1 for path in paths if read(path) not in ("", "0"))  # a processor has the id 0


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


def choice(value):
    """The devices a value names, up to the first that is none: the runtimes stop there."""
    names = [part.strip() for part in value.split(",")]
    for index, name in enumerate(names):
        if not (_NUMBER.match(name) or _NAMED.match(name)):
            return names[:index]
    return names


def alone(name, value, count):
    """One variable by itself: what is wrong with it, or empty."""
    chosen = choice(value)
    if not chosen:
        return "{}='{}' hides every device".format(name, value)
    if len(set(chosen)) < len(chosen):
        return "{}='{}' names a device twice".format(name, value)
    if len(chosen) < len(value.split(",")):
        return "{}='{}': what follows '{}' is ignored".format(name, value, chosen[-1])
    beyond = [one for one in chosen if count and _NUMBER.match(one) and int(one) >= count]
    if beyond:
        return "{}='{}', and there are {} devices: {} is none".format(name, value, count, beyond[0])
    return ""


def together(given):
    """Variables that contradict each other. HIP's own choose inside what ROCR has chosen."""
    problems = []
    names = [name for name in SAME if name in given]
    for one, other in zip(names, names[1:]):  # noqa: RUF007 - Python 3.8
        if choice(given[one]) != choice(given[other]):
            problems.append(
                "{}='{}' and {}='{}' differ: libraries read one or the other".format(
                    one, given[one], other, given[other]
                )
            )
    rocr = given.get("ROCR_VISIBLE_DEVICES")
    for name in names if rocr is not None else ():
        room = len(choice(rocr))
        beyond = [one for one in choice(given[name]) if _NUMBER.match(one) and int(one) >= room]
        if beyond:
            problems.append(
                "{}='{}' counts inside ROCR_VISIBLE_DEVICES='{}', which leaves {}".format(
                    name, given[name], rocr, room
                )
            )
    return problems


def sound(name, value, count):
    problem = alone(name, value, count)
    if problem:
        raise harness.Failure(problem, value=value)
    return {"value": value, "devices": choice(value)}


def agreeing(given):
    problems = together(given)
    if problems:
        raise harness.Failure("; ".join(problems))
    return {"variables": sorted(given)}


def check(context):
    if context.on_cpu:
        raise harness.Skip("no device is asked for")
    names = context.given.get("visible") or ()
    said = context.given.get("variables") or {}
    given = {name: said[name] for name in names if name in said}
    inner = "ROCR_VISIBLE_DEVICES" in given  # its numbers are the machine's, the others' are not
    count = devices(context.given.get("kind", ""))
    context.facts.update(variables=given, devices=count)
    for name, value in given.items():
        known = 0 if inner and name != "ROCR_VISIBLE_DEVICES" else count
        yield context.case(name, sound, name, value, known)
    yield context.case("together", agreeing, given)
