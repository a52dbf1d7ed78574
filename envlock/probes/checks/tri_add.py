"""tri.add: Triton compiles for the device, and what it compiles is right.

On a processor the kernels run in Triton's interpreter: that shows that Triton is whole, not that
it can compile for a device. The interpreter's bf16 arithmetic is wrong, so bf16 is for devices.
"""

import harness
import torch

common = harness.sibling("_triton")
compare = common.compare

COUNT = 65_537  # one more than a whole number of blocks
BLOCK = 256


def added(kernels, dtype, device):
    source = compare.generator(common.SEED)
    if dtype.is_floating_point:
        x, y = compare.randn((COUNT,), dtype, source), compare.randn((COUNT,), dtype, source)
    else:
        x, y = (compare.integers((COUNT,), dtype, source, 1_000_000) for _ in "xy")
    whole, out = common.guarded(COUNT, dtype, device)

    def launch():
        grid = (common.blocks(COUNT, BLOCK),)
        kernels.add[grid](x.to(device), y.to(device), out, COUNT, BLOCK=BLOCK)
        return out.cpu()

    metrics = compare.exact(harness.subject(launch), x.double() + y.double(), "sum")
    common.guards_intact(whole)
    return metrics


def check(context):
    kernels = common.prepare(context)
    for dtype in [*common.floats(context), torch.int32]:
        shown = str(dtype).replace("torch.", "") if dtype == torch.int32 else compare.short(dtype)
        name = "add {} n={} block={}".format(shown, COUNT, BLOCK)
        yield context.case(name, added, kernels, dtype, context.device)
