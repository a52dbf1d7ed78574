"""tri.attention: the usual attention kernel in Triton, causal, forward: two products, a running
maximum and a loop of run-time length in one kernel."""

import harness

common = harness.sibling("_triton")
compare = common.compare
reference = harness.sibling("_attention")

#: heads, length, head dimension.
SHAPES = ((8, 511, 64), (4, 1024, 128))
CPU_SHAPES = ((2, 75, 64),)
BLOCKS = {"BM": 64, "BN": 32}


def attend(kernels, dtype, shape, device):
    heads, length, dim = shape
    sizes = (1, heads, heads, length, length, dim)
    q, k, v, _ = reference.inputs(sizes, dtype, common.SEED)
    golden = reference.attention(q.double(), k.double(), v.double())
    low = reference.attention(q.float(), k.float(), v.float(), dtype=dtype)
    whole, out = common.guarded(heads * length * dim, dtype, device)

    def launch():
        grid = (common.blocks(length, BLOCKS["BM"]), heads)
        kernels.attend[grid](
            q.to(device), k.to(device), v.to(device), out, length, dim**-0.5, DIM=dim, **BLOCKS
        )
        return out.cpu().view(1, heads, length, dim)

    found = harness.subject(launch)
    metrics = reference.judge_part("out", found, golden, low, reference.USUAL)
    common.guards_intact(whole)
    return metrics


def check(context):
    kernels = common.prepare(context, "_kernels_more")
    shapes = CPU_SHAPES if context.on_cpu else SHAPES
    for dtype in common.floats(context)[1:]:
        for shape in shapes:
            name = "{} {}x{}x{} causal".format(compare.short(dtype), *shape)
            yield context.case(name, attend, kernels, dtype, shape, context.device)
