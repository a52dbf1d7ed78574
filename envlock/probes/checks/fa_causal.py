"""fa.causal: flash-attn, bf16 and causal, forward and backward.

Head dimensions 64, 96 and 128, grouped key heads, lengths that differ (the mask is aligned
bottom-right), batches of one and of several.
"""

import harness
import torch

reference = harness.sibling("_attention")
flash = harness.sibling("_flash")

SEED = 336
#: batch, query heads, key heads, query length, key length, head dimension.
SHAPES = (
    (2, 8, 8, 128, 128, 64),
    (2, 6, 2, 113, 203, 64),
    (2, 8, 2, 128, 128, 96),
    (3, 4, 1, 127, 127, 128),
    (1, 6, 6, 1, 239, 64),
)
DEVICE_SHAPES = (
    (4, 6, 6, 113, 203, 64),
    (4, 6, 2, 333, 333, 96),
    (4, 6, 1, 512, 512, 128),
    (2, 8, 8, 1023, 1024, 128),
)


def check(context):
    function = flash.find_function(context)
    seed = int(context.arguments.get("seed", SEED))
    shapes = SHAPES if context.on_cpu else SHAPES + DEVICE_SHAPES
    for number, shape in enumerate(shapes):
        name = "bf16 {}x{}/{}x{}x{}x{}".format(*shape)
        tried = (shape, torch.bfloat16, seed + number, reference.CAUSAL)
        yield context.case(name, flash.one, function, tried, context.device)
