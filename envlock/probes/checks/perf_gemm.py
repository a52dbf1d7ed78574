"""perf.gemm: how fast square matrix products are, with caches as the product before left them.

2 n**3 operations. The output is NaN before, and a block of it is compared with double precision
after: a kernel that never ran is the fastest of all.
"""

import harness
import torch

compare = harness.sibling("_compare")
timing = harness.sibling("_timing")

SEED = 336
SIZES = (2048, 4096, 8192, 12288)
CPU_SIZES = (256, 512)
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
#: Also with empty caches, as the first product of a step finds them.
COLD = ((torch.float16, 4096), (torch.bfloat16, 4096))
#: Smaller products are bounded by their launch.
LARGE = 4096
#: Rows and columns of the block that is compared.
BLOCK = 64


def one_product(context, dtype, size, cold):
    memory = timing.Memory(context)
    left = timing.randn((size, size), dtype, context.device, SEED)
    right = timing.randn((size, size), dtype, context.device, SEED + 1)
    out = torch.full((size, size), float("nan"), dtype=dtype, device=context.device)
    call = lambda: torch.matmul(left, right, out=out)  # noqa: E731 - timed as it is
    metrics = harness.subject(timing.measure, context, call, cold)
    metrics.update(right_block(left, right, out), **memory.metrics())
    floor = timing.FLOOR if size >= LARGE and not cold else None
    return timing.rated(metrics, compare.short(dtype), flops=2 * size**3, floor=floor)


def right_block(left, right, out):
    """Margin of a block of rows and columns from all over the product; no NaN anywhere."""
    if torch.isnan(out).any():
        raise harness.Failure("the product holds NaN after the timed calls")
    chosen = torch.linspace(0, out.shape[0] - 1, BLOCK).long()
    place = chosen.to(out.device)
    golden = left[place].cpu().double() @ right[:, place].cpu().double()
    limit = compare.GEMM_FRO[out.dtype]
    found = compare.measure(out[place][:, place], golden)
    if not found["fro_rel"] <= limit:
        text = "relative error {:.2e} after the timed calls, over {:.0e}"
        raise harness.Failure(text.format(found["fro_rel"], limit), **found)
    return {"fro_rel": found["fro_rel"], "fro_limit": limit}


def check(context):
    timing.describe(context)
    sizes = context.arguments.get("sizes") or (CPU_SIZES if context.on_cpu else SIZES)
    wanted = context.arguments.get("dtypes")
    for dtype in DTYPES:
        if wanted and compare.short(dtype) not in wanted:
            continue
        for size in sizes:
            name = "gemm {} {}".format(compare.short(dtype), size)
            yield context.case(name, one_product, context, dtype, size, False)
            if (dtype, size) in COLD and not wanted:
                yield context.case(name + " cold", one_product, context, dtype, size, True)
