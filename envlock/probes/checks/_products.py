"""Matrix products to try: shapes, types, layouts. A shape is (rows, columns, inner)."""

import harness
import torch

compare = harness.sibling("_compare")

SEED = 336
SHAPES = (
    (256, 256, 256),
    (257, 129, 1031),
    (1000, 264, 4096),
    (127, 513, 65),
    (64, 64, 12288),
)
#: Only on a device: the reference alone would take the processor too long.
DEVICE_SHAPES = ((1, 4096, 4096), (8, 11008, 4096), (4096, 1, 4096))
#: Transposed storage of the left, of the right operand; tried on odd sizes.
LAYOUTS = ("nn", "nt", "tn", "tt")
LAYOUT_SHAPE = (257, 129, 1031)
HALF = (torch.float16, torch.bfloat16)


def shapes(context):
    return SHAPES if context.on_cpu else SHAPES + DEVICE_SHAPES


def plan(context, dtypes):
    """Every (type, shape, layout) with its seed, the same on every machine."""
    start = int(context.arguments.get("seed", SEED))
    for dtype in dtypes:
        for number, shape in enumerate(shapes(context)):
            layouts = LAYOUTS if shape == LAYOUT_SHAPE else ("nn",)
            for layout in layouts:
                yield dtype, shape, layout, start + number


def name_of(dtype, shape, layout):
    return "{} {}x{}x{} {}".format(compare.short(dtype), *shape, layout)


def placed(matrix, kind, device):
    """On the device, stored as it is (n) or transposed (t)."""
    if kind == "n":
        return matrix.to(device)
    return matrix.t().contiguous().to(device).t()


def product(left, right, layout, device):
    """The product under test, back on the CPU."""
    return (placed(left, layout[0], device) @ placed(right, layout[1], device)).cpu()


def golden(left, right):
    return left.double() @ right.double()
