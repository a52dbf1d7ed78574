"""tri.dot: matrix products on the matrix units: exact for whole numbers, and in the precision asked
for where numbers are real.

In float32 the default may be TF32 or the like (7.7e-4 off), on some devices and not on others: it
is held to that, and "ieee" to float32.
"""

import harness
import torch

common = harness.sibling("_triton")
compare = common.compare

#: rows, columns, inner: no whole number of blocks, and whole ones.
SHAPES = ((129, 97, 203), (512, 512, 512))
CPU_SHAPES = ((129, 97, 75),)
BLOCKS = {"BM": 64, "BN": 64, "BK": 32}
#: Whole numbers up to this keep every sum exact in the accumulator.
LIMITS = {torch.float16: 2, torch.bfloat16: 1, torch.float32: 8, torch.int8: 7}
IEEE_FRO = 1e-6
#: TF32 keeps ten bits: 7.7e-4 was measured. Half as much again is allowed.
DEFAULT_FRO = 1.2e-3
SHORTENED = 1e-4


def product(kernels, left, right, how, device):
    """The product in the accumulator's type, and the buffer with its guards. how: precision and
    number of warps."""
    import triton.language as tl

    precision, warps = how
    whole_numbers = left.dtype == torch.int8
    (rows, inner), columns = left.shape, right.shape[1]
    kind = torch.int32 if whole_numbers else torch.float32
    whole, out = common.guarded(rows * columns, kind, device)
    grid = (common.blocks(rows, BLOCKS["BM"]), common.blocks(columns, BLOCKS["BN"]))
    kernels.matmul[grid](
        left.to(device), right.to(device), out, rows, columns, inner, **BLOCKS,
        ACC=tl.int32 if whole_numbers else tl.float32, PRECISION=precision, num_warps=warps,
    )  # fmt: skip
    return out.cpu().view(rows, columns), whole


def exact(kernels, dtype, shape, warps, device):
    rows, columns, inner = shape
    source = compare.generator(common.SEED)
    left = compare.integers((rows, inner), dtype, source, LIMITS[dtype])
    right = compare.integers((inner, columns), dtype, source, LIMITS[dtype])
    found, whole = harness.subject(product, kernels, left, right, (None, warps), device)
    golden = left.double() @ right.double()
    metrics = compare.exact(found, golden, "product")
    common.guards_intact(whole)
    return metrics


def real(kernels, shape, precision, device):
    """Float32 in the precision asked for; None is the default."""
    rows, columns, inner = shape
    source = compare.generator(common.SEED)
    left = compare.randn((rows, inner), torch.float32, source)
    right = compare.randn((inner, columns), torch.float32, source)
    golden = left.double() @ right.double()
    fro = DEFAULT_FRO if precision is None else IEEE_FRO
    limit = 10 * fro * float(golden.norm()) / golden.numel() ** 0.5
    found, whole = harness.subject(product, kernels, left, right, (precision, 4), device)
    metrics = compare.within(found, golden, limit, fro, "product")
    common.guards_intact(whole)
    return {**metrics, "shortened": metrics["fro_rel"] > SHORTENED}


def check(context):
    kernels = common.prepare(context, "_kernels_more")
    device = context.device
    shapes = CPU_SHAPES if context.on_cpu else SHAPES
    for dtype in [*common.floats(context), torch.int8]:
        for shape in shapes:
            for warps in (4, 8):
                shown = "int8" if dtype == torch.int8 else compare.short(dtype)
                name = "exact {} {}x{}x{} warps={}".format(shown, *shape, warps)
                yield context.case(name, exact, kernels, dtype, shape, warps, device)
    for shape in shapes:
        for precision in ("ieee", None):
            name = "real fp32 {} {}x{}x{}".format(precision or "default", *shape)
            yield context.case(name, real, kernels, shape, precision, device)
