"""num.gemm_ident: a matrix times one is the matrix, bit for bit.

The cheapest way to see a float32 product that silently uses a shorter type: TF32 cuts the numbers
even when they are only multiplied by one.
"""

import harness
import torch

compare = harness.sibling("_compare")
products = harness.sibling("_products")

SIZES = (256, 500)
SMALLEST = 1e-3


def identity(dtype, size, side, seed, device):
    matrix = compare.randn((size, size), dtype, compare.generator(seed + size))
    # some matrix units flush the smallest 16-bit numbers to zero, and may
    matrix = torch.where(matrix.abs() < SMALLEST, torch.ones_like(matrix), matrix)
    one = torch.eye(size, dtype=dtype)
    pair = (one, matrix) if side == "left" else (matrix, one)
    found = harness.subject(products.product, pair[0], pair[1], "nn", device)
    return compare.exact(found, matrix.double(), "product")


def check(context):
    seed = int(context.arguments.get("seed", products.SEED))
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        for size in SIZES:
            for side in ("left", "right"):
                name = "{} {} one on the {}".format(compare.short(dtype), size, side)
                yield context.case(name, identity, dtype, size, side, seed, context.device)
