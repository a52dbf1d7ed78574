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


def batched(dtype, source, device):
    left = compare.integers((17, 33, 129), dtype, source, LIMITS[dtype])
    right = compare.integers((17, 129, 65), dtype, source, LIMITS[dtype])
    found = harness.subject(lambda: torch.bmm(left.to(device), right.to(device)).cpu())
    return compare.exact(found, products.golden(left, right), "batched product")


def broadcast(dtype, source, device):
    """One right operand for all batches, without its being copied."""
    left = compare.integers((3, 1, 33, 129), dtype, source, LIMITS[dtype])
    right = compare.integers((5, 129, 65), dtype, source, LIMITS[dtype])
    found = harness.subject(lambda: (left.to(device) @ right.to(device)).cpu())
    return compare.exact(found, products.golden(left, right), "broadcast product")


def strided(dtype, source, device):
    """Parts of larger matrices: rows are further apart than they are long."""
    left = compare.integers((257, 300), dtype, source, LIMITS[dtype])
    right = compare.integers((300, 400), dtype, source, LIMITS[dtype])

    def parts(left, right):
        return left[:, 7:250] @ right[7:250, 3:390:2]

    found = harness.subject(lambda: parts(left.to(device), right.to(device)).cpu())
    return compare.exact(found, parts(left.double(), right.double()), "product of parts")


def vector(dtype, source, device):
    left = compare.integers((513, 1031), dtype, source, LIMITS[dtype])
    right = compare.integers((1031,), dtype, source, LIMITS[dtype])
    found = harness.subject(lambda: torch.mv(left.to(device), right.to(device)).cpu())
    return compare.exact(found, products.golden(left, right), "product with a vector")


def added(dtype, source, device):
    """2 (left right) - bias."""
    left = compare.integers((129, 257), dtype, source, 1)
    right = compare.integers((257, 65), dtype, source, 1)
    bias = compare.integers((129, 65), dtype, source, 1)
    found = harness.subject(
        lambda: torch.addmm(
            bias.to(device), left.to(device), right.to(device), beta=-1, alpha=2
        ).cpu()
    )
    return compare.exact(found, 2 * products.golden(left, right) - bias.double(), "sum")


def linear(dtype, source, device):
    rows = compare.integers((2, 33, 127), dtype, source, 1)
    weight = compare.integers((65, 127), dtype, source, 1)
    bias = compare.integers((65,), dtype, source, 1)
    place = [item.to(device) for item in (rows, weight, bias)]
    found = harness.subject(lambda: torch.nn.functional.linear(*place).cpu())
    golden = rows.double() @ weight.double().t() + bias.double()
    return compare.exact(found, golden, "linear layer")


def empty(dtype, source, device):
    """An inner size of zero gives zeros, not what was in memory; no rows give no rows."""
    left, right = torch.empty(5, 0, dtype=dtype), torch.empty(0, 7, dtype=dtype)
    found = harness.subject(products.product, left, right, "nn", device)
    compare.exact(found, torch.zeros(5, 7, dtype=torch.float64), "empty product")
    none = harness.subject(products.product, left[:0], right, "nn", device)
    return compare.exact(none, torch.zeros(0, 7, dtype=torch.float64), "product without rows")


def short(context, source):
    """float8, stored as bf16, where the device has it."""
    if "fp8" in context.unsupported:
        raise harness.Skip("the profile says that this device has no fp8")
    dtype = getattr(torch, "float8_e4m3fn", None)
    if dtype is None or context.on_cpu or not has_fp8():
        raise harness.Skip("no fp8 products here")
    left = compare.integers((64, 256), torch.float32, source, 1)
    right = compare.integers((48, 256), torch.float32, source, 1)

    def run():
        one = torch.ones((), device=context.device)
        pair = [item.to(context.device).to(dtype) for item in (left, right)]
        return torch._scaled_mm(pair[0], pair[1].t(), one, one, out_dtype=torch.bfloat16).cpu()

    return compare.exact(harness.subject(run), products.golden(left, right.t()), "product")


def has_fp8():
    """NVIDIA has it since Ada; AMD's own architectures say so in their name, and use other ones."""
    return not torch.version.hip and torch.cuda.get_device_capability() >= (8, 9)


EXTRA = (
    ("bmm", batched),
    ("broadcast", broadcast),
    ("strided", strided),
    ("vector", vector),
    ("addmm", added),
    ("linear", linear),
    ("inner 0", empty),
)


def check(context):
    dtypes = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
    for dtype, shape, layout, seed in products.plan(context, dtypes):
        name = products.name_of(dtype, shape, layout)
        yield context.case(name, one_product, dtype, shape, layout, seed, context.device)
    seed = int(context.arguments.get("seed", products.SEED))
    for dtype in dtypes:
        for name, function in EXTRA:
            shown = "{} {}".format(compare.short(dtype), name)
            yield context.case(shown, function, dtype, compare.generator(seed), context.device)
    yield context.case("fp8", short, context, compare.generator(seed))
