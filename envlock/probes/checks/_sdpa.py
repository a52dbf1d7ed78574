"""References for torch's attention in all its modes, and the rule that judges it.

Layout is (batch, heads, length, head dimension). torch aligns its causal mask top-left. A row that
sees no key gives zero.
"""

import math

import harness
import torch
import torch.nn.functional as F

compare = harness.sibling("_compare")
rules = harness.sibling("_rules")
steps = harness.sibling("_attention")

#: How many times as far from double precision as the plain low-precision computation: 2 is
#: flash-attn's own rule, 10 is it for gradients on ROCm; torch allows its causal output 4.
OUT_FACTOR, CAUSAL_FACTOR, GRAD_FACTOR = 2.0, 4.0, 10.0
OUT_FLOOR, GRAD_FLOOR = 1e-5, 1e-4
FRO = {torch.float16: 2.5e-3, torch.bfloat16: 2e-2, torch.float32: 2e-5}
#: Inputs that make a few weights large round more; measured up to 1e-2 in bf16.
HARD = 2.0
NAMES = ("out", "dq", "dk", "dv")


def visible(options, rows, columns):
    """True where a key may be seen; None without a mask of that kind."""
    if options.get("is_causal"):
        return torch.ones(rows, columns, dtype=torch.bool).tril()
    mask = options.get("attn_mask")
    return mask if mask is not None and mask.dtype == torch.bool else None


def plain(q, k, v, options):
    """Attention step by step, in the type of its inputs."""
    scale = options.get("scale") or 1.0 / math.sqrt(q.shape[-1])
    groups = q.shape[1] // k.shape[1]
    keys, values = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    scores = q @ (keys * scale).transpose(-1, -2)
    mask, seen = options.get("attn_mask"), visible(options, q.shape[2], k.shape[2])
    if seen is not None:
        scores = scores.masked_fill(~seen, float("-inf"))
    elif mask is not None:
        scores = scores + mask.to(scores.dtype)
    weights = scores.softmax(-1)
    if seen is not None:
        weights = weights.masked_fill(~seen.any(-1)[..., None], 0.0)
    return weights @ values


def native(q, k, v, options):
    """torch's own; masks go where the inputs are."""
    placed = {
        key: value.to(q.device) if isinstance(value, torch.Tensor) else value
        for key, value in options.items()
    }
    mask = placed.get("attn_mask")
    if mask is not None and mask.dtype.is_floating_point:
        placed["attn_mask"] = mask.to(q.dtype)
    return F.scaled_dot_product_attention(q, k, v, **placed)


def transposed(q, k, v, options):
    """With the strides of (batch, length, heads, dimension), as models store it."""
    q, k, v = (item.transpose(1, 2).contiguous().transpose(1, 2) for item in (q, k, v))
    return native(q, k, v, options)


def scattered(q, k, v, options):
    """The last dimension is not contiguous."""
    q, k, v = (item.transpose(2, 3).contiguous().transpose(2, 3) for item in (q, k, v))
    return native(q, k, v, options)


def factor_of(name, options):
    if name != "out":
        return GRAD_FACTOR
    return CAUSAL_FACTOR if options.get("is_causal") else OUT_FACTOR


def judge(tensors, options, device, function=native, fro_factor=1.0):
    """Forward and backward against double precision. Returns metrics, raises Failure.

    tensors: q, k, v and the gradient of the output, on the CPU, in the type under test.
    """
    q, k, v, grad = tensors
    dtype = q.dtype

    def expected(*leaves):
        return plain(*leaves, options)

    def tried(*leaves):
        return function(*leaves, options)

    golden = steps.with_gradients(expected, [t.double() for t in (q, k, v)], grad.double())
    low = steps.with_gradients(expected, (q, k, v), grad)
    found = harness.subject(steps.on_device, tried, (q, k, v), grad, device)
    parts = {}
    for number, name in enumerate(NAMES):
        rules.must(found[number] is not None, "{} is missing".format(name))
        reference = compare.measure(low[number], golden[number])["max_abs"]
        floor = OUT_FLOOR if name == "out" else GRAD_FLOOR
        limit, fro_limit = factor_of(name, options) * reference + floor, FRO[dtype] * fro_factor
        metrics = compare.within(found[number], golden[number], limit, fro_limit, name)
        parts[name] = {**metrics, "ref_err": reference}
    return compare.worst(parts)
