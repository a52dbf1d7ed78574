"""num.gemm_big: large products of whole numbers, at the sizes that are also timed.

The reference of such a product would take minutes on the processor. Instead both sides are
multiplied by the same few vectors of plus and minus one (Freivalds): exact, since all are whole
numbers, and every row with a wrong element is missed by chance once in 2**COLUMNS times at most.
"""

import harness
import torch

compare = harness.sibling("_compare")
rules = harness.sibling("_rules")

SIZES, CPU_SIZES = (4096, 8192), (512,)
#: So large once only: making the numbers takes longer than multiplying them.
LARGEST = {torch.float16: 12288}
COLUMNS = 8
#: Largest magnitude: sums of bf16 are stored exactly up to 256 only, see :func:`kept`.
LIMITS = {torch.float16: 2, torch.bfloat16: 1, torch.float32: 8}


def signs(size, source):
    return torch.randint(0, 2, (size, COLUMNS), generator=source).double() * 2 - 1


def kept(dtype, size):
    """Whole numbers that the type can store as results: bf16 has eight bits, so few ones."""
    return 1.0 if dtype != torch.bfloat16 else min(1.0, 1024 / size)


def operands(dtype, size, seed):
    source = compare.generator(seed)
    limit = LIMITS[dtype]
    pair = [
        torch.randint(-limit, limit + 1, (size, size), generator=source, dtype=torch.int8).to(dtype)
        for _ in range(2)
    ]
    if kept(dtype, size) < 1.0:
        for item in pair:
            item *= (torch.rand(item.shape, generator=source) < kept(dtype, size)).to(dtype)
    return (*pair, signs(size, source))


def judged(dtype, size, seed, device):
    left, right, x = operands(dtype, size, seed)
    found = harness.subject(lambda: (left.to(device) @ right.to(device)).cpu())
    rules.must(bool(torch.isfinite(found).all()), "the product is not finite")
    rules.must(float(found.abs().max()) > 0, "the product is zero")
    rows = (found.double() @ x) - left.double() @ (right.double() @ x)
    wrong = int((rows != 0).any(1).sum())
    metrics = {"error": float(rows.abs().max()), "limit": 0.0, "wrong": wrong}
    rules.must(not wrong, "{} of {} rows are wrong".format(wrong, size), **metrics)
    return {**metrics, "margin": 0.0}


def check(context):
    seed = rules.seed_of(context)
    for size in CPU_SIZES if context.on_cpu else SIZES:
        for dtype in LIMITS:
            name = "{} {}".format(compare.short(dtype), size)
            yield context.case(name, judged, dtype, size, seed, context.device)
    for dtype, size in () if context.on_cpu else LARGEST.items():
        name = "{} {}".format(compare.short(dtype), size)
        yield context.case(name, judged, dtype, size, seed, context.device)
