"""fa.dims: flash-attn over head dimensions, types, kinds of heads and odd lengths.

The standard set. Batches of several with 96 and 256: there, and only there, some kernels had a
right forward and wrong gradients. Inputs with one large channel: plain normal numbers hid that.
"""

import itertools

import harness
import torch

reference = harness.sibling("_attention")
flash = harness.sibling("_flash")

SEED = 336
DIMS = (32, 64, 96, 128, 256)
#: query heads, key heads: own, grouped, one for all.
HEADS = ((6, 6), (6, 2), (6, 1))
#: No whole number of blocks of 64 or 128, equal and unequal, and one query.
LENGTHS = ((113, 203), (127, 127), (108, 256), (1, 239))
DEVICE_LENGTHS = ((512, 512), (1023, 1024))
CPU_LENGTHS = ((57, 103), (67, 67), (54, 129), (1, 119))
#: (batch, query heads, key heads, query length, key length, head dimension) for large channels.
OUTLIERS = (2, 6, 2, 113, 113, 256)
CHANNEL = 50.0
SPREAD = reference.LARGE._replace(dq=10.0, dkv=10.0)


def plan(on_cpu):
    """Every dimension in both types, causal and not; heads and lengths in turn. On a device the
    batch is as in flash-attn's tests."""
    lengths = CPU_LENGTHS if on_cpu else LENGTHS + DEVICE_LENGTHS
    tried = itertools.product(DIMS, (torch.bfloat16, torch.float16), (True, False))
    for number, (dim, dtype, causal) in enumerate(tried):
        heads, kv_heads = HEADS[number % len(HEADS)]
        rows, columns = lengths[number % len(lengths)]
        mode = reference.CAUSAL if causal else reference.FULL
        yield (2 if on_cpu else 4, heads, kv_heads, rows, columns, dim), dtype, number, mode


def outliers(function, shape, seed, device):
    """One channel of q and one of v fifty times as large."""
    q, k, v, grad = reference.inputs(shape, torch.bfloat16, seed)
    q[..., 0] *= CHANNEL
    v[..., 1] *= CHANNEL
    return flash.judged(function, reference.CAUSAL, (q, k, v, grad), device, SPREAD)


def check(context):
    function = flash.find_function(context)
    seed = int(context.arguments.get("seed", SEED))
    for shape, dtype, number, mode in plan(context.on_cpu):
        tried = (shape, dtype, seed + number, mode)
        yield context.case(
            flash.name_of(shape, dtype, mode), flash.one, function, tried, context.device
        )
    name = flash.name_of(OUTLIERS, torch.bfloat16, reference.CAUSAL) + " large channels"
    yield context.case(name, outliers, function, OUTLIERS, seed, context.device)
