"""tri.offsets: places further than 2^31 elements from the start of a buffer.

An offset that is cut to 32 bits writes before the buffer, or at its start: the first is a fault of
the device, the second is looked for.
"""

import harness
import torch

common = harness.sibling("_triton")
compare = common.compare

BLOCK, BLOCKS = 1024, 8
STRIDE = 4096
FAR = 2**31 - 3 * STRIDE  # some blocks below, some above
COUNT = 2**31 + 2**16
EDGE = 2**16
MARK = 111


def far(kernels, device):
    """The buffer has 2 GiB; only its ends are filled and read."""
    buffer = torch.empty(COUNT, dtype=torch.int8, device=device)
    start, end = buffer[:EDGE], buffer[FAR - STRIDE :]
    start.fill_(MARK)
    end.fill_(MARK)
    kernels.far[(BLOCKS,)](buffer, FAR, STRIDE, BLOCK=BLOCK)
    return start.cpu(), end.cpu()


def expected(length):
    """What the end of the buffer has to hold."""
    wanted = torch.full((length,), MARK, dtype=torch.int8)
    for block in range(BLOCKS):
        place = STRIDE * (1 + block)
        wanted[place : place + BLOCK] = (torch.arange(BLOCK) % 100 + block + 1).to(torch.int8)
    return wanted


def written(kernels, device):
    start, end = harness.subject(far, kernels, device)
    metrics = compare.exact(end, expected(len(end)).double(), "end of the buffer")
    compare.exact(start, torch.full((EDGE,), float(MARK)).double(), "start of the buffer")
    return metrics


def check(context):
    kernels = common.prepare(context, "_kernels_more")
    name = "int8 blocks around 2^31 of {}".format(COUNT)
    yield context.case(name, written, kernels, context.device)
