"""fa.sweep: flash-attn over every head dimension and length of its own tests.

Each dimension with one pair of lengths and each pair with one dimension, not all with all: the
reference would take the processor hours.
"""

import harness
import torch

reference = harness.sibling("_attention")
flash = harness.sibling("_flash")

SEED = 336
DIMS = (32, 40, 59, 64, 72, 80, 96, 104, 111, 128, 160, 192, 224, 256)
LENGTHS = (
    (113, 203), (128, 217), (113, 211), (108, 256), (256, 512), (512, 256), (1024, 1024),
    (1023, 1024), (1024, 1023), (2048, 2048), (1, 239), (3, 799), (127, 512), (127, 513),
)  # fmt: skip
HEADS = ((6, 6), (6, 2), (6, 1))
#: More weights than this in one case: half the batch, then a quarter.
MOST = 4 * 6 * 512 * 512
#: On a processor: enough to see that the check works.
CPU_DIMS, CPU_LENGTHS = (59, 72, 160), ((57, 103), (64, 33), (3, 79))


def batch_for(rows, columns):
    """Never one: some faults are in the second batch only."""
    return max(2, min(4, 4 * MOST // (4 * 6 * rows * columns)))


def plan(on_cpu):
    """Shapes, types and modes. A dimension meets different lengths for its two types."""
    dims, lengths = (CPU_DIMS, CPU_LENGTHS) if on_cpu else (DIMS, LENGTHS)
    number = 0
    for kind, dtype in enumerate((torch.bfloat16, torch.float16)):
        for place, dim in enumerate(dims):
            rows, columns = lengths[(place * (1 + 2 * kind) + kind) % len(lengths)]
            heads = HEADS[number % len(HEADS)]
            mode = reference.FULL if (place + kind) % 2 else reference.CAUSAL
            yield (batch_for(rows, columns), *heads, rows, columns, dim), dtype, number, mode
            number += 1


def check(context):
    function = flash.find_function(context)
    seed = int(context.arguments.get("seed", SEED))
    for shape, dtype, number, mode in plan(context.on_cpu):
        name = flash.name_of(shape, dtype, mode)
        tried = (shape, dtype, seed + number, mode)
        yield context.case(name, flash.one, function, tried, context.device)
