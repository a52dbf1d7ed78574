"""sdpa.causal: torch's own attention, bf16 and causal, forward and backward."""

import harness
import torch
import torch.nn.functional as F

reference = harness.sibling("_attention")

SEED = 336
#: batch, heads, length, head dimension. Batches of one and of several: stride faults and wrong
#: gradients for the second batch are seen in the latter only.
SHAPES = ((2, 8, 128, 64), (2, 4, 333, 96), (1, 2, 512, 256), (2, 6, 113, 59), (3, 5, 1, 64))
DEVICE_SHAPES = ((2, 4, 1023, 128), (4, 8, 512, 128))


def native(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def transposed(q, k, v):
    """The same with the strides of (batch, length, heads, dimension), as models store it."""
    q, k, v = (item.transpose(1, 2).contiguous().transpose(1, 2) for item in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def judge(function, shape, seed, device):
    batch, heads, length, dim = shape
    tried = ((batch, heads, heads, length, length, dim), torch.bfloat16, seed)
    return reference.judge(function, tried, device, reference.NATIVE_OUT_FACTOR)


def check(context):
    seed = int(context.arguments.get("seed", SEED))
    shapes = SHAPES if context.on_cpu else SHAPES + DEVICE_SHAPES
    for number, shape in enumerate(shapes):
        name = "bf16 {}x{}x{}x{}".format(*shape)
        yield context.case(name, judge, native, shape, seed + number, context.device)
    shape = (2, 4, 257, 64)
    name = "bf16 {}x{}x{}x{} transposed".format(*shape)
    yield context.case(name, judge, transposed, shape, seed, context.device)
