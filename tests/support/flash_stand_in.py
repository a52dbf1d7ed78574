# mypy: ignore-errors
"""Stand-in for flash-attn on the processor, with the signatures of 2.8.

float32 inside, results in the type of the inputs, as the real kernels do. FAULT names what is
broken; the names are in fake_attention.py.
"""

import inspect
import math

import torch

__version__ = "2.8.3"
FAULT = ""
CALLS = [0]


def _hidden(rows, columns, opts):
    shift = columns - rows
    if FAULT == "top-left":
        shift = 0
    ahead = torch.arange(columns) - torch.arange(rows)[:, None] - shift
    left, right = opts["window"]
    mask = torch.zeros(rows, columns, dtype=torch.bool)
    if opts["causal"]:
        right = 1 if FAULT == "next-token" else 0
    if FAULT == "window-ignored":
        left = -1
    if right >= 0 and FAULT != "no-mask":
        mask |= ahead > right
    if left >= 0:
        mask |= ahead < -left - (1 if FAULT == "window-off-by-one" else 0)
    if FAULT == "last-keys" and columns > 1:
        mask[:, -1] = True
    return mask


def _bias(rows, columns, opts, batch):
    slopes = opts["slopes"].float()
    if slopes.dim() == 1:
        slopes = slopes[None]
    if FAULT == "alibi-first-batch":
        slopes = slopes[:1].expand(batch, -1)
    shift = 0 if FAULT == "alibi-top-left" else columns - rows
    far = (torch.arange(columns) - torch.arange(rows)[:, None] - shift).abs()
    return (1 if FAULT == "alibi-sign" else -1) * slopes[..., None, None] * far


def _chosen(heads, kv_heads):
    if FAULT == "heads-interleaved":
        return torch.arange(heads) % kv_heads
    return torch.arange(heads) // (heads // kv_heads)


def _scores(q, keys, opts):
    dim = q.shape[-1]
    used = dim
    if FAULT == "half-head" and dim > 64:
        used = 64
    if FAULT == "wide-heads" and dim >= 160:
        used = 128
    scores = q[..., :used] @ keys[..., :used].transpose(-1, -2) * opts["scale"]
    if opts["softcap"] > 0 and FAULT != "softcap-ignored":
        flat = torch.tanh(scores / opts["softcap"]) * opts["softcap"]
        # the derivative of the cap left out
        scores = scores + (flat - scores).detach() if FAULT == "softcap-backward" else flat
    if opts["slopes"] is not None and FAULT != "alibi-ignored":
        scores = scores + _bias(q.shape[2], keys.shape[2], opts, q.shape[0])
    return scores


def _attend(q, k, v, opts):
    chosen = _chosen(q.shape[1], k.shape[1])
    keys, values = k[:, chosen], v[:, chosen]
    scores = _scores(q, keys, opts)
    hidden = _hidden(q.shape[2], k.shape[2], opts)
    if FAULT == "no-maximum":
        raised = scores.masked_fill(hidden, float("-inf")).exp().half().float()
        weights = raised / raised.sum(-1, keepdim=True)
    else:
        weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
    weights = weights.masked_fill(hidden.all(-1)[:, None], 0.0)
    if opts["kept"] is not None:
        weights = weights * opts["kept"]
    return weights @ values


def _spoil_output(out, q, opts):
    flat = out.view(-1)
    if FAULT == "nan":
        flat[-1] = float("nan")
    if FAULT == "infinite":
        flat[-1] = float("inf")
    if FAULT == "one-element":
        flat[int(flat.abs().argmax())] *= 1.5
    if FAULT == "second-batch":
        out[1:] = out[:1]
    if FAULT == "input-changed":
        q.data.mul_(opts["scale"])
    if FAULT == "race-out" and CALLS[0] % 3 == 2:
        flat[0] += 0.01


def _spoil_gradients(dq, dk, dv, opts):
    dim = dq.shape[-1]
    if FAULT == "dq-zero" or (FAULT == "dq-72-104" and dim in (72, 104)):
        dq.zero_()
    if FAULT == "dk-zero":
        dk.zero_()
    if FAULT == "dv-zero":
        dv.zero_()
    if FAULT == "dq-negated":
        dq.neg_()
    if FAULT == "gradients-scaled":
        dq, dk, dv = dq * 1.05, dk * 1.05, dv * 1.05
    if FAULT == "dk-second-batch":
        dk[1:] = dk[:1].clone()
    if FAULT == "dv-one-element":
        flat = dv.reshape(-1)
        flat[int(flat.abs().argmax())] *= 1.2
        dv = flat.view_as(dv)
    return _spoil_sometimes(dq, dk, dv, opts)


def _spoil_sometimes(dq, dk, dv, opts):
    dim = dq.shape[-1]
    if FAULT == "dq-nan":
        dq.view(-1)[0] = float("nan")
    if FAULT == "outliers-256" and dim == 256 and len(dq) > 1:
        dq, dk = dq.clamp(-40, 40), dk.clamp(-40, 40)  # seen with large values alone
    if FAULT == "race-dk" and CALLS[0] % 3 == 2:
        dk.view(-1)[0] += 0.01
    if FAULT == "not-deterministic" and opts["deterministic"]:
        dq.view(-1)[0] += 0.01 * (CALLS[0] % 2)
    if FAULT == "dq-much-noise":
        dq.view(-1)[0] += 0.1 * (CALLS[0] % 2)
    return dq, dk, dv


class _Kernel(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, opts):
        CALLS[0] += 1
        ctx.opts = opts
        ctx.save_for_backward(q, k, v)
        out = _attend(q.float(), k.float(), v.float(), opts).to(q.dtype)
        _spoil_output(out, q, opts)
        return out

    @staticmethod
    def backward(ctx, grad):
        leaves = [item.detach().float().requires_grad_(True) for item in ctx.saved_tensors]
        opts = ctx.opts
        if FAULT == "dropout-other-mask" and opts["kept"] is not None:
            opts = dict(opts, kept=opts["kept"].flip(-1))
        with torch.enable_grad():
            out = _attend(*leaves, opts)
        dq, dk, dv = torch.autograd.grad(out, leaves, grad.float())
        dq, dk, dv = _spoil_gradients(dq, dk, dv, opts)
        kind = ctx.saved_tensors[0].dtype
        return dq.to(kind), dk.to(kind), dv.to(kind), None


def _kept(q, k, rate):
    """The weights that are left, scaled; None without dropout."""
    if not rate or FAULT == "dropout-none":
        return None
    shape = (q.shape[0], q.shape[1], q.shape[2], k.shape[2])
    if FAULT == "dropout-same-heads":
        shape = (shape[0], 1, *shape[2:])
    used = 0.25 if FAULT == "dropout-rate" else rate
    source = None
    if FAULT == "dropout-unseeded":
        source = torch.Generator().manual_seed(CALLS[0])
    if FAULT == "dropout-one-seed":
        source = torch.Generator().manual_seed(1)
    kept = (torch.rand(shape, generator=source) >= used).float()
    return kept if FAULT == "dropout-unscaled" else kept / (1 - rate)


def _options(q, k, **given):
    dim = q.shape[-1]
    if FAULT == "scale":
        dim = 1 << (dim - 1).bit_length()
    scale = given.get("softmax_scale")
    if scale is None or FAULT == "scale-ignored":
        scale = 1.0 / math.sqrt(dim)
    return {
        "scale": scale,
        "causal": given.get("causal", False),
        "window": given.get("window_size", (-1, -1)),
        "softcap": given.get("softcap", 0.0),
        "slopes": given.get("alibi_slopes"),
        "kept": _kept(q, k, given.get("dropout_p", 0.0)),
        "deterministic": given.get("deterministic", False),
    }


def attention(q, k, v, causal=True, **given):
    """(batch, heads, length, dimension)."""
    return _Kernel.apply(q, k, v, _options(q, k, causal=causal, **given))


def flash_attn_func(
    q,
    k,
    v,
    dropout_p=0.0,
    softmax_scale=None,
    causal=False,
    window_size=(-1, -1),
    softcap=0.0,
    alibi_slopes=None,
    deterministic=False,
    return_attn_probs=False,
):
    """(batch, length, heads, dimension)."""
    if FAULT == "strides" and len(q) > 1 and not q.is_contiguous():
        q = q.as_strided(q.shape, torch.empty(q.shape).stride())
    if FAULT == "offset-ignored" and q.storage_offset():
        q = q.as_strided(q.shape, q.stride(), 0)
    q, k, v = (item.transpose(1, 2) for item in (q, k, v))
    out = attention(
        q, k, v, causal, dropout_p=dropout_p, softmax_scale=softmax_scale,
        window_size=window_size, softcap=softcap, alibi_slopes=alibi_slopes,
        deterministic=deterministic,
    ).transpose(1, 2)  # fmt: skip
    if not return_attn_probs:
        return out
    lse = q.float().logsumexp(-1)
    if FAULT == "race-lse" and CALLS[0] % 3 == 2:
        lse.view(-1)[0] += 0.01
    return out, lse, None


def flash_attn_qkvpacked_func(qkv, causal=False):
    """(batch, length, 3, heads, dimension)."""
    q, k, v = qkv.unbind(2)
    if FAULT == "packed-swapped":
        k, v = v, k
    return flash_attn_func(q, k, v, causal=causal)


def flash_attn_kvpacked_func(q, kv, causal=False):
    """kv is (batch, length, 2, heads, dimension)."""
    k, v = kv.unbind(2)
    if FAULT == "kv-packed-swapped":
        k, v = v, k
    return flash_attn_func(q, k, v, causal=causal)


class _Unwritten(torch.autograd.Function):
    """The gradient of what nobody asked for is whatever was in memory."""

    @staticmethod
    def forward(ctx, values, parts):
        ctx.parts = parts
        return values.clone()

    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        for part in ctx.parts:
            grad[part] = float("nan") if FAULT == "empty-nan" else 1e-6
        return grad, None


def flash_attn_varlen_func(
    q,
    k,
    v,
    cu_seqlens_q,
    cu_seqlens_k,
    max_seqlen_q,
    max_seqlen_k,
    causal=False,
):
    """(tokens, heads, dimension), one sequence after another."""
    starts, key_starts = cu_seqlens_q.tolist(), cu_seqlens_k.tolist()
    if FAULT.startswith("empty-"):
        empty = [
            slice(key_starts[number], key_starts[number + 1])
            for number in range(len(starts) - 1)
            if starts[number] == starts[number + 1]
        ]
        k, v = _Unwritten.apply(k, empty), _Unwritten.apply(v, empty)
    parts = []
    for number in range(len(starts) - 1):
        rows = slice(starts[number], starts[number + 1])
        near = slice(key_starts[number], key_starts[number + 1])
        if FAULT == "sequences-mixed" and number:
            near = slice(near.start - 1, near.stop)
        if FAULT == "last-sequence" and number == len(starts) - 2:
            parts.append(q[rows] * 0)
            continue
        one = [item.transpose(0, 1)[None] for item in (q[rows], k[near], v[near])]
        parts.append(attention(*one, causal)[0].transpose(0, 1))
    return torch.cat(parts)


def _unpaged(cache, table):
    if table is None:
        return cache
    if FAULT == "table-ignored":
        table = torch.arange(table.numel()).view_as(table)
    return cache[table.long()].reshape(len(table), -1, *cache.shape[2:])


def _append(cache, new, lengths, table):
    for number, length in enumerate(lengths):
        for place in range(new.shape[1]):
            where = length + place
            if FAULT == "append-shifted":
                where = min(where + 1, cache.shape[1] - 1)
            row, column = number, where
            if table is not None:
                page = cache.shape[1]
                row, column = int(table[number, where // page]), where % page
            cache[row, column] = new[number, place]
            if FAULT == "append-too-much":
                cache[row, (column + 1) % cache.shape[1]] = 0


def flash_attn_with_kvcache(
    q, k_cache, v_cache, k=None, v=None, cache_seqlens=None, block_table=None, causal=False
):
    """Appends k and v in place, then one step of decoding."""
    lengths = cache_seqlens.tolist()
    if k is not None:
        if FAULT != "append-lost":
            _append(k_cache, k, lengths, block_table)
            _append(v_cache, v, lengths, block_table)
        lengths = [length + k.shape[1] for length in lengths]
    keys, values = _unpaged(k_cache, block_table), _unpaged(v_cache, block_table)
    parts = []
    for number, length in enumerate(lengths):
        if FAULT == "length-ignored":
            length = keys.shape[1]
        if FAULT == "split-lost" and length > 512:
            length -= 128
        own = q[number : number + 1].transpose(1, 2)
        one = [item[number : number + 1, :length].transpose(1, 2) for item in (keys, values)]
        parts.append(attention(own, *one, causal))
    return torch.cat(parts).transpose(1, 2)


def _old(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False):
    """What flash-attn 2.0 knew."""
    return NEW(q, k, v, dropout_p, softmax_scale, causal)


def _eight_bits(q, k, v, causal=False, q_descale=None, k_descale=None, v_descale=None, **more):
    """A function that takes 8-bit inputs as well."""
    if q_descale is None:
        return NEW(q, k, v, causal=causal, **more)
    short = [item.float().half() for item in (q, k, v)]
    out = NEW(*short, causal=causal)
    return out * 1.5 if FAULT == "eight-bits-wrong" else out


def _no_kernel(*given, softcap=0.0, **more):
    if softcap > 0:
        raise RuntimeError("this build does not support softcap")
    return NEW(*given, **more)


def _wrapped(*given, **more):
    """A wrapper whose signature says nothing."""
    return NEW(*given, **more)


_no_kernel.__signature__ = inspect.signature(flash_attn_func)
_eight_bits.__signature__ = inspect.signature(flash_attn_func).replace(
    parameters=[
        *inspect.signature(flash_attn_func).parameters.values(),
        *(
            inspect.Parameter(name + "_descale", inspect.Parameter.KEYWORD_ONLY, default=None)
            for name in "qkv"
        ),
    ]
)
NEW, CACHED = flash_attn_func, flash_attn_with_kvcache
VERSIONS = {
    "old": _old,
    "wrapped": _wrapped,
    "no-softcap-kernel": _no_kernel,
    "eight-bits": _eight_bits,
    "eight-bits-wrong": _eight_bits,
}


def become(fault):
    """Sets the fault; some are in the signature."""
    global FAULT, flash_attn_func, flash_attn_with_kvcache
    FAULT = fault
    CALLS[0] = 0
    flash_attn_func = VERSIONS.get(fault, NEW)
    flash_attn_with_kvcache = None if fault == "old" else CACHED
