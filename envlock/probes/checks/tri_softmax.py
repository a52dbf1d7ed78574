"""tri.softmax: a row at a time, with a mask where the row ends before the block does."""

import harness
import torch

common = harness.sibling("_triton")
compare = common.compare

ROWS, COLUMNS, WIDE = 64, 781, 1024
#: Softmax of real numbers in float32, stored in the type of the input.
FRO = {torch.float32: 1e-6, torch.float16: 6e-4, torch.bfloat16: 5e-3}


def softmax(kernels, dtype, device):
    values = compare.randn((ROWS, COLUMNS), dtype, compare.generator(common.SEED))
    whole, out = common.guarded(ROWS * COLUMNS, dtype, device)

    def launch():
        kernels.softmax[(ROWS,)](values.to(device), out, COLUMNS, BLOCK=WIDE)
        return out.cpu()

    found = harness.subject(launch).view(ROWS, COLUMNS)
    metrics = common.close(found, values.double().softmax(-1), FRO[dtype], "softmax")
    common.guards_intact(whole)
    return metrics


def check(context):
    kernels = common.prepare(context)
    for dtype in common.floats(context):
        name = "softmax {} {}x{} block={}".format(compare.short(dtype), ROWS, COLUMNS, WIDE)
        yield context.case(name, softmax, kernels, dtype, context.device)
