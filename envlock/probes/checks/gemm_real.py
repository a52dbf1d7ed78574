"""num.gemm_real: products of real numbers, against double precision.

Two rules together, since each alone is blind to something: the relative Frobenius error sees a
wrong accumulation, the largest error against the rounding of the right result sees one wrong
element.
"""

import harness
import torch

compare = harness.sibling("_compare")
products = harness.sibling("_products")

#: Above this a float32 product was computed in a shorter type (TF32 gives 7.7e-4).
SHORTENED = 1e-4


def one_product(dtype, shape, layout, seed, device):
    rows, columns, inner = shape
    source = compare.generator(seed)
    left = compare.randn((rows, inner), dtype, source)
    right = compare.randn((inner, columns), dtype, source)
    found = harness.subject(products.product, left, right, layout, device)
    try:
        return compare.as_rounded(found, products.golden(left, right), "product")
    except harness.Failure as failure:
        if dtype == torch.float32 and SHORTENED < failure.metrics.get("fro_rel", 0.0) < 1e-2:
            text = "float32 is not computed in float32 (TF32 or the like): {}".format(failure)
            raise harness.Failure(text, **failure.metrics) from failure
        raise


def check(context):
    dtypes = (*products.HALF, torch.float32, torch.float64)
    for dtype, shape, layout, seed in products.plan(context, dtypes):
        name = products.name_of(dtype, shape, layout)
        yield context.case(name, one_product, dtype, shape, layout, seed, context.device)
