"""perf.copy: copies between host and device, from ordinary and from page-locked memory.

Every byte is counted once: it crosses the bus once. The target is there before the first copy.
"""

import os

import harness
import torch

timing = harness.sibling("_timing")

MIB = 1024 * 1024
SIZES = (64, 256, 1024)
WAYS = ("h2d", "d2h")
KINDS = ("pageable", "pinned")
ODD = -1640531535


def near_the_device():
    """Runs on the processors next to the device, where the system knows which those are: copies of
    ordinary memory depend on it. The number of their node."""
    found = torch.cuda.get_device_properties(0)
    parts = [getattr(found, "pci_{}_id".format(part), None) for part in ("domain", "bus", "device")]
    if None in parts:
        return None
    place = "/sys/bus/pci/devices/{:04x}:{:02x}:{:02x}.0/".format(*parts)
    try:
        with open(place + "numa_node", encoding="utf-8") as file:
            node = int(file.read())
        with open(place + "local_cpulist", encoding="utf-8") as file:
            ranges = [part.split("-") for part in file.read().strip().split(",")]
        near = {cpu for one in ranges for cpu in range(int(one[0]), int(one[-1]) + 1)}
        os.sched_setaffinity(0, near & os.sched_getaffinity(0))
        return node
    except (OSError, ValueError):
        return None


def in_host_memory(tensor, kind):
    return tensor.pin_memory() if kind == "pinned" else tensor


def one_copy(context, way, kind, size):
    memory = timing.Memory(context)
    # every element another one: no block can take another one's place
    host = torch.arange(size * MIB // 4, dtype=torch.int32).mul_(ODD)
    if way == "h2d":
        start, end = in_host_memory(host, kind), torch.zeros_like(host, device=context.device)
    else:
        start, end = host.to(context.device), in_host_memory(torch.zeros_like(host), kind)
    call = lambda: end.copy_(start, non_blocking=kind == "pinned")  # noqa: E731 - timed as it is
    metrics = harness.subject(timing.measure, context, call)
    if not torch.equal(end.cpu(), host):
        raise harness.Failure("what arrived is not what was sent", **metrics)
    metrics.update(memory.metrics())
    # ordinary memory is bounded by the processor that copies it once more
    floor = timing.FLOOR if kind == "pinned" else None
    return timing.rated(metrics, "host", moved=size * MIB, floor=floor)


def check(context):
    if context.on_cpu:
        raise harness.Skip("nothing is copied between host and device on a processor")
    timing.describe(context)
    context.facts["numa_node"] = near_the_device()
    kinds = context.arguments.get("kinds", KINDS)
    for size in context.arguments.get("sizes", SIZES):
        for way in WAYS:
            for kind in kinds:
                name = "{} {} {} MiB".format(way, kind, size)
                yield context.case(name, one_copy, context, way, kind, size)
