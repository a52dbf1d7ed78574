"""perf.memory: how fast the device's own memory is.

A copy reads and writes every byte: twice the size is moved. A sum of two vectors reads two and
writes one: three times the size of one vector.
"""

import harness
import torch

timing = harness.sibling("_timing")

SEED = 336
MIB = 1024 * 1024
SIZES = (256, 1024, 4096)
CPU_SIZES = (4, 16)
#: Calls of a kernel that does nothing worth timing: what is left is the launch.
TINY = 1
EVERY = 4099  # one element in so many is compared on the host


def floor(size):
    """Smaller vectors fit in the caches."""
    return timing.FLOOR if size >= SIZES[0] else None


def copied(context, size):
    memory = timing.Memory(context)
    start = timing.randn((size * MIB // 4,), torch.float32, context.device, SEED)
    end = torch.full_like(start, float("nan"))
    metrics = harness.subject(timing.measure, context, lambda: end.copy_(start))
    if not torch.equal(end, start):
        raise harness.Failure("the copy is not equal to what was copied", **metrics)
    metrics.update(memory.metrics())
    return timing.rated(metrics, "memory", moved=2 * size * MIB, floor=floor(size))


def added(context, size, add):
    """add(x, y, out) writes the sum."""
    memory = timing.Memory(context)
    x = timing.randn((size * MIB // 4,), torch.float32, context.device, SEED)
    y = timing.randn((size * MIB // 4,), torch.float32, context.device, SEED + 1)
    out = torch.full_like(x, float("nan"))
    metrics = harness.subject(timing.measure, context, lambda: add(x, y, out))
    parts = [item[::EVERY].cpu() for item in (x, y, out)]
    if torch.isnan(out).any() or not torch.equal(parts[0] + parts[1], parts[2]):
        raise harness.Failure("the sum is wrong after the timed calls", **metrics)
    metrics.update(memory.metrics())
    return timing.rated(metrics, "memory", moved=3 * size * MIB, floor=floor(size))


def torch_add(x, y, out):
    torch.add(x, y, out=out)


def triton_add(context):
    """The same by a kernel of Triton's."""
    if context.on_cpu:
        raise harness.Skip("Triton has no kernels for the processor")
    try:
        import triton
    except ImportError as error:
        raise harness.Skip(harness.describe(error)) from error
    kernels, block = harness.sibling("_kernels"), 4096

    def add(x, y, out):
        count = x.numel()
        kernels.add[(triton.cdiv(count, block),)](x, y, out, count, BLOCK=block)

    return add


def with_triton(context, size):
    return added(context, size, triton_add(context))


def launched(context):
    """Seconds from call to call of the smallest kernel."""
    one = torch.zeros(TINY, device=context.device)
    metrics = harness.subject(timing.measure, context, lambda: one.add_(1))
    total = float(one)
    if not total > metrics["samples"] * metrics["calls"]:
        raise harness.Failure("{} calls of one added {}".format(metrics["samples"], total))
    return metrics


def check(context):
    timing.describe(context)
    sizes = context.arguments.get("sizes") or (CPU_SIZES if context.on_cpu else SIZES)
    for size in sizes:
        yield context.case("copy {} MiB".format(size), copied, context, size)
    for size in sizes:
        yield context.case("add fp32 {} MiB".format(size), added, context, size, torch_add)
    yield context.case("triton add fp32 {} MiB".format(sizes[-1]), with_triton, context, sizes[-1])
    yield context.case("launch", launched, context)
