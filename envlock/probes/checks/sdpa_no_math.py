"""sdpa.no_math: a long sequence does not fall back to the step-by-step computation in silence.

That one holds all scores at once: 2 GiB and more for this shape, where a fused kernel needs
nothing but the output. It gives right numbers, so that nothing else would tell.
"""

import harness
import torch
import torch.nn.functional as F

rules = harness.sibling("_rules")

SHAPE = (1, 16, 8192, 128)
LIMIT = 512 * 2**20  # bytes


def peak(device):
    q, k, v = (torch.randn(SHAPE, device=device, dtype=torch.bfloat16) for _ in range(3))
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    out = F.scaled_dot_product_attention(q, k, v)
    torch.cuda.synchronize()
    used = torch.cuda.max_memory_allocated() - before
    return used, bool(out.isfinite().all())


def memory(context):
    if context.on_cpu:
        raise harness.Skip("memory is counted on a device only")
    used, finite = harness.subject(peak, context.device)
    rules.must(finite, "the output is not finite")
    metrics = {"error": used, "limit": LIMIT, "margin": round(used / LIMIT, 4)}
    text = "took {:.0f} MiB: all scores at once".format(used / 2**20)
    rules.must(used <= LIMIT, text, **metrics)
    return metrics


def check(context):
    yield context.case("bf16 " + "x".join(map(str, SHAPE)), memory, context)
