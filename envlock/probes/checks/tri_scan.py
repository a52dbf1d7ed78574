"""tri.scan: running sums and sorting inside a block, which exchange values between threads.

Whole numbers, so exact.
"""

import harness
import torch

common = harness.sibling("_triton")
compare = common.compare

ROWS, COLUMNS, WIDE = 32, 229, 256
CPU_ROWS = 4


def scanned(kernels, rows, device):
    shape = (rows, COLUMNS)
    values = compare.integers(shape, torch.int32, compare.generator(common.SEED), 100_000)
    whole, sums = common.guarded(rows * COLUMNS, torch.int32, device)
    other, ordered = common.guarded(rows * COLUMNS, torch.int32, device)

    def launch():
        kernels.scan[(rows,)](values.to(device), sums, ordered, COLUMNS, BLOCK=WIDE)
        return sums.cpu().view(shape), ordered.cpu().view(shape)

    found, in_order = harness.subject(launch)
    metrics = compare.exact(found, values.double().cumsum(1), "running sum")
    compare.exact(in_order, values.sort(1).values.double(), "sorted row")
    common.guards_intact(whole)
    common.guards_intact(other)
    return metrics


def check(context):
    kernels = common.prepare(context, "_kernels_more")
    rows = CPU_ROWS if context.on_cpu else ROWS
    name = "running sum and sort int32 {}x{}".format(rows, COLUMNS)
    yield context.case(name, scanned, kernels, rows, context.device)
