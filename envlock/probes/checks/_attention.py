"""References for attention, and the rule that judges it.

Layout here is (batch, heads, length, head dimension). Causal masks are aligned bottom-right, as
flash-attn does since 2.1; for equal lengths that is the usual triangle.
"""

import collections
import math

import harness
import torch

compare = harness.sibling("_compare")

#: How many times as far from the double-precision reference as the plain low-precision one:
#: forward as flash-attn's own tests, causal gradients as its tests for ROCm.
OUT_FACTOR, GRAD_FACTOR = 2.0, 10.0
#: torch chooses among several kernels; its own tests allow their causal output twice as much. So
#: do flash-attn's tests for ROCm, for causal output and for packed sequences.
NATIVE_OUT_FACTOR = 4.0
OUT_FLOOR, GRAD_FLOOR = 1e-5, 1e-4
NAMES = ("out", "dq", "dk", "dv")

#: What a call may ask for. window: keys to the left and to the right, -1 for all. slopes: ALiBi,
#: (batch, heads). scale: None for one over the root of the head dimension.
Mode = collections.namedtuple("Mode", "causal window softcap slopes scale")
CAUSAL = Mode(True, (-1, -1), 0.0, None, None)
FULL = CAUSAL._replace(causal=False)

#: Factors on the error of the low-precision reference, and the floors of the limits. capped: the
#: relative Frobenius error has its fixed limit as well.
Rule = collections.namedtuple("Rule", "out dq dkv floor grad_floor capped")
USUAL = Rule(OUT_FACTOR, GRAD_FACTOR, GRAD_FACTOR, OUT_FLOOR, GRAD_FLOOR, True)
#: Scores so large that the weights are nearly 0 and 1: flash-attn's own test of overflow. What is
#: left of the gradients is mostly rounding, in the reference as well.
LARGE = Rule(OUT_FACTOR, 7.0, 5.0, OUT_FLOOR, 1e-3, False)


class Rounded(torch.autograd.Function):
    """To a shorter type and back; gradients too.

    A processor without 16-bit units takes minutes for what this gives in milliseconds: a
    computation in float32 in which every step is stored in the short type.
    """

    @staticmethod
    def forward(ctx, values, dtype):
        ctx.dtype = dtype
        return values.to(dtype).to(values.dtype)

    @staticmethod
    def backward(ctx, grad):
        return grad.to(ctx.dtype).to(grad.dtype), None


def distances(rows, columns):
    """Key position minus query position, (rows, columns), the last ones aligned."""
    queries = torch.arange(rows)[:, None] + (columns - rows)
    return torch.arange(columns) - queries


def hidden(rows, columns, mode=CAUSAL):
    """True where a query does not see a key."""
    ahead = distances(rows, columns)
    left, right = mode.window
    right = 0 if mode.causal else right
    mask = torch.zeros(rows, columns, dtype=torch.bool)
    if right >= 0:
        mask |= ahead > right
    if left >= 0:
        mask |= ahead < -left
    return mask


def scores_of(q, keys, mode, keep):
    """What goes into the softmax, before the mask; every step goes through ``keep``."""
    scale = 1.0 / math.sqrt(q.shape[-1]) if mode.scale is None else mode.scale
    scores = keep(q @ keep(keys * scale).transpose(-1, -2))
    if mode.softcap > 0:
        scores = keep(keep(torch.tanh(keep(scores / mode.softcap))) * mode.softcap)
    if mode.slopes is not None:
        far = distances(q.shape[2], keys.shape[2]).abs().to(q.dtype)
        scores = keep(scores - mode.slopes.to(q.dtype)[..., None, None] * far)
    return scores


def attention(q, k, v, mode=CAUSAL, dtype=None):
    """Attention, step by step, in the type of its inputs; key heads are repeated.

    With a dtype every step is rounded to it: the plain low-precision reference.
    """

    def keep(values):
        return values if dtype is None else Rounded.apply(values, dtype)

    q, k, v = keep(q), keep(k), keep(v)  # for their gradients: these are stored too
    groups = q.shape[1] // k.shape[1]
    keys, values = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    mask = hidden(q.shape[2], k.shape[2], mode)
    weights = scores_of(q, keys, mode, keep).masked_fill(mask, float("-inf")).softmax(-1)
    # a row that sees no key: softmax of nothing is NaN, the answer is zero
    weights = weights.masked_fill(mask.all(-1)[:, None], 0.0)
    return keep(keep(weights) @ values)


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
    # detached: on a processor they are the caller's own, and a second run would add to gradients
    leaves = [tensor.detach().requires_grad_(True) for tensor in placed]
    out = function(*leaves)
    out.backward(grad.to(device))
    results = [out] + [leaf.grad for leaf in leaves]
    for number, leaf in enumerate(leaves):
        if not torch.equal(leaf.detach(), before[number]):
            raise harness.Failure("input {} was changed by the call".format("qkv"[number]))
    return [None if item is None else item.detach().cpu() for item in results]


def judge_part(name, found, golden, low, rule):
    """One of the output and the gradients. low: the low-precision reference of the same."""
    if found is None:
        raise harness.Failure("{} is missing".format(name))
    factor, floor = (rule.out, rule.floor) if name == "out" else (rule.dkv, rule.grad_floor)
    if name == "dq":
        factor = rule.dq
    reference = compare.measure(low, golden)
    fro_limit = compare.ATTENTION_FRO[found.dtype]
    if not rule.capped:
        fro_limit = max(fro_limit, factor * reference["fro_rel"])
    limit = factor * reference["max_abs"] + floor
    metrics = compare.within(found, golden, limit, fro_limit, name)
    return {**metrics, "ref_err": reference["max_abs"]}


def judge_call(function, reference, given, device, rule=USUAL):
    """Forward and backward of a function against double precision. Returns metrics, raises
    Failure.

    reference(q, k, v, dtype=None): the same in the type of its inputs, rounded where there is a
    dtype. given: q, k, v and the gradient of the output, in any layout that both take.
    """
    *tensors, grad = given
    dtype = grad.dtype

    def rounded(*leaves):
        return reference(*leaves, dtype=dtype)

    golden = with_gradients(reference, [item.double() for item in tensors], grad.double())
    low = with_gradients(rounded, [item.float() for item in tensors], grad.float())
    found = harness.subject(on_device, function, tensors, grad, device)
    parts = {}
    for number, name in enumerate(NAMES):
        parts[name] = judge_part(name, found[number], golden[number], low[number], rule)
    return compare.worst(parts)


def judge(function, case, device, out_factor=OUT_FACTOR):
    """One case: causal, forward and backward against double precision.

    case: shape as for :func:`inputs`, type, seed.
    """
    rule = USUAL._replace(out=out_factor)
    return judge_call(function, attention, inputs(*case), device, rule)
