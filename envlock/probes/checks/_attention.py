"""References for attention, and the rule that judges it.

Layout here is (batch, heads, length, head dimension). Causal masks are aligned bottom-right, as
flash-attn does since 2.1; for equal lengths that is the usual triangle.
"""

import math

import harness
import torch

compare = harness.sibling("_compare")

#: How many times as far from the double-precision reference as the plain low-precision one:
#: forward as flash-attn's own tests, causal gradients as its tests for ROCm.
OUT_FACTOR, GRAD_FACTOR = 2.0, 10.0
#: torch chooses among several kernels; its own tests allow their causal output twice as much.
NATIVE_OUT_FACTOR = 4.0
OUT_FLOOR, GRAD_FLOOR = 1e-5, 1e-4
NAMES = ("out", "dq", "dk", "dv")


def hidden(rows, columns):
    """True where a causal mask hides a key, aligned bottom-right."""
    ones = torch.ones(rows, columns, dtype=torch.bool)
    return ones.triu(columns - rows + 1)


def attention(q, k, v, scale=None):
    """Causal attention, step by step, in the type of its inputs; key heads are repeated."""
    scale = 1.0 / math.sqrt(q.shape[-1]) if scale is None else scale
    groups = q.shape[1] // k.shape[1]
    keys, values = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    scores = q @ (keys * scale).transpose(-1, -2)
    mask = hidden(q.shape[2], k.shape[2])
    weights = scores.masked_fill(mask, float("-inf")).softmax(-1)
    # a row that sees no key: softmax of nothing is NaN, the answer is zero
    weights = weights.masked_fill(mask.all(-1)[:, None], 0.0)
    return weights @ values


def inputs(shape, dtype, seed):
    """q, k, v and the gradient of the output, on the CPU.

    shape: batch, query heads, key heads, query length, key length, head dimension.
    """
    batch, heads, kv_heads, rows, columns, dim = shape
    source = compare.generator(seed)
    q = compare.randn((batch, heads, rows, dim), dtype, source)
    k = compare.randn((batch, kv_heads, columns, dim), dtype, source)
    v = compare.randn((batch, kv_heads, columns, dim), dtype, source)
    return q, k, v, compare.randn((batch, heads, rows, dim), dtype, source)


def with_gradients(function, tensors, grad):
    """Output and gradients of q, k, v for a *random* gradient of the output.

    With the mean of squares as loss every gradient is below 2e-4, and zero would pass for right.
    """
    leaves = [tensor.detach().clone().requires_grad_(True) for tensor in tensors]
    out = function(*leaves)
    out.backward(grad)
    return [out.detach()] + [leaf.grad for leaf in leaves]


def on_device(function, tensors, grad, device):
    """The same on the device, brought back to the CPU; inputs must come back unchanged."""
    placed = [tensor.to(device) for tensor in tensors]
    before = [tensor.clone() for tensor in placed]
    leaves = [tensor.requires_grad_(True) for tensor in placed]
    out = function(*leaves)
    out.backward(grad.to(device))
    results = [out] + [leaf.grad for leaf in leaves]
    for number, leaf in enumerate(leaves):
        if not torch.equal(leaf.detach(), before[number]):
            raise harness.Failure("input {} was changed by the call".format("qkv"[number]))
    return [None if item is None else item.detach().cpu() for item in results]


def judge(function, case, device, out_factor=OUT_FACTOR):
    """One case: forward and backward against double precision. Returns metrics, raises Failure.

    case: shape as for :func:`inputs`, type, seed.
    """
    q, k, v, grad = inputs(*case)
    golden = with_gradients(attention, [t.double() for t in (q, k, v)], grad.double())
    low = with_gradients(attention, (q, k, v), grad)
    found = harness.subject(on_device, function, (q, k, v), grad, device)
    parts = {}
    for number, name in enumerate(NAMES):
        if found[number] is None:
            raise harness.Failure("{} is missing".format(name))
        factor, floor = (out_factor, OUT_FLOOR) if name == "out" else (GRAD_FACTOR, GRAD_FLOOR)
        reference = compare.measure(low[number], golden[number])["max_abs"]
        limit, fro_limit = factor * reference + floor, compare.ATTENTION_FRO[case[1]]
        metrics = compare.within(found[number], golden[number], limit, fro_limit, name)
        parts[name] = {**metrics, "ref_err": reference}
    return compare.worst(parts)
