"""sdpa.shapes: torch's attention over shapes, layouts and types, forward and backward.

Kernels are built for head dimensions and blocks; odd ones are padded, and that is where they go
wrong. Faults of strides and of later batches need more than one batch.
"""

import harness
import torch

compare = harness.sibling("_compare")
rules = harness.sibling("_rules")
steps = harness.sibling("_attention")
sdpa = harness.sibling("_sdpa")

#: batch, heads, query length, key length, head dimension
SHAPES = (
    (2, 8, 128, 128, 64),
    (2, 4, 333, 333, 96),
    (1, 2, 512, 512, 256),
    (3, 5, 1, 239, 64),
    (2, 6, 113, 113, 59),
    (2, 6, 113, 203, 64),
    (1, 6, 203, 113, 64),
)
DEVICE_SHAPES = ((2, 4, 1023, 1023, 128), (4, 2, 1024, 1023, 80), (2, 4, 257, 257, 40))
LAYOUT_SHAPE = (2, 4, 129, 129, 64)
LAYOUTS = (("transposed", sdpa.transposed), ("last dimension scattered", sdpa.scattered))
HALF = (torch.bfloat16, torch.float16)


def judged(shape, dtype, options, seed, device, function=sdpa.native):
    batch, heads, rows, columns, dim = shape
    tensors = steps.inputs((batch, heads, heads, rows, columns, dim), dtype, seed)
    return sdpa.judge(tensors, options, device, function)


def name_of(dtype, shape, options):
    causal = " causal" if options.get("is_causal") else ""
    return "{} {}{}".format(compare.short(dtype), "x".join(map(str, shape)), causal)


def check(context):
    seed, device = rules.seed_of(context), context.device
    shapes = SHAPES if context.on_cpu else SHAPES + DEVICE_SHAPES
    for number, shape in enumerate(shapes):
        for dtype in HALF:
            # one kind for each type here: sdpa.causal has bf16 causal, sdpa.modes has the rest
            options = {"is_causal": True} if dtype == torch.float16 else {}
            name = name_of(dtype, shape, options)
            yield context.case(name, judged, shape, dtype, options, seed + number, device)
    for name, function in LAYOUTS:
        for dtype in HALF:
            shown = "{} {}".format(name_of(dtype, LAYOUT_SHAPE, {}), name)
            yield context.case(shown, judged, LAYOUT_SHAPE, dtype, {}, seed, device, function)
    for shape in (SHAPES[0], SHAPES[4]):
        name = name_of(torch.float32, shape, {})
        yield context.case(name, judged, shape, torch.float32, {}, seed, device)
