"""Stand-ins for flash-attn: a right one for the processor, and broken ones.

Each fault is one that real kernels had: nothing of it raises, all of it is finite unless the fault
is NaN itself, and all of it is wrong.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

#: Faults by name, and what they are.
FAULTS = {
    "dq-zero": "no gradient for q",
    "dk-zero": "no gradient for k",
    "dv-zero": "no gradient for v",
    "dq-negated": "the gradient of q has the wrong sign",
    "gradients-scaled": "all gradients five per cent too large",
    "dk-second-batch": "the gradient of k is the first batch's everywhere",
    "dq-nan": "one NaN in the gradient of q",
    "dv-one-element": "one element of the gradient of v a fifth too large",
    "nan": "one NaN in the output",
    "infinite": "one infinity in the output",
    "one-element": "one element of the output one and a half times too large",
    "top-left": "the causal mask is aligned top-left where lengths differ",
    "next-token": "the causal mask lets one future token through",
    "no-mask": "not causal at all",
    "scale": "the scale of the padded head dimension",
    "half-head": "only the first 64 elements of a longer head",
    "heads-interleaved": "key heads are assigned in turn instead of in groups",
    "last-keys": "the last key is dropped",
    "second-batch": "the first batch's output everywhere",
    "input-changed": "q is scaled in place",
}

#: Faults that cannot show where lengths are equal and every head has its own keys.
ONLY_GROUPED_OR_CROSS = frozenset({"top-left", "heads-interleaved"})

_MODULE = '''
"""Stand-in for flash-attn on the processor."""

import math

import torch

__version__ = "2.8.3"
FAULT = @FAULT@


def _mask(rows, columns):
    shift = columns - rows
    if FAULT == "top-left":
        shift = 0
    if FAULT == "next-token":
        shift += 1
    hidden = torch.ones(rows, columns, dtype=torch.bool).triu(shift + 1)
    if FAULT == "no-mask":
        hidden[:] = False
    if FAULT == "last-keys" and columns > 1:
        hidden[:, -1] = True
    return hidden


def _attend(q, k, v, scale):
    heads, groups = q.shape[1], q.shape[1] // k.shape[1]
    if FAULT == "heads-interleaved":
        chosen = torch.arange(heads) % k.shape[1]
    else:
        chosen = torch.arange(heads) // groups
    keys, values = k[:, chosen], v[:, chosen]
    if FAULT == "half-head" and q.shape[-1] > 64:
        scores = q[..., :64] @ keys[..., :64].transpose(-1, -2) * scale
    else:
        scores = q @ keys.transpose(-1, -2) * scale
    hidden = _mask(q.shape[2], k.shape[2])
    weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
    return weights.masked_fill(hidden.all(-1)[:, None], 0.0) @ values


class _Kernel(torch.autograd.Function):
    """float32 inside, results in the type of the inputs, as the real kernels do."""

    @staticmethod
    def forward(ctx, q, k, v, scale):
        ctx.scale = scale
        ctx.save_for_backward(q, k, v)
        out = _attend(q.float(), k.float(), v.float(), scale).to(q.dtype)
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
            q.data.mul_(scale)
        return out

    @staticmethod
    def backward(ctx, grad):
        leaves = [item.detach().float().requires_grad_(True) for item in ctx.saved_tensors]
        with torch.enable_grad():
            out = _attend(*leaves, ctx.scale)
        dq, dk, dv = torch.autograd.grad(out, leaves, grad.float())
        if FAULT == "dq-zero":
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
        if FAULT == "dq-nan":
            dq.view(-1)[0] = float("nan")
        kind = ctx.saved_tensors[0].dtype
        return dq.to(kind), dk.to(kind), dv.to(kind), None


def attention(q, k, v):
    """Causal, (batch, heads, length, dimension)."""
    dim = q.shape[-1]
    if FAULT == "scale":
        dim = 1 << (dim - 1).bit_length()
    return _Kernel.apply(q, k, v, 1.0 / math.sqrt(dim))


def flash_attn_func(q, k, v, causal=False):
    """Causal, (batch, length, heads, dimension)."""
    assert causal, "this stand-in knows the causal mask only"
    q, k, v = (item.transpose(1, 2) for item in (q, k, v))
    return attention(q, k, v).transpose(1, 2)
'''


def write_flash_attn(site: Path, fault: str = "", version: str = "2.8.3+das.opt1.dtk2604") -> Path:
    """Installs the stand-in as a distribution; ``fault`` is a key of :data:`FAULTS` or empty.

    Returns:
        The module's file.
    """
    assert not fault or fault in FAULTS
    module = _put(site / "flash_attn" / "__init__.py", _MODULE.replace("@FAULT@", repr(fault)))
    info = site / f"flash_attn-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: flash_attn\nVersion: {version}\n"
    files = [module, _put(info / "METADATA", metadata), _put(info / "INSTALLER", "fake\n")]
    rows = [f"{path.relative_to(site)},{_hash(path)},{path.stat().st_size}" for path in files]
    _put(info / "RECORD", "\n".join([*rows, f"{info.name}/RECORD,,"]) + "\n")
    return module


def _put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _hash(path: Path) -> str:
    digest = hashlib.sha256(path.read_bytes()).digest()
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
