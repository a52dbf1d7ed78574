"""num.gemm_exact: products of whole numbers, bit for bit.

Sums of products of small whole numbers are exact in every order of adding, so the result has to be
the double-precision one, rounded once. Finds dropped slices, stale tiles, accumulation in a type
that is too small for the sum, and every single wrong element.
"""

import harness
import torch

compare = harness.sibling("_compare")
products = harness.sibling("_products")

#: Largest magnitude of the inputs: sums stay exact in the accumulator (below 2**24).
LIMITS = {torch.float16: 2, torch.bfloat16: 1, torch.float32: 8, torch.float64: 64}


def one_product(dtype, shape, layout, seed, device):
    rows, columns, inner = shape
    source = compare.generator(seed)
    left = compare.integers((rows, inner), dtype, source, LIMITS[dtype])
    right = compare.integers((inner, columns), dtype, source, LIMITS[dtype])
    found = harness.subject(products.product, left, right, layout, device)
    return compare.exact(found, products.golden(left, right), "product")


def batched(dtype, device):
    source = compare.generator(products.SEED)
    left = compare.integers((17, 33, 129), dtype, source, LIMITS[dtype])
    right = compare.integers((17, 129, 65), dtype, source, LIMITS[dtype])
    found = harness.subject(lambda: torch.bmm(left.to(device), right.to(device)).cpu())
    return compare.exact(found, products.golden(left, right), "batched product")


def added(dtype, device):
    """2 (left right) - bias."""
    source = compare.generator(products.SEED)
    left = compare.integers((129, 257), dtype, source, 1)
    right = compare.integers((257, 65), dtype, source, 1)
    bias = compare.integers((129, 65), dtype, source, 1)
    found = harness.subject(
        lambda: torch.addmm(
            bias.to(device), left.to(device), right.to(device), beta=-1, alpha=2
        ).cpu()
    )
    return compare.exact(found, 2 * products.golden(left, right) - bias.double(), "sum")


def linear(dtype, device):
    source = compare.generator(products.SEED)
    rows = compare.integers((2, 33, 127), dtype, source, 1)
    weight = compare.integers((65, 127), dtype, source, 1)
    bias = compare.integers((65,), dtype, source, 1)
    place = [item.to(device) for item in (rows, weight, bias)]
    found = harness.subject(lambda: torch.nn.functional.linear(*place).cpu())
    golden = rows.double() @ weight.double().t() + bias.double()
    return compare.exact(found, golden, "linear layer")


def empty(dtype, device):
    """An inner size of zero gives zeros, not what was in memory."""
    left, right = torch.empty(5, 0, dtype=dtype), torch.empty(0, 7, dtype=dtype)
    found = harness.subject(products.product, left, right, "nn", device)
    return compare.exact(found, torch.zeros(5, 7, dtype=torch.float64), "empty product")


EXTRA = (("bmm", batched), ("addmm", added), ("linear", linear), ("inner 0", empty))


def check(context):
    dtypes = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
    for dtype, shape, layout, seed in products.plan(context, dtypes):
        name = products.name_of(dtype, shape, layout)
        yield context.case(name, one_product, dtype, shape, layout, seed, context.device)
    for dtype in products.HALF:
        for name, function in EXTRA:
            shown = "{} {}".format(compare.short(dtype), name)
            yield context.case(shown, function, dtype, context.device)
